// Package why tells why an agent sees a row or does not: block by block of the policy, with the row that decides.
//
// It is for the owner of the data: it reads hidden rows with the owner's rights, in one snapshot, and changes nothing.
// PostgreSQL evaluates each block in the form that package predicate writes for the owner, so the result is that of the
// row policies. If the package can also connect as the agent role, it compares the result with row security.
package why
