// Package instance starts what the harness holds against its oracles: databases of the test server, migrated under a
// policy, behind one proxy in this process, reached over the wire by agents and past it by the superuser.
//
// It is for tests: package pgtest must have been started by the test binary's TestMain.
package instance
