package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Fingerprint returns a hash that changes whenever the result of Load would change. It hashes the versions (xmin) of
// rows in the catalogs, not their content. For pg_class it hashes the columns that Load reads, since TRUNCATE and
// VACUUM FULL also write new versions of its rows. Temporary and TOAST tables are left out, as are PostgreSQL's own
// objects unless they have changed since initdb.
func Fingerprint(ctx context.Context, conn *pgx.Conn) (string, error) {
	var all string
	err := conn.QueryRow(ctx, fmt.Sprintf(fingerprintsQuery, "'{}'::pg_catalog.oid[]", "true")).Scan(&all, new(string))
	if err != nil {
		return "", fmt.Errorf("read the catalogs' fingerprint: %w", err)
	}
	return all, nil
}

// Fingerprints returns the hash of [Fingerprint], and a second hash that changes only with objects that concern agents.
// The second hash leaves out tables that the policy does not list and on which no listed table or view depends. It also
// leaves out functions and types that agents cannot reach. pgconsent must be installed.
func Fingerprints(ctx context.Context, conn *pgx.Conn) (all, concerned string, err error) {
	err = conn.QueryRow(ctx, fmt.Sprintf(fingerprintsQuery, "ARRAY(SELECT pgconsent.concerned())",
		"pgconsent.within_reach(n.oid)")).Scan(&all, &concerned)
	if err != nil {
		return "", "", fmt.Errorf("read the catalogs' fingerprint: %w", err)
	}
	return all, concerned, nil
}

// fingerprintsQuery returns the hash of all rows, and the hash of the rows that concern agents. These are rows about
// the relations in an array, and about objects in schemas for which a condition holds. The hashes do not depend on the
// order of the rows, since bit_xor combines the hashes of different texts.
const fingerprintsQuery = `
WITH concerned (oid) AS (SELECT pg_catalog.unnest(%s)), schemas AS (
  SELECT n.oid, n.xmin, %s AS counts FROM pg_catalog.pg_namespace AS n WHERE n.nspname OPERATOR(pg_catalog.!~) '^pg_(temp|toast)'
), classes AS (
  SELECT c.oid, c.reltype, COALESCE(x.indrelid, c.oid) IN (SELECT o.oid FROM concerned AS o) AS counts,
    pg_catalog.concat_ws(',', c.relname, c.relnamespace, c.reltype, c.relam, c.relpersistence, c.relkind,
    c.relchecks, c.relhasrules, c.relhastriggers, c.relhassubclass, c.relrowsecurity, c.relforcerowsecurity, c.relispartition, c.reloptions,
    c.relacl, pg_catalog.pg_get_userbyid(c.relowner)) AS content
  FROM pg_catalog.pg_class AS c JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
  LEFT JOIN pg_catalog.pg_index AS x ON x.indexrelid OPERATOR(pg_catalog.=) c.oid
  WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
), versions (part, counts) AS (
  SELECT pg_catalog.concat_ws(',', 'n', n.oid, n.xmin), n.counts FROM schemas AS n
  UNION ALL SELECT pg_catalog.concat_ws(',', 'c', c.oid, c.content), c.counts FROM classes AS c
  UNION ALL SELECT pg_catalog.concat_ws(',', 'a', a.attrelid, a.attnum, a.xmin), c.counts FROM pg_catalog.pg_attribute AS a
    JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) a.attrelid WHERE a.attnum OPERATOR(pg_catalog.>) 0
  UNION ALL SELECT pg_catalog.concat_ws(',', 'p', p.oid, p.xmin), n.counts OR EXISTS (SELECT FROM pg_catalog.pg_depend AS d
      WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid OPERATOR(pg_catalog.=) p.oid)
    FROM pg_catalog.pg_proc AS p JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
    WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 't', t.oid, t.xmin),
    CASE WHEN c.oid IS NOT NULL THEN c.counts ELSE n.counts OR EXISTS (SELECT FROM pg_catalog.pg_depend AS d
      WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) t.oid AND d.deptype OPERATOR(pg_catalog.<>) 'i') END
    FROM pg_catalog.pg_type AS t JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace
    LEFT JOIN classes AS c ON c.reltype OPERATOR(pg_catalog.=) CASE WHEN t.typrelid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid THEN t.oid
      ELSE t.typelem END AND c.reltype OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
    WHERE t.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'm', m.oid, m.xmin), true FROM pg_catalog.pg_enum AS m
    WHERE m.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'o', o.oid, o.xmin), true FROM pg_catalog.pg_operator AS o
    JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace WHERE o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'u', u.oid, u.xmin), true FROM pg_catalog.pg_cast AS u
    WHERE u.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'k', k.oid, k.xmin), k.conrelid OPERATOR(pg_catalog.=) 0::pg_catalog.oid
    OR k.conrelid IN (SELECT o.oid FROM concerned AS o)
    FROM pg_catalog.pg_constraint AS k JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) k.connamespace
    WHERE k.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'w', w.oid, w.xmin), c.counts FROM pg_catalog.pg_rewrite AS w
    JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) w.ev_class
  UNION ALL SELECT pg_catalog.concat_ws(',', 'l', l.oid, l.xmin), l.polrelid IN (SELECT o.oid FROM concerned AS o)
    FROM pg_catalog.pg_policy AS l
  UNION ALL SELECT pg_catalog.concat_ws(',', 'i', i.inhrelid, i.inhseqno, i.xmin), i.inhrelid IN (SELECT o.oid FROM concerned AS o)
    FROM pg_catalog.pg_inherits AS i
  UNION ALL SELECT pg_catalog.concat_ws(',', 'e', e.oid, e.xmin), true FROM pg_catalog.pg_extension AS e
  UNION ALL SELECT pg_catalog.concat_ws(',', 'd', d.classid, d.objid, d.refobjid), true FROM pg_catalog.pg_depend AS d
  WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.deptype OPERATOR(pg_catalog.=) 'e'
  UNION ALL SELECT pg_catalog.concat_ws(',', 'x', x.indexrelid, x.xmin), c.counts FROM pg_catalog.pg_index AS x
    JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) x.indrelid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'g', g.oid, g.xmin), c.counts FROM pg_catalog.pg_trigger AS g
    JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) g.tgrelid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'f', f.oid, f.xmin), true FROM pg_catalog.pg_ts_config AS f
    WHERE f.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'y', y.oid, y.xmin), true FROM pg_catalog.pg_collation AS y
    WHERE y.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 's', s.oid, s.xmin), true FROM pg_catalog.pg_amproc AS s
    WHERE s.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'b', b.oid, b.xmin), true FROM pg_catalog.pg_amop AS b
    WHERE b.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'q', q.oid, q.xmin), true FROM pg_catalog.pg_opclass AS q
    WHERE q.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'z', z.oid, z.xmin), c.counts FROM pg_catalog.pg_statistic_ext AS z
    JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) z.stxrelid WHERE z.stxexprs IS NOT NULL
  UNION ALL SELECT pg_catalog.concat_ws(',', 'h', h.oid, h.xmin), true FROM pg_catalog.pg_language AS h
    WHERE h.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
), hashed AS (
  SELECT pg_catalog.hashtextextended(v.part COLLATE "C", 1) AS one,
    pg_catalog.hashtextextended(v.part COLLATE "C", 2) AS other, v.counts FROM versions AS v
)
SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.bit_xor(h.one), pg_catalog.bit_xor(h.other)),
  pg_catalog.concat_ws(' ', pg_catalog.count(*) FILTER (WHERE h.counts), pg_catalog.bit_xor(h.one) FILTER (WHERE h.counts),
    pg_catalog.bit_xor(h.other) FILTER (WHERE h.counts))
FROM hashed AS h`
