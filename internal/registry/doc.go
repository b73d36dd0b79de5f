// Package registry keeps consent records in PostgreSQL, schema pgconsent, as the control role.
//
// Guarantee: [Registry.Do] makes the records of a change in one transaction, anchors the last one in a file of the
// proxy's, and returns only then: what it acknowledges is in force and will be missed if somebody cuts it off. A call
// that is made again with the same key, or that a restart of the database has interrupted, is done once.
// [Registry.Verify] finds every record that was changed, dropped, swapped or added, a chain that was worked out anew, a
// tail that was cut off behind the anchor, a fold that is not that of the records, and triggers, functions or rights
// that are not those of migrate.
//
// Not guaranteed: who has the key file as well as the database can write a chain that holds. Without the anchor's file
// nobody can say that the newest records are there.
//
// No record names a person: it has references, and what is sealed with a key of the subject's, which is wrapped with the
// key file's. Erasure forgets the reference's name and key; the chain goes on holding.
package registry
