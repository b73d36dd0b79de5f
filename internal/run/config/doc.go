// Package config reads the configuration of pgconsent: the logins of agents, their attributes, and the databases.
//
// It guarantees that a configuration of [Load] is complete and consistent. Errors are an unknown key, a listener
// outside of loopback without TLS, an agent that is also an owner, or a secret that others can read. All are reported
// at once, each with file, line, column and remedy. It does not connect to the databases: the doctor does.
// docs/reference/configuration.md lists every key; a test compares it with the code.
package config
