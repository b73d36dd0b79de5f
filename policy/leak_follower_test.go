package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A delete or update may cascade through hidden rows to visible ones, which tells about the hidden rows. A policy that
// permits this gets a warning. It gets none where all rows on the way are visible together.
func TestCascadesOverHiddenRowsAreWarnedOf(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	type refers struct {
		sourceColumn, columns, to, cols string
		on                              catalog.Action
	}
	compile := func(keys []refers, tables string) (*policy.Policy, error) {
		var relations []*catalog.Relation
		for _, name := range []string{"a", "b", "c", "d", "part"} {
			r := &catalog.Relation{Name: public(name), Kind: catalog.Table, PrimaryKey: []string{"id"},
				BTrees:     []catalog.BTree{{Columns: []string{"id"}, IsUnique: true}},
				UniqueKeys: []catalog.Key{{Name: name + "_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}}}}
			for _, column := range []string{"id", "owner", "up", "other"} {
				r.Columns = append(r.Columns, catalog.Column{Name: column, Type: "uuid", TypeOID: 2950})
			}
			r.Columns = append(r.Columns, catalog.Column{Name: "state", Type: "text", TypeOID: 25},
				catalog.Column{Name: "loose", Type: "text", TypeOID: 25, Collation: "levelled", Nondeterministic: true})
			switch name {
			case "d":
				r.Kind, r.HasChildren = catalog.PartitionedTable, true
			case "part":
				r.IsPartition, r.Parents = true, []catalog.Name{public("d")}
			}
			for _, k := range keys {
				if k.sourceColumn == name {
					r.ForeignKeys = append(r.ForeignKeys,
						catalog.ForeignKey{Columns: strings.Fields(k.columns), Target: public(k.to),
							TargetColumns: strings.Fields(k.cols), OnDelete: k.on, OnUpdate: k.on, Validated: true})
				}
			}
			relations = append(relations, r)
		}
		doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n"+tables))
		if err != nil {
			return nil, err
		}
		return policy.Compile(doc, catalog.NewSnapshot(catalog.Spec{
			Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: relations}))
	}
	const ownRule, deleteRule, updateRule = "rows: [ own: { column: owner, is: user } ]", ", write: { commands: [delete] }",
		", write: { commands: [update], columns: [id], accept: [conflicts] }"
	const othersRule, state = "rows: [ own: { column: other, is: user } ]",
		"rows: [ { own: { column: owner, is: user } }, { status: { column: state, is: done } } ]"
	table := func(name, tableRule string) string { return "  " + name + ": { " + tableRule + " }\n" }
	visibleRule := func(with, link string) string { return "rows: [ visible: { " + with + ": { " + link + " } } ]" }
	tree := func(on catalog.Action) []refers { return []refers{{"a", "up", "a", "id", on}} }
	chain := func(first, second catalog.Action) []refers {
		return []refers{{"b", "up", "a", "id", first}, {"c", "up", "b", "id", second}}
	}
	three := func(a, b, c string) string { return table("a", a+deleteRule) + table("b", b) + table("c", c) }
	tablesWithUpdate := table("a", ownRule+updateRule) + table("b", ownRule) + table("c", ownRule)
	for _, c := range []struct {
		name       string
		keys       []refers
		tables     string
		disclosure string // the hidden table in between, and the table that tells; "": no warning
	}{
		{"a tree", tree(catalog.Cascade), table("a", ownRule+deleteRule), "a a"},
		{"a tree of open rows", tree(catalog.Cascade), table("a", "rows: open"+deleteRule), ""},
		{"a tree that is cut", tree(catalog.SetNull), table("a", ownRule+deleteRule), ""},
		{"a tree that nobody cuts", tree(catalog.Cascade), table("a", ownRule+", write: { commands: [update], columns: [state] }"), ""},
		{"a tree, accepted", tree(catalog.Cascade), table("a", ownRule+", write: { commands: [delete], accept: [references] }"), ""},
		{"a tree by a key that holds whose row it is", []refers{{"a", "owner up", "a", "owner id", catalog.Cascade}}, table("a", ownRule+deleteRule), ""},
		{"a tree by such a key, in another order", []refers{{"a", "up owner", "a", "id owner", catalog.Cascade}}, table("a", ownRule+deleteRule), ""},
		{"a tree by a key that holds a part of what its rule reads",
			[]refers{{"a", "owner up", "a", "owner id", catalog.Cascade}}, table("a", state+deleteRule), "a a"},
		{"a tree by a key that holds all of it", []refers{{"a", "owner state up", "a", "owner state id", catalog.Cascade}}, table("a", state+deleteRule), ""},
		{"a tree by a key that holds it elsewhere", []refers{{"a", "other up", "a", "owner id", catalog.Cascade}}, table("a", ownRule+deleteRule), "a a"},
		{"a tree by a key of what is equal though its letters are not",
			[]refers{{"a", "loose up", "a", "loose id", catalog.Cascade}}, table("a", "rows: [ status: { column: loose, is: done } ]"+deleteRule), "a a"},
		{"several ways to show, all of which the key holds",
			[]refers{{"a", "owner state up", "a", "owner state id", catalog.Cascade}}, table("a",
				"rows: [ any: [ { own: { column: owner, is: user } }, { status: { column: state, is: done } } ] ]"+deleteRule), ""},
		{"several ways to show, one of which the key holds",
			[]refers{{"a", "owner up", "a", "owner id", catalog.Cascade}}, table("a",
				"rows: [ any: [ { own: { column: owner, is: user } }, { status: { column: state, is: done } } ] ]"+deleteRule), "a a"},

		{"three tables", chain(catalog.Cascade, catalog.Cascade), three(ownRule, ownRule, ownRule), "b c"},
		{"three tables, the last of which changes", chain(catalog.Cascade, catalog.SetNull), three(ownRule, ownRule, ownRule), "b c"},
		{"three tables, the middle one of which changes", chain(catalog.SetNull, catalog.Cascade), three(ownRule, ownRule, ownRule), ""},
		{"the middle one is not listed", chain(catalog.Cascade, catalog.Cascade), table("a", ownRule+deleteRule) + table("c", ownRule), "b c"},
		{"the last one is not listed", chain(catalog.Cascade, catalog.Cascade), table("a", ownRule+deleteRule) + table("b", ownRule), ""},
		{"the middle one is open", chain(catalog.Cascade, catalog.Cascade), three(ownRule, "rows: open", ownRule), ""},
		{"the middle one shows with the first", chain(catalog.Cascade, catalog.Cascade), three(ownRule, visibleRule("a", "id: up"), ownRule), ""},
		{"the middle one shows with the first where it is somebody's", chain(catalog.Cascade, catalog.Cascade),
			three(ownRule, "rows: [ { visible: { a: { id: up } } }, { own: { column: owner, is: user } } ]", ownRule), "b c"},
		{"the middle one shows with another", chain(catalog.Cascade, catalog.Cascade), three(ownRule, visibleRule("a", "id: other"), ownRule),
			"b c"},
		{"the last one shows with the middle one", chain(catalog.Cascade, catalog.Cascade),
			three(ownRule, ownRule, visibleRule("b", "id: up")), ""},
		{"the last one shows with the middle one where it is somebody's", chain(catalog.Cascade, catalog.Cascade),
			three(ownRule, ownRule, "rows: [ { visible: { b: { id: up } } }, { own: { column: owner, is: user } } ]"), ""},
		{"the last one shows with another", chain(catalog.Cascade, catalog.Cascade), three(ownRule, ownRule, visibleRule("b", "id: other")),
			"b c"},
		{"the last one is open", chain(catalog.Cascade, catalog.Cascade), three(ownRule, ownRule, "rows: open"), "b c"},
		{"the first key holds whose row it is",
			[]refers{{"b", "other up", "a", "owner id", catalog.Cascade}, {"c", "up", "b", "id", catalog.Cascade}}, three(ownRule, othersRule,
				ownRule), ""},
		{"the last key holds whose row it is",
			[]refers{{"b", "up", "a", "id", catalog.Cascade}, {"c", "other up", "b", "owner id", catalog.Cascade}}, three(ownRule, ownRule,
				othersRule), ""},
		{"the last key holds one of both that the middle one asks for",
			[]refers{{"b", "up", "a", "id", catalog.Cascade}, {"c", "owner up", "b", "owner id", catalog.Cascade}}, three(ownRule, state,
				ownRule), "b c"},

		{"a key that changes along", []refers{{"b", "id", "a", "id", catalog.Cascade}, {"c", "up", "b", "id", catalog.Cascade}},
			tablesWithUpdate, "b c"},
		{"a key that changes along, and is none of its own",
			[]refers{{"b", "up", "a", "id", catalog.Cascade}, {"c", "up", "b", "up", catalog.Cascade}}, tablesWithUpdate, "b c"},
		{"a key that changes along, on which nothing hangs",
			[]refers{{"b", "up", "a", "id", catalog.Cascade}, {"c", "up", "b", "id", catalog.Cascade}}, tablesWithUpdate, ""},

		{"a partition between", []refers{{"part", "up", "a", "id", catalog.Cascade},
			{"c", "up", "part", "id", catalog.Cascade}}, table("a", ownRule+deleteRule) + table("d", ownRule) + table("c", ownRule), "part c"},
		{"a partition that shows with the first",
			[]refers{{"part", "up", "a", "id", catalog.Cascade},
				{"c", "up", "part", "id", catalog.Cascade}}, table("a", ownRule+deleteRule) + table("d", visibleRule("a", "id: up")) +
				table("c", ownRule), ""},
		{"a partition at the end", []refers{{"b", "up", "a", "id", catalog.Cascade},
			{"part", "up", "b", "id", catalog.Cascade}}, table("a", ownRule+deleteRule) + table("d", ownRule), "b part"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := compile(c.keys, c.tables)
			if err = errorOrWarnings(p, err); err != nil {
				t.Fatal(err)
			}
			want := ""
			if hiddenTable, end, ok := strings.Cut(c.disclosure, " "); ok {
				action := "delete rows of"
				if c.tables == tablesWithUpdate {
					action = "change keys of"
				}
				want = fmt.Sprintf(
					"agents %s public.a, and rows of public.%s that they do not see go or change along: that rows "+
						"of public.%s which they see do so as well tells of these", action, hiddenTable, end)
			}
			var got []string
			for _, w := range p.WriteDisclosures() {
				got = append(got, w.Error())
			}
			if len(got) != len(p.Warnings()) || want == "" && len(got) > 0 ||
				want != "" && (len(got) != 1 || !strings.Contains(got[0], want) || !strings.Contains(got[0], "accept: [references]")) {
				t.Errorf("\n got %q\nwant %q\n all %v", got, want, p.Warnings())
			}
		})
	}

	// Which visible rows are deleted or changed by a cascade tells the value of a hidden key column. The policy gets a
	// warning then.
	const ownWithoutKey, known, masked = ownRule + ", columns: { id: allow, owner: allow, state: allow }", ownRule +
		", columns: { id: allow, up: allow, state: allow }", ownRule + ", columns: { id: allow, owner: allow, up: { mask: hash } }"
	const part = "rows: [ visible: { a: { id: up } } ], columns: { id: allow, state: allow }"
	for _, c := range []struct {
		name       string
		keys       []refers
		tables     string
		disclosure string // the table and the column that tell; "": no warning
	}{
		{"a key that is hidden", chain(catalog.Cascade, catalog.SetNull), three(ownRule, ownWithoutKey, visibleRule("b", "id: up")),
			"b up, which is hidden or masked"},
		{"a key that is hidden, accepted", chain(catalog.Cascade, catalog.SetNull),
			table("a", ownRule+", write: { commands: [delete], accept: [references] }") + table("b", ownWithoutKey), ""},
		{"a key that is hidden, in open rows", chain(catalog.Cascade, catalog.SetNull),
			three(ownRule, "rows: open, columns: { id: allow }", visibleRule("b", "id: up")), "b up, which is hidden or masked"},
		{"a hidden key, of rows that show with the first", chain(catalog.Cascade, catalog.SetNull),
			three(ownRule, part, visibleRule("b", "id: up")), "b up, which is hidden or masked"},
		{"a hidden key further on", chain(catalog.Cascade, catalog.Cascade),
			three(ownRule, visibleRule("a", "id: up"),
				"rows: [ visible: { b: { id: up } } ], columns: { id: allow }"), "c up, which is hidden or masked"},
		{"a part of a key that is hidden", []refers{{"b", "owner up", "a", "owner id", catalog.Cascade}},
			three(ownRule, ownWithoutKey, ownRule), "b up, which is hidden or masked"},
		{"a part of a key that is hidden, and known", []refers{{"b", "owner up", "a", "owner id", catalog.Cascade}}, three(ownRule, known, ownRule), ""},
		{"a key that is masked", chain(catalog.Cascade, catalog.SetNull), three(ownRule, masked, visibleRule("b", "id: up")), "b up, which is hidden or masked"},
		{"a hidden key that is cut", chain(catalog.SetNull, catalog.SetNull), three(ownRule, ownWithoutKey, ownRule), ""},
		{"a hidden key that is cut, by which the row shows", chain(catalog.SetNull, catalog.SetNull),
			three(ownRule, part, ownRule), "b up, which is hidden or masked"},
		{"a masked key that is cut", chain(catalog.SetNull, catalog.SetNull), three(ownRule, masked, ownRule), "b up, which is hidden or masked"},
		{"a key that is cut, a part of which is hidden",
			[]refers{{"b", "owner up", "a", "owner id", catalog.SetNull}}, three("rows: open",
				"rows: open, columns: { id: allow, owner: allow }", ownRule), "b up, which is hidden or masked"},
		{"a hidden key that changes along", []refers{{"b", "up", "a", "id", catalog.Cascade}}, table("a", ownRule+updateRule) +
			table("b", ownWithoutKey), ""},
		{"a masked key that changes along", []refers{{"b", "up", "a", "id", catalog.Cascade}},
			table("a", ownRule+", write: { commands: [update], columns: [id], accept: [conflicts, values] }") +
				table("b", masked), "b up, which is hidden or masked"},
		{"a hidden key that is cut, though its column has a name", chain(catalog.SetNull, catalog.SetNull),
			three(ownRule, ownRule+", columns: { id: allow, up: { mask: null } }", ownRule), ""},
	} {
		p, err := compile(c.keys, c.tables)
		if err = errorOrWarnings(p, err); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, w := range p.WriteDisclosures() {
			if strings.Contains(w.Error(), "which do tells") {
				got = append(got, w.Error())
			}
		}
		tellingTable, column, _ := strings.Cut(c.disclosure, " ")
		if c.disclosure == "" && len(got) > 0 || c.disclosure != "" &&
			(len(got) != 1 || !strings.Contains(got[0],
				"rows of public."+tellingTable+" go or change along: which do tells what they hold in "+column) || !strings.Contains(got[0], "accept: [references]")) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.disclosure)
		}
		// the advice to use SET NULL is given only where it would help
		if len(got) > 0 && strings.Contains(got[0], "or SET NULL") != (c.keys[0].on == catalog.Cascade &&
			!strings.Contains(c.tables, "commands: [update]")) {
			t.Errorf("%s: %s", c.name, got[0])
		}
	}

	// Whether a row can be deleted may tell the values of hidden rows or columns. Such a DELETE is not permitted.
	for _, c := range []struct {
		name, tables, want string
	}{
		{"by rows that show, by a hidden key",
			three(ownRule, visibleRule("a", "id: up"), "rows: [ visible: { b: { id: up } } ], columns: { id: allow }"),
			"would tell what columns of public.c hold that agents do not see: the key does not let it"},
		{"by rows that show, by a masked key",
			three(ownRule, visibleRule("a", "id: up"),
				"rows: [ visible: { b: { id: up } } ], columns: { id: allow, up: { mask: hash } }"), "would tell what columns of public.c hold"},
		{"by open rows, by a hidden key", three("rows: open", "rows: open", "rows: open, columns: { id: allow }"),
			"would tell what columns of public.c hold"},
		{"by open rows, with another column hidden", three("rows: open", "rows: open", "rows: open, columns: { id: allow, up: allow }"), ""},
		{"by rows that show", three(ownRule, ownRule, "rows: open"),
			"agents would learn that rows of public.b that they do not see go or change along, by whether rows of " +
				"public.c refer to them: the key does not let it"},
		{"by rows that are hidden as well", three(ownRule, ownRule, visibleRule("b", "id: up")), "by whether rows of public.c refer to them"},
		{"by rows that show, all of them", three(ownRule, visibleRule("a", "id: up"), visibleRule("b", "id: up")), ""},
		{"by open rows, all of them", three("rows: open", "rows: open", "rows: open"), ""},
	} {
		p, err := compile(chain(catalog.Cascade, catalog.NoAction), c.tables)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		errorOrWarnings := errorOrWarnings(p, nil)
		if mayDelete := p.Tables()[0].Write.Allows("DELETE"); mayDelete != (c.want == "") || (errorOrWarnings == nil) != mayDelete ||
			errorOrWarnings != nil && !strings.Contains(errorOrWarnings.Error(), c.want) {
			t.Errorf("%s: deletes %t: %v", c.name, mayDelete, errorOrWarnings)
		}
	}
}
