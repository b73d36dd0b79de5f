// Package privacy is the service for memories of agents: it makes memories, grants and revokes access to them, records
// consents, makes and shows contexts, and says who sees what.
//
// It knows no table by name: the section privacy of a policy names the tables and columns. Every change runs as the
// caller, on a connection of the caller through the proxy. So the policy decides as for any SQL, with the same audit
// records. [Service.Audit] reads more than a caller may. It tells the caller only what concerns the caller as the owner
// of a store, as a subject, or as a subject's guardian. Others get the same answer as for a memory that does not exist.
package privacy
