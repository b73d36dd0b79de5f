// Package faults lets agents work while their surroundings break: networks on both sides of the proxy, processes of the
// server, and the whole server. Sessions have their own connections, or share them.
//
// Each session writes and reads marks of its own. It fails the test if an answer holds anything but them, or if a
// transaction is never answered. It also fails if a transaction whose commit was acknowledged is lost, or one that was
// rolled back is there. When a round is over, the proxy has no session, connection to the server, goroutine or
// descriptor more than before. It serves every agent.
//
// `make test` runs a few rounds of a fixed seed, `make soak` runs them for as long as it is told. Faults of the program as
// a process are tested in cmd/pgconsent, and a cut at every byte in proxy.
package faults
