// Package wire measures what the proxy costs, compared with PgBouncer and with a direct connection. It measures
// transactions per second and latencies. For one transaction it measures the CPU time of the server, of the process
// between, and of the client. It also measures the memory of idle sessions, and the throughput of large results.
//
// Absolute figures of one machine say little. So ratios are formed within one round, in which each contender runs once.
// The report has the median of the rounds with its quartiles. Run it by make bench-wire, which writes its part of
// docs/explanation/performance.md.
package wire
