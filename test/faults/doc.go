// Package faults runs agents' sessions while something fails: the network on either side of the proxy, a server
// process, or the whole server. Sessions have their own connections to the server, or share those of a pool.
//
// Each session writes and reads rows with its own mark. The test fails if an answer holds rows of another session, or
// if a transaction is never answered. It also fails if a transaction is lost although its commit was acknowledged, or
// if rows of a rolled back one are there. After a round, the proxy must not have more sessions, connections to the
// server, goroutines or descriptors than before. It must serve every agent.
//
// `make test` runs a few rounds with a fixed seed, `make soak` runs them for a given time. cmd/pgconsent has the tests
// in which the pgconsent process fails, and package proxy those in which a connection ends at each possible byte.
package faults
