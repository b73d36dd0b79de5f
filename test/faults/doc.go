// Package faults lets agents work while their surroundings fail: networks on both sides of the proxy, server processes,
// and the whole server. Sessions have their own connections, or share them in a pool.
//
// Each session writes and reads rows with its own mark. The test fails if an answer holds rows of another session, or
// if a transaction is never answered. It also fails if a transaction is lost although its commit was acknowledged, or
// if rows of a rolled back one are there. After a round, the proxy must not have more sessions, connections to the
// server, goroutines or descriptors than before. It must serve every agent.
//
// `make test` runs a few rounds with a fixed seed, `make soak` runs them for as long as it is told. Faults of the
// program as a process are tested in cmd/pgconsent, and connections that end at any byte in proxy.
package faults
