// Package wire measures what the proxy costs, in comparison with PgBouncer and with a direct connection. It measures
// transactions per second, latencies, the memory of idle sessions, and the throughput of large results. It also
// measures the CPU time per transaction of the server, of the process in between, and of the client.
//
// Absolute figures of one machine say little. Therefore ratios are computed within one round, in which each of the
// three runs once. The report has the median of the rounds and its quartiles. `make bench-wire` runs the measurement,
// and writes its part of docs/explanation/performance.md.
package wire
