// Package dsar makes the report that a data subject has a right to: what Article 15 of the GDPR asks for, from the
// consent registry, the audit and the subject's own rows.
//
// Guarantee: every statement in the logs given that was allowed, ran over a table of the subject's rows and returned
// anything is in the report, as one that returned them (exact), as one that may have (possible, with the reason why
// nobody can say), or not at all where the log proves that none of the rows that there are now was in the answer. The
// report names no other person by itself. It does not know of what happened past pgconsent, nor of rows that were
// deleted by others than it.
//
// The package reads audit directories and nothing else; what it says of the registry and of rows is handed to it.
package dsar
