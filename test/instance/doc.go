// Package instance starts what the harness compares with its oracles: migrated databases of the test server behind one
// proxy in this process. Agents reach them through the proxy, and the superuser reaches them directly.
//
// It is for tests: the TestMain of the test binary must have started package pgtest.
package instance
