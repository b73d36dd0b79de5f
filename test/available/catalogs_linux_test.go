package available_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// catalogQueries are queries of clients on the catalogs: of psql 15 for its commands, and of object-relational mappers
// that read a schema. # stands for the OID of a table, and @ for its name.
var catalogQueries = []struct {
	name string
	sql  []string
}{
	{`psql, \d of a table`, []string{
		`SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.~) '^(@)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3`,
		`SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity,
false AS relhasoids, c.relispartition, '', c.reltablespace,
CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname
FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid)
LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = '#'`,
		`SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
(SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d
 WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull,
(SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t
 WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation,
a.attidentity, a.attgenerated FROM pg_catalog.pg_attribute a
WHERE a.attrelid = '#' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
		`SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true),
pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred, i.indisreplident, c2.reltablespace
FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i
LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x'))
WHERE c.oid = '#' AND c.oid = i.indrelid AND i.indexrelid = c2.oid ORDER BY i.indisprimary DESC, c2.relname`,
		`SELECT true as sametable, conname, pg_catalog.pg_get_constraintdef(r.oid, true) as condef,
conrelid::pg_catalog.regclass AS ontable FROM pg_catalog.pg_constraint r
WHERE r.conrelid = '#' AND r.contype = 'f' AND conparentid = 0 ORDER BY conname`,
		`SELECT conname, conrelid::pg_catalog.regclass AS ontable, pg_catalog.pg_get_constraintdef(oid, true) AS condef
FROM pg_catalog.pg_constraint c WHERE confrelid IN (SELECT pg_catalog.pg_partition_ancestors('#') UNION ALL VALUES ('#'::pg_catalog.regclass))
AND contype = 'f' AND conparentid = 0 ORDER BY conname`,
		`SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i
WHERE c.oid = i.inhparent AND i.inhrelid = '#' AND c.relkind != 'p' AND c.relkind != 'I' ORDER BY inhseqno`,
		`SELECT c.oid::pg_catalog.regclass, c.relkind, inhdetachpending, pg_catalog.pg_get_expr(c.relpartbound, c.oid)
FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhrelid AND i.inhparent = '#'
ORDER BY pg_catalog.pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT', c.oid::pg_catalog.regclass::pg_catalog.text`,
	}},
	{`psql, \dt`, []string{`SELECT n.nspname as "Schema", c.relname as "Name",
CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner"
FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
WHERE c.relkind IN ('r','p','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema'
AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2`}},
	{"information_schema.columns of a table", []string{`SELECT column_name, data_type, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '@' ORDER BY ordinal_position`}},
	{"information_schema.columns of a schema", []string{`SELECT table_name, column_name, data_type, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position`}},
	{"columns of a table, by ActiveRecord", []string{`SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid),
a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum LEFT JOIN pg_type t ON a.atttypid = t.oid
LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation
WHERE a.attrelid = '"@"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`}},
	{"columns of a schema, by SQLAlchemy", []string{`SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS format_type,
(SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef) AS "default",
a.attnotnull AS not_null, c.relname AS table_name, a.attgenerated AS generated
FROM pg_class c LEFT OUTER JOIN pg_attribute a ON c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_table_is_visible(c.oid) AND n.nspname != 'pg_catalog'
ORDER BY c.relname, a.attnum`}},
	{"foreign keys of a schema, by SQLAlchemy", []string{`SELECT r.relname, c.conname, pg_get_constraintdef(c.oid, true), n.nspname
FROM pg_class r LEFT OUTER JOIN pg_constraint c ON r.oid = c.conrelid AND c.contype = 'f'
LEFT OUTER JOIN pg_class f ON f.oid = c.confrelid LEFT OUTER JOIN pg_namespace n ON f.relnamespace = n.oid
JOIN pg_namespace s ON s.oid = r.relnamespace WHERE r.relkind = ANY (ARRAY['r', 'p']) AND s.nspname = 'public' ORDER BY r.relname, c.conname`}},
	{"constraints of a table, by Django", []string{`SELECT c.conname,
array(SELECT attname FROM unnest(c.conkey) WITH ORDINALITY cols(colid, arridx) JOIN pg_attribute AS ca ON cols.colid = ca.attnum
  WHERE ca.attrelid = c.conrelid ORDER BY cols.arridx), c.contype,
(SELECT fkc.relname || '.' || fka.attname FROM pg_attribute AS fka JOIN pg_class AS fkc ON fka.attrelid = fkc.oid
  WHERE fka.attrelid = c.confrelid AND fka.attnum = c.confkey[1]), cl.reloptions
FROM pg_constraint AS c JOIN pg_class AS cl ON c.conrelid = cl.oid WHERE cl.relname = '@' AND pg_table_is_visible(cl.oid)`}},
	{"keys of a schema, by information_schema", []string{`SELECT tc.table_name, tc.constraint_name, tc.constraint_type, k.column_name
FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS k
ON k.constraint_schema = tc.constraint_schema AND k.constraint_name = tc.constraint_name
WHERE tc.table_schema = 'public' ORDER BY 1, 2, 4`}},
	{"types, by a driver", []string{`SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput::text, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type AS t LEFT JOIN pg_range AS r ON t.oid = r.rngtypid`}},
}

// rounds is how often each query is measured. The least time counts, since other load on the machine can only add to
// it.
const rounds = 15

// measureCatalogQueries measures the server's processor time for these queries, sent directly and by an agent.
func measureCatalogQueries(t *testing.T, db *pgtest.DB, proxy *instance.Proxy, table string) (rows [][]string) {
	t.Helper()
	super := db.Connect(t, "postgres")
	var oid uint32
	if err := super.QueryRow(t.Context(), "SELECT $1::pg_catalog.text::pg_catalog.regclass::pg_catalog.oid", table).Scan(&oid); err != nil {
		t.Fatal(err)
	}
	placeholders := strings.NewReplacer("#", fmt.Sprint(oid), "@", table)
	direct, agent := instance.ConnectSuperuser(t, db), proxy.Agent(t, "agent", "app")
	for _, r := range catalogQueries {
		measure := func(conn *pgconn.PgConn, condition string) time.Duration {
			leastTime := time.Hour
			for i, tries := 0, 0; i < rounds; tries++ {
				if tries == 10*rounds {
					t.Fatalf("%s: the pool opens and closes connections in nearly every round", r.name)
				}
				before := usedByEach(t, super, condition)
				for _, sql := range r.sql {
					if _, err := conn.Exec(t.Context(), placeholders.Replace(sql)).ReadAll(); err != nil {
						t.Fatalf("%s: %v", r.name, err)
					}
				}
				after := usedByEach(t, super, condition)
				if !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))) {
					continue // the pool has opened or closed a connection meanwhile
				}
				var used time.Duration
				for pid := range after {
					used += after[pid] - before[pid]
				}
				leastTime, i = min(leastTime, used), i+1
			}
			return leastTime
		}
		one, other := measure(direct, fmt.Sprintf("pid = %d", direct.PID())), measure(agent, "usename = 'pgconsent_agent'")
		rows = append(rows, []string{r.name, milliseconds(one), milliseconds(other), fmt.Sprintf("%.1f×", float64(other)/float64(one))})
	}
	return rows
}
