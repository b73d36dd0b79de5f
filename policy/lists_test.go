package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The error for a wrong list says what is wrong and what to write. The version of a policy depends on what its lists
// allow.
func TestListsOfATable(t *testing.T) {
	const head = "version: 1\nattributes: { user: { type: text, source: credential } }\ntables:\n  notes:\n    " +
		"rows: open\n    write: { commands: [insert, update], columns: [stack, who, about], lists: "
	compile := func(lists string) (*policy.Policy, error) {
		doc, err := policy.Parse("p.yaml", []byte(head+lists+" }"))
		if err != nil {
			return nil, err
		}
		return policy.Compile(doc, recordsSnapshot())
	}
	for _, c := range []struct{ lists, want string }{
		{"[ who ]", "lists must be a mapping, not a list"},
		{"{ whom: {} }", `public.notes has no column "whom" (did you mean "who"?)`},
		{"{ day: {} }", "public.notes.day is a date (a list is a text[], uuid[] or bigint[], or a JSON array"},
		{"{ who: { narrow: false } }", "narrow takes nothing but true (leave it out if the list may grow)"},
		{"{ who: { wider: [ own: { column: about, is: user } ] } }",
			"wider is what permits more than a bound, and there is none (say narrow: true, or from)"},
		{"{ who: { from: [ {} ] } }", "a source needs columns (name columns under lists (several ids) or ids (one))"},
		{"{ who: { from: [ { ids: [about], where: [ open ] } ] } }", "match and where speak of a table (name the table, or say when)"},
		{"{ who: { from: [ { table: wards, ids: [guardian] } ] } }", "a source in another table needs to be found"},
		{"{ who: { from: [ { ids: [day] } ] } }", "public.notes.day is a date, and public.notes.who of ids that are text"},
		{"{ who: { from: [ { lists: [numbers] } ] } }", "public.notes.numbers is of ids that are integer, and public.notes.who of ids that are text"},
		{"{ who: { from: [ { table: records, match: { number: stack }, ids: [grantee] } ] } }", "they do not link"},
		{"{ who: { chain: { match: { id: told } } } }",
			"chain bounds what from gives, and there is none (say from: [] if nothing else gives a new row its list)"},
		{"{ who: { from: [], chain: {} } }", `chain needs "match"`},
		{"{ who: { from: [], chain: { match: { stack: stack } } } }",
			"a chain goes from row to row, and stack may lead to several of public.notes (let match lead to the whole primary key)"},
		{"{ numbers: { from: [], chain: { match: { id: told }, all: \"*\" } } }", "among which no word can stand for everybody"},
		{"{ who: { from: [ { table: records, match: { stack: stack }, ids: [grantee], where: [ visible: { notes: " +
			"{ id: stack } } ] } ] } }", "where speaks of the table's own columns only"},
	} {
		_, err := compile(c.lists)
		var errs policy.Errors
		if !errors.As(err, &errs) || !strings.Contains(errs.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.lists, err, c.want)
		}
	}
	versions := map[string]string{}
	for _, lists := range []string{
		"{}", "{ who: {} }", "{ who: { narrow: true } }", "{ who: { from: [] } }",
		"{ who: { from: [ { ids: [about] } ] } }", "{ who: { from: [ { ids: [about], when: [ sql: \"stack = 'a'\" ] } ] } }",
		"{ who: { from: [ { table: records, match: { stack: stack }, ids: [grantee] } ] } }",
		"{ who: { from: [ { table: records, match: { stack: stack }, ids: [grantee], where: [ own: { column: grantor, is: user } ] } ] } }",
		"{ who: { narrow: true, wider: [ own: { column: about, is: user } ] } }",
		"{ who: { from: [], chain: { match: { id: told } } } }",
		"{ who: { from: [], chain: { match: { id: told }, all: \"*\" } } }", "{ who: { from: [], chain: { match: { id: by } } } }",
	} {
		p, err := compile(lists)
		if err != nil {
			t.Errorf("%s: %v", lists, err)
			continue
		}
		if otherLists, ok := versions[p.Version()]; ok {
			t.Errorf("%s and %s have one version", lists, otherLists)
		}
		versions[p.Version()] = lists
	}
	snap := recordsSnapshot()
	notes, _ := snap.Relation(catalog.Name{Schema: "public", Name: "notes"})
	notes.Column("who").Nondeterministic = true
	doc, err := policy.Parse("p.yaml", []byte(head+"{ who: { narrow: true } } }"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Compile(doc, snap); err == nil ||
		!strings.Contains(err.Error(),
			"public.notes.who has a collation by which different ids are the same (give the column a collation that tells all texts apart)") {
		t.Error(err)
	}
}
