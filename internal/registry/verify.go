package registry

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/builtin"
)

// Report is the result of [Registry.Verify].
type Report struct {
	Records        int
	LastRecord     int64  // the number of the last record
	LastHash       string // the hash of the last record
	AnchoredRecord int64  // the number of the record in the anchor; 0 if the anchor is empty
	NoAnchor       bool   // there is no anchor, so that the newest records may be missing
	Findings       []Finding
}

// Verify verifies the whole registry with its codes, the anchor, and the objects that migrate installs. An error means
// that it could not read it; differences are findings.
func (r *Registry) Verify(ctx context.Context) (Report, error) {
	var out Report
	// The anchor is read first: records that are made meanwhile come after it.
	file, err := readAnchor(r.Anchor)
	if err != nil {
		return out, newAnchorError(false, err)
	}
	h, ok, err := file.head(r.Database, r.Keys)
	var anchoredHead *recordHead
	switch {
	case err != nil:
		out.Findings = append(out.Findings, Finding{0, err.Error()})
	case ok:
		anchoredHead, out.AnchoredRecord = &h, h.Number
	}
	out.NoAnchor = !ok
	previous := slices.Clip(out.Findings)
	err = r.readSnapshot(ctx, true, func(ctx context.Context, tx pgx.Tx, id uuid, _ time.Time) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return databaseError("verify the consent registry", err)
		}
		out.Findings = previous // a retry starts with the same findings
		x, err := readExport(ctx, tx)
		var unreadable *unreadableError
		if errors.As(err, &unreadable) {
			out.Findings = append(out.Findings, Finding{0, unreadable.Error()})
			return nil
		}
		if err != nil {
			return err
		}
		out.Records = len(x.entries)
		if out.Records > 0 {
			lastEntry := x.entries[out.Records-1]
			out.LastRecord, out.LastHash = lastEntry.Number, hex.EncodeToString(lastEntry.Hash)
		}
		now, err := readStructure(ctx, tx, r.Connect.User)
		if err != nil {
			return err
		}
		plantedObjects, err := builtin.ReadPlantedObjects(ctx, tx)
		if err != nil {
			return databaseError("verify the consent registry", err)
		}
		for _, name := range plantedObjects {
			out.Findings = append(out.Findings, Finding{0, name + " is not PostgreSQL's own, and would be taken for it"})
		}
		out.Findings = append(append(out.Findings, compareStructure(now)...), Check(x, r.Keys, anchoredHead)...)
		sideFindings, err := checkSideTables(ctx, tx, r.Keys, id)
		out.Findings = append(out.Findings, sideFindings...)
		if err != nil {
			return err
		}
		sideFindings, err = indexFindings(ctx, tx, x)
		out.Findings = append(out.Findings, sideFindings...)
		return err
	})
	return out, err
}
