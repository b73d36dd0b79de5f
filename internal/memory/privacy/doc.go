// Package privacy does what owners and callers do with grants: it makes memories with their grants, grants and revokes,
// records consent, makes and shows contexts, and says who sees what.
//
// It knows no table by name: the section privacy of a policy says where everything stands. What changes rows runs as
// the caller, by the caller's own connection through the proxy: the policy decides, here as for any SQL, and the same
// records are made. [Desk.Audit] reads more than a caller may, and tells it what concerns it alone: the owner of a
// store, a subject, the subject's guardian. For anybody else, and for what is not there, the answer is the same.
package privacy
