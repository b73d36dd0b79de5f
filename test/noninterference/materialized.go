package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/instance"
)

// keep has the answers of some consents kept beside the rows, and lets agreements end.
func (s *schema) keep(r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	for _, t := range s.tables {
		for _, c := range t.rule.of("consent") {
			if r.IntN(2) == 0 {
				c.expires = true
				c.target.need("until", "time")
			}
			if t.commands == nil {
				c.kept, s.keeps = true, true
				for _, reached := range []*table{t, c.target, c.link} {
					if reached != nil {
						reached.noParts = true
					}
				}
			}
		}
	}
}

// moments at which agreements end.
var moments = []string{"", "infinity", "2099-01-01 00:00:00+00", started.Add(-time.Hour).Format(instantForm), "-infinity"}

// ended tells whether an agreement has ended.
func ended(until string, known bool) bool {
	at, err := time.Parse(instantForm, until)
	return known && until != "infinity" && (err != nil || !at.After(started))
}

// filled stands in a load where what is kept is filled in. What follows is for triggers to notice.
const filled = "COMMIT;\n"

// otherwiseFirst is a content in which hidden rows say something else, and the changes that bring them to d: what is
// kept has to follow. Visible rows stay, so that they stand in the same places in a twin.
func (s *schema) otherwiseFirst(r *rand.Rand, d data, caller map[string]string) (data, string) {
	first := data{}
	var changes strings.Builder
	for _, t := range s.tables {
		first[t] = slices.Clone(d[t])
		for i, row := range first[t] {
			var set []string
			if d.visible(t, row, caller) || r.IntN(2) == 0 {
				continue
			}
			for name, value := range s.newRow(r, t, r.IntN(rowsPerTable)) {
				c := t.column(name)
				if !c.ruled || slices.ContainsFunc(t.key(), func(k column) bool { return k.name == name }) {
					continue
				}
				now, known := row[name]
				if first[t][i] = first[t][i].with(name, value); !known {
					set = append(set, c.sql()+" = NULL")
				} else {
					set = append(set, c.sql()+" = "+catalog.QuoteLiteral(now))
				}
			}
			if slices.Sort(set); len(set) > 0 {
				fmt.Fprintf(&changes, "UPDATE %s SET %s WHERE %s;\n", t.sql(), strings.Join(set, ", "), t.is(row))
			}
		}
		if !strings.HasPrefix(t.name, "link") {
			continue
		}
		for range 3 { // links that are taken away again
			if extra := s.newRow(r, t, 0); !slices.ContainsFunc(first[t],
				func(o row) bool { return t.keyOf(o) == t.keyOf(extra) }) && !d.visible(t, extra, caller) {
				first[t] = append(first[t], extra)
				fmt.Fprintf(&changes, "DELETE FROM %s WHERE %s;\n", t.sql(), t.is(extra))
			}
		}
	}
	return first, changes.String()
}

// with is a copy in which a column is another.
func (r row) with(name, value string) row {
	out := row{name: value}
	for n, v := range r {
		if n != name {
			out[n] = v
		}
	}
	return out
}

// is the condition that a row of t is r, by its key.
func (t *table) is(r row) string {
	var parts []string
	for _, c := range t.key() {
		parts = append(parts, c.sql()+" = "+catalog.QuoteLiteral(r[c.name]))
	}
	return strings.Join(parts, " AND ")
}

// fill fills in what is kept of a database, as migrate does.
func (st *stage) fill(i int) {
	if len(st.fills[i]) == 0 {
		return
	}
	if err := migrations.FillAll(st.t.Context(), st.dbs[i].Connect(st.t, "postgres"), st.fills[i], func(migrations.Fill, int64) {}); err != nil {
		st.t.Fatal(err)
	}
}

// unkept tells what is kept and does not count after it was filled in, or is not what it should be.
func (st *stage) unkept() (wrong []string) {
	for i, fills := range st.fills {
		for _, f := range fills {
			if a := instance.Ask(st.writers[i], "SELECT k.ready FROM pgconsent.materialized AS k WHERE k.name = "+
				catalog.QuoteLiteral(f.Name)); a.Err != "" || len(a.Results[0].Rows) != 1 || a.Results[0].Rows[0] != "t" {
				wrong = append(wrong, "what is kept of "+f.Relation+" does not count: "+a.Multiset())
			}
			if a := instance.Ask(st.writers[i], f.CountWrong); a.Err != "" || a.Results[0].Rows[0] != "0" {
				wrong = append(wrong, "what is kept of "+f.Relation+" is not what it should be: "+a.Multiset())
			}
		}
	}
	return wrong
}
