// Package adminconsole serves operators over the PostgreSQL protocol: tables about the process (SHOW SESSIONS, POOLS,
// STATS, POLICY, SUSPENDED, VERSION, HELP), and commands that act on it (RELOAD, PAUSE, RESUME, KILL).
//
// Guarantee: it answers from what a [Service] returns and from nothing else; it reaches no database and parses no SQL.
// A command that acts is recorded and logged with the operator's name and its outcome. An operator who is no longer
// allowed runs no further command.
//
// Not here: who is an operator, and the login, which package proxy makes.
package adminconsole
