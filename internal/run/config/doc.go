// Package config reads the configuration of pgconsent: the logins of agents, their attributes, and the databases.
//
// Guarantee: a configuration that [Load] returns is complete and consistent. Errors are, for example, an unknown key, a
// listener outside of loopback without TLS, an agent that is also an owner, or a secret that others can read. [Load]
// reports all errors at once, each with file, line, column and remedy. It does not connect to the databases, as
// pgconsent doctor does. docs/reference/configuration.md lists every key; a test compares it with the code.
package config
