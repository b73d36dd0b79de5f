package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// writableSnapshot is a catalog of tables with keys. A column is written as "name type" and flags: ! NOT NULL, = a
// default, # a sequence, * generated, @ identity always.
func writableSnapshot() *catalog.Snapshot {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	columns := func(list string) []catalog.Column {
		var out []catalog.Column
		for _, c := range strings.Split(list, ", ") {
			definition := strings.TrimRight(c, "!=#*@")
			name, sqlType, _ := strings.Cut(definition, " ")
			flags := c[len(definition):]
			column := catalog.Column{Name: name, Type: sqlType, NotNull: strings.Contains(flags, "!"), Generated: strings.Contains(flags, "*")}
			if strings.ContainsAny(flags, "=#") {
				column.Default = "gen_random_uuid()"
			}
			if strings.ContainsAny(flags, "#@") {
				column.Sequence = public(name + "_seq")
			}
			if strings.Contains(flags, "@") {
				column.Identity = "always"
			}
			out = append(out, column)
		}
		return out
	}
	unique := func(names ...string) catalog.Key {
		return catalog.Key{Name: strings.Join(names, "_"), Columns: names, EqualColumns: names, NullsDistinctColumns: names}
	}
	foreignKey := func(target, column string, action catalog.Action, from ...string) catalog.ForeignKey {
		return catalog.ForeignKey{Columns: from, Target: public(target), TargetColumns: []string{column}, OnUpdate: action,
			OnDelete: action}
	}
	return catalog.NewSnapshot(catalog.Spec{
		Database: "d", ServerVersion: 150000, SearchPath: []string{"public"},
		Relations: []*catalog.Relation{
			{Name: public("notes"), Kind: catalog.Table, PrimaryKey: []string{"id"},
				UniqueKeys: []catalog.Key{unique("id"), unique("owner", "slug"), unique("code")},
				Columns:    columns("id uuid!=, owner uuid!, slug text, code text, state text, title text, upper text*, topic uuid, place uuid, made text!="),
				ForeignKeys: []catalog.ForeignKey{foreignKey("topics", "id", catalog.NoAction, "topic"),
					foreignKey("places", "id", catalog.NoAction, "place")}},
			{Name: public("topics"), Kind: catalog.Table, PrimaryKey: []string{"id"},
				UniqueKeys: []catalog.Key{unique("id")}, Columns: columns("id uuid!=, owner uuid!")},
			{Name: public("links"), Kind: catalog.Table,
				UniqueKeys: []catalog.Key{unique("topic", "sku"),
					unique("amount", "n")}, Columns: columns("topic uuid!, owner uuid, sku text!, n integer, state text, amount numeric")},
			{Name: public("places"), Kind: catalog.Table, PrimaryKey: []string{"id"}, UniqueKeys: []catalog.Key{unique("id")},
				Columns: columns("id uuid!=")},
			{Name: public("numbered"), Kind: catalog.Table, PrimaryKey: []string{"id"},
				UniqueKeys: []catalog.Key{unique("id")}, Columns: columns("id bigint!@, owner uuid!, title text!")},
			{Name: public("partial"), Kind: catalog.Table, Columns: columns("owner uuid, title text"),
				UniqueKeys: []catalog.Key{{Name: "p", Columns: []string{"owner", "title"}, EqualColumns: []string{"title"}}}},
			{Name: public("spread"), Kind: catalog.PartitionedTable, Inheritance: catalog.Inheritance{PartitionBy: []string{"region"}},
				Columns: columns("owner uuid!, region text, title text")},
			{Name: public("ruled"), Kind: catalog.Table, WriteFacts: catalog.WriteFacts{HasRules: true}, Columns: columns("owner uuid")},
			{Name: public("part"), Kind: catalog.Table, Inheritance: catalog.Inheritance{IsPartition: true},
				Columns: columns("owner uuid")},
			{Name: public("prices"), Kind: catalog.PartitionedTable, Inheritance: catalog.Inheritance{HasChildren: true},
				PrimaryKey: []string{"id"},
				UniqueKeys: []catalog.Key{unique("id")},
				WriteFacts: catalog.WriteFacts{CheckedTogether: [][]string{{"price", "cost"}, {"label", "owner"}}},
				Columns: append(columns("id uuid!=, owner uuid!, price integer, cost integer, label text, note text, bonus integer, inner text"),
					catalog.Column{Name: "margin", Type: "integer", Generated: true,
						ComputedFrom: []string{"bonus", "cost"}}, catalog.Column{Name: "search", Type: "tsvector", Generated: true, ComputedFrom: []string{"note", "inner"}})},
			{Name: public("prices_1"), Kind: catalog.Table,
				Inheritance: catalog.Inheritance{IsPartition: true, Parents: []catalog.Name{public("prices")}},
				WriteFacts:  catalog.WriteFacts{CheckedTogether: [][]string{{"label", "inner"}}},
				Columns:     columns("label text, inner text")},
			{Name: public("probed"), Kind: catalog.PartitionedTable, PrimaryKey: []string{"id"},
				Inheritance: catalog.Inheritance{PartitionBy: []string{"region", "secret"}},
				UniqueKeys:  []catalog.Key{unique("id"), unique("owner", "code", "title"), unique("owner", "slug")},
				ForeignKeys: []catalog.ForeignKey{foreignKey("places", "id", catalog.Cascade, "place", "secret")},
				WriteFacts: catalog.WriteFacts{Computations: []catalog.Computation{{Source: "index", Columns: []string{"a", "secret"}},
					{Source: "trigger", Columns: []string{"c", "secret"}}, {Source: "index", Columns: []string{"d", "owner"}}}},
				Columns: columns(
					"id uuid!=, owner uuid!, a integer, b text, c integer, d integer, e integer, title text, slug " +
						"text, code text, secret integer, region text, place uuid")},
			{Name: public("replies"), Kind: catalog.Table, Columns: columns("note uuid!, again uuid"),
				ForeignKeys: []catalog.ForeignKey{foreignKey("notes", "id", catalog.Cascade, "note"),
					foreignKey("replies", "note", catalog.Cascade, "again")}},
		},
	})
}

func compileWrites(tables string) (*policy.Policy, error) {
	doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n"+tables))
	if err != nil {
		return nil, err
	}
	return policy.Compile(doc, writableSnapshot())
}

func TestWrite(t *testing.T) {
	ownRule := "rows: [ { own: { column: owner, is: user } } ]"
	for _, c := range []struct {
		name, tables, insertable, updatable string
		isUnseen                            bool
	}{
		{"defaults", "  topics: { " + ownRule + " }\n  notes: { " + ownRule + ", write: { commands: [insert, update, delete] } }",
			"owner slug state title topic made", "slug state title topic made", false},
		{"a partition key", "  spread: { " + ownRule +
			", write: { commands: [insert, update], stamp: { owner: { attribute: user } } } }", "owner region title", "title", false},
		{"open", "  notes: { rows: open, write: { commands: [insert, update], accept: [references] } }",
			"id owner slug code state title topic place made", "id owner slug code state title topic place made", false},
		{"stamped", "  notes: { " + ownRule +
			", write: { commands: [insert, update], stamp: { owner: { attribute: user }, state: { value: new } }, immutable: [made] } }",
			"owner slug state title made", "slug title", false},
		{"unseen", "  notes: { rows: [ { own: { column: owner, is: user } }, { status: { column: state, is: done " +
			"} } ], write: { commands: [insert], columns: [title], stamp: { state: { value: new }, owner: { attribute: user } } } }",
			"owner state title", "", true},
		{"the rule's column, by name",
			"  notes: { rows: [ { status: { column: state, is: done } } ], write: { commands: [update], columns: " +
				"[state, title] } }", "", "state title", false},
		{"a status is not for agents",
			"  notes: { rows: [ { own: { column: owner, is: user } }, { status: { column: state, is: done } } ], " +
				"write: { commands: [insert, update] } }", "title made", "title made", false},
		{"a key of another's", "  notes: { " + ownRule +
			", write: { commands: [insert], columns: [title], stamp: { owner: { value: " +
			"6f1e0000-0000-4000-8000-00000000abcd } } } }", "owner title", "", false},
		{"keys, accepted",
			"  notes: { rows: [ { status: { column: state, is: done } } ], write: { commands: [insert], columns: " +
				"[id, code], accept: [conflicts] } }", "id code", "", false},
		{"a sequence, accepted", "  numbered: { " +
			ownRule + ", write: { commands: [insert], columns: [title], stamp: { owner: { attribute: user } }, accept: [sequences] } }", "owner title", "", false},
		{"a key with the row that it hangs on",
			"  topics: { " + ownRule +
				" }\n  links: { rows: [ visible: { topics: { id: topic } } ], write: { commands: [insert, " +
				"update], columns: [topic, sku, state] } }", "topic sku state", "topic sku state", false},
		{"a key with a word that decides", "  topics: { " + ownRule +
			" }\n  links: { rows: [ { visible: { topics: { id: topic } } }, { sql: \"sku <> 'x'\" } ], write: { " +
			"commands: [insert], columns: [topic, sku] } }", "topic sku", "", false},
		{"a check with what is hidden", "  prices: { " + ownRule +
			", columns: { owner: allow, price: allow, label: allow, note: allow, bonus: allow, search: allow }, " +
			"write: { commands: [insert, update], columns: [price, label, bonus, note], immutable: [price, label, bonus] } }",
			"price label note bonus", "note", false},
		{"a check with what is hidden, accepted",
			"  prices: { " + ownRule +
				", columns: { owner: allow, price: allow, label: allow, note: allow, bonus: allow }, write: { " +
				"commands: [update], columns: [price, label, bonus, note], accept: [values] } }",
			"", "price label note bonus", false},
		{"a check with what is shown", "  prices: { " + ownRule +
			", write: { commands: [update], columns: [price, label, bonus, note] } }", "", "price label note bonus", false},
		{"keys and indexes with the agent's own",
			"  probed: { " + ownRule +
				", columns: { id: allow, d: allow, e: allow, slug: allow }, write: { commands: [update], columns: [d, e, slug] } }", "", "d e slug", false},
		{"what is hidden is accepted", "  probed: { " + ownRule +
			", columns: { id: allow, a: allow }, write: { commands: [update], columns: [a], accept: [values] } }", "", "a", false},
		{"a contract with all that a check reads",
			"  prices: { " + ownRule +
				", write: { commands: [update], columns: [price] } }\nobjects: { prices: { table: prices } " +
				"}\ncontracts: { c: { by: user, values: { 6f1e0000-0000-4000-8000-00000000abcd: { allow: { " +
				"prices: { sources: [structured, write], columns: [owner, price, cost] } } } } } }", "", "price", false},
		{"a check reads a column", "  notes: { " +
			ownRule + ", write: { commands: [insert, update], columns: [title], check: [ { status: { column: slug, is: x } } ] } }", "title", "title", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := compileWrites(c.tables)
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range p.Tables() {
				if w := table.Write; w != nil {
					got := []string{strings.Join(w.Insertable, " "), strings.Join(w.Updatable, " ")}
					if diff := cmp.Diff([]string{c.insertable, c.updatable}, got); diff != "" || w.InsertsAreHidden != c.isUnseen {
						t.Errorf("unseen %v\n%s", w.InsertsAreHidden, diff)
					}
				}
			}
		})
	}
}

func TestWriteErrors(t *testing.T) {
	tableWithWrite := func(table, rows, tableWithWrite string) string {
		return "  " + table + ": { rows: [ " + rows + " ], write: { " + tableWithWrite + " } }\n"
	}
	ownBlock, doneBlock := "{ own: { column: owner, is: user } }", "{ status: { column: state, is: done } }"
	contract := func(columns string) string {
		return "objects: { prices: { table: prices } }\ncontracts: { c: { by: user, values: { " +
			"6f1e0000-0000-4000-8000-00000000abcd: { allow: { prices: { sources: [structured, write], columns: [" + columns + "] } } } } } }\n"
	}
	probed := func(column string) string {
		return "  probed: { rows: [ " + ownBlock +
			" ], columns: { id: allow, a: allow, b: allow, c: allow, e: allow, title: allow, region: allow, " +
			"place: allow }, write: { commands: [update], columns: [" + column + "] } }\n"
	}
	for _, c := range []struct{ name, tables, want string }{
		{"no commands", tableWithWrite("notes", ownBlock, "columns: [title]"), `write needs "commands"`},
		{"empty commands", tableWithWrite("notes", ownBlock, "commands: []"), "no commands"},
		{"unknown command", tableWithWrite("notes", ownBlock, "commands: [inserts]"),
			`unknown entry "inserts" in commands (did you mean "insert"?)`},
		{"twice", tableWithWrite("notes", ownBlock, "commands: [insert, insert]"), `"insert" is in commands twice`},
		{"unknown column", tableWithWrite("notes", ownBlock, "commands: [insert], columns: [titel]"),
			`has no column "titel" (did you mean "title"?)`},
		{"generated", tableWithWrite("notes", ownBlock, "commands: [insert], columns: [upper]"),
			"agents cannot write public.notes.upper: it is generated"},
		{"identity", tableWithWrite("numbered", ownBlock, "commands: [update], columns: [id]"), "it is generated"},
		{"a key", tableWithWrite("notes", ownBlock, "commands: [insert], columns: [id]"), "it is part of the key id, and a collision would tell"},
		{"a key beside another condition", tableWithWrite("notes", ownBlock+", "+doneBlock, "commands: [insert], columns: [slug]"),
			"it is part of the key owner_slug"},
		{"a key whose predicate alone reads the owner", tableWithWrite("partial", ownBlock, "commands: [insert], columns: [title]"),
			"it is part of the key p"},
		{"a key of rows stamped for another",
			tableWithWrite("notes", ownBlock,
				"commands: [insert], columns: [slug], stamp: { owner: { value: 6f1e0000-0000-4000-8000-00000000abcd } }"), "it is part of the key owner_slug"},
		{"a key without what decides besides",
			tableWithWrite("links", "{ own: { column: topic, is: user } }, { status: { column: state, is: done } }",
				"commands: [insert], columns: [topic, sku]"), "it is part of the key topic_sku"},
		{"a key with the row of one of several rules",
			tableWithWrite("links", "{ any: [ { own: { column: topic, is: user } }, { own: { column: owner, is: user } } ] }",
				"commands: [insert], columns: [topic, sku]"), "it is part of the key topic_sku"},
		{"a key that a stamp decides", "  topics: { rows: [ " + ownBlock + " ] }\n" +
			tableWithWrite("links", "{ visible: { topics: { id: topic } } }",
				"commands: [insert], columns: [sku], stamp: { topic: { value: 6f1e0000-0000-4000-8000-00000000abcd } }"), "it is part of the key topic_sku"},
		{"a key whose equality is not the letter's",
			tableWithWrite("links", "{ sql: \"amount > 1\" }", "commands: [insert], columns: [amount, n]"), "it is part of the key amount_n"},
		{"a key whose rule reads elsewhere as well",
			"  topics: { rows: [ " + ownBlock + " ] }\n" +
				tableWithWrite("links", "{ visible: { topics: { id: topic, owner: owner } } }",
					"commands: [insert], columns: [topic, sku]"), "it is part of the key topic_sku"},
		{"an immutable key", tableWithWrite("notes", ownBlock, "commands: [insert], immutable: [code]"), "it is part of the key code"},
		{"a foreign key out of sight", tableWithWrite("notes", ownBlock, "commands: [insert], columns: [place]"),
			"it refers to public.places, which the policy does not list"},
		{"stamped and written", tableWithWrite("notes", ownBlock,
			"commands: [insert], columns: [title, state], stamp: { state: { value: x } }"), "public.notes.state is stamped"},
		{"a stamp that is both", tableWithWrite("notes", ownBlock,
			"commands: [insert], stamp: { state: { value: x, attribute: user } }"), "a stamp is an attribute or a value"},
		{"a stamp of another type", tableWithWrite("notes", ownBlock, "commands: [insert], stamp: { title: { attribute: user } }"),
			"is a text and the attribute user a uuid"},
		{"a value of another type", tableWithWrite("notes", ownBlock, "commands: [insert], stamp: { topic: { value: x } }"),
			`"x" cannot be stamped on public.notes.topic, which is a uuid`},
		{"a stamp on a generated column", tableWithWrite("notes", ownBlock, "commands: [insert], stamp: { upper: { value: x } }"),
			"is generated and cannot be stamped"},
		{"a stamped key", tableWithWrite("topics", ownBlock+", { status: { column: id, is: x } }",
			"commands: [insert], stamp: { id: { value: 6f1e0000-0000-4000-8000-00000000abcd } }"), "stamps all of the key id"},
		{"unknown attribute", tableWithWrite("notes", ownBlock, "commands: [insert], stamp: { owner: { attribute: usr } }"),
			`no attribute "usr"`},
		{"nothing to update", tableWithWrite("notes", ownBlock, "commands: [update], columns: [title], immutable: [title]"), "no column of public.notes is left"},
		{"hidden referrers", tableWithWrite("topics", ownBlock, "commands: [delete]"), "would tell that hidden rows of public.notes refer to it"},
		{"hidden referrers of a key", tableWithWrite("topics", ownBlock, "commands: [update], columns: [id], accept: [conflicts]"),
			"would tell that hidden rows of public.notes refer to it"},
		{"a partition key of a stamped table",
			tableWithWrite("spread", ownBlock, "commands: [update], columns: [region], stamp: { owner: { attribute: user } }"), "be stamped anew"},
		{"a sequence", tableWithWrite("numbered", ownBlock, "commands: [insert]"), "numbered by a sequence"},
		{"hidden columns", "  notes: { rows: [ " +
			ownBlock + " ], columns: { title: { mask: null } }, write: { commands: [insert], columns: [title] } }", "it is hidden or masked"},
		{"a check over a hidden column", "  prices: { rows: [ " +
			ownBlock + " ], columns: { owner: allow, price: allow }, write: { commands: [update], columns: [price] } }",
			"agents cannot update public.prices.price: a check reads it together with cost, which is hidden or masked"},
		{"a check over a masked column", "  prices: { rows: [ " +
			ownBlock + " ], columns: { owner: allow, price: allow, cost: { mask: { generalise: 10 } } }, write: { " +
			"commands: [update], columns: [price] } }", "a check reads it together with cost"},
		{"a check of a partition", "  prices: { rows: [ " + ownBlock +
			" ], columns: { owner: allow, label: allow }, write: { commands: [update], columns: [label] } }", "a check reads it together with inner"},
		{"computed with a hidden column", "  prices: { rows: [ " + ownBlock +
			" ], columns: { owner: allow, bonus: allow, margin: allow }, write: { commands: [update], columns: " +
			"[bonus] } }", "margin is computed from it and from cost, which is hidden"},
		{"the bounds of partitions with a hidden column", probed("region"), "what says to which partition a row goes reads it together with secret"},
		{"the policy's own check with a hidden column",
			strings.Replace(probed("e"), "columns: [e]", "columns: [e], check: [ { sql: e <= secret } ]",
				1), "the policy's own check reads it together with secret"},
		{"a check over a column that a contract leaves out",
			tableWithWrite("prices", ownBlock, "commands: [update], columns: [price]") +
				contract("owner, price"), "agents cannot update public.prices.price: a check reads it together with cost"},
		{"computed with a column that a contract leaves out",
			tableWithWrite("prices", ownBlock, "commands: [update], columns: [bonus]") +
				contract("owner, bonus"), "margin is computed from it and from cost"},
		{"rules", tableWithWrite("ruled", ownBlock, "commands: [insert]"), "has rewrite rules"},
		{"a partition", tableWithWrite("part", ownBlock, "commands: [insert]"), "is a partition"},
		{"unknown key", tableWithWrite("notes", ownBlock, "commands: [insert], keys: accept"),
			`unknown key "keys" in write (it has "accept", "check", "columns", "commands", "delete", "immutable", "insert", "lists", …)`},
		{"a check of nothing", tableWithWrite("notes", ownBlock, "commands: [insert], check: []"), "rows is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := compileWrites(c.tables)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
		})
	}
}

// Columns that an index expression or a trigger's condition reads together with a hidden column may not be written.
// Later versions may find more such expressions that can fail.
func TestComputedTogetherIsLeftOut(t *testing.T) {
	for column, want := range map[string]string{
		"a": "agents cannot update public.probed.a: an index reads it together with secret, which is hidden or masked",
		"c": "a trigger's condition reads it together with secret"} {
		p, err := compileWrites(
			"  probed: { rows: [ own: { column: owner, is: user } ], columns: { id: allow, owner: allow, a: " +
				"allow, b: allow, c: allow }, write: { commands: [update], columns: [" + column + ", b] } }")
		if err != nil {
			t.Errorf("%s: %v", column, err)
			continue
		}
		if errorOrWarnings, w := errorOrWarnings(p, nil), p.Tables()[0].Write; errorOrWarnings == nil ||
			!strings.Contains(errorOrWarnings.Error(), want) ||
			strings.Join(w.Updatable, " ") != "b" {
			t.Errorf("%s: %v, updatable: %q", column, errorOrWarnings, w.Updatable)
		}
	}
}

// An agent that sees a row may delete it if the rows that refer to it are deleted with it, or are visible to the agent
// as well.
func TestDeletable(t *testing.T) {
	ownRule := "rows: [ { own: { column: owner, is: user } } ]"
	for _, tables := range []string{
		"  notes: { " + ownRule + ", write: { commands: [delete] } }\n",
		"  topics: { " + ownRule + ", write: { commands: [delete] } }\n  notes: { rows: [ { visible: { topics: { id: topic } } } ] }\n",
		"  topics: { " + ownRule + ", write: { commands: [delete] } }\n  notes: { rows: open }\n",
		"  topics: { " + ownRule + ", write: { commands: [delete], accept: [references] } }\n",
	} {
		if _, err := compileWrites(tables); err != nil {
			t.Errorf("%s: %v", tables, err)
		}
	}
}

func TestVersionKnowsWrites(t *testing.T) {
	notesRule := "  notes: { rows: [ { own: { column: owner, is: user } } ]"
	writeByVersion := map[string]string{}
	for _, writeRule := range []string{
		" }", ", write: { commands: [insert] } }", ", write: { commands: [delete] } }", ", write: { commands: [insert], columns: [title] } }",
		", write: { commands: [insert], columns: [title], stamp: { owner: { attribute: user } } } }",
		", write: { commands: [insert], columns: [title], check: [ { status: { column: title, is: x } } ] } }",
	} {
		p, err := compileWrites(notesRule + writeRule)
		if err != nil {
			t.Fatal(err)
		}
		if otherRule, ok := writeByVersion[p.Version()]; ok {
			t.Errorf("%s has the version of %s", writeRule, otherRule)
		}
		writeByVersion[p.Version()] = writeRule
	}
}
