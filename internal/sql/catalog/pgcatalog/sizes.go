package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Sizes estimates the number of rows of each table as the planner does: from the rows per page at the last ANALYZE, and
// the present number of pages. The control role reads the numbers of distinct values from the function
// pgconsent.distinct_values.
func Sizes(ctx context.Context, conn *pgx.Conn, tables []*catalog.Relation) (catalog.Sizes, error) {
	oids, names := make([]uint32, len(tables)), map[uint32]catalog.Name{}
	for i, t := range tables {
		oids[i], names[t.OID] = t.OID, t.Name
	}
	sizes := catalog.Sizes{}
	var (
		oid    uint32
		column string
		number float64
	)
	for _, estimate := range []struct {
		sql  string
		scan []any
		f    func() error
	}{
		{`SELECT t.oid, pg_catalog.sum(CASE
			WHEN c.reltuples OPERATOR(pg_catalog.>=) 0 AND c.relpages OPERATOR(pg_catalog.>) 0
			THEN c.reltuples::pg_catalog.float8 OPERATOR(pg_catalog./) c.relpages OPERATOR(pg_catalog.*) p.pages
				ELSE 50 OPERATOR(pg_catalog.*) p.pages END)::pg_catalog.float8
		FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS t (oid)
		CROSS JOIN LATERAL (SELECT t.oid UNION SELECT x.relid::pg_catalog.oid
			FROM pg_catalog.pg_partition_tree(t.oid) AS x WHERE x.isleaf) AS leaf (oid)
		JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) leaf.oid AND c.relkind OPERATOR(pg_catalog.=) 'r'
		CROSS JOIN LATERAL (SELECT COALESCE(pg_catalog.pg_relation_size(c.oid), 0)::pg_catalog.float8
			OPERATOR(pg_catalog./) pg_catalog.current_setting('block_size')::pg_catalog.float8 AS pages) AS p
		GROUP BY t.oid`, []any{&oid, &number}, func() error {
			sizes[names[oid]] = catalog.Size{Rows: number, DistinctValues: map[string]float64{}}
			return nil
		}},
		{"SELECT d.relation, d.attribute, d.number FROM pgconsent.distinct_values($1::pg_catalog.oid[]) AS d",
			[]any{&oid, &column, &number}, func() error {
				size := sizes[names[oid]]
				if number < 0 { // a negative number is a share of the rows
					number *= -size.Rows
				}
				if size.DistinctValues != nil && number >= 1 {
					size.DistinctValues[column] = number
				}
				return nil
			}},
	} {
		rows, err := conn.Query(ctx, estimate.sql, oids)
		if err != nil {
			return nil, fmt.Errorf("read the sizes of tables: %w", err)
		}
		if _, err := pgx.ForEachRow(rows, estimate.scan, estimate.f); err != nil {
			return nil, fmt.Errorf("read the sizes of tables: %w", err)
		}
	}
	return sizes, nil
}
