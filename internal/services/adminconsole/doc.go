// Package adminconsole serves operators over the PostgreSQL protocol. They can query tables about the process (SHOW
// SESSIONS, POOLS, STATS, POLICY, SUSPENDED, VERSION, HELP), and act on it (RELOAD, PAUSE, RESUME, KILL).
//
// Guarantee: an answer contains only what a [Service] returns. The console connects to no database and parses no SQL. A
// command that acts is recorded and logged with the operator's name and its outcome. An operator who is no longer
// allowed runs no further command.
//
// Not here: the login, which is in package proxy, and the list of operators.
package adminconsole
