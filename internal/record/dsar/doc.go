// Package dsar makes the access report to which a data subject has a right under Article 15 of the GDPR. The report
// comes from the consent registry, the audit logs and the subject's own rows.
//
// Guarantee: the report has every allowed statement in the given logs that used a table with the subject's rows and
// returned anything. It is called exact if it returned such rows, and possible, with the reason, if it may have. It is
// left out only if the log proves that none of the present rows was in its answer. The report does not name other
// persons itself. It does not know what happened without pgconsent, nor rows that others than pgconsent have deleted.
//
// The package itself reads only audit logs. Callers pass facts from the registry and the subject's rows to it.
package dsar
