// Package config reads the configuration of pgconsent: the logins of agents, their attributes, and the databases.
//
// It guarantees that a configuration of [Load] is complete and consistent: an unknown key, a listener outside of loopback
// without TLS, an agent that is also an owner, a secret that others can read are errors, each with file, line, column and
// remedy, all of them at once. It does not connect to the databases: the doctor does.
// docs/reference/configuration.md lists every key; a test compares it with the code.
package config
