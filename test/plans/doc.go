// Package plans measures what the walls cost: the same queries by hand and as pgconsent sends them, on one large data
// set.
//
// What is measured is the CPU time of the server's process, parsing, planning and running, with everything in memory, so
// that other load on the machine shows as little as it can. Run it by make bench-plans, which writes the table of
// docs/explanation/performance.md.
package plans
