package serve

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/services/api"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// readDecisions returns the newest audit records of decisions on a database, newest first, with the records of their
// outcomes. If before is not 0, it returns only records with smaller numbers.
func (s *Service) readDecisions(ctx context.Context, database string, before uint64, limit int) (api.DecisionRecords,
	error) {
	cfg := s.config.Load()
	if s.audit.Mode() == audit.ModeOff {
		return api.DecisionRecords{}, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "no audit is kept here").
			WithHint("audit: { mode: strict, file: audit/ }")
	}
	want := func(r audit.Record) bool {
		if r.Kind != audit.KindDecision || before != 0 && r.Seq >= before || ctx.Err() != nil {
			return false
		}
		var members struct {
			Database string `json:"database"`
		}
		return json.Unmarshal(r.Line, &members) == nil && members.Database == database
	}
	var out api.DecisionRecords
	outcomes := map[uint64]audit.Record{} // by number of the decision; a zero record: no outcome yet
	err := AuditSource(ctx, cfg, cfg.Audit, false, func(records audit.Source) error {
		_, err := audit.ReadNewest(records, limit, want, func(r audit.Record) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if r.Kind == audit.KindOutcome {
				var members struct {
					Decision uint64 `json:"decision"`
				}
				if err := json.Unmarshal(r.Line, &members); err != nil {
					return err
				}
				if _, ok := outcomes[members.Decision]; ok {
					r.Line = slices.Clone(r.Line)
					outcomes[members.Decision] = r
				}
				return nil
			}
			if !want(r) {
				return nil
			}
			r.Line = slices.Clone(r.Line)
			outcomes[r.Seq] = audit.Record{}
			if out.Decisions = append(out.Decisions, r); len(out.Decisions) > limit {
				delete(outcomes, out.Decisions[0].Seq)
				out.Decisions = out.Decisions[1:]
			}
			return nil
		})
		return err
	})
	slices.Reverse(out.Decisions)
	for _, d := range out.Decisions {
		if o := outcomes[d.Seq]; o.Line != nil {
			out.Outcomes = append(out.Outcomes, o)
		}
	}
	return out, err
}
