// Package available measures what agents notice of what owners do to the schema: how many statements and logins are
// refused, and how long a lookup takes, while tables are made, altered and dropped. `make bench-available` runs it, and
// writes docs/explanation/performance.md.
package available
