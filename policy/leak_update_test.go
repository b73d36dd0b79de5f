package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// cyclicSnapshot is a catalog of tables that refer to each other by foreign keys.
func cyclicSnapshot() *catalog.Snapshot {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	columns := func(list string) []catalog.Column {
		var out []catalog.Column
		for _, c := range strings.Split(list, ", ") {
			name, sqlType, _ := strings.Cut(c, " ")
			column := catalog.Column{Name: name, Type: sqlType}
			if sqlType == "mood" {
				column.TypeOID = 20001
			}
			out = append(out, column)
		}
		return out
	}
	key := func(names ...string) catalog.Key {
		return catalog.Key{Name: strings.Join(names, "_"), Columns: names, EqualColumns: names, NullsDistinctColumns: names}
	}
	foreignKey := func(target, column, sourceColumn string) catalog.ForeignKey {
		return catalog.ForeignKey{Columns: []string{sourceColumn}, Target: public(target), TargetColumns: []string{column},
			OnUpdate: catalog.NoAction, OnDelete: catalog.NoAction}
	}
	acts := func(k catalog.ForeignKey, action catalog.Action) catalog.ForeignKey {
		k.OnUpdate, k.OnDelete = action, action
		return k
	}
	id := []catalog.BTree{{Columns: []string{"id"}, IsUnique: true}}
	notes := func(name string) *catalog.Relation {
		return &catalog.Relation{Name: public(name), Kind: catalog.Table, PrimaryKey: []string{"id"}, BTrees: id, UniqueKeys: []catalog.Key{key("id")},
			Columns: append(columns("id uuid, owner uuid, kind text, state text, title text, person uuid, mood mood, n integer, done boolean"),
				catalog.Column{Name: "number", Type: "bigint", Identity: "by default"}, catalog.Column{
					Name: "lower_kind", Type: "text", Generated: true, ComputedFrom: []string{"kind"}}),
			ForeignKeys: []catalog.ForeignKey{foreignKey("people", "id", "person"), foreignKey("kinds", "name", "lower_kind")}}
	}
	deferred := notes("deferred")
	deferred.BTrees = nil
	pairs := notes("pairs")
	pairs.PrimaryKey, pairs.BTrees, pairs.UniqueKeys = []string{"id", "kind"}, []catalog.BTree{
		{Columns: []string{"id", "kind"}, IsUnique: true}}, []catalog.Key{key("id", "kind")}
	bareTable := notes("bare")
	bareTable.PrimaryKey, bareTable.BTrees, bareTable.UniqueKeys = nil, nil, nil
	return catalog.NewSnapshot(catalog.Spec{
		Database: "d", ServerVersion: 150000, SearchPath: []string{"public"},
		Types: []*catalog.Type{{OID: 20001, Name: public("mood"), Kind: 'e', Labels: []string{"sad", "glad"}}},
		Relations: []*catalog.Relation{
			notes("notes"), deferred, pairs, bareTable,
			{Name: public("people"), Kind: catalog.Table, PrimaryKey: []string{"id"}, BTrees: id,
				UniqueKeys: []catalog.Key{key("id")}, Columns: columns("id uuid, owner uuid, mail text")},
			{Name: public("kinds"), Kind: catalog.Table, PrimaryKey: []string{"name"},
				UniqueKeys: []catalog.Key{key("name")}, Columns: columns("name text, owner uuid")},
			{Name: public("roots"), Kind: catalog.Table, PrimaryKey: []string{"id"}, BTrees: id,
				UniqueKeys: []catalog.Key{key("id"), key("owner", "code")}, Columns: columns("id uuid, owner uuid, code text")},
			{Name: public("middles"), Kind: catalog.Table, PrimaryKey: []string{"id"},
				UniqueKeys: []catalog.Key{key("id")}, Columns: columns("id uuid, root uuid, owner uuid"),
				ForeignKeys: []catalog.ForeignKey{acts(foreignKey("roots", "id", "root"), catalog.Cascade)}},
			{Name: public("leaves"), Kind: catalog.Table, Columns: columns("middle uuid, owner uuid"),
				ForeignKeys: []catalog.ForeignKey{foreignKey("middles", "id", "middle")}},
			{Name: public("lists"), Kind: catalog.Table, PrimaryKey: []string{"id"}, UniqueKeys: []catalog.Key{key("id")},
				Columns: columns("id uuid, owner uuid")},
			{Name: public("entries"), Kind: catalog.Table,
				Columns:     []catalog.Column{{Name: "list", Type: "uuid", NotNull: true}},
				ForeignKeys: []catalog.ForeignKey{acts(foreignKey("lists", "id", "list"), catalog.SetNull)}},
			{Name: public("names"), Kind: catalog.Table, Columns: columns("owner uuid, name text"), UniqueKeys: []catalog.Key{key("owner", "name")}},
			{Name: public("named"), Kind: catalog.Table, Columns: columns("owner uuid, name character varying(3)"),
				ForeignKeys: []catalog.ForeignKey{
					acts(catalog.ForeignKey{Columns: []string{"owner", "name"}, Target: public("names"),
						TargetColumns: []string{"owner", "name"}}, catalog.Cascade)}},
			{Name: public("computed"), Kind: catalog.Table, UniqueKeys: []catalog.Key{key("flag")},
				Columns: append(columns("owner uuid, title text"), catalog.Column{Name: "flag", Type: "text", Generated: true})},
			{Name: public("coded"), Kind: catalog.Table, UniqueKeys: []catalog.Key{key("owner", "code")},
				Columns: append(columns("owner uuid"), catalog.Column{Name: "code", Type: "text", Collation: "levelled", Nondeterministic: true})},
			{Name: public("replies"), Kind: catalog.Table, Columns: columns("note uuid, owner uuid, title text, score money"),
				ForeignKeys: []catalog.ForeignKey{foreignKey("notes", "id", "note")}},
			{Name: public("scores"), Kind: catalog.Table, UniqueKeys: []catalog.Key{key("score")}, Columns: columns("score money, day date, owner uuid")},
			{Name: public("scored"), Kind: catalog.Table, Columns: columns("owner uuid, score money, day text"),
				ForeignKeys: []catalog.ForeignKey{foreignKey("scores", "score", "score"), foreignKey("scores", "day", "day")}},
		},
	})
}

// trueText returns a condition in words.
func trueText(n predicate.Node) string {
	list := func(parts []predicate.Node, hiddenTable string) string {
		var out []string
		for _, part := range parts {
			out = append(out, trueText(part))
		}
		return strings.Join(out, hiddenTable)
	}
	switch n := n.(type) {
	case nil:
		return ""
	case predicate.All:
		return list(n, " and ")
	case predicate.Any:
		return "(" + list(n, " or ") + ")"
	case predicate.Own:
		return n.Column + " is the " + n.Attribute
	case predicate.Status:
		return n.Column + " is " + n.Value
	case predicate.Visible:
		return n.FromColumn + " shows"
	case predicate.Reference:
		out := strings.Join(n.FromColumns, ", ") + " leads to a row of " + n.Relation.Name.Name + " where " + trueText(n.Rows)
		if n.RowBefore.Relation != nil {
			out += ", or as it did of the same " + strings.Join(append([]string{n.RowBefore.FromColumn},
				froms(n.RowBefore.MorePairs)...), ", ")
		}
		return "[" + out + "]"
	}
	return fmt.Sprintf("%T", n)
}

func froms(pairs []predicate.ColumnPair) []string {
	var out []string
	for _, p := range pairs {
		out = append(out, p.FromColumn)
	}
	return out
}

// A new or changed row must meet the table's rule (except where a stamp overrules it), the stamps, and the check. For
// each foreign key that agents may set, it must refer to a row that they see. A changed row may keep its reference,
// unless that would tell what agents do not read.
func TestConditionsOnNewRows(t *testing.T) {
	const ownRule, otherTables = "rows: [ { own: { column: owner, is: user } } ]",
		"  people: { rows: [ { own: { column: owner, is: user } } ] }\n  kinds: { rows: open }\n"
	compile := func(tables string) (*policy.Policy, error) {
		doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n"+tables))
		if err != nil {
			return nil, err
		}
		return policy.Compile(doc, cyclicSnapshot())
	}
	for _, c := range []struct{ name, tables, insert, update, copiedColumns string }{
		{"a foreign key", otherTables + "  notes: { " + ownRule + ", write: { commands: [insert, update], columns: [title, person] } }",
			"owner is the user and [person leads to a row of people where owner is the user]",
			"owner is the user and [person leads to a row of people where owner is the user, or as it did of the same id]", "copied title person"},
		{"a key of two columns", otherTables + "  pairs: { " + ownRule + ", write: { commands: [update], columns: [person] } }",
			"owner is the user and [person leads to a row of people where owner is the user]",
			"owner is the user and [person leads to a row of people where owner is the user, or as it did of the same id, kind]", "copied"},
		{"a key that is no longer the same", otherTables + "  notes: { " + ownRule +
			", write: { commands: [update], columns: [id, person], accept: [conflicts, references] } }",
			"owner is the user and [person leads to a row of people where owner is the user]",
			"owner is the user and [person leads to a row of people where owner is the user]", "copied"},
		{"a key that is deferred", otherTables + "  deferred: { " + ownRule + ", write: { commands: [update], columns: [person] } }",
			"owner is the user and [person leads to a row of people where owner is the user]",
			"owner is the user and [person leads to a row of people where owner is the user]", "copied"},
		{"no key", otherTables + "  bare: { " + ownRule + ", write: { commands: [update], columns: [person] } }",
			"owner is the user and [person leads to a row of people where owner is the user]",
			"owner is the user and [person leads to a row of people where owner is the user]", "copied"},
		{"hidden columns", otherTables + "  notes: { " +
			ownRule + ", columns: { id: allow, owner: allow, person: allow }, write: { commands: [update], columns: [person] } }",
			"owner is the user and [person leads to a row of people where owner is the user]",
			"owner is the user and [person leads to a row of people where owner is the user]", "copied"},
		{"a key that stays", otherTables + "  notes: { " +
			ownRule + ", write: { commands: [insert, update], columns: [title, number], immutable: [person, number] } }",
			"owner is the user and [person leads to a row of people where owner is the user]", "owner is the user", "copied title person number"},
		{"a foreign key over what is computed", "  kinds: { " + ownRule + " }\n  notes: { " +
			ownRule + ", write: { commands: [insert, update], columns: [kind] } }",
			"owner is the user and [lower_kind leads to a row of kinds where owner is the user]",
			"owner is the user and [lower_kind leads to a row of kinds where owner is the user, or as it did of the same id]", "copied kind"},
		{"stamps", otherTables + "  notes: { " + ownRule +
			", write: { commands: [insert, update], columns: [title], stamp: { owner: { attribute: user }, state: { value: new } } } }",
			"owner is the user and state is new", "owner is the user", "copied owner state title"},
		{"a stamp that overrules the rule", otherTables +
			"  notes: { rows: [ { own: { column: owner, is: user } }, { status: { column: state, is: done } } ], " +
			"write: { commands: [insert], columns: [title], stamp: { state: { value: new } } } }",
			"owner is the user and state is new", "owner is the user and state is done", "copied state title unseen"},
		{"a stamp that the rule asks for", otherTables +
			"  notes: { rows: [ { status: { column: state, is: new } } ], write: { commands: [insert], columns: [title], stamp: { state: { value: new } } } }",
			"state is new", "state is new", "copied state title"},
		{"stamps of two columns, one of which the rule reads",
			otherTables + "  notes: { rows: [ { status: { column: state, is: done } } ], write: { commands: [insert], " +
				"columns: [title], stamp: { kind: { value: plain }, owner: { attribute: user } } } }",
			"state is done and kind is plain and owner is the user", "state is done", "copied owner kind title"},
		{"a stamp on one of several ways to show",
			otherTables + "  notes: { rows: [ { any: [ { own: { column: owner, is: user } }, { status: { column: " +
				"state, is: done } } ] } ], write: { commands: [insert], columns: [title], stamp: { state: { value: new } } } }",
			"(owner is the user or state is done) and state is new", "(owner is the user or state is done)", "copied state title"},
		{"a stamp unless", otherTables +
			"  notes: { rows: [ { status: { column: state, is: done } } ], write: { commands: [insert], columns: " +
			"[title], stamp: { state: { value: new, unless: [ { own: { column: owner, is: user } } ] } } } }",
			"state is done and (state is new or owner is the user)", "state is done", "copied state title"},
		{"a check", otherTables + "  notes: { " + ownRule +
			", write: { commands: [insert, update], columns: [title], check: [ { status: { column: kind, is: x } } ] } }",
			"owner is the user and kind is x", "owner is the user and kind is x", "copied title"},
		{"a check that asks who, of a table that others hang on",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [update], columns: [title], check: [ { own: { column: person, is: user } } " +
				"] } }\n  replies: { rows: [ visible: { notes: { id: note } } ] }",
			"owner is the user and person is the user", "owner is the user and person is the user", "copied decisive"},
		{"a check that asks who, of a table that nothing hangs on",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [update], columns: [title], check: [ { own: { column: person, is: user } } ] } }",
			"owner is the user and person is the user", "owner is the user and person is the user", "copied"},
		{"a check that asks nobody, of a table that others hang on",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [update], columns: [title], check: [ { status: { column: kind, is: x } } ] " +
				"} }\n  replies: { rows: [ visible: { notes: { id: note } } ] }",
			"owner is the user and kind is x", "owner is the user and kind is x", "copied"},
		{"a rule about another row, by a column that is stamped",
			otherTables + "  notes: { rows: [ visible: { people: { id: person } } ], write: { commands: [insert], " +
				"columns: [title], stamp: { person: { attribute: user } } } }",
			"person shows and person is the user", "person shows", "copied title person"},
		{"stamps of two columns, one of which the rule asks for",
			otherTables + "  notes: { rows: [ { status: { column: state, is: new } } ], write: { commands: [insert], " +
				"columns: [title], stamp: { state: { value: new }, kind: { value: plain }, owner: { attribute: user } } } }",
			"state is new and kind is plain and owner is the user", "state is new", "copied owner kind state title"},
		{"a word of each type", otherTables +
			"  notes: { rows: open, write: { commands: [insert], columns: [title], stamp: { mood: { value: glad " +
			"}, n: { value: '-1' }, done: { value: 'true' }, owner: { value: 6f1e0000-0000-4000-8000-00000000abcd } } } }",
			"predicate.Open and mood is glad and n is -1 and done is true and owner is " +
				"6f1e0000-0000-4000-8000-00000000abcd", "predicate.Open", "copied owner title mood n done"},
		{"a row that shows with another is written where it leads",
			"  people: { rows: [ { own: { column: owner, is: user } } ] }\n  notes: { rows: [ { visible: { " +
				"people: { id: person } } } ], write: { commands: [insert], immutable: [person, title] } }",
			"person shows and [person leads to a row of people where owner is the user]", "person shows", "copied owner state title person mood n done number"},
		{"a check that asks another table, which asks nobody, of a table that others hang on",
			"  people: { rows: [ { status: { column: mail, is: x } } ] }\n  notes: { " +
				ownRule + ", write: { commands: [update], columns: [title], check: [ visible: { people: { id: person " +
				"} } ] } }\n  replies: { rows: [ visible: { notes: { id: note } } ] }",
			"owner is the user and person shows", "owner is the user and person shows", "copied"},
		{"groups", otherTables + "  notes: { " + ownRule +
			", aggregate: { rows: [ { status: { column: state, is: done } } ], minimum: 5, subject: person, " +
			"measures: { n: { between: [0, 9] } } }, write: { commands: [update], columns: [person] } }",
			"owner is the user and [person leads to a row of people where owner is the user]",
			"owner is the user and [person leads to a row of people where owner is the user]", "copied"},
		{"a check that asks another table, of a table that others hang on",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [update], columns: [title], check: [ visible: { people: { id: person } } ] " +
				"} }\n  replies: { rows: [ visible: { notes: { id: note } } ] }",
			"owner is the user and person shows", "owner is the user and person shows", "copied decisive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := compile(c.tables)
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range p.Tables() {
				w := table.Write
				if w == nil {
					continue
				}
				copiedColumns := strings.TrimSpace("copied " + strings.Join(w.Insertable, " "))
				if w.InsertsAreHidden {
					copiedColumns += " unseen"
				}
				if w.AffectsOtherRules {
					copiedColumns += " decisive"
				}
				for _, s := range [][3]string{{"new", trueText(w.InsertCheck), c.insert}, {"changed", trueText(w.UpdateCheck), c.update},
					{"rest", copiedColumns, c.copiedColumns}} {
					if s[1] != s[2] {
						t.Errorf("%s:\n got %s\nwant %s", s[0], s[1], s[2])
					}
				}
			}
		})
	}
	for _, c := range []struct{ name, tables, want string }{
		{"columns by key", otherTables + "  notes: { " +
			ownRule + ", columns: { id: allow, owner: allow, title: { by_key: {} } }, write: { commands: [delete] } }", "has columns that exist by key only"},
		{"a key of a type that cannot be looked up",
			otherTables + "  scores: { " + ownRule + " }\n  scored: { " +
				ownRule + ", write: { commands: [insert], columns: [score] } }", "by a column of which a visible row cannot be looked up"},
		{"a key of two types", otherTables + "  scores: { " + ownRule + " }\n  scored: { " + ownRule +
			", write: { commands: [insert], columns: [day] } }", "by a column of which a visible row cannot be looked up"},
		{"a stamp of a list",
			"  notes: { rows: open, write: { commands: [insert], columns: [title], stamp: { owner: { attribute: users } } } }", "users is a list"},
		{"a word that is no label",
			"  notes: { rows: open, write: { commands: [insert], columns: [title], stamp: { mood: { value: angry } } } }", `"angry" cannot be stamped`},
		{"a number that is none",
			"  notes: { rows: open, write: { commands: [insert], columns: [title], stamp: { n: { value: one } } } }", `"one" cannot be stamped`},
		{"a number written otherwise",
			"  notes: { rows: open, write: { commands: [insert], columns: [title], stamp: { n: { value: '01' } } } }", `"01" cannot be stamped`},
		{"a truth written otherwise",
			"  notes: { rows: open, write: { commands: [insert], columns: [title], stamp: { done: { value: 'yes' } } } }", `"yes" cannot be stamped`},
		{"a type that has no stamps",
			"  scores: { rows: open, write: { commands: [insert], columns: [owner], stamp: { score: { value: '1' } } } }", `"1" cannot be stamped`},
		{"whoever refers to it and shows with another",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [delete] } }\n  replies: { rows: [ visible: { people: { id: owner } } ] }",
			"would tell that hidden rows of public.replies refer to it"},
		{"whoever refers to it and shows with it and besides by its owner",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [delete] } }\n  replies: { rows: [ visible: { notes: { id: note, owner: " +
				"owner } } ] }", "would tell that hidden rows of public.replies refer to it"},
		{"whoever refers to it and shows with it by another column",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [delete] } }\n  replies: { rows: [ visible: { notes: { person: owner } } ] }",
			"would tell that hidden rows of public.replies refer to it"},
		{"whoever refers to it and shows with a row of another table by the same columns",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [delete] } }\n  replies: { rows: [ visible: { people: { id: note } } ] }",
			"would tell that hidden rows of public.replies refer to it"},
		{"whoever refers to it and shows with what another column of it says",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [delete] } }\n  replies: { rows: [ visible: { notes: { person: note } } ] }",
			"would tell that hidden rows of public.replies refer to it"},
		{"whoever refers to it and shows with the row that another column leads to",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [delete] } }\n  replies: { rows: [ visible: { notes: { id: owner } } ] }",
			"would tell that hidden rows of public.replies refer to it"},
		{"a key of columns of which a stamp decides unless",
			"  coded: { " + ownRule +
				", write: { commands: [insert], columns: [code], stamp: { owner: { attribute: user, unless: [ { " +
				"status: { column: code, is: x } } ] } } } }", "it is part of the key owner_code"},
		{"a key of texts that are equal though their letters are not",
			"  coded: { rows: [ { sql: \"code <> 'x'\" } ], write: { commands: [insert], columns: [owner, code] } }", "it is part of the key owner_code"},
		{"whoever refers to what goes with it", "  roots: { " + ownRule + ", write: { commands: [delete] } }",
			"would tell that hidden rows of public.leaves refer to it"},
		{"a key that is set to NULL and may not be", "  lists: { " + ownRule + ", write: { commands: [delete] } }",
			"would tell that hidden rows of public.entries refer to it: their key may not be NULL"},
		{"a key that changes along and does not hold what it becomes",
			"  names: { " + ownRule + ", write: { commands: [update], columns: [name] } }",
			"would tell that hidden rows of public.named refer to it: name is of another type"},
		{"a key of what is computed from nothing",
			"  computed: { " + ownRule + ", write: { commands: [insert], columns: [title] } }", "stamps all of the key flag"},
		{"whoever refers to it and shows with it in part",
			otherTables + "  notes: { " + ownRule +
				", write: { commands: [delete] } }\n  replies: { rows: [ { visible: { notes: { id: note } } }, { " +
				"own: { column: owner, is: user } } ] }", "would tell that hidden rows of public.replies refer to it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, err := policy.Parse("p.yaml",
				[]byte(strings.Replace(head, "attributes: {", "attributes: { users: { type: 'uuid[]', source: credential },", 1)+"tables:\n"+c.tables))
			if err == nil {
				_, err = policy.Compile(doc, cyclicSnapshot())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
		})
	}
}
