// Package plans measures what enforcement costs. It compares statements that pgconsent has rewritten with the same
// queries in which the rules are written by hand, on one large data set.
//
// It measures the CPU time of the server's process for parsing, planning and running. Everything is in memory, so that
// other load on the machine shows as little as possible. Run it by make bench-plans, which writes the table of
// docs/explanation/performance.md.
package plans
