// Command run checks the code and runs its tests. `make test` and `make test-all` call it. It runs gofmt, vet and
// staticcheck, and then the tests of every package, with one PostgreSQL server that it starts and stops. In the end it
// prints how many tests passed, failed and were skipped, and why they were skipped. With -times it also prints how long
// each package took.
//
// The exit code is 0 if everything passed, 1 if something failed, and 2 if the command line is wrong. When it is
// interrupted, the command first ends the tests and the server.
package main
