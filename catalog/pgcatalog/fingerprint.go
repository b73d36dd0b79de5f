package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Fingerprint returns a hash that changes when what Load would return changes. It is cheap enough to be polled: it looks
// at which row versions the catalogs have, not at what they say. Rows of the system's own objects count only where they
// have changed since the cluster was made, and temporary and TOAST tables do not count.
func Fingerprint(ctx context.Context, conn *pgx.Conn) (string, error) {
	var hash string
	err := conn.QueryRow(ctx, `
WITH schemas AS (
  SELECT n.oid, n.xmin FROM pg_catalog.pg_namespace AS n WHERE n.nspname OPERATOR(pg_catalog.!~) '^pg_(temp|toast)'
), classes AS (
  SELECT c.oid, c.xmin, c.relkind, c.relowner FROM pg_catalog.pg_class AS c JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
  WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
), versions (part) AS (
  SELECT pg_catalog.concat_ws(',', 'n', n.oid, n.xmin) FROM schemas AS n
  UNION ALL SELECT pg_catalog.concat_ws(',', 'c', c.oid, c.xmin, pg_catalog.pg_get_userbyid(c.relowner)) FROM classes AS c
  UNION ALL SELECT pg_catalog.concat_ws(',', 'a', a.attrelid, a.attnum, a.xmin) FROM pg_catalog.pg_attribute AS a JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) a.attrelid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'p', p.oid, p.xmin) FROM pg_catalog.pg_proc AS p JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 't', t.oid, t.xmin) FROM pg_catalog.pg_type AS t JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace WHERE t.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'm', m.oid, m.xmin) FROM pg_catalog.pg_enum AS m WHERE m.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'o', o.oid, o.xmin) FROM pg_catalog.pg_operator AS o JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace WHERE o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'u', u.oid, u.xmin) FROM pg_catalog.pg_cast AS u WHERE u.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'k', k.oid, k.xmin) FROM pg_catalog.pg_constraint AS k JOIN schemas AS n ON n.oid OPERATOR(pg_catalog.=) k.connamespace WHERE k.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'w', w.oid, w.xmin) FROM pg_catalog.pg_rewrite AS w JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) w.ev_class
  UNION ALL SELECT pg_catalog.concat_ws(',', 'l', l.oid, l.xmin) FROM pg_catalog.pg_policy AS l
  UNION ALL SELECT pg_catalog.concat_ws(',', 'i', i.inhrelid, i.inhseqno, i.xmin) FROM pg_catalog.pg_inherits AS i
  UNION ALL SELECT pg_catalog.concat_ws(',', 'e', e.oid, e.xmin) FROM pg_catalog.pg_extension AS e
  UNION ALL SELECT pg_catalog.concat_ws(',', 'd', d.classid, d.objid, d.refobjid) FROM pg_catalog.pg_depend AS d
  WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.deptype OPERATOR(pg_catalog.=) 'e'
  UNION ALL SELECT pg_catalog.concat_ws(',', 'x', x.indexrelid, x.xmin) FROM pg_catalog.pg_index AS x JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) x.indrelid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'g', g.oid, g.xmin) FROM pg_catalog.pg_trigger AS g JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) g.tgrelid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'f', f.oid, f.xmin) FROM pg_catalog.pg_ts_config AS f WHERE f.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'y', y.oid, y.xmin) FROM pg_catalog.pg_collation AS y WHERE y.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 's', s.oid, s.xmin) FROM pg_catalog.pg_amproc AS s WHERE s.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'b', b.oid, b.xmin) FROM pg_catalog.pg_amop AS b WHERE b.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'q', q.oid, q.xmin) FROM pg_catalog.pg_opclass AS q WHERE q.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT pg_catalog.concat_ws(',', 'z', z.oid, z.xmin) FROM pg_catalog.pg_statistic_ext AS z JOIN classes AS c ON c.oid OPERATOR(pg_catalog.=) z.stxrelid WHERE z.stxexprs IS NOT NULL
  UNION ALL SELECT pg_catalog.concat_ws(',', 'h', h.oid, h.xmin) FROM pg_catalog.pg_language AS h WHERE h.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
)
SELECT pg_catalog.md5(pg_catalog.string_agg(v.part, ';' ORDER BY v.part)) FROM versions AS v`).Scan(&hash)
	if err != nil {
		return "", fmt.Errorf("read the catalogs' fingerprint: %w", err)
	}
	return hash, nil
}
