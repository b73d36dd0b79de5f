package suite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/oracle"
	"github.com/pgconsent/pgconsent/test/tier"
)

// An agent reads whole tables and views. The rows must be those of a filtered copy, with each enforcement layer alone
// and with signed views.
func TestRelationsWhole(t *testing.T) {
	tier.All(t)
	oracle.Run(t, oracle.Options{
		Schemas: []string{"crm", "hospital"}, Modes: []instance.Mode{instance.RLS, instance.InjectedOnly, instance.SignedViews}, WholeRelations: true, Quick: true,
	})
}

// An agent sets every column that it may write to values of visible and hidden rows, and inserts copies of such rows.
// No hidden row may change, appear or vanish.
func TestWritesReachNothingHidden(t *testing.T) {
	tier.All(t)
	for _, s := range oracle.Schemas {
		if s.Name != "crm" && s.Name != "hospital" {
			continue
		}
		served := s.BehindProxy(t)
		before := s.HiddenRows(t, served.DB)
		proxy := instance.Start(t, instance.Both, served, s.Attributes)
		super, agent := instance.ConnectSuperuser(t, served.DB), proxy.Agent(t, "agent", s.Name)
		succeeded := 0
		tryWrite := func(sql string, values ...any) {
			if a := instance.Ask(agent, fmt.Sprintf(sql, values...)); a.Err == "" {
				succeeded++
			}
			if agent.IsClosed() {
				t.Fatalf("%s: the session ended at %s", s.Name, sql)
			}
		}
		for _, table := range instance.Compile(t, served, instance.Both).Policy.Tables() {
			w, name := table.Write, table.Relation.Name.SQL()
			if w == nil {
				continue
			}
			if w.Insert {
				for _, row := range sampleLiterals(t, super, name, w.Insertable) {
					tryWrite("INSERT INTO %s (%s) VALUES (%s)", name, columnList(w.Insertable), strings.Join(row, ", "))
				}
			}
			if w.Update {
				for _, row := range sampleLiterals(t, super, name, w.Updatable) {
					for i, column := range w.Updatable {
						tryWrite("UPDATE %s SET %s = %s", name, catalog.QuoteIdent(column), row[i])
					}
				}
			}
			if w.Delete {
				tryWrite("DELETE FROM %s", name)
			}
		}
		if succeeded == 0 {
			t.Errorf("%s: the agent wrote nothing", s.Name)
		}
		if after := s.HiddenRows(t, served.DB); after != before {
			t.Errorf("%s: hidden rows have changed\nbefore:\n%s\nafter:\n%s", s.Name, before, after)
		}
	}
}

// sampleLiterals returns the values of some rows in these columns, as SQL literals.
func sampleLiterals(t testing.TB, super *pgconn.PgConn, table string, columns []string) [][]string {
	t.Helper()
	var quoted []string
	for _, c := range columns {
		quoted = append(quoted, "quote_nullable("+catalog.QuoteIdent(c)+"::text)")
	}
	a := instance.Ask(super, fmt.Sprintf(
		"SELECT array_to_string(ARRAY[%s], chr(1)) FROM %s x ORDER BY md5(x::text) LIMIT 16", strings.Join(quoted, ", "), table))
	if a.Err != "" {
		t.Fatal(a.Err)
	}
	var out [][]string
	for _, r := range a.Results {
		for _, row := range r.Rows {
			out = append(out, strings.Split(row, "\x01"))
		}
	}
	return out
}

func columnList(columns []string) string {
	var out []string
	for _, c := range columns {
		out = append(out, catalog.QuoteIdent(c))
	}
	return strings.Join(out, ", ")
}
