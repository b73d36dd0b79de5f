package predicate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// schema is a random database with a policy: tables whose columns have many types and names. Their rows have NULLs,
// references to missing rows and malformed lists.
type schema struct {
	*rand.Rand
	name           string
	tables         []*table
	credentialOnly bool // rules may only use attributes of the credential

	registry []predicate.Row // the rows of the consent registry
}

type table struct {
	name    string
	columns []*tableColumn
	key     *tableColumn
	primary bool

	composite bool // the primary key consists of key and the row's id
	rows      []predicate.Row
}

// tableColumn is a column; use says for what the generator of rules uses it.
type tableColumn struct {
	name    string
	use     columnUse
	family  string // uuid, integer or text; for lists the family of the elements
	sqlType string
	target  *table // the table to which a reference refers
}

type columnUse int

const (
	rowID columnUse = iota
	keyColumn
	reference
	scalar
	statusSQL
	list
	document // JSON, in jsonb
	jsonText // JSON, in json or a text
	flag
	instant
	localTime
	day
	specialType // a type that no attribute has: linked with columns of the same type only
)

// oddNames are names for tables and columns, most of which must be quoted.
var oddNames = []string{
	"plain", "Group", "select", "a b", `with"quote`, "ünï", "x'y", "UPPER", "order", "user", "r", "r1", "r_",
	"pgconsent_row", "$dollar", "1st", "percent%", `back\slash`, "row", "new", "old",
	"table", "end", "true", "null", "attr", "left", "日本", "-- x", "/* x */", "x;y", strings.Repeat("long",
		15), "tab\there", "question?", "colon:", "r2", "oid", "value", "current_user", "_", "e", "E", "u&", "U&", "b", "x",
}

var sqlTypes = map[string][]string{
	"uuid":    {"uuid"},
	"integer": {"integer", "bigint", "smallint"},
	"text":    {"text", "varchar", "varchar(40)", `text COLLATE "POSIX"`},
}

var specialTypes = map[string][]string{
	"character": {"character(2)", "character(9)", "char(4)"},
	"numeric":   {"numeric", "numeric(9,2)"},
	"moment":    {"timestamp(3) with time zone", "timestamptz"},
	"mood":      {"public.mood"},
}

var specialValues = map[string][]string{
	"character": {"a", "b", "A", "ab", `\`, ""},
	"numeric":   {"1.00", "2.50"},
	"moment":    {"2026-01-01 00:00:00+00", "2026-01-02 00:00:00+00"},
	"mood":      {"granted", "refused"},
}

var families = []string{"uuid", "integer", "text"}

// There are few different texts, so that values of different columns are often equal.
var textValues = []string{"a", "b", "*", "A", "ab", "it's", `\`, "é", "", "a,b", `"`, "{a}", "x y"}

func (s *schema) pick(from ...string) string { return from[s.IntN(len(from))] }

func (s *schema) chance(percent int) bool { return s.IntN(100) < percent }

// value draws one of a few values of a family.
func (s *schema) value(family string) string {
	switch family {
	case "uuid":
		return id(s.IntN(4))
	case "integer":
		return s.pick("1", "2", "3", "0", "-1")
	default:
		if s.chance(60) {
			return s.pick("a", "b")
		}
		return s.pick(textValues...)
	}
}

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// keyValue returns the n-th key of a family.
func keyValue(family string, n int) string {
	switch family {
	case "uuid":
		return id(n)
	case "integer":
		return fmt.Sprint(n - 1)
	default:
		if n < 4 {
			return []string{"a", "b", "it's", `\`}[n]
		}
		return fmt.Sprintf("key %d", n)
	}
}

func newSchema(seed uint64, number, rows int) *schema {
	s := &schema{Rand: rand.New(rand.NewPCG(seed, uint64(number))), name: fmt.Sprintf("app %d", number)}
	if number%2 == 0 {
		s.name = fmt.Sprintf("app%d", number)
	}
	names := slices.Clone(oddNames)
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i := range 3 + s.IntN(3) {
		t := &table{name: names[i], primary: s.chance(70)}
		t.composite = t.primary && s.chance(40)
		s.tables = append(s.tables, t)
		s.addColumns(t)
	}
	for _, t := range s.tables {
		s.addRows(t, rows)
	}
	s.addRegistry(rows)
	return s
}

func (s *schema) addColumns(t *table) {
	names := slices.Clone(oddNames)
	names = append(names, t.name+"_2")
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	add := func(u columnUse, family, sqlType string) *tableColumn {
		c := &tableColumn{name: names[len(t.columns)], use: u, family: family, sqlType: sqlType}
		t.columns = append(t.columns, c)
		return c
	}
	addTyped := func(u columnUse) *tableColumn {
		family := families[s.IntN(3)]
		return add(u, family, s.pick(sqlTypes[family]...))
	}
	add(rowID, "integer", "integer NOT NULL")
	t.key = addTyped(keyColumn)
	for _, target := range s.tables {
		if target != t && s.chance(70) {
			c := add(reference, target.key.family, s.pick(sqlTypes[target.key.family]...))
			c.target = target
		}
	}
	for range 2 {
		addTyped(scalar)
	}
	for _, family := range []string{"character", "numeric", "moment", "mood"} {
		if s.chance(40) {
			add(specialType, family, s.pick(specialTypes[family]...))
		}
	}
	add(statusSQL, "text", s.pick("text", "varchar(9)", "public.mood", "boolean"))
	for _, family := range families {
		if s.chance(60) {
			add(list, family, strings.TrimSuffix(s.pick(sqlTypes[family]...), ` COLLATE "POSIX"`)+"[]")
		}
	}
	for _, optional := range []struct {
		u       columnUse
		family  string
		sqlType string
	}{
		{document, "text", "jsonb"}, {jsonText, "text", "json"}, {jsonText, "text", "text"}, {flag, "boolean", "boolean"},
		{instant, "", "timestamptz"}, {localTime, "", "timestamp"}, {day, "", "date"},
	} {
		if s.chance(60) {
			add(optional.u, optional.family, optional.sqlType)
		}
	}
}

func (s *schema) addRows(t *table, rows int) {
	if s.chance(5) {
		rows = 0
	} else if s.chance(30) {
		rows = 1 + s.IntN(5)
	}
	now := time.Now().UTC()
	for i := range rows {
		row := predicate.Row{}
		for _, c := range t.columns {
			isNull := s.chance(12)
			value := ""
			switch c.use {
			case rowID:
				value, isNull = fmt.Sprint(i), false
			case keyColumn:
				value = keyValue(c.family, i)
				isNull = isNull && !t.primary
				if !t.primary && s.chance(20) {
					value = keyValue(c.family, s.IntN(rows))
				}
			case reference:
				value = keyValue(c.family, s.IntN(rows+3))
			case scalar:
				value = s.value(c.family)
			case specialType:
				value = s.pick(specialValues[c.family]...)
			case statusSQL:
				value = s.pick("granted", "granted", "granted", "granted", "refused")
				if c.sqlType == "boolean" {
					value = s.pick("true", "true", "true", "false")
				}
				isNull = s.chance(4)
			case list:
				value = s.list(c.family, true)
			case document:
				value = s.json()
			case jsonText:
				value = s.json()
				if c.sqlType == "text" && s.chance(20) {
					value = s.pick(oddJSON[:len(oddJSON)-4]...)
				}
			case flag:
				value = s.pick("true", "false")
			case instant:
				value = s.moment(now).Format("2006-01-02 15:04:05.000000+00:00")
			case localTime:
				value = s.moment(now).Format("2006-01-02 15:04:05.000000")
			case day:
				value = s.moment(now).Format("2006-01-02")
			}
			if !isNull {
				row[c.name] = value
			}
		}
		t.rows = append(t.rows, row)
	}
}

// moment draws a time before or after now, sometimes so close that rows expire while the test runs.
func (s *schema) moment(now time.Time) time.Time {
	unit := []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Minute, 24 * time.Hour, 30 * 24 * time.Hour}[s.IntN(5)]
	return now.Add(time.Duration(s.IntN(41)-15) * unit)
}

func (s *schema) list(family string, mayContainNull bool) string {
	var parts []string
	for range s.IntN(4) {
		if mayContainNull && s.chance(10) {
			parts = append(parts, "NULL")
			continue
		}
		element := predicate.WriteArray([]string{s.value(family)})
		parts = append(parts, element[1:len(element)-1])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (s *schema) json() string {
	if s.chance(15) {
		return s.pick(`{}`, `{"k": "a"}`, `{"a": 1, "k": null}`, `"a"`, `null`, `5`, `[]`, `[["a"]]`,
			`[1, true, null]`, `{"k": 5}`, `"\u0061"`, `[{"k": "a"}]`, `["\u0061", "\ud83d\ude00"]`)
	}
	var words []any
	for range s.IntN(4) {
		words = append(words, s.value(families[s.IntN(3)]))
	}
	return plainJSON(words)
}

// plainJSON returns a value as JSON that is valid YAML.
func plainJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	if out := strings.TrimSpace(b.String()); out != "null" {
		return out
	}
	return "[]"
}

// sql returns the statements that create the tables and insert their rows.
func (s *schema) sql() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE SCHEMA %s;\n", catalog.QuoteIdent(s.name))
	for _, t := range s.tables {
		var columns, names []string
		for _, c := range t.columns {
			definition := catalog.QuoteIdent(c.name) + " " + c.sqlType
			columns = append(columns, definition)
			names = append(names, catalog.QuoteIdent(c.name))
		}
		switch {
		case t.composite:
			columns = append(columns, fmt.Sprintf("PRIMARY KEY (%s, %s)", names[1], names[0]))
		case t.primary:
			columns = append(columns, fmt.Sprintf("PRIMARY KEY (%s)", names[1]))
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s);\n", s.relation(t).SQL(), strings.Join(columns, ", "))
		for i, row := range t.rows {
			if i == 0 {
				fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES\n", s.relation(t).SQL(), strings.Join(names, ", "))
			}
			values := make([]string, len(t.columns))
			for k, c := range t.columns {
				values[k] = "NULL"
				if v, ok := row[c.name]; ok {
					values[k] = catalog.QuoteLiteral(v)
				}
			}
			fmt.Fprintf(&b, "(%s)%s\n", strings.Join(values, ", "), map[bool]string{true: ";", false: ","}[i == len(t.rows)-1])
		}
	}
	return b.String()
}

func (s *schema) relation(t *table) catalog.Name { return catalog.Name{Schema: s.name, Name: t.name} }

// The attributes of each caller: one value and one list for each family.
var attributeTypes = map[string]string{
	"one_uuid": "uuid", "one_integer": "bigint", "one_text": "text", "many_uuid": "uuid[]", "many_integer": "bigint[]", "many_text": "text[]",
}

// caller draws the attributes of a credential, some of which may be missing.
func (s *schema) caller() map[string]string {
	out := map[string]string{}
	for _, family := range families {
		if !s.chance(2) {
			out["one_"+family] = s.value(family)
		}
		if !s.chance(2) {
			out["many_"+family] = s.list(family, false)
		}
	}
	return out
}

// claims draws the attributes that the caller's session claims in its settings.
func (s *schema) claims() map[string]string {
	out := map[string]string{}
	for _, family := range families {
		for _, prefix := range []string{"live_", "opt_"} {
			switch {
			case s.chance(8):
				out[prefix+family] = s.pick("", "x", "1.5", "0x1", " 1", "99999999999999999999",
					"9223372036854775807", "-0", strings.ToUpper(id(10)), "{a}", "'", strings.Repeat("é", 600))
			case !s.chance(8):
				out[prefix+family] = s.value(family)
			}
		}
	}
	return out
}

func (t *table) columnsWhere(test func(*tableColumn) bool) []*tableColumn {
	var out []*tableColumn
	for _, c := range t.columns {
		if test(c) {
			out = append(out, c)
		}
	}
	return out
}

// isComparable tells whether a column's values compare with those of others.
func (c *tableColumn) isComparable() bool { return c.use <= scalar }

// isLinkable tells whether a column can be a side of a link.
func (c *tableColumn) isLinkable() bool { return c.isComparable() || c.use == specialType }
