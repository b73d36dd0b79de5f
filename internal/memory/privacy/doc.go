// Package privacy is the service for memories and their grants: it makes memories, grants and revokes, records consent,
// makes and shows contexts, and tells who sees what.
//
// It knows no table by name: the section privacy of a policy names the tables and columns. Every change runs as the
// caller, on the caller's own connection through the proxy. The policy decides as for any SQL, and the same audit
// records are made. [Service.Audit] reads more than a caller may, and tells the caller only what concerns it as the
// owner of a store, as a subject, or as the subject's guardian. Others get the same answer as for a memory that does
// not exist.
package privacy
