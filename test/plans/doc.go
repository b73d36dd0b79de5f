// Package plans measures what enforcement costs: the same queries by hand and as pgconsent sends them, on one large
// data set.
//
// It measures the CPU time of the server's process for parsing, planning and running. Everything is in memory, so that
// other load on the machine shows as little as possible. Run it by make bench-plans, which writes the table of
// docs/explanation/performance.md.
package plans
