// Package e2e holds the end-to-end tests: real clients, the real proxy, a real PostgreSQL with the arcive world.
//
// They hold pgconsent against its promise and not against itself: every answer is compared with what PostgreSQL says on
// a copy from which the invisible rows were physically deleted (oracle), on a twin that differs in invisible rows only
// (pairs), and every byte an agent receives is searched for the markers that hidden rows carry (tap).
package e2e
