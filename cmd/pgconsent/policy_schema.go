package main

import (
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/policy"
)

type policySchemaCmd struct {
	Of string `arg:"" optional:"" enum:"policy,configuration" default:"policy" help:"policy or configuration. Default: policy."`
}

func (policySchemaCmd) Help() string {
	return `A JSON Schema, draft 2020-12, by which editors complete and check a policy while it is written.

  pgconsent policy schema > policy.schema.json
  pgconsent policy schema configuration > pgconsent.schema.json

Most editors take it from a first line: # yaml-language-server: $schema=policy.schema.json`
}

func (p policySchemaCmd) Run(s *session) error {
	text := policy.Schema()
	if p.Of == "configuration" {
		text = config.Schema()
	}
	_, err := s.out.Write(text)
	return err
}
