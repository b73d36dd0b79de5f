// Package available measures what agents notice while owners create, alter and drop tables. It counts the statements
// and logins of agents that are refused, and measures how long a SELECT of one row takes. `make bench-available` runs
// the measurement, and writes docs/explanation/performance.md.
package available
