// Package policytest runs tests of a policy: files that say which rows a caller sees, which statements are refused, and
// what changes when the owner changes something.
//
// A test runs on databases that exist for it alone, through the enforcement that serve uses: the policy is installed as
// migrate installs it, and a caller's statements go over the wire through the proxy. Nothing is evaluated here in place
// of the database. What a test changes, no other test sees. The databases, the roles and the server that were made are
// removed at the end, also after an error.
package policytest
