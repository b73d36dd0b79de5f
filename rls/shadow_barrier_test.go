package rls_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/tier"
)

// An expression of an agent that fails for hidden names does not fail: no shadow runs it on a row that the shadow
// leaves out, or reads only for a join. So no error message contains a hidden name.
func TestShadowsKeepExpressionsFromHiddenNames(t *testing.T) {
	w := newWorld(t,
		"CREATE TABLE hidden_table (hidden_column int PRIMARY KEY DEFAULT 42 REFERENCES hidden_table, CONSTRAINT hidden_check CHECK (hidden_column > 0))",
		"CREATE INDEX hidden_index ON hidden_table (hidden_column); CREATE SEQUENCE hidden_sequence",
		"CREATE VIEW hidden_view AS SELECT * FROM hidden_table", "CREATE FUNCTION hidden_function(hidden_argument int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE SCHEMA hidden_schema; CREATE TABLE hidden_schema.hidden_other (hidden_column int PRIMARY KEY)",
	).migrate()
	w.exec(w.super, "ANALYZE")
	agent := w.agent(user1)
	columnNumber := 0
	for _, s := range catalog.Shadows() {
		source, ok := w.snap.Relation(s.Source)
		if !ok || s.IsEmpty {
			continue
		}
		for _, c := range source.Columns {
			if columnNumber++; !tier.IsPicked(columnNumber, 1) {
				continue
			}
			name := "t." + catalog.QuoteIdent(c.Name) + "::pg_catalog.text"
			sql := fmt.Sprintf("SELECT count(*) FROM %s AS t WHERE 1 / (CASE WHEN pg_catalog.strpos(%s, 'hidden') > 0 THEN 0 ELSE 1 END) = 7 OR "+
				"pg_catalog.strpos(%s, 'hidden') > 0", s.View().SQL(), name, name)
			got, err := query(agent, sql)
			var refusal *pgconn.PgError
			switch {
			case errors.As(err, &refusal) && refusal.Code == "22012":
				t.Errorf("%s: an expression ran on a hidden row", sql)
			case err != nil:
				t.Errorf("%s: %v", sql, err)
			case strings.TrimSpace(got) != "0":
				t.Errorf("%s: %s rows show", sql, got)
			}
		}
	}
}
