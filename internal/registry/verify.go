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

// Report is what [Registry.Verify] found.
type Report struct {
	Records        int
	LastRecord     int64  // the number of the last record
	LastHash       string // the hash of the last record
	AnchoredRecord int64  // the number of the record that the anchor names; 0: the anchor names none
	NoAnchor       bool   // there is no anchor, so a removal of the newest records would not be noticed
	Findings       []Finding
}

// Verify verifies the whole registry: the codes of the records, the anchor, and the objects that migrate installs. It
// returns an error if it cannot read the registry; everything that is wrong is a finding.
func (r *Registry) Verify(ctx context.Context) (Report, error) {
	var out Report
	// The anchor is read first: so the records that are made during the check come after the anchored one.
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
		out.Findings = previous // a second attempt begins with the findings from before the first
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
