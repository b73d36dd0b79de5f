// Package config reads the configuration of pgconsent: who logs in, what a credential is worth, which databases there
// are.
//
// It guarantees that what [Load] returns is complete and consistent: an unknown key, a listener off loopback without
// TLS, an agent that is also an owner, a secret that others can read are errors, each with file, line, column and
// remedy, all of them at once. It does not look at the databases: that is the doctor's work.
// docs/reference/configuration.md lists every key; a test compares it with the code.
package config
