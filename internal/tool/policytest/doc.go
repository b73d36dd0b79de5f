// Package policytest runs tests of a policy: files that say which rows a caller sees, which statements are refused, and
// what changes when the owner changes something.
//
// A test runs on databases of its own, with the same enforcement as serve: the policy is installed as migrate installs
// it, and a caller's statements go through the proxy over the wire. Nothing is evaluated here instead of in the
// database. No test sees the changes of another. The databases, the roles and the server that were made are removed at
// the end, also after an error.
package policytest
