//go:build unix

// Package pgcluster finds PostgreSQL binaries and runs a private PostgreSQL cluster as a child process.
//
// It guarantees that a cluster is initialised completely or not at all, that one process at a time uses a folder, and
// that [Cluster.Stop] stops the server that [Start] has started and no other. On Linux the server also ends when this
// process is killed; elsewhere it keeps running, and the next Start says how to stop it.
//
// It does not guarantee durability if not asked: with [Config.NoSync] a crash of the machine may lose the cluster.
package pgcluster
