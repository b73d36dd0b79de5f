// Package dsar makes the report that a data subject has a right to, with what Article 15 of the GDPR asks for: from the
// consent registry, the audit and the subject's own rows.
//
// Guarantee: every statement in the given logs that was allowed, used a table with the subject's rows and returned
// anything is in the report: as exact if it returned such rows, as possible if it may have, with the reason. It is left
// out only if the log proves that none of the present rows was in its answer. The report does not name other persons
// itself. It does not know what happened past pgconsent, or rows that others than pgconsent have deleted.
//
// The package reads audit logs and nothing else; facts from the registry and from rows are passed to it.
package dsar
