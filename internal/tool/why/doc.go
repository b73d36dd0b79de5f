// Package why says why an agent sees a row or does not: block by block of the policy, with the row that decides.
//
// It is for the owner of the data: it reads hidden rows with the owner's rights, in one snapshot, and changes nothing.
// Each block is evaluated by the server, in the form that package predicate writes for the owner, so that a verdict is
// that of the row policies; where the agent's role can be asked as well, its answer is held beside it.
package why
