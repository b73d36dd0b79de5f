package noninterference

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// kinds of columns, and their SQL types. digits are texts that are numbers in every visible row, and need not be in
// others.
var sqlTypes = map[string]string{
	"id": "bigint", "uid": "uuid", "code": "text", "text": "text", "digits": "text", "int": "integer", "num": "numeric(12,3)",
	"bool": "boolean", "time": "timestamptz", "json": "jsonb", "arr": "text[]",
}

type column struct {
	name, kind string
	ruled      bool   // a rule reads it
	secret     bool   // the policy does not show it
	keyed      bool   // but to who names the key of the row
	barred     bool   // a contract leaves it out
	mask       string // how it shows it; "": as it is
	needs      *rule  // it is NULL unless the subject of the row consents to this; nil: it needs nothing
	until      int    // the last day of a countdown on which it shows; 0: as long as the row does
	domain     string // its type, where that is a domain
	generated  string // the expression that it is computed by
	virtual    bool   // as it is read
	checked    bool   // a CHECK forbids values
}

func (c column) sql() string { return catalog.QuoteIdent(c.name) }

// textual is the kind of a column in expressions.
func (c column) textual() string {
	switch c.kind {
	case "uid", "code", "digits":
		return "text"
	case "id":
		return "int"
	}
	return c.kind
}

type table struct {
	name     string
	columns  []column // the key's first
	keys     int      // how many of them are the key
	rule     *rule    // nil: the policy does not list the table
	grouped  bool     // its hidden rows count in aggregates
	commands []string // that agents may send
	bounds   string   // what the policy says of them besides
	shape    shape
	consent  *rule  // whose consent columns need; nil: none needs one
	noParts  bool   // whose shape must be plain
	of       *table // whose rows it keeps: it is a materialised view
}

func (t *table) sql() string { return catalog.QuoteIdent(t.name) }

func (t *table) key() []column { return t.columns[:t.keys] }

func (t *table) column(name string) *column {
	for i := range t.columns {
		if t.columns[i].name == name {
			return &t.columns[i]
		}
	}
	return nil
}

// need adds a column that a rule reads.
func (t *table) need(name, kind string) string {
	if t.column(name) == nil {
		t.columns = append(t.columns, column{name: name, kind: kind, ruled: true})
	}
	return name
}

// rule is a row rule as the policy's author would write it.
type rule struct {
	kind         string // open, own, status, tenant, grant, visible, consent, registry, derived, sql, not, all, any; rows is a list of them
	condition    int    // sql
	column       string
	attributes   []string
	word         string // a status, or what is shared
	shared       string // "", "word" or "null"
	link         *table // consent over a table of links
	target       *table // visible, consent
	targetColumn string
	parts        []*rule
	registry     *asking
	making       *making
	kept         bool // consent: the answer is kept beside the rows
	expires      bool // consent: it ends when the target says
}

// of gives the parts of a rule that are of a kind.
func (r *rule) of(kind string) (out []*rule) {
	if r == nil {
		return nil
	}
	if r.kind == kind {
		out = append(out, r)
	}
	for _, part := range r.parts {
		out = append(out, part.of(kind)...)
	}
	return out
}

// schema is a database, a policy and its callers.
type schema struct {
	*rand.Rand
	tables   []*table
	callers  []map[string]string
	links    int
	limits   string
	live     bool   // the team of a caller is looked up
	stages   bool   // a contract says which tables a team may retrieve
	registry *table // what the consent registry says; nil: no rule asks it
	grouped  bool   // hidden rows of some tables would count in aggregates, of groups larger than there are
	keeps    bool   // the answer of some consent is kept

	views     []*table // that the policy lists
	stored    []*table // materialised views
	functions []string // that the policy lists
	calls     []string // of them
	extra     string   // what else there is, in DDL
}

var (
	tableNames  = []string{"notes", "Order", "user", "Visit Log", "items", "people", "größe", "sub\"q", "events", "Tags"}
	columnNames = []string{"title", "Body Text", "select", "n1", "Größe", "from", "at", "meta", "value", "tags",
		"ctx", "done", "Amount", "when", "x", "name", "type", "oid_"}
	attributes = map[string]string{"member": "bigint", "team": "text", "groups": "text[]"}
	teams      = []string{"red", "blue", "green"}
	states     = []string{"granted", "granted", "granted", "revoked", "Granted", ""}
)

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// newSchema makes two to five tables; a wide one has ten, and every kind of rule.
func newSchema(seed uint64, wide bool) *schema {
	s := &schema{Rand: rand.New(rand.NewPCG(seed, 7))}
	names := slices.Clone(tableNames)
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	n := 2 + s.IntN(4)
	if wide {
		n = len(everyKind)
	}
	for i := range n {
		t := s.table(names[i])
		if wide {
			t.rule = s.ruleOf(everyKind[i], t, 1)
		} else {
			t.rule = s.rule(t, 2)
		}
		s.tables = append(s.tables, t)
	}
	for i, t := range s.tables {
		if t.rule != nil && t.link() == nil && (s.IntN(3) == 0 || wide && i%2 == 0) {
			t.commands = []string{"insert", "update", "delete"}[:1+s.IntN(3)]
			if wide {
				t.commands = []string{"insert", "update", "delete"}
			}
		}
	}
	for _, t := range s.tables {
		if t.rule != nil && t.commands == nil && s.IntN(3) == 0 {
			for i := range t.columns[t.keys:] {
				t.columns[t.keys+i].secret = s.IntN(3) == 0
			}
		}
	}
	if !wide {
		s.more(rand.New(rand.NewPCG(seed, 23)))
	}
	for range 2 {
		s.callers = append(s.callers, map[string]string{
			"member": fmt.Sprint(1 + s.IntN(3)), "team": pick(s.Rand, teams...), "groups": "{" + pick(s.Rand, teams...) + ",x}",
		})
	}
	s.byRegistry(rand.New(rand.NewPCG(seed, 31)), wide)
	if !wide {
		s.categories(rand.New(rand.NewPCG(seed, 67)))
		s.derive(rand.New(rand.NewPCG(seed, 61)))
		s.keep(rand.New(rand.NewPCG(seed, 59)))
		s.numbers(rand.New(rand.NewPCG(seed, 73)))
		s.narrowWritten(rand.New(rand.NewPCG(seed, 71)))
		s.around(rand.New(rand.NewPCG(seed, 47)))
	}
	return s
}

// shown are the columns that the policy shows.
func (t *table) shown() []column {
	var out []column
	for _, c := range t.columns {
		if !c.secret {
			out = append(out, c)
		}
	}
	return out
}

// narrowed tells whether the policy shows less of the columns than there is.
func (t *table) narrowed() bool {
	return slices.ContainsFunc(t.columns, func(c column) bool { return c.secret || c.mask != "" || c.needs != nil })
}

// narrow takes the columns away that the policy does not show.
func (s *schema) narrow() string {
	var b strings.Builder
	for _, t := range s.tables {
		for _, c := range t.columns {
			if c.secret {
				fmt.Fprintf(&b, "ALTER TABLE %s DROP COLUMN %s;\n", t.sql(), c.sql())
			}
		}
	}
	return b.String()
}

// link is the table of links that the rule of t reads, or nil.
func (t *table) link() *table {
	var find func(r *rule) *table
	find = func(r *rule) *table {
		if r == nil {
			return nil
		}
		if r.link != nil {
			return r.link
		}
		for _, part := range r.parts {
			if l := find(part); l != nil {
				return l
			}
		}
		return nil
	}
	return find(t.rule)
}

func (s *schema) table(name string) *table {
	t := &table{name: name, keys: 1}
	t.columns = append(t.columns, column{name: pick(s.Rand, "id", "Key", "no"), kind: pick(s.Rand, "id", "id", "uid", "code")})
	if s.IntN(4) == 0 {
		t.columns = append(t.columns, column{name: "part", kind: "id"})
		t.keys = 2
	}
	names := slices.Clone(columnNames)
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	kinds := []string{"text", "digits", "int", "num", "bool", "time", "json", "arr"}
	s.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for i := range 4 + s.IntN(4) {
		t.columns = append(t.columns, column{name: names[i], kind: kinds[i%len(kinds)]})
	}
	return t
}

// rule draws a rule for t over the tables made before it.
func (s *schema) rule(t *table, depth int) *rule {
	kinds := []string{"own", "own", "status", "tenant", "grant", "not"}
	if depth > 0 {
		kinds = append(kinds, "all", "all", "any")
	}
	for range 3 {
		if s.subject() != nil {
			kinds = append(kinds, "visible", "consent")
		}
	}
	if depth == 2 && s.IntN(8) == 0 {
		return &rule{kind: "open"}
	}
	return s.ruleOf(pick(s.Rand, kinds...), t, depth)
}

// everyKind of rule, those that others point to first.
var everyKind = []string{"status", "own", "tenant", "grant", "not", "consent", "consent", "visible", "any", "all"}

func (s *schema) ruleOf(kind string, t *table, depth int) *rule {
	r := &rule{kind: kind}
	switch r.kind {
	case "own":
		if s.IntN(2) == 0 {
			r.column, r.attributes = t.need("owner", "id"), []string{"member"}
		} else {
			r.column, r.attributes = t.need("Team", "code"), []string{"team"}
		}
	case "status":
		r.column, r.word = t.need("state", "code"), "granted"
	case "tenant":
		r.column, r.attributes = t.need("tenant", "code"), []string{"team"}
		switch s.IntN(3) {
		case 0:
			r.shared, r.word = "word", "global"
		case 1:
			r.shared = "null"
		}
	case "grant":
		r.column, r.attributes = t.need("acl", "arr"), []string{"team", "groups"}[:1+s.IntN(2)]
		if s.IntN(2) == 0 {
			r.word = "*"
		}
	case "visible":
		r.target = s.subject()
		r.targetColumn = r.target.columns[0].name
		r.column = t.need("ref "+r.target.name, r.target.columns[0].kind)
	case "consent":
		r.target = s.subject()
		r.targetColumn = r.target.columns[0].name
		r.target.need("state", "code")
		r.word = "granted"
		if s.links > 0 && s.IntN(2) == 0 || s.IntN(3) == 0 {
			r.column = t.need("ref "+r.target.name, r.target.columns[0].kind)
			break
		}
		r.column = t.columns[0].name
		r.link = s.newLink(t, r.target)
		if s.IntN(2) == 0 && t.keys == 1 {
			r.link.rule = &rule{kind: "visible", column: "subject", target: r.target, targetColumn: r.targetColumn}
		}
	case "not":
		own := []*rule{{kind: "status", column: t.need("state", "code"), word: "revoked"},
			{kind: "tenant", column: t.need("tenant", "code"), attributes: []string{"team"}}}
		r.parts = []*rule{pick(s.Rand, own...)}
	case "all", "any":
		for range 2 {
			r.parts = append(r.parts, s.rule(t, depth-1))
		}
	}
	return r
}

// subject is a listed table whose key is one column, or nil.
func (s *schema) subject() *table {
	var list []*table
	for _, t := range s.tables {
		if t.keys == 1 && t.rule != nil {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(s.Rand, list...)
}

// ddl creates the tables.
func (s *schema) ddl() string {
	var b strings.Builder
	b.WriteString(domains)
	if s.live {
		b.WriteString(s.lookUp())
	}
	for _, t := range s.tables {
		var parts, keys []string
		for _, c := range t.columns {
			parts = append(parts, c.sql()+" "+cmp.Or(c.domain, sqlTypes[c.kind])+c.definition())
		}
		for _, c := range t.key() {
			keys = append(keys, c.sql())
		}
		by := ""
		if t.shape == partitioned {
			by = " PARTITION BY HASH (" + keys[0] + ")"
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s, PRIMARY KEY (%s))%s;\n%s", t.sql(), strings.Join(parts, ", "), strings.Join(keys, ", "), by, t.partsDDL())
		if t.rule == nil && s.IntN(2) == 0 { // an owner who never had agents in mind
			fmt.Fprintf(&b, "GRANT SELECT ON %s TO PUBLIC;\n", t.sql())
		}
		for _, c := range t.columns[t.keys:] {
			if c.ruled && s.IntN(2) == 0 {
				fmt.Fprintf(&b, "CREATE INDEX ON %s (%s);\n", t.sql(), c.sql())
			}
			if sqlTypes[c.kind] == "text" { // what an index has computed may be asked of hidden rows
				fmt.Fprintf(&b, "CREATE INDEX ON %s USING gin (to_tsvector('simple', %s));\n", t.sql(), c.sql())
			}
		}
	}
	b.WriteString(s.extra)
	for _, t := range s.stored {
		fmt.Fprintf(&b, "CREATE MATERIALIZED VIEW %s AS SELECT * FROM %s;\n", t.sql(), t.of.sql())
	}
	return b.String()
}

// policy writes the policy file.
func (s *schema) policy() string {
	var b strings.Builder
	b.WriteString("version: 1\nattributes:\n")
	for _, name := range []string{"groups", "member", "team"} {
		if s.live && name == "team" {
			b.WriteString("  team: { type: text, source: query, query: { table: who, column: team, match: { member: member } } }\n")
			continue
		}
		fmt.Fprintf(&b, "  %s: { type: %q, source: credential }\n", name, attributes[name])
	}
	if s.limits != "" {
		fmt.Fprintf(&b, "limits: %s\n", s.limits)
	}
	switch {
	case s.stages && slices.ContainsFunc(s.tables, (*table).bars):
		b.WriteString(s.ofColumns())
	case s.stages:
		b.WriteString(s.contract())
	}
	b.WriteString("tables:\n")
	for _, t := range s.tables {
		if t.rule == nil {
			continue
		}
		fmt.Fprintf(&b, "  %q:\n    rows: [ %s ]\n", t.name, t.rule.yaml())
		if t.narrowed() {
			var allowed []string
			for _, c := range t.shown() {
				allowed = append(allowed, fmt.Sprintf("%q: %s", c.name, c.entry()))
			}
			for _, c := range t.columns {
				if c.keyed {
					allowed = append(allowed, fmt.Sprintf("%q: by_key", c.name))
				}
			}
			fmt.Fprintf(&b, "    columns: { %s }\n", strings.Join(allowed, ", "))
		}
		if t.consent != nil {
			fmt.Fprintf(&b, "    consent: %s\n", strings.TrimSuffix(strings.TrimPrefix(t.consent.registryYAML(), "{ consent: "), " }"))
		}
		if t.grouped {
			fmt.Fprintf(&b, "    aggregate: { subject: %q, rows: open, minimum: 1000 }\n", t.columns[0].name)
		}
		if len(t.commands) > 0 {
			fmt.Fprintf(&b, "    write: { commands: [%s]%s }\n", strings.Join(t.commands, ", "), t.bounds)
		}
	}
	b.WriteString(s.listed())
	return b.String()
}

func (r *rule) yaml() string {
	switch r.kind {
	case "open":
		return "open"
	case "sql":
		return fmt.Sprintf("{ sql: %q }", conditions[r.condition].sql)
	case "own":
		return fmt.Sprintf("{ own: { column: %q, is: %s } }", r.column, r.attributes[0])
	case "registry":
		return r.registryYAML()
	case "derived":
		return r.derivedYAML()
	case "shared":
		return fmt.Sprintf("{ shared: { record: { %q: { %q: %q } }, granted: { column: state, is: %q } } }",
			r.target.name, r.targetColumn, r.column, r.word)
	case "status":
		return fmt.Sprintf("{ status: { column: %q, is: %q } }", r.column, r.word)
	case "tenant":
		shared := ""
		switch r.shared {
		case "word":
			shared = fmt.Sprintf(", shared: %q", r.word)
		case "null":
			shared = ", shared: null"
		}
		return fmt.Sprintf("{ tenant: { column: %q, is: %s%s } }", r.column, r.attributes[0], shared)
	case "grant":
		all := ""
		if r.word != "" {
			all = fmt.Sprintf(", all: %q", r.word)
		}
		return fmt.Sprintf("{ grant: { column: %q, to: [%s]%s } }", r.column, strings.Join(r.attributes, ", "), all)
	case "visible":
		return fmt.Sprintf("{ visible: { %q: { %q: %q } } }", r.target.name, r.targetColumn, r.column)
	case "consent":
		every := fmt.Sprintf("%q: { %q: %q }", r.target.name, r.targetColumn, r.column)
		if r.link != nil {
			every = fmt.Sprintf("%q: { item: %q }, %q: { %q: subject }", r.link.name, r.column, r.target.name, r.targetColumn)
		}
		more := ""
		if r.expires {
			more += ", expires: until"
		}
		if r.kept {
			more += ", materialize: true"
		}
		return fmt.Sprintf("{ consent: { every: [ %s ], status: state, is: %q%s } }", every, r.word, more)
	}
	var parts []string
	for _, part := range r.parts {
		if y := part.yaml(); r.kind == "not" {
			return "{ not: " + y + " }"
		} else {
			parts = append(parts, y)
		}
	}
	if r.kind == "rows" {
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("{ %s: [ %s ] }", r.kind, strings.Join(parts, ", "))
}
