// Package why tells why an agent sees a row or does not: block by block of the policy, with the row that decides.
//
// It is for the owner of the data: it reads hidden rows with the owner's rights, in one snapshot, and changes nothing.
// The server evaluates each block in the form that package predicate writes for the owner, so a verdict is the same as
// that of the row policies. Where it can also connect as the agent's role, it compares the two.
package why
