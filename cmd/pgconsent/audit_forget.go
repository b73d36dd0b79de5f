package main

import (
	"errors"
	"fmt"
)

type auditForgetCmd struct {
	Subject  string `required:"" placeholder:"ID" help:"The person, as attributes of agents name them."`
	Database string `placeholder:"NAME" help:"Only in this database. Default: in all."`
}

func (auditForgetCmd) Help() string {
	return `The records stay and the chain still verifies, but the references of this person can no longer be resolved. A person who is
erased with pgconsent consent erase is forgotten as well. Exit code 1 if the audit knows no such person.

  pgconsent audit forget --subject 6f1e0000-0000-4000-8000-000000000001`
}

func (f auditForgetCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	forgottenIn := []string{}
	if err := s.forEachDatabase(c, f.Database, asControl, func(t targetDatabase) error {
		var wasKnown bool
		if err := t.conn.QueryRow(s.ctx, "SELECT pgconsent.audit_forget($1)", f.Subject).Scan(&wasKnown); err != nil {
			return err
		}
		if wasKnown {
			forgottenIn = append(forgottenIn, t.name)
		}
		return nil
	}); err != nil {
		return err
	}
	if s.jsonOutput {
		if err := s.printJSON(map[string]any{"forgotten": forgottenIn}); err != nil {
			return err
		}
	}
	switch {
	case len(forgottenIn) == 0 && s.jsonOutput:
		return errSilent
	case len(forgottenIn) == 0:
		return errors.New("the audit knows no such person: no session has read on behalf of them, or they were forgotten")
	case !s.jsonOutput:
		fmt.Fprintf(s.out,
			"Forgotten in %d of the databases. The configuration and backups of the database may still name them.\n", len(forgottenIn))
	}
	return nil
}
