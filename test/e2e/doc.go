// Package e2e has the end-to-end tests: real clients, the real proxy, and a real PostgreSQL with the example world
// arcive.
//
// The tests compare pgconsent's answers with PostgreSQL's. One comparison is with a copy of the database from which the
// invisible rows were physically deleted (oracle), another with a copy that has other invisible rows (pairs). All bytes
// that an agent receives are searched for the markers in hidden rows (tap).
package e2e
