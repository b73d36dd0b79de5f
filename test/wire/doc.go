// Package wire measures what the proxy costs beside PgBouncer and beside no proxy at all: transactions per second, CPU
// time of server, process between and client for one, latencies, the memory of idle sessions, and the throughput of
// streams.
//
// Figures of one machine say little: ratios are formed within one round, in which each contender has its turn, and what
// is printed is the median of the rounds with its quartiles. Run it by make bench-wire, which writes its part of
// docs/explanation/performance.md.
package wire
