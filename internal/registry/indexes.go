package registry

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// forceIndexScans makes PostgreSQL use an index for every table that has a suitable one.
const forceIndexScans = `SELECT set_config('enable_' || s, 'off', true)
	FROM unnest('{seqscan,bitmapscan,indexonlyscan,hashjoin,mergejoin,tidscan}'::text[]) AS s
	UNION ALL SELECT set_config('enable_' || s, 'on', true) FROM unnest('{indexscan,nestloop}'::text[]) AS s`

// forceSeqScans makes PostgreSQL read whole tables.
const forceSeqScans = `SELECT set_config('enable_' || s, 'off', true)
	FROM unnest('{indexscan,bitmapscan,indexonlyscan,tidscan}'::text[]) AS s
	UNION ALL SELECT set_config('enable_' || s, 'on', true) FROM unnest('{seqscan,nestloop,hashjoin,mergejoin}'::text[]) AS s`

// lookUpBatch is the number of rows that one statement looks up.
const lookUpBatch = 10_000

// indexFindings looks up every row of the registry through the indexes that policies and commands use. An index may
// contradict its table after a change of a library's collation, after a file was restored, or after a write while it
// was invalid. It can then hide a withdrawal from readers, which a reading of the table alone would not show.
func indexFindings(ctx context.Context, tx pgx.Tx, x *Export) ([]Finding, error) {
	out, err := checkIndexes(ctx, tx, x)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "XX") {
		return append(out, Finding{0, "an index, or its table, cannot be read (SQLSTATE " + pg.Code +
			"): REINDEX SCHEMA pgconsent, and then look again"}), nil
	}
	return out, err
}

func checkIndexes(ctx context.Context, tx pgx.Tx, x *Export) ([]Finding, error) {
	var out []Finding
	addFinding := func(name string) {
		out = append(out, Finding{0, "the index " +
			name + " does not lead to the rows of its table: REINDEX INDEX pgconsent." + name})
	}
	if _, err := tx.Exec(ctx, forceIndexScans); err != nil {
		return nil, databaseError("verify the indexes of the consent registry", err)
	}
	// countMissing counts, in batches, the rows that the index does not find, or finds with other contents.
	countMissing := func(name, sql string, n int, columns func(from, end int) []any) error {
		for from := 0; from < n; from += lookUpBatch {
			var problems int
			if err := tx.QueryRow(ctx, sql, columns(from, min(from+lookUpBatch, n))...).Scan(&problems); err != nil {
				return databaseError("verify the indexes of the consent registry", err)
			}
			if problems > 0 {
				addFinding(name)
				return nil
			}
		}
		return nil
	}
	currentColumns := func(from, end int) []any {
		var subjects, grantees, scopes []string
		var numbers []int64
		for _, f := range x.current[from:end] {
			subjects, grantees, scopes, numbers = append(subjects, f.Subject), append(grantees,
				f.Grantee), append(scopes, f.Scope), append(numbers, f.Number)
		}
		return []any{subjects, grantees, scopes, numbers}
	}
	guardianColumns := func(from, end int) []any {
		var subjects, guardianColumns []string
		var numbers []int64
		for _, g := range x.guardians[from:end] {
			subjects, guardianColumns, numbers = append(subjects, g.Subject), append(guardianColumns,
				g.Guardian), append(numbers, g.Number)
		}
		return []any{subjects, guardianColumns, numbers}
	}
	subjectColumns := func(from, end int) []any {
		var refs []uuid
		var names []*string
		for _, p := range x.subjects[from:end] {
			refs, names = append(refs, p.Reference), append(names, p.Name)
		}
		return []any{refs, names}
	}
	recordColumnValues := func(from, end int) []any {
		var numbers []int64
		var hashes [][]byte
		for _, e := range x.entries[from:end] {
			numbers, hashes = append(numbers, e.Number), append(hashes, e.Hash)
		}
		return []any{numbers, hashes}
	}
	numberByReference := map[uuid]int64{}
	for _, e := range x.entries {
		numberByReference[e.Subject]++
	}
	outboxRows := func(from, end int) []any {
		var refs []uuid
		var counts []int64
		for _, p := range x.subjects[from:end] {
			refs, counts = append(refs, p.Reference), append(counts, numberByReference[p.Reference])
		}
		return []any{refs, counts}
	}
	for _, lookup := range []struct {
		name, sql string
		n         int
		columns   func(from, end int) []any
	}{
		{"consent_current_pkey", `SELECT count(*)
			FROM unnest($1::text[], $2::text[], $3::text[], $4::int8[]) AS k (subject, grantee, scope, number) CROSS JOIN LATERAL
			(SELECT count(*) AS n, bool_and(t.number = k.number) AS same FROM pgconsent.consent_current AS t
			WHERE t.subject = k.subject AND t.grantee = k.grantee AND t.scope = k.scope) AS f
			WHERE f.n <> 1 OR f.same IS NOT TRUE`, len(x.current), currentColumns},
		{"consent_guardian_pkey", `SELECT count(*)
			FROM unnest($1::text[], $2::text[], $3::int8[]) AS k (subject, guardian, number) CROSS JOIN LATERAL
			(SELECT count(*) AS n, bool_and(t.number = k.number) AS same FROM pgconsent.consent_guardian AS t
			WHERE t.subject = k.subject AND t.guardian = k.guardian) AS f
			WHERE f.n <> 1 OR f.same IS NOT TRUE`, len(x.guardians), guardianColumns},
		{"subject_pkey", `SELECT count(*) FROM unnest($1::uuid[], $2::text[]) AS k (ref, name) CROSS JOIN LATERAL
			(SELECT count(*) AS n, bool_and(t.subject IS NOT DISTINCT FROM k.name) AS same FROM pgconsent.subject AS t WHERE t.ref = k.ref) AS f
			WHERE f.n <> 1 OR f.same IS NOT TRUE`, len(x.subjects), subjectColumns},
		{"subject_subject_key", `SELECT count(*) FROM unnest($1::uuid[], $2::text[]) AS k (ref, name) CROSS JOIN LATERAL
			(SELECT count(*) AS n, bool_and(t.ref = k.ref) AS same FROM pgconsent.subject AS t WHERE t.subject = k.name) AS f
			WHERE k.name IS NOT NULL AND (f.n <> 1 OR f.same IS NOT TRUE)`, len(x.subjects), subjectColumns},
		{"consent_record_pkey", `SELECT count(*) FROM unnest($1::int8[], $2::bytea[]) AS k (number, hash) CROSS JOIN LATERAL
			(SELECT count(*) AS n, bool_and(t.hash = k.hash) AS same FROM pgconsent.consent_record AS t WHERE t.number = k.number) AS f
			WHERE f.n <> 1 OR f.same IS NOT TRUE`, len(x.entries), recordColumnValues},
		{"consent_record_subject", `SELECT count(*) FROM unnest($1::uuid[], $2::int8[]) AS k (ref, n) CROSS JOIN LATERAL
			(SELECT count(*) AS n, bool_and(t.subject = k.ref) AS same FROM pgconsent.consent_record AS t WHERE t.subject = k.ref) AS f
			WHERE f.n <> k.n OR NOT f.same`, len(x.subjects), outboxRows},
	} {
		if err := countMissing(lookup.name, lookup.sql, lookup.n, lookup.columns); err != nil {
			return out, err
		}
	}
	// A partial index must find as many rows as the table has.
	partial := []struct{ name, sql string }{
		{"consent_current_expires",
			"SELECT count(*) FROM pgconsent.consent_current WHERE state = 'given' AND expires_at <= 'infinity'"},
		{"consent_current_due", "SELECT count(*) FROM pgconsent.consent_current WHERE due_at <= 'infinity'"},
		{"outbox_next", "SELECT count(*) FROM pgconsent.outbox WHERE sent_at IS NULL AND next_at <= 'infinity'"},
	}
	var outbox bool // checkSideTables reports a table that cannot be read
	if err := tx.QueryRow(ctx,
		"SELECT COALESCE(has_table_privilege(to_regclass('pgconsent.outbox'), 'SELECT'), false)").Scan(&outbox); err != nil {
		return out, databaseError("verify the indexes of the consent registry", err)
	}
	if !outbox {
		partial = partial[:2]
	}
	var found [2][]int64
	for i, settings := range []string{forceIndexScans, forceSeqScans} {
		if _, err := tx.Exec(ctx, settings); err != nil {
			return out, databaseError("verify the indexes of the consent registry", err)
		}
		for _, p := range partial {
			var n int64
			// This mode makes PostgreSQL plan the statement anew with the settings above.
			if err := tx.QueryRow(ctx, p.sql, pgx.QueryExecModeExec).Scan(&n); err != nil {
				return out, databaseError("verify the indexes of the consent registry", err)
			}
			found[i] = append(found[i], n)
		}
	}
	for i, p := range partial {
		if found[0][i] != found[1][i] {
			addFinding(p.name)
		}
	}
	return out, nil
}
