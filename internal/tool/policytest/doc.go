// Package policytest runs tests of a policy: files that say which rows a caller sees, which statements are refused, and
// what changes when the owner changes data.
//
// A test runs on its own databases, enforced as serve does it: migrate installs the policy, and a caller's statements
// go through a proxy over the wire. This package never evaluates the policy itself. No test sees the changes of
// another. At the end, also after an error, the package removes the databases, the roles and the server that it made.
package policytest
