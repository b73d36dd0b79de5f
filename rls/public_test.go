package rls_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Even if PUBLIC has all rights, agents can only write what the policy permits. The test writes to the policy's tables,
// the tables that its predicates read, and their partitions by name.
func TestAgentsWriteNothingThatPublicMay(t *testing.T) {
	tier.All(t)
	for name, makeWorld := range map[string]func(t *testing.T) *world{
		"listed": func(t *testing.T) *world { return newWorld(t).migrate() },
		"unlisted": func(t *testing.T) *world {
			w := newWorld(t)
			w.compile("testdata/unlisted.yaml", rls.Options{})
			return w.migrate()
		},
		"parts": partitionedWorld,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := context.Background(), makeWorld(t)
			rows, err := w.super.Query(ctx, `SELECT format('%s', c.oid::regclass), quote_ident(a.attname) FROM pg_class c
				JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
				WHERE c.relkind IN ('r', 'p') AND c.relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('public', 'parts')) AND c.relrowsecurity ORDER BY 1, 2`)
			if err != nil {
				t.Fatal(err)
			}
			columns, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (out [2]string, err error) { return out, r.Scan(&out[0], &out[1]) })
			if err != nil || len(columns) < 5 {
				t.Fatalf("%v, %v", columns, err)
			}
			agent := w.agent(user1)
			checkWriteFails := func(sql string) {
				t.Helper()
				tag, err := agent.Exec(ctx, sql)
				var refusal *pgconn.PgError
				// 23514: PostgreSQL looks for a partition before it checks row security
				if err == nil && tag.RowsAffected() > 0 || err != nil && (!errors.As(err, &refusal) || refusal.Code != "42501" && refusal.Code != "23514") {
					t.Errorf("%s: %s, %v", sql, tag, err)
				}
			}
			for i, c := range columns {
				if i == 0 || columns[i-1][0] != c[0] {
					w.exec(w.super, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+c[0]+" TO PUBLIC")
					checkWriteFails("DELETE FROM " + c[0])
					checkWriteFails("INSERT INTO " + c[0] + " DEFAULT VALUES")
				}
				checkWriteFails("UPDATE " + c[0] + " SET " + c[1] + " = DEFAULT")
			}
		})
	}
}
