// Package wire measures what the proxy costs beside PgBouncer and beside no proxy at all. It measures transactions per
// second, latencies, and for one transaction the CPU time of server, process between and client. It also measures the
// memory of idle sessions, and the throughput of streams.
//
// Figures of one machine say little. So ratios are formed within one round, in which each contender runs once, and
// printed is the median of the rounds with its quartiles. Run it by make bench-wire, which writes its part of
// docs/explanation/performance.md.
package wire
