// Package registry keeps consent records in PostgreSQL, in schema pgconsent, as the control role.
//
// Guarantee: [Registry.Execute] makes the records of a change in one transaction, then writes the last one into the
// anchor, a file of the proxy, and only then returns. A change that it has acknowledged is active, and its removal will
// be noticed. A call that is repeated with the same key, or that a restart of the database has interrupted, is made
// once. [Registry.Verify] finds every record that was changed, removed, swapped or added, a rewritten chain, and newest
// records that were cut off behind the anchor. It also finds a table of current consents that does not follow from the
// records, and triggers, functions or rights that migrate did not install.
//
// Not guaranteed: with the key file and write access to the database somebody can make a valid chain. Without the
// anchor's file it is not known whether the newest records are there.
//
// No record names a person. Records have references, and details sealed with a key of the subject, which is itself
// wrapped with a key of the key file. Erasure destroys the name and the key of a reference; the chain still verifies.
package registry
