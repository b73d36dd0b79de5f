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

// tame are values that visible rows may have: no operator that is used on them as it should be fails.
func tame(r *rand.Rand, c column, n int) (string, bool) {
	if r.IntN(7) == 0 && !c.ruled {
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

// wild are values of hidden rows: each makes some expression fail, or speak.
func wild(r *rand.Rand, c column) (string, bool) {
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

// ruling are values of the columns that rules read.
func (s *schema) ruling(r *rand.Rand, t *table, c column) (string, bool) {
	if r.IntN(9) == 0 {
		return "", false
	}
	switch {
	case c.name == "owner":
		return fmt.Sprint(1 + r.IntN(3)), true
	case c.name == "state":
		return pick(r, states...), true
	case c.name == "Team":
		return pick(r, teams...), true
	case c.name == "tenant":
		return pick(r, "red", "blue", "green", "global", ""), true
	case c.name == "who":
		return pick(r, append(persons, "nobody")...), true
	case c.name == "heard":
		return pick(r, "{}", "{p1}", "{p2}", "{p1,p2}", "{p3,p4}", "{p1,NULL}"), true
	case c.name == "until":
		v := pick(r, moments...)
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

// newRow makes a row with the n-th key. Its payload is tame.
func (s *schema) newRow(r *rand.Rand, t *table, n int) row {
	if t == s.registry {
		return s.newRecord(r)
	}
	out := row{}
	for i, c := range t.columns {
		switch {
		case strings.HasPrefix(t.name, "link") && c.ruled:
			out[c.name] = keyValue(c.kind, r.IntN(rowsPerTable+1))
		case i < t.keys && i == 0:
			out[c.name] = keyValue(c.kind, n)
		case i < t.keys:
			out[c.name] = fmt.Sprint(r.IntN(3))
		case c.ruled:
			if v, ok := s.ruling(r, t, c); ok {
				out[c.name] = v
			}
		case c.generated != "":
		default:
			if v, ok := tame(r, c, n); ok && !c.forbids(v) {
				out[c.name] = v
			}
		}
	}
	return out
}

func (t *table) keyOf(r row) string {
	var parts []string
	for _, c := range t.key() {
		parts = append(parts, r[c.name])
	}
	return strings.Join(parts, "|")
}

// filled are the tables that have rows, that of the registry last.
func (s *schema) filled() []*table {
	if s.registry == nil {
		return s.tables
	}
	return append(slices.Clone(s.tables), s.registry)
}

// newData fills the tables, and makes the payload of what the caller cannot see wild.
func (s *schema) newData(r *rand.Rand, caller map[string]string) data {
	d := data{}
	for _, t := range s.filled() {
		taken := map[string]bool{}
		rows := rowsPerTable
		if t == s.registry {
			rows *= 2
		}
		for n := range rows {
			row := s.newRow(r, t, n)
			if !taken[t.keyOf(row)] {
				taken[t.keyOf(row)] = true
				d[t] = append(d[t], row)
			}
		}
	}
	s.roughen(r, d, caller)
	return d
}

// roughen makes the payload of hidden rows wild, and hidden columns of every row.
func (s *schema) roughen(r *rand.Rand, d data, caller map[string]string) {
	for _, t := range s.tables {
		for _, row := range d[t] {
			visible := d.visible(t, row, caller)
			for _, c := range t.columns[t.keys:] {
				if visible && c.mask != "" && !strings.Contains(c.mask, "null") {
					if v, ok := row[c.name]; ok {
						row[c.name] = c.behind(r, v)
					}
					continue
				}
				if !c.ruled && c.generated == "" && (!visible || c.mask != "" || c.secret && !c.keyed || !d.consented(c, row, caller)) && r.IntN(4) > 0 {
					if v, ok := wild(r, c); ok && !c.forbids(v) {
						row[c.name] = v
					} else {
						delete(row, c.name)
					}
				}
			}
		}
	}
}

// seen are the visible rows, as text.
func (s *schema) seen(d data, caller map[string]string) string {
	var b strings.Builder
	for _, t := range s.tables {
		var rows []string
		for _, row := range d[t] {
			if d.visible(t, row, caller) {
				var values []string
				for _, c := range t.shown() {
					v, known := row[c.name]
					v, known = c.seen(v, known && d.consented(c, row, caller))
					values = append(values, fmt.Sprint(v, known))
				}
				for _, c := range t.columns {
					if v, known := row[c.name]; c.keyed {
						values = append(values, fmt.Sprint(v, known))
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

// twin changes hidden rows only: values, keys, numbers of rows. A change that the caller could see is taken back.
func (s *schema) twin(r *rand.Rand, d data, caller map[string]string) data {
	out := data{}
	for t, rows := range d {
		for _, row := range rows {
			out[t] = append(out[t], maps.Clone(row))
		}
	}
	want := s.seen(d, caller)
	s.roughen(r, out, caller)
	for range 30 {
		t := pick(r, s.filled()...)
		if s.registry != nil && r.IntN(3) == 0 {
			t = s.registry
		}
		before := slices.Clone(out[t])
		switch i := r.IntN(len(before) + 1); {
		case i == len(before) || r.IntN(4) == 0:
			fresh := s.newRow(r, t, r.IntN(rowsPerTable+8))
			if slices.ContainsFunc(before, func(o row) bool { return t.keyOf(o) == t.keyOf(fresh) }) {
				continue
			}
			out[t] = append(slices.Clone(before), fresh)
		case r.IntN(3) == 0:
			out[t] = slices.Delete(slices.Clone(before), i, i+1)
		default:
			changed := maps.Clone(before[i])
			for name, value := range s.newRow(r, t, r.IntN(rowsPerTable)) {
				if c := t.column(name); c.ruled && !slices.ContainsFunc(t.key(), func(k column) bool { return k.name == name }) {
					changed[name] = value
				}
			}
			out[t] = slices.Clone(before)
			out[t][i] = changed
		}
		if s.seen(out, caller) != want {
			out[t] = before
		}
	}
	s.roughen(r, out, caller)
	return out
}

// visibleOnly leaves the hidden rows out.
func (s *schema) visibleOnly(d data, caller map[string]string) data {
	out := data{}
	for t, rows := range d {
		for _, row := range rows {
			if d.visible(t, row, caller) {
				out[t] = append(out[t], d.withoutUnconsented(t, row, caller))
			}
		}
	}
	return out
}

// hidden tells of each row whether the caller does not see it.
func (s *schema) hidden(d data, caller map[string]string) map[*table][]bool {
	out := map[*table][]bool{}
	for t, rows := range d {
		for _, row := range rows {
			out[t] = append(out[t], !d.visible(t, row, caller))
		}
	}
	return out
}

// load replaces the content of a database: visible rows first, so that they stand in the same places in a twin.
func (s *schema) load(d data, caller map[string]string, narrow bool) string {
	var b strings.Builder
	if !narrow {
		b.WriteString(s.loadRegistry(d))
	}
	hidden := s.hidden(d, caller)
	changes := ""
	if s.keeps && !narrow {
		d, changes = s.otherwiseFirst(s.Rand, d, caller)
	}
	var all []string
	for _, t := range s.tables {
		all = append(all, t.sql())
	}
	fmt.Fprintf(&b, "TRUNCATE %s;\n", strings.Join(all, ", "))
	for _, t := range s.tables {
		for _, last := range []bool{false, true} {
			for i, row := range d[t] {
				if last != (i >= len(hidden[t]) || hidden[t][i]) {
					continue
				}
				columns := t.columns
				if narrow {
					columns = t.shown()
				}
				values := make([]string, len(columns))
				for i, c := range columns {
					values[i] = "NULL"
					if c.generated != "" {
						values[i] = "DEFAULT"
						continue
					}
					v, ok := row[c.name]
					if narrow {
						v, ok = c.seen(v, ok)
					}
					if ok {
						values[i] = catalog.QuoteLiteral(v)
					}
				}
				fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", t.into(row), strings.Join(values, ", "))
			}
		}
	}
	if changes != "" {
		b.WriteString(filled + changes)
	}
	for _, t := range s.stored {
		fmt.Fprintf(&b, "REFRESH MATERIALIZED VIEW %s;\n", t.sql())
	}
	return b.String()
}
