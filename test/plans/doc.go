// Package plans measures what enforcement costs. On one large data set, it compares statements that pgconsent has
// rewritten with queries in which the same rules are written by hand.
//
// It measures the CPU time of the server's backend for parsing, planning and execution. All data are in memory, so that
// other load on the machine has little influence. `make bench-plans` runs the measurement, and writes the table in
// docs/explanation/performance.md.
package plans
