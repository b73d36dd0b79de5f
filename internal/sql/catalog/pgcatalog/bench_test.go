package pgcatalog_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// BenchmarkLoad loads a snapshot over new connections, where PostgreSQL plans each query and has empty catalog caches,
// and over one connection. "many" has 500 tables and 500 functions.
func BenchmarkLoad(b *testing.B) {
	for _, size := range []struct{ name, sql string }{{"few", schema}, {"many", schema + many}} {
		b.Run(size.name, func(b *testing.B) {
			db := pgtest.Template(b, "bench "+size.name, func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.PgConn().Exec(ctx, size.sql).ReadAll()
				return err
			})
			run := func(b *testing.B, conn *pgx.Conn) {
				if _, err := pgcatalog.Load(context.Background(), conn, []string{"public"}); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("fresh", func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					conn := db.Connect(b, "postgres")
					b.StartTimer()
					run(b, conn)
					b.StopTimer()
					_ = conn.Close(context.Background())
					b.StartTimer()
				}
			})
			b.Run("warm", func(b *testing.B) {
				conn := db.Connect(b, "postgres")
				run(b, conn)
				for b.Loop() {
					run(b, conn)
				}
			})
		})
	}
}

const many = `;
DO $$ BEGIN FOR i IN 1..500 LOOP
  EXECUTE format('CREATE FUNCTION many_%s(a int, b text DEFAULT ''x'') RETURNS text LANGUAGE sql AS ''SELECT $2 || $1''', i);
  EXECUTE format('CREATE TABLE many_%s (id serial PRIMARY KEY, name text NOT NULL CHECK (length(name) < 99), kind text ` +
	`CHECK (kind IN (''a'', ''b'')), n numeric(9, 2) DEFAULT 0,
    made timestamptz DEFAULT now(), parent int REFERENCES many_%s, low text GENERATED ALWAYS AS (lower(name)) STORED)', i, greatest(i - 1, 1));
  EXECUTE format('CREATE INDEX ON many_%s (lower(name)) WHERE n > 0', i);
END LOOP; END $$`
