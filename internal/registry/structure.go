package registry

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// structureFile is what structureQuery returns for a database in which migrate has installed the registry. The member
// generatedByMember names the program that wrote the file.
//
//go:embed structure.json
var structureFile []byte

const generatedByMember = "//"

// structureQuery lists everything in the database that protects records: tables with their columns, constraints and
// indexes, triggers and whether they fire, functions with their bodies, and all rights beyond reading. $1 is the
// control role. It calls the owner of the schema "owner", and also the owner of an object if that is the same role.
const structureQuery = `
WITH schema AS (
  SELECT n.oid, n.nspowner FROM pg_namespace AS n WHERE n.nspname = 'pgconsent'
), tables AS (
  SELECT c.* FROM pg_class AS c JOIN schema AS s ON s.oid = c.relnamespace
  WHERE c.relname IN ('consent_registry', 'subject', 'consent_record', 'consent_code', 'consent_current', 'consent_guardian',
    'change', 'outbox', 'sweep_state', 'sweep_erased', 'sweep_note', 'audit_subject', 'privacy_event')
), functions AS (
  SELECT p.* FROM pg_proc AS p JOIN schema AS s ON s.oid = p.pronamespace
  WHERE p.proname LIKE 'consent\_%' OR p.proname IN ('changed', 'changed_since', 'prune_changes', 'deleted', 'audit_ref', 'audit_forget',
    'audit_forgets', 'audit_epoch', 'audit_subject_refuse',
    'outbox_fill', 'outbox_refuse', 'sweep_erase', 'privacy_event_refuse')
), names AS (
  SELECT r.oid, CASE WHEN r.oid = (SELECT s.nspowner FROM schema AS s) THEN 'owner'
    WHEN r.rolname = $1 THEN 'control' ELSE 'role ' || r.rolname END AS name
  FROM pg_roles AS r UNION ALL SELECT 0, 'PUBLIC'
), parts (identity, content) AS (
  SELECT 'table ' || c.relname, jsonb_build_array(c.relkind, c.relpersistence, c.relrowsecurity,
    c.relforcerowsecurity, c.relispartition, c.reloptions,
    (SELECT n.name FROM names AS n WHERE n.oid = c.relowner),
    EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid OR i.inhrelid = c.oid),
    -- What the server is told not to look for, by hand; and what makes every change of a published table fail.
    c.relhastriggers < EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
      OR c.relhasindex < EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid)
      OR c.relchecks <> (SELECT count(*) FROM pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype = 'c') OR c.relreplident = 'n',
    ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
      || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END || a.attgenerated::text || a.attidentity::text
        || CASE WHEN a.attcollation NOT IN (0, 'pg_catalog."default"'::regcollation)
          THEN ' collate ' || a.attcollation::regcollation ELSE '' END
        || COALESCE(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
      FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = c.oid AND a.attnum > 0 ORDER BY a.attnum))
  FROM tables AS c
  UNION ALL
  SELECT 'right on ' || c.relname || ': ' || n.name || ' ' || x.privilege_type, '[]'
  FROM tables AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS x JOIN names AS n ON n.oid = x.grantee
  WHERE n.name <> 'owner' AND x.privilege_type <> 'SELECT'
  UNION ALL
  SELECT 'right on ' || c.relname || '.' || a.attname || ': ' || n.name || ' ' || x.privilege_type, '[]'
  FROM tables AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
  CROSS JOIN LATERAL aclexplode(a.attacl) AS x JOIN names AS n ON n.oid = x.grantee
  WHERE n.name <> 'owner' AND x.privilege_type <> 'SELECT'
  UNION ALL
  SELECT 'constraint ' || k.conname || ' on ' || c.relname, jsonb_build_array(pg_get_constraintdef(k.oid), k.convalidated)
  FROM pg_constraint AS k JOIN tables AS c ON c.oid = k.conrelid WHERE k.contype <> 'n'
  UNION ALL
  SELECT 'index ' || i.relname || ' on ' || c.relname,
    jsonb_build_array(pg_get_indexdef(x.indexrelid), x.indisvalid, x.indisready, x.indislive)
  FROM pg_index AS x JOIN tables AS c ON c.oid = x.indrelid JOIN pg_class AS i ON i.oid = x.indexrelid
  WHERE x.indisunique OR NOT x.indisvalid OR x.indexprs IS NOT NULL
    OR EXISTS (SELECT FROM unnest(x.indclass::oid[]) AS s (opclass) WHERE s.opclass >= 16384)
    OR i.relam <> (SELECT m.oid FROM pg_am AS m WHERE m.amname = 'btree')
  UNION ALL
  SELECT 'trigger ' || t.tgname || ' on ' || c.relname, jsonb_build_array(pg_get_triggerdef(t.oid), t.tgenabled)
  FROM pg_trigger AS t JOIN tables AS c ON c.oid = t.tgrelid
  WHERE NOT t.tgisinternal
    -- A policy may have triggers of its own after a change of the fold, which is compared with the records.
    AND NOT (t.tgname LIKE 'zz\_pgconsent\_%' AND t.tgname NOT LIKE 'zz\_pgconsent\_current\_%'
      AND t.tgname NOT LIKE 'zz\_pgconsent\_guardian%'
      AND t.tgenabled = 'A' AND (t.tgtype & 66) = 0 AND c.relname IN ('consent_current', 'consent_guardian')
      AND EXISTS (SELECT FROM pg_proc AS p JOIN schema AS s ON s.oid = p.pronamespace WHERE p.oid = t.tgfoid))
  UNION ALL
  SELECT 'foreign keys of ' || c.relname, jsonb_build_array(count(*), bool_and(t.tgenabled = 'O'))
  FROM pg_trigger AS t JOIN tables AS c ON c.oid = t.tgrelid WHERE t.tgisinternal GROUP BY c.relname
  UNION ALL
  SELECT 'rule ' || w.rulename || ' on ' || c.relname, '[]' FROM pg_rewrite AS w JOIN tables AS c ON c.oid = w.ev_class
  UNION ALL
  SELECT 'policy ' || p.polname || ' on ' || c.relname, '[]' FROM pg_policy AS p JOIN tables AS c ON c.oid = p.polrelid
  UNION ALL
  SELECT 'function ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
    jsonb_build_array(l.lanname, p.prosecdef, p.provolatile, p.proisstrict, p.proleakproof, p.proparallel, p.proconfig,
    pg_get_function_result(p.oid), p.prosrc, p.prosqlbody IS NULL, p.prosupport::text,
    (SELECT n.name FROM names AS n WHERE n.oid = p.proowner))
  FROM functions AS p JOIN pg_language AS l ON l.oid = p.prolang
  UNION ALL
  SELECT 'right on function ' || p.proname || ': ' || n.name, '[]'
  FROM functions AS p CROSS JOIN LATERAL aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) AS x
  JOIN names AS n ON n.oid = x.grantee WHERE n.name <> 'owner'
)
SELECT p.identity, p.content::text FROM parts AS p ORDER BY p.identity`

// readStructure runs structureQuery and returns its rows by their identity.
func readStructure(ctx context.Context, q querier, controlRole string) (map[string]string, error) {
	rows, err := q.Query(ctx, structureQuery, controlRole)
	if err != nil {
		return nil, databaseError("verify the structure of the consent registry", err)
	}
	out := map[string]string{}
	var identity, content string
	if _, err := pgx.ForEachRow(rows, []any{&identity, &content}, func() error {
		out[identity] = content
		return nil
	}); err != nil {
		return nil, databaseError("verify the structure of the consent registry", err)
	}
	return out, nil
}

// compareStructure reports how the database differs from structureFile.
func compareStructure(now map[string]string) []Finding {
	var want map[string]string
	if err := json.Unmarshal(structureFile, &want); err != nil {
		panic("registry: structure.json: " + err.Error())
	}
	delete(want, generatedByMember)
	var out []Finding
	for _, id := range slices.Sorted(maps.Keys(want)) {
		switch content, ok := now[id]; {
		case !ok:
			out = append(out, Finding{0, fmt.Sprintf("%s is missing from schema pgconsent", id)})
		case content != want[id] && (strings.HasPrefix(id, "function ") ||
			normalizeDefinition(content) != normalizeDefinition(want[id])):
			out = append(out, Finding{0, fmt.Sprintf("%s is not as migrate installs it", id)})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if _, ok := want[id]; !ok {
			out = append(out, Finding{0, fmt.Sprintf("%s was not made by migrate", id)})
		}
	}
	return out
}

// normalizeDefinition removes spaces and parentheses, which versions of PostgreSQL print differently. It is not used
// for functions, whose text PostgreSQL stores as it was written.
func normalizeDefinition(content string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" ()\n\t", r) {
			return -1
		}
		return r
	}, content)
}
