package serve

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// decisions are the newest records of decisions on a database before a number (0: any), newest first.
func (s *Service) decisions(ctx context.Context, database string, before uint64, most int) ([]audit.Record, error) {
	cfg := s.config.Load()
	if s.audit.Mode() == audit.Off {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "no audit is kept here").
			WithHint("audit: { mode: strict, file: audit/ }")
	}
	want := func(r audit.Record) bool {
		if r.Kind != audit.KindDecision || before != 0 && r.Seq >= before || ctx.Err() != nil {
			return false
		}
		var of struct {
			Database string `json:"database"`
		}
		return json.Unmarshal(r.Line, &of) == nil && of.Database == database
	}
	var out []audit.Record
	err := AuditSource(ctx, cfg, cfg.Audit, false, func(records audit.Source) error {
		_, err := audit.Newest(records, most, want, func(r audit.Record) error {
			if err := ctx.Err(); err != nil || !want(r) {
				return err
			}
			r.Line = slices.Clone(r.Line)
			if out = append(out, r); len(out) > most {
				out = out[1:]
			}
			return nil
		})
		return err
	})
	slices.Reverse(out)
	return out, err
}
