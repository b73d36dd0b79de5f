package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

const head = "version: 1\nattributes: { user: { type: uuid, source: credential } }\n"

// snapshot is the catalog that the policies of this file are compiled against.
func snapshot() *catalog.Snapshot {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	columns := func(list string) []catalog.Column {
		var out []catalog.Column
		for _, c := range strings.Split(list, ", ") {
			name, sqlType, _ := strings.Cut(c, " ")
			column := catalog.Column{Name: name, Type: sqlType}
			if sqlType == "public.mood" {
				column.TypeOID = 20001
			}
			column.Type, column.Collation, _ = strings.Cut(sqlType, " COLLATE ")
			out = append(out, column)
		}
		return out
	}
	return catalog.NewSnapshot(catalog.Spec{
		Database: "d", ServerVersion: 150000, SearchPath: []string{"public", "app"},
		Relations: []*catalog.Relation{
			{Name: public("memories"), Kind: catalog.Table, PrimaryKey: []string{"id"},
				Columns: columns(
					"id uuid, user_id uuid, body text, mood public.mood, n bigint, owner_name public.citext, tags " +
						"text[], numbers integer[], labels character varying(9)[], doc jsonb, times date[], label text COLLATE C")},
			{
				Name: public("people"), Kind: catalog.Table, PrimaryKey: []string{
					"id"}, Columns: columns("id uuid, user_id uuid, consent_status text, granted boolean"),
				BTrees: []catalog.BTree{{Columns: []string{"user_id"}},
					{Columns: []string{"user_id", "consent_status"}, IsUnique: true}},
			},
			{Name: public("memory_participants"), Kind: catalog.Table, Columns: columns("memory_id uuid, person_id uuid, n integer")},
			{Name: public("parts"), Kind: catalog.Table, PrimaryKey: []string{"owner", "n"}, Columns: columns("owner uuid, n integer, state text")},
			{Name: public("recent"), Kind: catalog.View, Columns: columns("id uuid")},
			{Name: catalog.Name{Schema: "app", Name: "people"}, Kind: catalog.PartitionedTable, Columns: columns("id uuid, user_id uuid, label text")},
			{Name: catalog.Name{Schema: "old.app", Name: "people"}, Kind: catalog.Table, Columns: columns("id uuid")},
			{Name: catalog.Name{Schema: "pg_catalog", Name: "pg_class"}, Kind: catalog.Table, Columns: columns("oid oid")},
		},
		Functions: []*catalog.Function{
			{Name: public("match"), Kind: 'f', ArgNames: []string{"q", "respect", "n", "who", "tag"},
				ArgTypes: []string{"text", "boolean", "integer", "uuid", "character varying"}},
			{Name: public("match"), Kind: 'f', ArgNames: []string{"respect"}, ArgTypes: []string{"boolean"}},
			{Name: public("mixed"), Kind: 'f', ArgNames: []string{"a"}, ArgTypes: []string{"text"}},
			{Name: public("mixed"), Kind: 'f', ArgNames: []string{"a"}, ArgTypes: []string{"integer"}},
			{Name: public("definer"), Kind: 'f', SecurityDefiner: true},
			{Name: public("definer"), Kind: 'f', ArgNames: []string{""}, ArgTypes: []string{"text"}},
			{Name: public("aggregate"), Kind: 'a', SecurityDefiner: true},
			{Name: public("twice"), Kind: 'f'},
			{Name: catalog.Name{Schema: "app", Name: "twice"}, Kind: 'f', ArgNames: []string{"x"}, ArgTypes: []string{"text"}},
			{Name: public("upper"), Kind: 'f'},
			{Name: public("search"), Kind: 'f', ArgNames: []string{"q", "respect", "n"}, ArgTypes: []string{"text", "boolean", "integer"}, Defaults: 2},
		},
		Types:            []*catalog.Type{{OID: 20001, Name: public("mood"), Kind: 'e'}, {OID: 20002, Name: public("citext"), Kind: 'b'}},
		CatalogFunctions: map[string]bool{"upper": true},
	})
}

func compile(text string) (*policy.Policy, error) {
	doc, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return policy.Compile(doc, snapshot())
}

func TestCompile(t *testing.T) {
	p, err := compile(head + `
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, public.people: { id: person_id } ], status: consent_status, is: granted }
  people: { rows: [ { any: [ { own: { column: user_id, is: user } }, { status: { column: granted, is: true } } ] } ] }
  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, ` +
		`{ consent: { every: [ people: { id: person_id } ], status: consent_status, is: granted } } ] }
  app.people: { rows: open }
functions: { match: { pin: { respect: true } }, app.twice: {} }
`)
	if err != nil {
		t.Fatal(err)
	}
	rel := func(schema, name string) *catalog.Relation {
		r, _ := snapshot().Relation(catalog.Name{Schema: schema, Name: name})
		return r
	}
	comparison := predicate.Own{Column: "user_id", Attribute: "user", Type: "pg_catalog.uuid"}
	memories := predicate.All{comparison, predicate.Consent{
		Steps: []predicate.Step{
			{Relation: rel("public", "memory_participants"), Column: "memory_id", FromColumn: "id"}, {
				Relation: rel("public", "people"), Column: "id", FromColumn: "person_id"},
		},
		StatusColumn: "consent_status", AgreedStatus: "granted",
	}}
	want := map[string]predicate.Node{
		"app.people":      predicate.Open{},
		"public.memories": memories,
		"public.people":   predicate.Any{comparison, predicate.Status{Column: "granted", Value: "true", ColumnType: "boolean"}},
		"public.memory_participants": predicate.All{
			predicate.Visible{Relation: rel("public", "memories"), Column: "id", FromColumn: "memory_id", Rows: memories},
			predicate.Consent{Steps: []predicate.Step{
				{Relation: rel("public", "people"), Column: "id", FromColumn: "person_id"}}, FirstRequired: true,
				StatusColumn: "consent_status", AgreedStatus: "granted"},
		},
	}
	got := map[string]predicate.Node{}
	for _, table := range p.Tables() {
		got[table.Relation.Name.String()] = table.Rows
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	f, ok := p.Function(catalog.Name{Schema: "public", Name: "match"})
	if !ok || len(f.Overloads) != 2 {
		t.Fatalf("%+v", f)
	}
	if diff := cmp.Diff([]policy.Pin{{Arg: "respect", Value: "'true'::pg_catalog.bool"}}, f.Pins); diff != "" {
		t.Error(diff)
	}
	if _, ok := p.Function(catalog.Name{Schema: "app", Name: "twice"}); !ok {
		t.Error("no app.twice")
	}
	if _, ok := p.Attribute("user"); !ok || len(p.Attributes()) != 1 {
		t.Error("no attribute user")
	}
}

func TestErrors(t *testing.T) {
	rows := func(block string) string { return head + "tables:\n  memories:\n    rows:\n      - " + block + "\n" }
	columns := func(list string) string {
		return head + "tables: { memories: { rows: open, columns: { " + list + " } } }"
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `p.yaml:1:1: the file is empty (begin with "version: 1")`},
		{"no version", "tables: {}", `p.yaml:1:1: the policy needs "version"`},
		{"version", "version: 2", "p.yaml:1:10: unknown version of the policy (this pgconsent reads version 1)"},
		{"syntax", "version: 1\ntables: [", "p.yaml:2:9: "},
		{"tab", "version: 1\n\ttables: {}", "p.yaml:2:"},
		{"duplicate key", "version: 1\nversion: 1", `p.yaml:2:1: the key "version" is there twice, first at 1:1`},
		{"second document", "version: 1\n---\nversion: 1", "p.yaml:3:8: a second YAML document (put it into a file of its own)"},
		{"anchor", "version: &a 1", "p.yaml:1:10: anchors, aliases, tags and merge keys are not part of a policy (write the value out)"},
		{"unknown key", "version: 1\ntabels: {}", `p.yaml:2:1: unknown key "tabels" in the policy (did you mean "tables"?)`},
		{"a list", "- version", "p.yaml:1:1: the policy must be a mapping, not a list"},
		{"unknown block", rows("owns: { column: a, is: b }"), `p.yaml:6:9: unknown block "owns" (did you mean "own"?)`},
		{"later block", rows("limit: { column: a }"), `p.yaml:6:9: "limit" in rows is not in this version`},
		{"grant to nobody", rows("grant: { column: tags, to: [] }"), `p.yaml:6:36: to is empty`},
		{"grant over no list", rows("grant: { column: n, to: user }"),
			"p.yaml:6:9: public.memories.n is a bigint (a grant is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column)"},
		{"grant over a list of another kind", rows("grant: { column: times, to: user }"), "public.memories.times is a date[] (a grant is"},
		{"grant to another type", rows("grant: { column: numbers, to: user }"),
			"p.yaml:6:39: public.memories.numbers is a integer[] and the attribute user a uuid"},
		{"word in a list of numbers", rows("grant: { column: numbers, to: user, all: '*' }"),
			"public.memories.numbers is a integer[]: it cannot hold a word for everybody"},
		{"own over a list", rows("own: { column: tags, is: user }"), "(write grant: { column: tags, to: user } for a column that holds several)"},
		{"shared value of another type", rows("tenant: { column: user_id, is: user, shared: global }"),
			"p.yaml:6:54: public.memories.user_id cannot be compared with this value: it is not a uuid"},
		{"negated consent",
			rows("not: { consent: { every: [ people: { id: id } ], status: consent_status, is: granted } }"),
			"p.yaml:6:16: not speaks of the row's own columns only: a table that another block reads could look empty, and not would then show every row"},
		{"negated visible, within", rows("not: { any: [ { visible: { people: { id: id } } } ] }"), "p.yaml:6:25: not speaks of the row's own columns only"},
		{"negated twice", rows("not: { not: { visible: { people: { id: id } } } }"), "p.yaml:6:23: not speaks of the row's own columns only"},
		{"later table key", head + "tables: { memories: { rows: open, limit: {} } }", `p.yaml:3:35: "limit" in table memories is not in this version`},
		{"writing a masked column", head +
			"tables: { memories: { rows: open, columns: { id: allow, user_id: { mask: null } }, write: { " +
			"commands: [update], columns: [user_id] } } }",
			"agents cannot write public.memories.user_id: it is hidden or masked (say allow under columns of the table, or stamp it)"},
		{"no columns", head + "tables: { memories: { rows: open, columns: {} } }",
			"p.yaml:3:44: columns is empty (leave columns out if every column may show)"},
		{"unknown column", columns("bdy: allow"), `p.yaml:3:46: public.memories has no column "bdy" (did you mean "body"?)`},
		{"unknown rule", columns("body: alow"),
			`p.yaml:3:52: unknown rule "alow" of column body: write allow, by_key, { mask: ... } or { keys: ... } (did you mean "allow"?)`},
		{"unknown mask", columns("body: { mask: hsh }"), `p.yaml:3:60: unknown mask "hsh" (did you mean "hash"?)`},
		{"mask and keys", columns("body: { mask: null, keys: { a: string } }"), "column body needs one of mask, keys and by_key"},
		{"by key, which is hidden", columns("body: by_key"),
			"p.yaml:3:52: public.memories.id is part of the key by which columns are fetched, and must show as it is (add it under columns: id: allow)"},
		{"by another key", columns("id: allow, body: { by_key: { key: n } }"),
			"p.yaml:3:65: (n) is no unique key of public.memories (name the columns of the primary key or of a unique index)"},
		{"by an index that is not unique", head +
			"tables: { people: { rows: open, columns: { id: allow, user_id: allow, granted: { by_key: { key: " +
			"user_id } } } } }", "(user_id) is no unique key of public.people"},
		{"by a part of a key", head +
			"tables: { people: { rows: open, columns: { id: allow, consent_status: allow, granted: { by_key: { " +
			"key: consent_status } } } } }", "(consent_status) is no unique key of public.people"},
		{"by an unknown key", columns("id: allow, body: { by_key: { key: [idd] } }"), `public.memories has no column "idd" (did you mean "id"?)`},
		{"by two keys", columns("id: allow, doc: { by_key: { at_most: 2 } }, body: by_key"),
			"the columns of public.memories that exist by key must have one key and one at_most"},
		{"by too many keys", columns("id: allow, body: { by_key: { at_most: 101 } }"), "at_most is a number of keys from 1 to 100"},
		{"by key, misspelt", columns("id: allow, body: { by_key: { kay: id } }"), `unknown key "kay" in by_key of column body (did you mean "key"?)`},
		{"limits of nothing", head + "limits: { per: user }", "limits names no limit: statements, rows, by_key"},
		{"limits per nobody", head + "limits: { per: usr, rows: 5 }",
			`p.yaml:3:16: limits are counted per agent or per attribute, and there is no attribute "usr" (did you mean "user"?)`},
		{"limits twice", head + "limits: [ { rows: 5 }, { per: agent, statements: 5 } ]", "there are limits per agent already (write them together)"},
		{"limit of zero", head + "limits: { rows: 0 }", "rows is a whole number from 1 to 1000000000 (leave it out for no limit)"},
		{"limit of a size", head + "limits: { result_bytes: 10MB }", "result_bytes is a number of bytes, or one with KiB, MiB or GiB: 10MiB"},
		{"limit of a time", head + "limits: { statement_timeout: 30 }", "statement_timeout is a time like 500ms, 30s or 5m"},
		{"limit misspelt", head + "limits: { row: 5 }", `unknown key "row" in limits (did you mean "rows"?)`},
		{"by no key", head +
			"tables: { memory_participants: { rows: open, columns: { memory_id: allow, n: by_key } } }",
			"public.memory_participants has no primary key (say which unique key is meant: { by_key: { key: [ ... ] } })"},
		{"decay", columns("body: { decay: 1 }"), `"decay" in column body is not in this version`},
		{"generalise by what", columns("body: { mask: { generalise: mont } }"),
			`generalise takes year, month or day for dates, a number of leading characters for text, a step for numbers (did you mean "month"?)`},
		{"generalise by nothing", columns("n: { mask: { generalise: 0 } }"), "p.yaml:3:71: generalise must be from 1 to 1000000000"},
		{"a month of text", columns("body: { mask: { generalise: month } }"),
			"p.yaml:3:46: public.memories.body is a text, which cannot be generalised so (year, month or day"},
		{"a step of uuid", columns("id: { mask: { generalise: 5 } }"), "public.memories.id is a uuid, which cannot be generalised so"},
		{"hash of a number", columns("n: { mask: hash }"),
			"p.yaml:3:46: public.memories.n is a bigint (text and uuid columns can be hashed; mask it with null)"},
		{"keys of text", columns("body: { keys: { a: string } }"), "public.memories.body is a text: only json and jsonb columns have keys"},
		{"key of a type", head + "tables: { people: { rows: open, columns: { id: { keys: { a: strng } } } } }",
			`unknown type "strng" of key "a": string, number, boolean, lists of them (string[]) and objects of keys are known (did you mean "string"?)`},
		{"no keys", columns("body: { keys: {} }"), "keys is empty (to hide it, leave the column out or mask it with null)"},
		{"no rows", head + "tables: { memories: {} }", `"rows"`},
		{"empty rows", head + "tables: { memories: { rows: [] } }", `p.yaml:3:29: rows is empty (say "open" if every row may show)`},
		{"two blocks in one", rows("{ open: true, own: { column: user_id, is: user } }"), "a block has one name"},
		{"open false", rows("open: false"), "open takes nothing but true"},
		{"attribute type", "version: 1\nattributes: { user: { type: uid, source: credential } }",
			`p.yaml:2:29: attribute user has the unknown type "uid" (did you mean "uuid"?)`},
		{"attribute source", "version: 1\nattributes: { user: { type: uuid, source: session } }",
			`p.yaml:2:43: unknown source "session" (credential, set, query and expression are)`},
		{"attribute name", "version: 1\nattributes: { User: { type: uuid, source: credential } }", "p.yaml:2:15: the name of an attribute"},
		{"missing table", head + "tables: { memoirs: { rows: open } }",
			`p.yaml:3:11: the database has no table "memoirs" on the search path public, app (did you mean "memories"?)`},
		{"missing schema", head + "tables: { ap.people: { rows: open } }",
			`p.yaml:3:11: the database has no table "ap.people" (did you mean "app.people"?)`},
		{"view", head + "tables: { recent: { rows: open } }",
			"p.yaml:3:11: public.recent is a view, which row security cannot protect (list it under views, and the tables beneath it under tables)"},
		{"system table", head + "tables: { pg_class: { rows: open } }", "p.yaml:3:11: pg_catalog.pg_class belongs to the system"},
		{"table twice", head + "tables: { people: { rows: open }, public.people: { rows: open } }",
			"p.yaml:3:35: public.people is public.people, which is at p.yaml:3:11 already"},
		{"missing column", rows("own: { column: usr_id, is: user }"), `p.yaml:6:24: public.memories has no column "usr_id" (did you mean "user_id"?)`},
		{"missing attribute", rows("own: { column: user_id, is: usr }"), `p.yaml:6:37: the policy declares no attribute "usr" (did you mean "user"?)`},
		{"attribute of another type", rows("own: { column: n, is: user }"),
			"p.yaml:6:9: public.memories.n is a bigint and the attribute user a uuid (declare the attribute with the column's type)"},
		{"own over a list of varchar", rows("own: { column: labels, is: user }"), "public.memories.labels is a character varying(9)[] and the attribute"},
		{"type with its own equality", rows("own: { column: owner_name, is: user }"), "public.memories.owner_name is a public.citext"},
		{"status of another type", rows("status: { column: n, is: 1 }"),
			"p.yaml:6:27: public.memories.n is a bigint (a status is a text, varchar, char, enum or boolean column, or a domain over one)"},
		{"link of other types", rows("consent: { every: [ memory_participants: { n: id } ], status: n, is: x }"),
			"p.yaml:6:52: public.memory_participants.n is a integer and public.memories.id a uuid: they do not link"},
		{"link of other collations", rows("visible: { app.people: { label: label } }"),
			"p.yaml:6:34: app.people.label and public.memories.label have different collations"},
		{"schema with a dot", head + "tables: { old.app.people: { rows: open } }",
			`p.yaml:3:11: the database has no table "old.app.people" (a schema whose name has a dot cannot be named in a policy: ` +
				`its tables stay out of agents' reach until it is renamed)`},
		{"link to nothing", rows("consent: { every: [ participants: { n: id } ], status: n, is: x }"), `the database has no table "participants"`},
		{"link of two columns",
			rows("consent: { every: [ memory_participants: { memory_id: id, n: user_id } ], status: n, is: x }"),
			"public.memory_participants.n is a integer and public.memories.user_id a uuid: they do not link"},
		{"link without columns", rows("consent: { every: [ memory_participants: {} ], status: n, is: x }"), "every needs one table with its columns"},
		{"consent without status", rows("consent: { every: [ people: { id: id } ], is: x }"), `p.yaml:6:20: consent needs "status"`},
		{"visible of no table of the policy", rows("visible: { people: { id: id } }"),
			"p.yaml:6:20: no row of public.people is visible, since the policy does not list it (list it under tables)"},
		{
			"circle", head +
				"tables:\n  memories: { rows: [ { visible: { people: { id: user_id } } } ] }\n  people: { rows: [ { visible: { memories: { id: user_id } } } ] }",
			"p.yaml:5:34: visible goes round in a circle: public.memories → public.people → public.memories (let " +
				"one of them stand on its own columns, or say under rows what the row that it points to must be instead)",
		},
		{"missing function", head + "functions: { mach: {} }",
			`p.yaml:3:14: the database has no function "mach" on the search path public, app (did you mean "match"?)`},
		{"missing argument", head + "functions: { match: { pin: { respct: true } } }",
			`p.yaml:3:30: public.match(text, boolean, integer, uuid, character varying) has no argument "respct" (did you mean "respect"?)`},
		{"argument of one overload", head + "functions: { match: { pin: { q: x } } }", `p.yaml:3:30: public.match(boolean) has no argument "q"`},
		{"pin of another type", head + "functions: { match: { pin: { respect: 1 } } }", `p.yaml:3:30: "respect" is a boolean, and the value is not`},
		{"overloads that differ", head + "functions: { mixed: { pin: { a: x } } }",
			`"a" is a text in one overload of public.mixed and a integer in another`},
		{"definer", head + "functions: { definer: {} }",
			"p.yaml:3:14: public.definer() is SECURITY DEFINER: it runs past row security (make it SECURITY INVOKER)"},
		{"aggregate", head + "functions: { aggregate: {} }",
			"the aggregate public.aggregate() is made of a function that is SECURITY DEFINER: it runs past row security (make that SECURITY INVOKER)"},
		{"in two schemas", head + "functions: { twice: {} }",
			`"twice" is in more than one schema of the search path: public.twice and app.twice (name it with its schema)`},
		{"of pg_catalog", head + "functions: { upper: {} }", `"upper" is a function of pg_catalog (name it with its schema)`},
		{"a key of the registry outside it", rows("consent: { subject: id, purpose: x, registry: {} }"), `unknown key "purpose" in consent`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := compile(c.text)
			var errs policy.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("\n got %s\nwant %s", err, c.want)
			}
		})
	}
}

// The error contains every mistake of a policy, not only the first.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := compile(head + "tables: { memoirs: { rows: open }, peple: { rows: open } }\nfunctions: { mach: {} }")
	var errs policy.Errors
	if !errors.As(err, &errs) || len(errs) != 3 {
		t.Errorf("%v", err)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	writeFile := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := policy.Load(dir); err == nil || !strings.Contains(err.Error(), "no .yaml file") {
		t.Errorf("empty folder: %v", err)
	}
	writeFile("a.yaml", head+"tables: { memories: { rows: [ { own: { column: user_id, is: user } } ] } }")
	writeFile("b.yml", "version: 1\ntables: { people: { rows: open } }")
	writeFile("policy_test.yaml", "not: a policy")
	writeFile("README.md", "no")
	doc, err := policy.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snapshot())
	if err != nil || len(p.Tables()) != 2 {
		t.Fatalf("%v, %v", p, err)
	}
	writeFile("c.yaml", "version: 1\ntables: { people: { rows: open } }")
	if _, err := policy.Load(dir); err == nil || !strings.Contains(err.Error(), `c.yaml:2:11: tables has "people" already, at `) {
		t.Errorf("twice: %v", err)
	}
}

func TestVersionIsOfTheMeaning(t *testing.T) {
	version := func(text string) string {
		p, err := compile(head + text)
		if err != nil {
			t.Fatal(err)
		}
		return p.Version()
	}
	a := version("tables: { people: { rows: open }, memories: { rows: open } }")
	if b := version("# a comment\ntables:\n  public.memories: { rows: [ open ] }\n  people:\n    rows: open\n"); b != a {
		t.Error("another spelling has another version")
	}
	if b := version("tables: { people: { rows: open } }"); b == a {
		t.Error("another policy has the same version")
	}
	if b := version("tables: { people: { rows: open }, memories: { rows: [ { own: { column: user_id, is: user } } ] } }"); b == a {
		t.Error("another rule has the same version")
	}
}

func TestAttributeCheck(t *testing.T) {
	id := "6f1e0000-0000-4000-8000-00000000abcd"
	for _, c := range []struct {
		sqlType, value string
		ok             bool
	}{
		{"uuid", id, true}, {"uuid", strings.ToUpper(id), false}, {"uuid", "", false}, {"uuid", id + " ", false}, {"uuid", "{" + id + "}", false},
		{"text", "agent:hero", true}, {"text", "é 世界", true}, {"text", "a|b", true}, {"text", "a#b", true}, {"text", "a=b", true},
		{"text", "100%", true}, {"text", `{"a"}`, false}, {"text", `{"a":1}`, true}, {"text", "a\nb", false}, {
			"text", "a\x00b", false}, {"text", "\xff", false}, {"text", strings.Repeat("x", 1025), false},
		{"bigint", "42", true}, {"bigint", "-1", true}, {"bigint", "042", false}, {"bigint", "9223372036854775808", false}, {"bigint", "1e3", false},
		{"integer", "2147483647", true}, {"integer", "2147483648", false}, {"numeric", "1", false},
		{"text[]", "{}", true}, {"text[]", `{a,"b c",é,"{,}\"\\|#=%"}`, true}, {"text[]", `{NULL}`, false}, {
			"text[]", `{"NULL"}`, true}, {"text[]", "a", false},
		{"text[]", "{a, b}", false}, {"text[]", "{{a}}", false}, {"text[]", "{a,}", false}, {
			"text[]", "{,a}", false}, {"text[]", `{"a}`, false}, {"text[]", `{a"b"}`, false},
		{"text[]", "{a}b", false}, {"text[]", `{a\b}`, false}, {"text[]", "[0:0]={a}", false}, {
			"text[]", "{\"a\tb\"}", false}, {"text[]", "{" + strings.Repeat("x", 8191) + "}", false},
		{"uuid[]", "{" + id + `,"` + id + `"}`, true}, {"uuid[]", "{" + strings.ToUpper(id) + "}", false}, {"uuid[]", id, false},
		{"bigint[]", `{1,"-2"}`, true}, {"bigint[]", "{01}", false}, {"integer[]", "{2147483648}", false}, {"text[][]", "{}", false},
	} {
		err := policy.Attribute{Name: "a", Type: c.sqlType}.Check(c.value)
		if (err == nil) != c.ok {
			t.Errorf("%s %q: %v", c.sqlType, c.value, err)
		}
		if err != nil && len(c.value) > 3 && strings.Contains(err.Error(), c.value) {
			t.Errorf("the error quotes the value: %v", err)
		}
	}
}

// Blocks that use only a row's own columns.
func TestOwnColumns(t *testing.T) {
	const head = "version: 1\nattributes: { user: { type: uuid, source: credential }, teams: { type: 'uuid[]', " +
		"source: credential }, words: { type: 'text[]', source: credential }, n: { type: integer, source: credential } }\n"
	ownNode := func(column, attribute, sqlType string) predicate.Own {
		return predicate.Own{Column: column, Attribute: attribute, Type: sqlType}
	}
	for rule, want := range map[string]predicate.Node{
		"own: { column: user_id, is: teams }": ownNode("user_id", "teams", "pg_catalog.uuid[]"),
		"own: { column: mood, is: words }": predicate.Own{
			Column: "mood", Attribute: "words", Type: "pg_catalog.text[]", ComparesText: true},
		"tenant: { column: n, is: n }":               ownNode("n", "n", "pg_catalog.int4"),
		"tenant: { column: n, is: n, shared: 0 }":    predicate.Tenant{Own: ownNode("n", "n", "pg_catalog.int4"), SharedValue: "0"},
		"tenant: { column: n, is: n, shared: null }": predicate.Tenant{Own: ownNode("n", "n", "pg_catalog.int4"), SharedNull: true},
		"grant: { column: tags, to: [user, words], all: '*' }": predicate.Grant{
			Column: "tags", EverybodyWord: "*", Grantees: []predicate.Grantee{{Attribute: "user"},
				{Attribute: "words", IsList: true}}},
		"grant: { column: labels, to: words }": predicate.Grant{
			Column: "labels", NeedsCast: true, Grantees: []predicate.Grantee{{Attribute: "words", IsList: true}}},
		"grant: { column: numbers, to: n }": predicate.Grant{
			Column: "numbers", Form: predicate.GrantInteger, NeedsCast: true, Grantees: []predicate.Grantee{{Attribute: "n"}}},
		"grant: { column: doc, to: user }": predicate.Grant{
			Column: "doc", Form: predicate.GrantJSONB, Grantees: []predicate.Grantee{{Attribute: "user"}}},
		"grant: { column: body, to: user }": predicate.Grant{
			Column: "body", Form: predicate.GrantJSON, Grantees: []predicate.Grantee{{Attribute: "user"}}},
		"not: { any: [ { status: { column: mood, is: bad } }, { not: open } ] }": predicate.Not{
			Node: predicate.Any{predicate.Status{Column: "mood", Value: "bad", ColumnType: "public.mood"},
				predicate.Not{Node: predicate.Open{}}}},
	} {
		p, err := compile(head + "tables: { memories: { rows: [ { " + rule + " } ] } }")
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if diff := cmp.Diff(want, p.Tables()[0].Rows); diff != "" {
			t.Errorf("%s: %s", rule, diff)
		}
	}
}

// A link by all columns of a composite key refers to a single row, which must exist. A link by some of them does not.
func TestKeysOfSeveralColumns(t *testing.T) {
	for link, isRequired := range map[string]bool{"n: n, owner: user_id": true, "owner: user_id, n: n": true,
		"owner: user_id": false, "owner: user_id, n: n, state: body": false} {
		p, err := compile(head +
			"tables:\n  parts: { rows: open }\n  memories: { rows: [ { consent: { every: [ parts: { " + link +
			" } ], status: state, is: ok } }, { visible: { parts: { " + link + " } } } ] }")
		if err != nil {
			t.Errorf("%s: %v", link, err)
			continue
		}
		memories, _ := p.Table(catalog.Name{Schema: "public", Name: "memories"})
		if c := memories.Rows.(predicate.All)[0].(predicate.Consent); c.FirstRequired != isRequired ||
			len(c.Steps[0].MorePairs) != strings.Count(link, ",") {
			t.Errorf("%s: %+v", link, c)
		}
		if (len(p.Warnings()) == 0) != isRequired {
			t.Errorf("%s: warnings %v", link, p.Warnings())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head + "tables: { memories: { rows: [ { own: { column: user_id, is: user } } ] } }\nfunctions: { match: { pin: { respect: true } } }")
	f.Add(head + "tables: { memories: { rows: [ { consent: { every: [ memory_participants: { memory_id: id } ], " +
		"status: n, is: 1 } }, { visible: { people: { id: id } } } ] } }")
	f.Add(head + "tables: { memories: { rows: [ { sql: \"lower(body) LIKE 'a%' AND n IN (1, 2) OR " +
		"coalesce(user_id, id) IS DISTINCT FROM attribute('user') AND doc ->> 'k' = ANY (tags)\" }, { not: { " +
		"grant: { column: doc, to: user, all: '*' } } } ] } }")
	f.Add("a: &x [*x]\n---\n<<: !t {}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := compile(text)
		if err != nil {
			return
		}
		for _, table := range p.Tables() {
			if predicate.RowPolicySQL(table.Rows, table.Relation) == "" {
				t.Error("an empty predicate")
			}
		}
	})
}

// Policy.UsesRegistry is also true if only a column that exists by key depends on the registry.
func TestUsesRegistry(t *testing.T) {
	for column, want := range map[string]bool{"body: allow": false, "body: { by_key: {} }": false,
		"body: { category: ESSENTIAL }": true, "body: { by_key: {}, category: ESSENTIAL }": true} {
		consent := ""
		if want {
			consent = ", consent: { subject: user_id, registry: {} }"
		}
		p, err := compile(head +
			"tables: { memories: { rows: [ own: { column: user_id, is: user } ], columns: { id: allow, " + column + " }" + consent + " } }")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.UsesRegistry(); got != want {
			t.Errorf("%s: %v", column, got)
		}
	}
}
