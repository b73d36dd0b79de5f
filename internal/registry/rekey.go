package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// OlderKeyUse counts what still needs keys that are older than the newest.
type OlderKeyUse struct {
	Subjects int  `json:"people"`  // the number of subjects whose keys are encrypted with an older key
	Records  int  `json:"records"` // the number of records that only an older key verifies
	Anchor   bool `json:"anchor"`  // the anchor entry of this database was signed with an older key
	Notes    int  `json:"notes"`   // the number of unrecorded notes that were signed with an older key
}

// IsZero reports whether nothing needs older keys.
func (o OlderKeyUse) IsZero() bool { return o == OlderKeyUse{} }

// OlderKeyUse counts what still needs keys that are older than the newest.
func (r *Registry) OlderKeyUse(ctx context.Context) (OlderKeyUse, error) {
	newest, _ := r.Keys.signingKey()
	return r.KeyUseOlderThan(ctx, newest)
}

// KeyUseOlderThan is [Registry.OlderKeyUse] as if the given key were the newest.
func (r *Registry) KeyUseOlderThan(ctx context.Context, newest int32) (out OlderKeyUse, err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, _ uuid, _ time.Time) error {
		out, err = r.countOlderKeyUse(ctx, tx, newest)
		return err
	})
	return out, err
}

func (r *Registry) countOlderKeyUse(ctx context.Context, q querier, newest int32) (OlderKeyUse, error) {
	var out OlderKeyUse
	err := q.QueryRow(ctx, `SELECT (SELECT count(*) FROM pgconsent.subject WHERE substr(key, 1, 4) <> $1),
		(SELECT count(*) FROM `+fromRecords+` WHERE kid <> $2 AND code_kid IS DISTINCT FROM $2),
		(SELECT count(*) FROM pgconsent.sweep_note WHERE NOT starts_with(code, $2::int4 || '.'))`,
		wrapPrefix(newest), newest).Scan(&out.Subjects, &out.Records, &out.Notes)
	if err != nil {
		return out, databaseError("look for what older keys are needed for", err)
	}
	file, err := readAnchor(r.Anchor)
	if err != nil {
		return out, newAnchorError(false, err)
	}
	a, ok := file.Anchors[r.Database]
	out.Anchor = ok && a.KeyNumber != newest
	return out, nil
}

// wrapPrefix returns the first bytes of every subject's key that is encrypted with the key of this number.
func wrapPrefix(kid int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(kid)) }

// rekeyBatch is how many subjects or records one transaction changes.
const rekeyBatch = 500

// Rekey encrypts every subject's key with the newest key, and signs with it the anchor and every record that another
// key has signed. It verifies the registry first, so that it does not sign an altered one. If it is interrupted, the
// next call continues. Other processes may make and erase records meanwhile.
func (r *Registry) Rekey(ctx context.Context, progress func(done, total int)) error {
	report, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	if len(report.Findings) > 0 {
		return newTamperedError(report.Findings[0].String())
	}
	// Wait for the writers in progress, which may have begun with an older key: consent_open takes the lock that every
	// writer takes. Later writers use the newest key of the file.
	if err := r.withConnection(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SELECT FROM pgconsent.consent_open()"); err != nil {
			return databaseError("wait for other changes of consent", err)
		}
		return nil
	}); err != nil {
		return err
	}
	olderUse, err := r.OlderKeyUse(ctx)
	if err != nil {
		return err
	}
	done, total := 0, olderUse.Subjects+olderUse.Records
	reportProgress := func(n int) {
		if done += n; progress != nil {
			progress(min(done, total), total)
		}
	}
	for _, step := range []func(context.Context, pgx.Tx, uuid) (int, error){r.rewrapKeys, r.replaceMACs} {
		for hasMore := true; hasMore && ctx.Err() == nil; {
			err := r.withConnection(ctx, func(ctx context.Context, conn *pgx.Conn) error {
				return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
					var id uuid
					if err := tx.QueryRow(ctx, "SELECT id FROM pgconsent.consent_registry").Scan(&id); err != nil {
						return databaseError("change the consent key", err)
					}
					n, err := step(ctx, tx, id)
					hasMore = n > 0
					if err == nil {
						reportProgress(n)
					}
					return err
				})
			})
			if err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.signAnchorAnew(ctx)
}

// rewrapKeys encrypts the keys of up to rekeyBatch subjects with the newest key.
func (r *Registry) rewrapKeys(ctx context.Context, tx pgx.Tx, id uuid) (int, error) {
	newest, _ := r.Keys.signingKey()
	rows, err := tx.Query(ctx,
		"SELECT ref, subject, key, pseudonym_key, erased_at, sha256(key) FROM pgconsent.subject WHERE substr(key, 1, 4) "+
			"<> $1 LIMIT $2", wrapPrefix(newest), rekeyBatch)
	if err != nil {
		return 0, databaseError("read keys", err)
	}
	var p subjectRow
	var digest []byte
	var refs []uuid
	var oldKeys, newKeys [][]byte
	var problems error
	_, err = pgx.ForEachRow(rows, []any{&p.Reference, &p.Name, &p.Key, &p.PseudonymKey, &p.ErasedAt, &digest},
		func() error {
			key, err := r.Keys.unwrap(id, p.Reference, p.Key, p.PseudonymKey)
			if err != nil {
				problems = newTamperedError(err.Error())
				return problems
			}
			rewrapped := party{reference: p.Reference, key: key, pseudonymKey: p.PseudonymKey}
			if rewrapped.pseudonymKey == nil {
				rewrapped.pseudonymKey = digest
			}
			refs, oldKeys, newKeys = append(refs, p.Reference), append(oldKeys, p.Key), append(newKeys,
				r.Keys.wrap(id, rewrapped))
			p, digest = subjectRow{}, nil
			return nil
		})
	if problems != nil {
		return 0, problems
	}
	if err != nil {
		return 0, databaseError("read keys", err)
	}
	if len(refs) == 0 {
		return 0, nil
	}
	var n int
	if err := tx.QueryRow(ctx, "SELECT pgconsent.consent_rewrap($1, $2, $3)", refs, oldKeys,
		newKeys).Scan(&n); err != nil {
		return 0, databaseError("wrap keys anew", err)
	}
	return len(refs), nil // subjects who were erased meanwhile have no key and are not selected again
}

// replaceMACs adds codes of the newest key to up to rekeyBatch records.
func (r *Registry) replaceMACs(ctx context.Context, tx pgx.Tx, id uuid) (int, error) {
	newest, _ := r.Keys.signingKey()
	rows, err := tx.Query(ctx, "SELECT "+recordColumns+" FROM "+fromRecords+
		" WHERE kid <> $1 AND code_kid IS DISTINCT FROM $1 ORDER BY number LIMIT $2", newest, rekeyBatch)
	if err != nil {
		return 0, databaseError("read consent records", err)
	}
	entries, err := pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return 0, databaseError("read consent records", err)
	}
	var numbers []int64
	var codes [][]byte
	for _, e := range entries {
		if reason := e.findProblem(r.Keys, id); reason != "" {
			return 0, newTamperedError(fmt.Sprintf("record %d: %s", e.Number, reason))
		}
		code := r.Keys.replacementMAC(newest, id, e.Hash)
		if code == nil {
			return 0, errors.New("the newest consent key has gone from its file")
		}
		numbers, codes = append(numbers, e.Number), append(codes, code)
	}
	if len(numbers) == 0 {
		return 0, nil
	}
	if _, err := tx.Exec(ctx, "SELECT pgconsent.consent_recode($1, $2, $3)", newest, numbers, codes); err != nil {
		return 0, databaseError("give records codes", err)
	}
	return len(numbers), nil
}

// signAnchorAnew signs the anchor entry of this database with the newest key.
func (r *Registry) signAnchorAnew(ctx context.Context) error {
	a, err := openAnchor(ctx, r.Anchor, r.Database, r.Keys)
	if err != nil {
		return err
	}
	defer a.close()
	newest, _ := r.Keys.signingKey()
	h, ok, err := a.head()
	switch {
	case err != nil:
		return newTamperedError(err.Error())
	case !ok || a.content.Anchors[r.Database].KeyNumber == newest:
		return nil
	}
	if err := a.prepare(h, time.Now()); err != nil {
		return newAnchorError(false, err)
	}
	if err := a.commit(); err != nil {
		return newAnchorError(false, err)
	}
	return nil
}

// lockRegistry takes the lock of writers, so that nobody changes the registry until the returned function is called.
func (r *Registry) lockRegistry(ctx context.Context) (pgx.Tx, func(), error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, nil, unreachableError(err)
	}
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT FROM pgconsent.consent_open()")
	}
	if err != nil {
		r.release(conn)
		return nil, nil, databaseError("wait for other changes of consent", err)
	}
	return tx, func() {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		r.release(conn)
	}, nil
}
