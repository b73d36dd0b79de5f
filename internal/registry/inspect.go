package registry

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Inspection is what [Registry.Inspect] found.
type Inspection struct {
	LastRecord int64 // the number of the last record; 0: there is none
	// how far the database's clock is behind the last record; 0: at most as far as a correction may set it back
	ClockLag      time.Duration
	NoAnchor      bool   // the registry has records but no anchor, so a removal of the newest ones would not be noticed
	MissingRecord string // why agents are refused: the anchored record is missing or differs; "": they are not
	Findings      []Finding
}

// Inspect makes the checks that are cheap: the code of the last record, the anchor, the installed objects, and the
// clock. [Registry.Verify] checks every record.
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
