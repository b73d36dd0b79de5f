package main

import (
	"path/filepath"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

// source hands f where the records of a log are, at one moment.
func (s *session) source(c *config.Config, a config.Audit, f func(audit.Source) error) error {
	return serve.AuditSource(s.ctx, c, a, false, f)
}

// logName is a log as output names it.
func logName(a config.Audit) string {
	if a.Sink == config.SinkDatabase {
		return serve.LogName(a)
	}
	return filepath.Base(a.File)
}
