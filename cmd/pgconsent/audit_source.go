package main

import (
	"path/filepath"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

// withAuditSource calls f with the records of a log, which are in a folder, or in a snapshot of a database.
func (s *session) withAuditSource(c *config.Config, a config.Audit, f func(audit.Source) error) error {
	return serve.AuditSource(s.ctx, c, a, false, f)
}

// logName returns the name of a log for the output.
func logName(a config.Audit) string {
	if a.Sink == config.SinkDatabase {
		return serve.LogName(a)
	}
	return filepath.Base(a.File)
}
