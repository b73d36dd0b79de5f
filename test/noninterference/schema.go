package noninterference

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// sqlTypes has the SQL type of each kind of column. The kind digits is a text that is a number in visible rows, and may
// be any text in hidden rows.
var sqlTypes = map[string]string{
	"id": "bigint", "uid": "uuid", "code": "text", "text": "text", "digits": "text", "int": "integer", "num": "numeric(12,3)",
	"bool": "boolean", "time": "timestamptz", "json": "jsonb", "arr": "text[]",
}

type column struct {
	name, kind         string
	isReadByRule       bool   // a rule reads the column
	isHidden           bool   // the policy hides the column
	isByKeyOnly        bool   // only a statement that names the row's key sees the column
	isBarredByContract bool   // a contract does not allow the column
	mask               string // mask in the policy; "": agents see the column unchanged
	consentRule        *rule  // the consent without which the column is NULL; nil: none is needed
	lastDay            int    // last day of a countdown on which the column is visible; 0: no countdown
	domain             string // domain that is the type of the column; "": none
	generated          string // expression of a generated column; "": the column is not generated
	isVirtual          bool   // the generated column is virtual, not stored
	hasCheck           bool   // a CHECK constraint forbids some values
}

func (c column) sql() string { return catalog.QuoteIdent(c.name) }

// expressionKind returns the kind that a column has in expressions. For example, digits are text there.
func (c column) expressionKind() string {
	switch c.kind {
	case "uid", "code", "digits":
		return "text"
	case "id":
		return "int"
	}
	return c.kind
}

type table struct {
	name             string
	columns          []column // columns of the key come first
	keyCount         int      // number of columns of the key
	rule             *rule    // the rule for rows; nil: the policy does not list the table
	countsHiddenRows bool     // aggregates of agents also count hidden rows
	writeCommands    []string // commands that the policy allows agents
	writeYAML        string   // additional YAML for the section write
	storage          storage
	consentRule      *rule  // the consent that some columns need; nil: no column needs one
	plainOnly        bool   // the table must have plain storage
	storedFrom       *table // for a materialized view, the table whose rows it stores; nil: a table
}

func (t *table) sql() string { return catalog.QuoteIdent(t.name) }

func (t *table) key() []column { return t.columns[:t.keyCount] }

func (t *table) column(name string) *column {
	for i := range t.columns {
		if t.columns[i].name == name {
			return &t.columns[i]
		}
	}
	return nil
}

// addRuleColumn adds a column for a rule to read, unless the table has it, and returns its name.
func (t *table) addRuleColumn(name, kind string) string {
	if t.column(name) == nil {
		t.columns = append(t.columns, column{name: name, kind: kind, isReadByRule: true})
	}
	return name
}

// rule is a rule as a policy states it.
type rule struct {
	kind             string // block of the policy, such as own; or all, any, not, sql, open, rows (a list)
	conditionIndex   int    // for the kind sql: index in sqlRules
	column           string
	attributes       []string
	sharedWord       string // a status, or the value that marks shared rows
	sharedBy         string // how shared rows are marked: "" (there are none), "word" or "null"
	linkTable        *table // for the kind consent: table of links to persons
	targetTable      *table // for the kinds visible and consent: table to which the row refers
	targetColumn     string
	parts            []*rule
	registryQuestion *registryQuestion
	derivation       *derivation
	isMaterialized   bool // for the kind consent: the policy materializes the answer
	hasExpiry        bool // for the kind consent: agreements can expire
}

// partsOfKind returns the rule and its parts, as far as they have this kind.
func (r *rule) partsOfKind(kind string) (out []*rule) {
	if r == nil {
		return nil
	}
	if r.kind == kind {
		out = append(out, r)
	}
	for _, part := range r.parts {
		out = append(out, part.partsOfKind(kind)...)
	}
	return out
}

// schema is a random database schema, with a policy and callers.
type schema struct {
	*rand.Rand
	tables           []*table
	callers          []map[string]string
	linkCount        int
	limitsYAML       string
	hasLiveTeam      bool   // the caller's attribute team is looked up in a table
	hasTeamContract  bool   // a contract says which tables each team may read
	registry         *table // table of the consent registry; nil: no rule reads it
	countsHiddenRows bool   // the policy lets aggregates count hidden rows of some tables
	hasMaterialized  bool   // the policy materializes the answer to a consent rule

	views             []*table // views in the policy
	materializedViews []*table // materialized views
	functions         []string // functions in the policy
	functionCalls     []string // calls of these functions, as expressions
	extraDDL          string   // DDL of all other objects
}

var (
	tableNames  = []string{"notes", "Order", "user", "Visit Log", "items", "people", "größe", "sub\"q", "events", "Tags"}
	columnNames = []string{"title", "Body Text", "select", "n1", "Größe", "from", "at", "meta", "value", "tags",
		"ctx", "done", "Amount", "when", "x", "name", "type", "oid_"}
	attributes   = map[string]string{"member": "bigint", "team": "text", "groups": "text[]"}
	teamNames    = []string{"red", "blue", "green"}
	statusValues = []string{"granted", "granted", "granted", "revoked", "Granted", ""}
)

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// newSchema makes a random schema of two to five tables. If everyKind is set, the schema has ten tables and every kind
// of rule.
func newSchema(seed uint64, everyKind bool) *schema {
	s := &schema{Rand: rand.New(rand.NewPCG(seed, 7))}
	names := slices.Clone(tableNames)
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	n := 2 + s.IntN(4)
	if everyKind {
		n = len(allRuleKinds)
	}
	for i := range n {
		t := s.tableNamed(names[i])
		if everyKind {
			t.rule = s.newRuleOfKind(allRuleKinds[i], t, 1)
		} else {
			t.rule = s.newRule(t, 2)
		}
		s.tables = append(s.tables, t)
	}
	for i, t := range s.tables {
		if t.rule != nil && t.linkTable() == nil && (s.IntN(3) == 0 || everyKind && i%2 == 0) {
			t.writeCommands = []string{"insert", "update", "delete"}[:1+s.IntN(3)]
			if everyKind {
				t.writeCommands = []string{"insert", "update", "delete"}
			}
		}
	}
	for _, t := range s.tables {
		if t.rule != nil && t.writeCommands == nil && s.IntN(3) == 0 {
			for i := range t.columns[t.keyCount:] {
				t.columns[t.keyCount+i].isHidden = s.IntN(3) == 0
			}
		}
	}
	if !everyKind {
		s.addFeatures(rand.New(rand.NewPCG(seed, 23)))
	}
	for range 2 {
		s.callers = append(s.callers, map[string]string{
			"member": fmt.Sprint(1 + s.IntN(3)), "team": pick(s.Rand, teamNames...), "groups": "{" + pick(s.Rand, teamNames...) + ",x}",
		})
	}
	s.addRegistryRules(rand.New(rand.NewPCG(seed, 31)), everyKind)
	if !everyKind {
		s.addCategories(rand.New(rand.NewPCG(seed, 67)))
		s.addDerivedTables(rand.New(rand.NewPCG(seed, 61)))
		s.materializeConsents(rand.New(rand.NewPCG(seed, 59)))
		s.addRuleDomains(rand.New(rand.NewPCG(seed, 73)))
		s.hideWritableColumns(rand.New(rand.NewPCG(seed, 71)))
		s.addSurroundings(rand.New(rand.NewPCG(seed, 47)))
	}
	return s
}

// shownColumns returns the columns that the policy does not hide.
func (t *table) shownColumns() []column {
	var out []column
	for _, c := range t.columns {
		if !c.isHidden {
			out = append(out, c)
		}
	}
	return out
}

// hasHiddenColumns reports whether a column is hidden or masked, or needs a consent.
func (t *table) hasHiddenColumns() bool {
	return slices.ContainsFunc(t.columns, func(c column) bool { return c.isHidden || c.mask != "" || c.consentRule != nil })
}

// dropHiddenColumnsSQL returns the SQL that drops the columns that the policy hides.
func (s *schema) dropHiddenColumnsSQL() string {
	var b strings.Builder
	for _, t := range s.tables {
		for _, c := range t.columns {
			if c.isHidden {
				fmt.Fprintf(&b, "ALTER TABLE %s DROP COLUMN %s;\n", t.sql(), c.sql())
			}
		}
	}
	return b.String()
}

// linkTable returns the table of links that the rule of t reads, and nil if it reads none.
func (t *table) linkTable() *table {
	var find func(r *rule) *table
	find = func(r *rule) *table {
		if r == nil {
			return nil
		}
		if r.linkTable != nil {
			return r.linkTable
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

func (s *schema) tableNamed(name string) *table {
	t := &table{name: name, keyCount: 1}
	t.columns = append(t.columns, column{name: pick(s.Rand, "id", "Key", "no"), kind: pick(s.Rand, "id", "id", "uid", "code")})
	if s.IntN(4) == 0 {
		t.columns = append(t.columns, column{name: "part", kind: "id"})
		t.keyCount = 2
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

// newRule makes a random rule for t. The rule may refer to tables that were made before t.
func (s *schema) newRule(t *table, depth int) *rule {
	kinds := []string{"own", "own", "status", "tenant", "grant", "not"}
	if depth > 0 {
		kinds = append(kinds, "all", "all", "any")
	}
	for range 3 {
		if s.subjectTable() != nil {
			kinds = append(kinds, "visible", "consent")
		}
	}
	if depth == 2 && s.IntN(8) == 0 {
		return &rule{kind: "open"}
	}
	return s.newRuleOfKind(pick(s.Rand, kinds...), t, depth)
}

// allRuleKinds lists every kind of rule. A kind to whose tables other kinds refer comes before these.
var allRuleKinds = []string{"status", "own", "tenant", "grant", "not", "consent", "consent", "visible", "any", "all"}

func (s *schema) newRuleOfKind(kind string, t *table, depth int) *rule {
	r := &rule{kind: kind}
	switch r.kind {
	case "own":
		if s.IntN(2) == 0 {
			r.column, r.attributes = t.addRuleColumn("owner", "id"), []string{"member"}
		} else {
			r.column, r.attributes = t.addRuleColumn("Team", "code"), []string{"team"}
		}
	case "status":
		r.column, r.sharedWord = t.addRuleColumn("state", "code"), "granted"
	case "tenant":
		r.column, r.attributes = t.addRuleColumn("tenant", "code"), []string{"team"}
		switch s.IntN(3) {
		case 0:
			r.sharedBy, r.sharedWord = "word", "global"
		case 1:
			r.sharedBy = "null"
		}
	case "grant":
		r.column, r.attributes = t.addRuleColumn("acl", "arr"), []string{"team", "groups"}[:1+s.IntN(2)]
		if s.IntN(2) == 0 {
			r.sharedWord = "*"
		}
	case "visible":
		r.targetTable = s.subjectTable()
		r.targetColumn = r.targetTable.columns[0].name
		r.column = t.addRuleColumn("ref "+r.targetTable.name, r.targetTable.columns[0].kind)
	case "consent":
		r.targetTable = s.subjectTable()
		r.targetColumn = r.targetTable.columns[0].name
		r.targetTable.addRuleColumn("state", "code")
		r.sharedWord = "granted"
		if s.linkCount > 0 && s.IntN(2) == 0 || s.IntN(3) == 0 {
			r.column = t.addRuleColumn("ref "+r.targetTable.name, r.targetTable.columns[0].kind)
			break
		}
		r.column = t.columns[0].name
		r.linkTable = s.newLink(t, r.targetTable)
		if s.IntN(2) == 0 && t.keyCount == 1 {
			r.linkTable.rule = &rule{kind: "visible", column: "subject", targetTable: r.targetTable, targetColumn: r.targetColumn}
		}
	case "not":
		candidates := []*rule{{kind: "status", column: t.addRuleColumn("state", "code"), sharedWord: "revoked"},
			{kind: "tenant", column: t.addRuleColumn("tenant", "code"), attributes: []string{"team"}}}
		r.parts = []*rule{pick(s.Rand, candidates...)}
	case "all", "any":
		for range 2 {
			r.parts = append(r.parts, s.newRule(t, depth-1))
		}
	}
	return r
}

// subjectTable returns a random table of the policy whose key is one column, and nil if there is none.
func (s *schema) subjectTable() *table {
	var list []*table
	for _, t := range s.tables {
		if t.keyCount == 1 && t.rule != nil {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(s.Rand, list...)
}

// ddl returns the SQL that creates the schema.
func (s *schema) ddl() string {
	var b strings.Builder
	b.WriteString(domainDDL)
	if s.hasLiveTeam {
		b.WriteString(s.addTeamLookup())
	}
	for _, t := range s.tables {
		var parts, keys []string
		for _, c := range t.columns {
			parts = append(parts, c.sql()+" "+cmp.Or(c.domain, sqlTypes[c.kind])+c.columnDDL())
		}
		for _, c := range t.key() {
			keys = append(keys, c.sql())
		}
		partitionBy := ""
		if t.storage == partitionedStorage {
			partitionBy = " PARTITION BY HASH (" + keys[0] + ")"
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s, PRIMARY KEY (%s))%s;\n%s", t.sql(), strings.Join(parts, ", "), strings.Join(keys, ", "), partitionBy, t.partsDDL())
		if t.rule == nil && s.IntN(2) == 0 { // some owners let everybody read a table
			fmt.Fprintf(&b, "GRANT SELECT ON %s TO PUBLIC;\n", t.sql())
		}
		for _, c := range t.columns[t.keyCount:] {
			if c.isReadByRule && s.IntN(2) == 0 {
				fmt.Fprintf(&b, "CREATE INDEX ON %s (%s);\n", t.sql(), c.sql())
			}
			if sqlTypes[c.kind] == "text" { // the index contains values of hidden rows, too
				fmt.Fprintf(&b, "CREATE INDEX ON %s USING gin (to_tsvector('simple', %s));\n", t.sql(), c.sql())
			}
		}
	}
	b.WriteString(s.extraDDL)
	for _, t := range s.materializedViews {
		fmt.Fprintf(&b, "CREATE MATERIALIZED VIEW %s AS SELECT * FROM %s;\n", t.sql(), t.storedFrom.sql())
	}
	return b.String()
}

// policy returns the YAML of the policy.
func (s *schema) policy() string {
	var b strings.Builder
	b.WriteString("version: 1\nattributes:\n")
	for _, name := range []string{"groups", "member", "team"} {
		if s.hasLiveTeam && name == "team" {
			b.WriteString("  team: { type: text, source: query, query: { table: who, column: team, match: { member: member } } }\n")
			continue
		}
		fmt.Fprintf(&b, "  %s: { type: %q, source: credential }\n", name, attributes[name])
	}
	if s.limitsYAML != "" {
		fmt.Fprintf(&b, "limits: %s\n", s.limitsYAML)
	}
	switch {
	case s.hasTeamContract && slices.ContainsFunc(s.tables, (*table).barsColumns):
		b.WriteString(s.columnContractYAML())
	case s.hasTeamContract:
		b.WriteString(s.teamContractYAML())
	}
	b.WriteString("tables:\n")
	for _, t := range s.tables {
		if t.rule == nil {
			continue
		}
		fmt.Fprintf(&b, "  %q:\n    rows: [ %s ]\n", t.name, t.rule.yaml())
		if t.hasHiddenColumns() {
			var allowed []string
			for _, c := range t.shownColumns() {
				allowed = append(allowed, fmt.Sprintf("%q: %s", c.name, c.policyEntry()))
			}
			for _, c := range t.columns {
				if c.isByKeyOnly {
					allowed = append(allowed, fmt.Sprintf("%q: by_key", c.name))
				}
			}
			fmt.Fprintf(&b, "    columns: { %s }\n", strings.Join(allowed, ", "))
		}
		if t.consentRule != nil {
			fmt.Fprintf(&b, "    consent: %s\n", strings.TrimSuffix(strings.TrimPrefix(t.consentRule.registryYAML(), "{ consent: "), " }"))
		}
		if t.countsHiddenRows {
			fmt.Fprintf(&b, "    aggregate: { subject: %q, rows: open, minimum: 1000 }\n", t.columns[0].name)
		}
		if len(t.writeCommands) > 0 {
			fmt.Fprintf(&b, "    write: { commands: [%s]%s }\n", strings.Join(t.writeCommands, ", "), t.writeYAML)
		}
	}
	b.WriteString(s.listedYAML())
	return b.String()
}

func (r *rule) yaml() string {
	switch r.kind {
	case "open":
		return "open"
	case "sql":
		return fmt.Sprintf("{ sql: %q }", sqlRules[r.conditionIndex].sql)
	case "own":
		return fmt.Sprintf("{ own: { column: %q, is: %s } }", r.column, r.attributes[0])
	case "registry":
		return r.registryYAML()
	case "derived":
		return r.derivedYAML()
	case "shared":
		return fmt.Sprintf("{ shared: { record: { %q: { %q: %q } }, granted: { column: state, is: %q } } }",
			r.targetTable.name, r.targetColumn, r.column, r.sharedWord)
	case "status":
		return fmt.Sprintf("{ status: { column: %q, is: %q } }", r.column, r.sharedWord)
	case "tenant":
		shared := ""
		switch r.sharedBy {
		case "word":
			shared = fmt.Sprintf(", shared: %q", r.sharedWord)
		case "null":
			shared = ", shared: null"
		}
		return fmt.Sprintf("{ tenant: { column: %q, is: %s%s } }", r.column, r.attributes[0], shared)
	case "grant":
		wildcard := ""
		if r.sharedWord != "" {
			wildcard = fmt.Sprintf(", all: %q", r.sharedWord)
		}
		return fmt.Sprintf("{ grant: { column: %q, to: [%s]%s } }", r.column, strings.Join(r.attributes, ", "), wildcard)
	case "visible":
		return fmt.Sprintf("{ visible: { %q: { %q: %q } } }", r.targetTable.name, r.targetColumn, r.column)
	case "consent":
		links := fmt.Sprintf("%q: { %q: %q }", r.targetTable.name, r.targetColumn, r.column)
		if r.linkTable != nil {
			links = fmt.Sprintf("%q: { item: %q }, %q: { %q: subject }", r.linkTable.name, r.column, r.targetTable.name, r.targetColumn)
		}
		options := ""
		if r.hasExpiry {
			options += ", expires: until"
		}
		if r.isMaterialized {
			options += ", materialize: true"
		}
		return fmt.Sprintf("{ consent: { every: [ %s ], status: state, is: %q%s } }", links, r.sharedWord, options)
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
