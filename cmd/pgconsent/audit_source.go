package main

import (
	"path/filepath"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

// withAuditSource calls f with the source of a log's records: a folder, or a snapshot of a database.
func (s *session) withAuditSource(c *config.Config, a config.Audit, f func(audit.Source) error) error {
	return serve.AuditSource(s.ctx, c, a, false, f)
}

// logName returns the name of a log for the command's output.
func logName(a config.Audit) string {
	if a.Sink == config.SinkDatabase {
		return serve.LogName(a)
	}
	return filepath.Base(a.File)
}
