// Package e2e holds the end-to-end tests: real clients, the real proxy, a real PostgreSQL with the arcive world.
//
// They compare pgconsent with PostgreSQL and not with itself. Every answer is compared with PostgreSQL's on a copy
// from which the invisible rows were physically deleted (oracle), and on a twin that differs in invisible rows only
// (pairs). Every byte an agent receives is searched for the markers that hidden rows carry (tap).
package e2e
