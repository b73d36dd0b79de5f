// Package registry stores consent records in PostgreSQL, in schema pgconsent. It works as the control role.
//
// Guarantee: [Registry.Execute] makes the records of a change in one transaction, then names the last one in the
// anchor, and only then returns. The anchor is a file of the proxy. Such a change is active, and its removal will be
// noticed. A call that is repeated with the same key, or that a restart of PostgreSQL has interrupted, changes the
// registry only once. [Registry.Verify] finds each record that somebody has changed, removed, swapped or added, and a
// rewritten chain. It finds that newest records are missing if the anchor names a later one. It also finds current
// consents that do not follow from the records, and triggers, functions or rights that migrate did not install.
//
// Not guaranteed: somebody with the key file and write access to the database can make a valid chain. Without the
// anchor file nobody can tell whether the newest records are there.
//
// No record names a person. Records have references, and details encrypted with a key of the subject, which is itself
// encrypted with a key of the key file. Erasure destroys the name and the key of a reference; the chain still verifies.
package registry
