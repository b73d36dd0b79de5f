package registry

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Inspection is the result of [Registry.Inspect].
type Inspection struct {
	LastRecord int64 // the number of the last record; 0: there is none
	// how far the database's clock is behind the last record; 0: no further than a correction of the clock may set it
	ClockLag      time.Duration
	NoAnchor      bool   // there are records but no anchor, so that the newest ones may be missing
	MissingRecord string // an acknowledged record that is missing, because of which agents are refused; "": none
	Findings      []Finding
}

// Inspect makes the cheap checks: the code of the last record, the anchor, the installed objects, and the clock.
// [Registry.Verify] reads every record.
func (r *Registry) Inspect(ctx context.Context) (Inspection, error) {
	var out Inspection
	file, err := readAnchor(r.Anchor)
	if err != nil {
		return out, newAnchorError(false, err)
	}
	_, ok, err := file.head(r.Database, r.Keys)
	found := func(problem string) { out.Findings = append(out.Findings, Finding{0, problem}) }
	if err != nil {
		found(err.Error())
	}
	anchored := ok && err == nil
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, id uuid, now time.Time) error {
		rows, err := tx.Query(ctx, "SELECT "+recordColumns+" FROM "+fromRecords+" ORDER BY number DESC LIMIT 1")
		if err != nil {
			return databaseError("read the last consent record", err)
		}
		lastEntries, err := pgx.CollectRows(rows, scanEntry)
		if err != nil {
			return databaseError("read the last consent record", err)
		}
		if len(lastEntries) > 0 {
			out.LastRecord = lastEntries[0].Number
			if reason := lastEntries[0].findProblem(r.Keys, id); reason != "" {
				found(reason)
			}
			if lag := lastEntries[0].RecordedAt.Sub(now); lag > clockSlack {
				out.ClockLag = lag
			}
		}
		out.NoAnchor = !ok && out.LastRecord > 0
		if anchored {
			x := recordWriter{registry: r, id: id, lastHead: recordHead{id, 0, nil}}
			if err := x.checkTail(ctx, tx, &lockedAnchor{database: r.Database, keys: r.Keys, content: file},
				recordEntry{}); err != nil {
				var t *TamperedError
				if !errors.As(err, &t) {
					return err
				}
				out.MissingRecord = t.Reason
			}
		}
		installed, err := readStructure(ctx, tx, r.Connect.User)
		if err != nil {
			return err
		}
		out.Findings = append(out.Findings, compareStructure(installed)...)
		return nil
	})
	return out, err
}
