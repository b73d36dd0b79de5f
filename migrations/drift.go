package migrations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Drift returns in which objects the database differs from what migrate made. They are changed, missing or new objects
// in pgconsent's schemas, policies, row security and grants to its roles. The result is empty if nothing differs. The
// connection is that of the control role or the owner.
//
// It reads definitions, which may be locked by a migrate that runs. If that migrate drops a relation meanwhile, it
// tries again, and it ends its wait before a deadlock could arise.
func Drift(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	for tries := 1; ; tries++ {
		changed, err := driftOnce(ctx, conn)
		if err == nil || tries == 3 || !isTransient(err) {
			return changed, err
		}
	}
}

// isTransient tells whether an error is caused by DDL that runs at the same time, so that it says nothing about the
// installed objects.
func isTransient(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains([]string{
		"XX000", // the error of a relation that an older snapshot still names
		"40001", "40P01", "55P03",
	}, pg.Code)
}

func driftOnce(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, fmt.Errorf("look for drift: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// The timeout is less than deadlock_timeout: a migrate could become the victim of a deadlock.
	for _, sql := range append([]string{"SET LOCAL lock_timeout = '500ms'"}, catalog.ReadingSettings...) {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("look for drift: %w", err)
		}
	}
	return compareFingerprints(ctx, tx)
}

func compareFingerprints(ctx context.Context, tx pgx.Tx) ([]string, error) {
	var there bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass('pgconsent.installed_object') IS NOT NULL").Scan(&there); err != nil {
		return nil, fmt.Errorf("look for drift: %w", err)
	}
	if !there {
		return nil, ErrNotInstalled
	}
	now, err := currentFingerprints(ctx, tx)
	if err != nil {
		return nil, err
	}
	then, err := storedFingerprints(ctx, tx)
	if err != nil {
		return nil, err
	}
	relations, err := relationNames(ctx, tx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, id := range slices.Sorted(maps.Keys(then)) {
		switch f, ok := now[id]; {
		case !ok && !relations[relationOf(id)]: // the policies of a dropped partition are gone with it
		case !ok:
			out = append(out, id+" is gone")
		case f != then[id]:
			out = append(out, id+" is changed")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if _, ok := then[id]; !ok {
			out = append(out, id+" is new")
		}
	}
	return out, nil
}

// storedFingerprints returns the fingerprints that the last migrate has stored.
func storedFingerprints(ctx context.Context, tx pgx.Tx) (map[string]string, error) {
	rows, err := tx.Query(ctx, "SELECT o.identity, o.fingerprint FROM pgconsent.installed_object AS o")
	if err != nil {
		return nil, fmt.Errorf("look for drift: %w", err)
	}
	out := map[string]string{}
	var identity, fingerprint string
	if _, err := pgx.ForEachRow(rows, []any{&identity, &fingerprint}, func() error {
		out[identity] = fingerprint
		return nil
	}); err != nil {
		return nil, fmt.Errorf("look for drift: %w", err)
	}
	return out, nil
}

// relationOf returns the table to which a recorded policy or table belongs, else "".
func relationOf(identity string) string {
	if _, table, ok := strings.Cut(identity, " on "); ok && strings.HasPrefix(identity, "policy ") {
		return table
	}
	table, _ := strings.CutPrefix(identity, "table ")
	if table == identity {
		return ""
	}
	return table
}

// relationNames returns the names of all relations, and "".
func relationNames(ctx context.Context, tx pgx.Tx) (map[string]bool, error) {
	rows, err := tx.Query(ctx,
		"SELECT n.nspname || '.' || c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "+
			"UNION ALL SELECT ''")
	if err != nil {
		return nil, fmt.Errorf("look for drift: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for drift: %w", err)
	}
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set, nil
}

// objectVersionsSQL returns the views and functions of pgconsent with the versions of their rows in the catalogs. As
// long as the version of an object is the same, so is its definition, which takes many times as long to print.
// PostgreSQL writes a new row version for each change of an object. A definition also prints the names of the objects
// on which it depends, of a view's columns and of roles, so that a version has these names as well. A restored database
// has other versions and the same definitions.
const objectVersionsSQL = `
SELECT 'relation ' || n.nspname || '.' || c.relname AS identity, c.oid, md5(ROW(c.oid, w.xmin, w.ctid, pg_get_userbyid(c.relowner),
  c.relacl::text, c.reloptions, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, ` + namesOfDependenciesSQL + `
    WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid),
  (SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0))::text) AS version
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_rewrite AS w ON w.ev_class = c.oid AND w.rulename = '_RETURN'
WHERE c.relkind = 'v' AND n.nspname ` + ourSchemas + `
UNION ALL
SELECT 'function ' || n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', p.oid,
  md5(ROW(p.oid, p.xmin, p.ctid, pg_get_userbyid(p.proowner), p.proacl::text, ` + namesOfDependenciesSQL + `
    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid))::text)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname ` + ourSchemas

// namesOfDependenciesSQL begins a query for the names of the objects on which another object depends.
const namesOfDependenciesSQL = `
  (SELECT string_agg(i.identity, ',' ORDER BY d.refclassid, d.refobjid, d.refobjsubid)
    FROM pg_depend AS d CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) AS i`

const ourSchemas = "IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')"

// storeVersionsSQL stores the present versions of the installed objects. A script that somebody runs by hand does not
// have it: an object without a stored version is compared by its definition.
const storeVersionsSQL = "UPDATE pgconsent.installed_object AS o SET version = v.version FROM (" + objectVersionsSQL +
	") AS v WHERE o.identity = v.identity AND o.version IS DISTINCT FROM v.version"

// fingerprintsSQL returns a fingerprint for each installed object: that which migrate has stored if the version of the
// object is still the stored one, else a hash of its definition.
const fingerprintsSQL = `
WITH ours AS (
  SELECT n.oid, n.nspname FROM pg_namespace AS n WHERE n.nspname ` + ourSchemas + `
), unchanged AS ( -- objects whose stored fingerprint is still right
  SELECT v.oid, v.identity, o.fingerprint FROM (` + objectVersionsSQL + `) AS v
  JOIN pgconsent.installed_object AS o ON o.identity = v.identity AND o.version = v.version
), governed AS (
  SELECT DISTINCT p.polrelid AS oid FROM pg_policy AS p WHERE p.polname LIKE 'pgconsent\_%'
), roles AS ( -- ours: those that our policies speak of, and PUBLIC, which is 0
  SELECT DISTINCT r.oid FROM pg_policy AS p CROSS JOIN LATERAL unnest(p.polroles) AS r (oid) WHERE p.polname LIKE 'pgconsent\_%'
  UNION SELECT 0
), parts (identity, content) AS (
  SELECT 'schema ' || n.nspname, jsonb_build_array(pg_get_userbyid(n.nspowner), n.nspacl::text)
  FROM pg_namespace AS n JOIN ours AS o ON o.oid = n.oid
  UNION ALL
  SELECT 'relation ' || o.nspname || '.' || c.relname,
    jsonb_build_array(c.relkind, pg_get_userbyid(c.relowner), c.relacl::text, c.reloptions,
    CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity,
    CASE WHEN c.relkind <> 'v'
      THEN ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || a.attnotnull FROM pg_attribute AS a
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) END,
    CASE WHEN c.relkind <> 'v' THEN ARRAY(SELECT w.rulename FROM pg_rewrite AS w WHERE w.ev_class = c.oid ORDER BY 1) END,
    ARRAY(SELECT k.conname || ' ' || pg_get_constraintdef(k.oid) FROM pg_constraint AS k
      WHERE k.conrelid = c.oid AND k.contype <> 'n' ORDER BY 1))
  FROM pg_class AS c JOIN ours AS o ON o.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  AND NOT (c.relkind = 'v' AND c.oid IN (SELECT u.oid FROM unchanged AS u WHERE u.identity LIKE 'relation %'))
  UNION ALL
  SELECT 'function ' || o.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
    jsonb_build_array(pg_get_userbyid(p.proowner), p.proacl::text, p.prosecdef, p.provolatile, p.proparallel, p.proconfig, p.prosrc,
      pg_get_function_sqlbody(p.oid), pg_get_function_result(p.oid), l.lanname, p.proisstrict, p.proleakproof, p.prosupport::text)
  FROM pg_proc AS p JOIN ours AS o ON o.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
  WHERE p.oid NOT IN (SELECT u.oid FROM unchanged AS u WHERE u.identity LIKE 'function %')
  UNION ALL
  SELECT 'policy ' || p.polname || ' on ' || n.nspname || '.' || c.relname, jsonb_build_array(p.polcmd, p.polpermissive,
    ARRAY(SELECT CASE WHEN r.oid = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(r.oid)::text END FROM unnest(p.polroles) AS r (oid) ORDER BY 1),
    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
  FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE p.polname LIKE 'pgconsent\_%'
  UNION ALL
  SELECT 'table ' || n.nspname || '.' || c.relname, jsonb_build_array(pg_get_userbyid(c.relowner), c.relrowsecurity, c.relforcerowsecurity,
    ARRAY(SELECT x.grantee::text || ' ' || x.privilege_type FROM aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))) AS x
      WHERE x.grantee IN (SELECT r.oid FROM roles AS r) ORDER BY 1))
  FROM pg_class AS c JOIN governed AS g ON g.oid = c.oid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  UNION ALL
  SELECT 'column ' || n.nspname || '.' || c.relname || '.' || a.attname, jsonb_build_array(
    ARRAY(SELECT x.grantee::text || ' ' || x.privilege_type FROM aclexplode(a.attacl) AS x
      WHERE x.grantee IN (SELECT r.oid FROM roles AS r) ORDER BY 1))
  FROM pg_attribute AS a JOIN governed AS g ON g.oid = a.attrelid
  JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE NOT a.attisdropped AND EXISTS (SELECT 1 FROM aclexplode(a.attacl) AS x WHERE x.grantee IN (SELECT r.oid FROM roles AS r))
  UNION ALL
  SELECT 'trigger ' || t.tgname || ' on ' || n.nspname || '.' || c.relname, jsonb_build_array(pg_get_triggerdef(t.oid), t.tgenabled)
  FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE (t.tgname LIKE '%pgconsent\_%' OR NOT t.tgisinternal AND c.relnamespace IN (SELECT o.oid FROM ours AS o))
  AND (t.tgparentid = 0 OR t.tgenabled NOT IN ('O', 'A')) -- partitions, which come and go, have copies
  UNION ALL
  SELECT 'default of ' || o.nspname || '.' || c.relname || '.' || a.attname, jsonb_build_array(pg_get_expr(f.adbin, f.adrelid))
  FROM pg_attrdef AS f JOIN pg_class AS c ON c.oid = f.adrelid JOIN ours AS o ON o.oid = c.relnamespace
  JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE c.relkind IN ('v', 'r', 'p')
)
SELECT p.identity, md5(p.content::text) FROM parts AS p UNION ALL SELECT u.identity, u.fingerprint FROM unchanged AS u`

// currentFingerprints returns a fingerprint for each object that enforces the policy in the database. The rights that
// every role has on the catalogs are enough. Names in definitions depend on the search path, which must be pg_catalog.
func currentFingerprints(ctx context.Context, tx pgx.Tx) (map[string]string, error) {
	rows, err := tx.Query(ctx, fingerprintsSQL)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42703" { // a development version recorded no versions of objects
		return nil, errBeforeRelease
	}
	if err != nil {
		return nil, fmt.Errorf("look at what is installed: %w", err)
	}
	out := map[string]string{}
	var identity, fingerprint string
	if _, err := pgx.ForEachRow(rows, []any{&identity, &fingerprint}, func() error {
		out[identity] = fingerprint
		return nil
	}); err != nil {
		return nil, fmt.Errorf("look at what is installed: %w", err)
	}
	return out, nil
}
