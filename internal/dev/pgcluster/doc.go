//go:build unix

// Package pgcluster finds PostgreSQL binaries and runs a private PostgreSQL cluster as a child process.
//
// A cluster is initialised completely or not at all, and only one process at a time uses its folder. [Cluster.Stop]
// stops only the server that [Start] has started. On Linux, the server also ends when this process is killed. On other
// systems it keeps running, and the next Start says how to stop it.
//
// With [Config.NoSync], a crash of the machine may destroy the cluster.
package pgcluster
