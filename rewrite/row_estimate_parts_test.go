package rewrite

import (
	"context"
	"fmt"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// For a partitioned table, the estimate counts one hash set for each partition that PostgreSQL reads.
func TestUseHashHintOfPartitions(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	sql := "CREATE TABLE keepers (id bigint PRIMARY KEY, agreed text); CREATE TABLE logs (keeper bigint, made " +
		"date) PARTITION BY RANGE (made); CREATE TABLE lines (keeper bigint, made date);"
	for year := range 40 {
		sql += fmt.Sprintf("CREATE TABLE logs_%d PARTITION OF logs FOR VALUES FROM ('%d-01-01') TO ('%d-01-01');", year, 2000+year, 2001+year)
	}
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml",
		[]byte("version: 1\nattributes: {}\ntables:\n  keepers: { rows: [ status: { column: agreed, is: \"yes\" } "+
			"] }\n  logs: { rows: [ visible: { keepers: { id: keeper } } ] }\n  lines: { rows: [ visible: { keepers: { id: keeper } } ] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	sizes := catalog.Sizes{}
	for _, name := range []string{"keepers", "logs", "lines"} {
		sizes[catalog.Name{Schema: "public", Name: name}] = catalog.Size{Rows: 1e6}
	}
	for table, want := range map[string]bool{"lines": true, "logs": false} {
		if result, refusal := New(snap, pol, RowSecurityMode).WithSizes(sizes).Rewrite("SELECT count(*) FROM "+table,
			false); refusal != nil || result.UseHash != want {
			t.Errorf("%s: scan is %v: %v", table, result.UseHash, refusal)
		}
	}
}
