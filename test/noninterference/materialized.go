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

// materializeConsents makes the policy materialize the answers to some consent rules, and gives some agreements an
// expiry.
func (s *schema) materializeConsents(r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	for _, t := range s.tables {
		for _, c := range t.rule.partsOfKind("consent") {
			if r.IntN(2) == 0 {
				c.hasExpiry = true
				c.targetTable.addRuleColumn("until", "time")
			}
			if t.writeCommands == nil {
				c.isMaterialized, s.hasMaterialized = true, true
				for _, affected := range []*table{t, c.targetTable, c.linkTable} {
					if affected != nil {
						affected.plainOnly = true
					}
				}
			}
		}
	}
}

// expiryTimes are possible values of the column with the expiry of an agreement.
var expiryTimes = []string{"", "infinity", "2099-01-01 00:00:00+00", startTime.Add(-time.Hour).Format(timeLayout), "-infinity"}

// hasEnded reports whether an agreement has expired.
func hasEnded(until string, isSet bool) bool {
	at, err := time.Parse(timeLayout, until)
	return isSet && until != "infinity" && (err != nil || !at.After(startTime))
}

// materializePoint separates a script in two: between its parts, the materialized answers are computed. Triggers must
// update them for the statements of the second part.
const materializePoint = "COMMIT;\n"

// contentBeforeChanges returns data with other hidden rows, and the SQL that changes these data to d, so that the
// materialized answers have to follow. Visible rows are the same in both, so that they have the same ctid in both
// twins.
func (s *schema) contentBeforeChanges(r *rand.Rand, d data, caller map[string]string) (data, string) {
	earlier := data{}
	var changes strings.Builder
	for _, t := range s.tables {
		earlier[t] = slices.Clone(d[t])
		for i, row := range earlier[t] {
			var set []string
			if d.isVisible(t, row, caller) || r.IntN(2) == 0 {
				continue
			}
			for name, value := range s.newRow(r, t, r.IntN(rowsPerTable)) {
				c := t.column(name)
				if !c.isReadByRule || slices.ContainsFunc(t.key(), func(k column) bool { return k.name == name }) {
					continue
				}
				laterValue, isSet := row[name]
				if earlier[t][i] = earlier[t][i].withColumn(name, value); !isSet {
					set = append(set, c.sql()+" = NULL")
				} else {
					set = append(set, c.sql()+" = "+catalog.QuoteLiteral(laterValue))
				}
			}
			if slices.Sort(set); len(set) > 0 {
				fmt.Fprintf(&changes, "UPDATE %s SET %s WHERE %s;\n", t.sql(), strings.Join(set, ", "), t.rowCondition(row))
			}
		}
		if !strings.HasPrefix(t.name, "link") {
			continue
		}
		for range 3 { // links that are later removed
			if link := s.newRow(r, t, 0); !slices.ContainsFunc(earlier[t],
				func(o row) bool { return t.keyText(o) == t.keyText(link) }) && !d.isVisible(t, link, caller) {
				earlier[t] = append(earlier[t], link)
				fmt.Fprintf(&changes, "DELETE FROM %s WHERE %s;\n", t.sql(), t.rowCondition(link))
			}
		}
	}
	return earlier, changes.String()
}

// withColumn returns a copy of the row with another value in one column.
func (r row) withColumn(name, value string) row {
	out := row{name: value}
	for n, v := range r {
		if n != name {
			out[n] = v
		}
	}
	return out
}

// rowCondition returns the SQL condition that selects the row r of t by its key.
func (t *table) rowCondition(r row) string {
	var parts []string
	for _, c := range t.key() {
		parts = append(parts, c.sql()+" = "+catalog.QuoteLiteral(r[c.name]))
	}
	return strings.Join(parts, " AND ")
}

// fillMaterialized computes the materialized answers of the i-th database, as pgconsent migrate does.
func (st *databaseTrio) fillMaterialized(i int) {
	if len(st.materializedFills[i]) == 0 {
		return
	}
	if err := migrations.FillAll(st.t.Context(), st.dbs[i].Connect(st.t, "postgres"), st.materializedFills[i], func(migrations.Fill, int64) {}); err != nil {
		st.t.Fatal(err)
	}
}

// findWrongMaterialized returns a problem for each set of materialized answers that is not ready, or that has wrong
// answers.
func (st *databaseTrio) findWrongMaterialized() (problems []string) {
	for i, fills := range st.materializedFills {
		for _, f := range fills {
			if a := instance.Ask(st.writers[i], "SELECT k.ready FROM pgconsent.materialized AS k WHERE k.name = "+
				catalog.QuoteLiteral(f.Name)); a.Err != "" || len(a.Results[0].Rows) != 1 || a.Results[0].Rows[0] != "t" {
				problems = append(problems, "what is kept of "+f.Relation+" does not count: "+a.SortedString())
			}
			if a := instance.Ask(st.writers[i], f.CountWrong); a.Err != "" || a.Results[0].Rows[0] != "0" {
				problems = append(problems, "what is kept of "+f.Relation+" is not what it should be: "+a.SortedString())
			}
		}
	}
	return problems
}
