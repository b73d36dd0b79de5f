// Package available measures what agents notice while owners create, alter and drop tables. It counts refused
// statements and logins, and measures how long a lookup takes. `make bench-available` runs it, and writes
// docs/explanation/performance.md.
package available
