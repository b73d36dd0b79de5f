// Command run checks the code and runs its tests, as `make test` and `make test-all` do. It runs format, vet and
// staticcheck, then every package against one PostgreSQL server, which it starts and stops. It says at the end how many
// tests passed, failed and were skipped, why they were skipped, and with -times what each package took.
//
// It exits with 0 if all passed, with 1 if something failed, and with 2 if it was called wrongly. Interrupted, it ends
// the tests and the server first.
package main
