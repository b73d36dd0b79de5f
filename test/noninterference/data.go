package noninterference

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/instance"
)

// safeValue returns a value for a visible row. Expressions that use the column as intended do not fail on it.
func safeValue(r *rand.Rand, c column, n int) (string, bool) {
	if r.IntN(7) == 0 && !c.isReadByRule {
		return "", false
	}
	switch c.kind {
	case "text":
		return pick(r, "apple pie", "Berlin", "a b c", "tea", "Zoë", "walk the dog", "x_1", "50%"), true
	case "digits":
		return fmt.Sprint(1 + r.IntN(90)), true
	case "int":
		return fmt.Sprint(1 + r.IntN(40)), true
	case "num":
		return fmt.Sprintf("%d.%03d", 1+r.IntN(50), r.IntN(1000)), true
	case "bool":
		return pick(r, "t", "f"), true
	case "time":
		return fmt.Sprintf("202%d-0%d-1%d 0%d:30:00+00", r.IntN(5), 1+r.IntN(9), r.IntN(10), r.IntN(10)), true
	case "json":
		return fmt.Sprintf(`{"n": %d, "k": "%s", "l": [1, %d]}`, 1+r.IntN(9), pick(r, "a", "b"), r.IntN(5)), true
	case "arr":
		return "{" + pick(r, "a,b", "c", "a,x,y", "b") + "}", true
	}
	return fmt.Sprint(n), true
}

// failingValue returns a value for a hidden row. Some expressions fail on it, or raise a notice.
func failingValue(r *rand.Rand, c column) (string, bool) {
	if r.IntN(5) == 0 {
		return "", false
	}
	switch c.kind {
	case "text", "digits":
		return pick(r, instance.Marker, `abc\`, "(", "{", "1e400", "", "2020-02-30", "[", "99999999999999", "0",
			"1", "-1", "<a", "pg_class", "apple pie", "é", "%", "true", "a & ("), true
	case "int":
		return pick(r, "0", "0", "-1", "2147483647", "-2147483648", "70000", "13", "1"), true
	case "num":
		return pick(r, "0", "-1", "999999999", "0.001", "77777"), true
	case "bool":
		return pick(r, "t", "f"), true
	case "time":
		return pick(r, "infinity", "-infinity", "4714-11-24 00:00:00+00 BC", "9999-12-31 00:00:00+00", "2022-05-15 05:30:00+00"), true
	case "json":
		return pick(r, "null", "[]", `"`+instance.Marker+`"`, `{"n": 0, "k": null}`, `{"n": "x"}`, "1", `{"`+instance.Marker+`": 1}`), true
	case "arr":
		return pick(r, "{}", "{"+instance.Marker+"}", "{NULL}", "{1,2,3,4,5,6,7,8,9}"), true
	}
	return "", false
}

// ruleColumnValue returns a value for a column that a rule reads.
func (s *schema) ruleColumnValue(r *rand.Rand, t *table, c column) (string, bool) {
	if r.IntN(9) == 0 {
		return "", false
	}
	switch {
	case c.name == "owner":
		return fmt.Sprint(1 + r.IntN(3)), true
	case c.name == "state":
		return pick(r, statusValues...), true
	case c.name == "Team":
		return pick(r, teamNames...), true
	case c.name == "tenant":
		return pick(r, "red", "blue", "green", "global", ""), true
	case c.name == "who":
		return pick(r, append(personIDs, "nobody")...), true
	case c.name == "heard":
		return pick(r, "{}", "{p1}", "{p2}", "{p1,p2}", "{p3,p4}", "{p1,NULL}"), true
	case c.name == "until":
		v := pick(r, expiryTimes...)
		return v, v != ""
	case c.name == "since":
		return pick(r, daysAgo(1), daysAgo(20), daysAgo(60), daysAgo(150), daysAgo(400)), true
	case c.name == "acl":
		return pick(r, "{}", "{red}", "{blue,x}", "{*}", "{green,red}", "{y}"), true
	}
	for _, target := range s.tables {
		if c.name == "ref "+target.name {
			return keyValue(target.columns[0].kind, r.IntN(rowsPerTable+2)), true
		}
		if c.name == "made from "+target.name {
			one := func() string { return keyValue(target.columns[0].kind, r.IntN(rowsPerTable+1)) }
			return "{" + pick(r, one(), one(), one()+","+one(), one()+",NULL", "") + "}", true
		}
	}
	return "", false
}

const rowsPerTable = 12

func keyValue(kind string, n int) string {
	switch kind {
	case "uid":
		return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
	case "code":
		return fmt.Sprintf("k%d", n)
	}
	return fmt.Sprint(n)
}

// newRow makes the n-th row of a table. Columns that no rule reads get safe values.
func (s *schema) newRow(r *rand.Rand, t *table, n int) row {
	if t == s.registry {
		return s.newRegistryRecord(r)
	}
	out := row{}
	for i, c := range t.columns {
		switch {
		case strings.HasPrefix(t.name, "link") && c.isReadByRule:
			out[c.name] = keyValue(c.kind, r.IntN(rowsPerTable+1))
		case i < t.keyCount && i == 0:
			out[c.name] = keyValue(c.kind, n)
		case i < t.keyCount:
			out[c.name] = fmt.Sprint(r.IntN(3))
		case c.isReadByRule:
			if v, ok := s.ruleColumnValue(r, t, c); ok {
				out[c.name] = v
			}
		case c.generated != "":
		default:
			if v, ok := safeValue(r, c, n); ok && !c.forbids(v) {
				out[c.name] = v
			}
		}
	}
	return out
}

func (t *table) keyText(r row) string {
	var parts []string
	for _, c := range t.key() {
		parts = append(parts, r[c.name])
	}
	return strings.Join(parts, "|")
}

// tablesWithRows returns the tables for which rows are made. The table of the consent registry is the last.
func (s *schema) tablesWithRows() []*table {
	if s.registry == nil {
		return s.tables
	}
	return append(slices.Clone(s.tables), s.registry)
}

// newData makes random rows for all tables. What the caller cannot see gets values on which expressions fail.
func (s *schema) newData(r *rand.Rand, caller map[string]string) data {
	d := data{}
	for _, t := range s.tablesWithRows() {
		takenKeys := map[string]bool{}
		rows := rowsPerTable
		if t == s.registry {
			rows *= 2
		}
		for n := range rows {
			row := s.newRow(r, t, n)
			if !takenKeys[t.keyText(row)] {
				takenKeys[t.keyText(row)] = true
				d[t] = append(d[t], row)
			}
		}
	}
	s.changeHiddenPayload(r, d, caller)
	return d
}

// changeHiddenPayload sets values on which expressions fail in hidden rows, and in the hidden columns of all rows.
func (s *schema) changeHiddenPayload(r *rand.Rand, d data, caller map[string]string) {
	for _, t := range s.tables {
		for _, row := range d[t] {
			visible := d.isVisible(t, row, caller)
			for _, c := range t.columns[t.keyCount:] {
				if visible && c.mask != "" && !strings.Contains(c.mask, "null") {
					if v, ok := row[c.name]; ok {
						row[c.name] = c.otherHiddenValue(r, v)
					}
					continue
				}
				if !c.isReadByRule && c.generated == "" && (!visible || c.mask != "" || c.isHidden && !c.isByKeyOnly || !d.isConsented(c, row, caller)) && r.IntN(4) > 0 {
					if v, ok := failingValue(r, c); ok && !c.forbids(v) {
						row[c.name] = v
					} else {
						delete(row, c.name)
					}
				}
			}
		}
	}
}

// visibleText returns the rows that the caller sees as text.
func (s *schema) visibleText(d data, caller map[string]string) string {
	var b strings.Builder
	for _, t := range s.tables {
		var rows []string
		for _, row := range d[t] {
			if d.isVisible(t, row, caller) {
				var values []string
				for _, c := range t.shownColumns() {
					v, isSet := row[c.name]
					v, isSet = c.shownValue(v, isSet && d.isConsented(c, row, caller))
					values = append(values, fmt.Sprint(v, isSet))
				}
				for _, c := range t.columns {
					if v, isSet := row[c.name]; c.isByKeyOnly {
						values = append(values, fmt.Sprint(v, isSet))
					}
				}
				rows = append(rows, strings.Join(values, " "))
			}
		}
		slices.Sort(rows)
		fmt.Fprintf(&b, "%s %q\n", t.name, rows)
	}
	return b.String()
}

// newTwin returns a copy of the data with other hidden rows: their values, keys and number change. It undoes changes
// that the caller could see.
func (s *schema) newTwin(r *rand.Rand, d data, caller map[string]string) data {
	out := data{}
	for t, rows := range d {
		for _, row := range rows {
			out[t] = append(out[t], maps.Clone(row))
		}
	}
	want := s.visibleText(d, caller)
	s.changeHiddenPayload(r, out, caller)
	for range 30 {
		t := pick(r, s.tablesWithRows()...)
		if s.registry != nil && r.IntN(3) == 0 {
			t = s.registry
		}
		oldRows := slices.Clone(out[t])
		switch i := r.IntN(len(oldRows) + 1); {
		case i == len(oldRows) || r.IntN(4) == 0:
			newRow := s.newRow(r, t, r.IntN(rowsPerTable+8))
			if slices.ContainsFunc(oldRows, func(o row) bool { return t.keyText(o) == t.keyText(newRow) }) {
				continue
			}
			out[t] = append(slices.Clone(oldRows), newRow)
		case r.IntN(3) == 0:
			out[t] = slices.Delete(slices.Clone(oldRows), i, i+1)
		default:
			changed := maps.Clone(oldRows[i])
			for name, value := range s.newRow(r, t, r.IntN(rowsPerTable)) {
				if c := t.column(name); c.isReadByRule && !slices.ContainsFunc(t.key(), func(k column) bool { return k.name == name }) {
					changed[name] = value
				}
			}
			out[t] = slices.Clone(oldRows)
			out[t][i] = changed
		}
		if s.visibleText(out, caller) != want {
			out[t] = oldRows
		}
	}
	s.changeHiddenPayload(r, out, caller)
	return out
}

// visibleOnly returns the data without the hidden rows and values.
func (s *schema) visibleOnly(d data, caller map[string]string) data {
	out := data{}
	for t, rows := range d {
		for _, row := range rows {
			if d.isVisible(t, row, caller) {
				out[t] = append(out[t], d.withoutUnconsented(t, row, caller))
			}
		}
	}
	return out
}

// hiddenRows returns, for each row of each table, whether the row is hidden from the caller.
func (s *schema) hiddenRows(d data, caller map[string]string) map[*table][]bool {
	out := map[*table][]bool{}
	for t, rows := range d {
		for _, row := range rows {
			out[t] = append(out[t], !d.isVisible(t, row, caller))
		}
	}
	return out
}

// loadSQL returns the SQL that replaces the rows of a database. It inserts visible rows first, so that they have the
// same ctid in both twins.
func (s *schema) loadSQL(d data, caller map[string]string, dropsHidden bool) string {
	var b strings.Builder
	if !dropsHidden {
		b.WriteString(s.loadRegistry(d))
	}
	hidden := s.hiddenRows(d, caller)
	changes := ""
	if s.hasMaterialized && !dropsHidden {
		d, changes = s.contentBeforeChanges(s.Rand, d, caller)
	}
	var all []string
	for _, t := range s.tables {
		all = append(all, t.sql())
	}
	fmt.Fprintf(&b, "TRUNCATE %s;\n", strings.Join(all, ", "))
	for _, t := range s.tables {
		for _, hiddenRows := range []bool{false, true} {
			for i, row := range d[t] {
				if hiddenRows != (i >= len(hidden[t]) || hidden[t][i]) {
					continue
				}
				columns := t.columns
				if dropsHidden {
					columns = t.shownColumns()
				}
				values := make([]string, len(columns))
				for i, c := range columns {
					values[i] = "NULL"
					if c.generated != "" {
						values[i] = "DEFAULT"
						continue
					}
					v, ok := row[c.name]
					if dropsHidden {
						v, ok = c.shownValue(v, ok)
					}
					if ok {
						values[i] = catalog.QuoteLiteral(v)
					}
				}
				fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", t.storingTable(row), strings.Join(values, ", "))
			}
		}
	}
	if changes != "" {
		b.WriteString(materializePoint + changes)
	}
	for _, t := range s.materializedViews {
		fmt.Fprintf(&b, "REFRESH MATERIALIZED VIEW %s;\n", t.sql())
	}
	return b.String()
}
