package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

const recordsHead = "version: 1\nattributes: { user: { type: text, source: credential }, id: { type: uuid, " +
	"source: credential } }\ntables:\n  notes:\n    rows:\n      - "

// recordsSnapshot is a catalog with notes about subjects, and records of who has consented.
func recordsSnapshot() *catalog.Snapshot {
	table := func(name, columns string, indexes ...catalog.BTree) *catalog.Relation {
		r := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: name}, Kind: catalog.Table, BTrees: indexes}
		for _, c := range strings.Split(columns, ", ") {
			name, sqlType, _ := strings.Cut(c, " ")
			column := catalog.Column{Name: name, Type: sqlType}
			column.Type, column.Collation, _ = strings.Cut(sqlType, " COLLATE ")
			column.Nondeterministic = column.Collation == "loose"
			r.Columns = append(r.Columns, column)
		}
		return r
	}
	notes := table("notes", "id uuid, stack text, about text, who text[], numbers integer[], odd text COLLATE C, day date, told uuid, by uuid")
	notes.PrimaryKey = []string{"id"}
	return catalog.NewSnapshot(catalog.Spec{SearchPath: []string{"public"}, Relations: []*catalog.Relation{
		notes,
		table("records", "stack text, grantor text, grantee text, scope text, revoked_at timestamptz, number integer, loose text COLLATE loose"),
		table("wards", "ward text, guardian text", catalog.BTree{Columns: []string{"ward", "guardian"}}),
	}})
}

// The error for a wrong rule about consent records says what is wrong and what to write.
func TestWrongConsentByRecords(t *testing.T) {
	for _, c := range []struct{ block, want string }{
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user } " +
			"}, status: x }", "consent is a status or a record, not both (leave status and is out, or record)"},
		{"{ record: { table: records, grantor: grantor, grantee: { column: grantee, to: user } } }",
			"consent needs to know the column of its subjects (write subject: the column of one, or subjects: the column of a list)"},
		{"{ subjects: who, subject: about, record: { table: records, grantor: grantor, grantee: { column: " +
			"grantee, to: user } } }", "consent needs to know the column of its subjects"},
		{"{ subjects: about }", `p.yaml:6:20: consent needs "record"`},
		{"{ subjects: about, record: { table: records, grantor: grantor } }", `record needs "grantee"`},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee } } }",
			"a grantee needs to know who it is (write to: [attributes that are ids of the caller])"},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, is: " +
			"everyone } } }", "under grantee \"is\" takes the word element"},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, is: " +
			"element } } }", "there is no element here: only wider, under write, judges the elements of a list"},
		{"{ subjects: about, record: { table: records, grantor: number, grantee: { column: grantee, to: user } } }",
			`(compare it as text, by a column of its own such as ADD COLUMN number_text text GENERATED ALWAYS AS (number::text) STORED)`},
		{"{ subjects: about, record: { table: recods, grantor: grantor, grantee: { column: grantee, to: user } } }",
			`the database has no table "recods" on the search path public (did you mean "records"?)`},
		{"{ subjects: about, record: { table: records, grantor: grantr, grantee: { column: grantee, to: user } } }",
			`public.records has no column "grantr" (did you mean "grantor"?)`},
		{"{ subjects: day, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user } } }",
			"public.notes.day is a date (a list is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column)"},
		{"{ subject: who, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user } } }",
			"public.notes.who is a text[], which is no id (write subjects: for a column of several)"},
		{
			"{ subjects: numbers, record: { table: records, grantor: grantor, grantee: { column: grantee, to: " +
				"user } } }", "public.records.grantor is of type text, and numbers is of ids that are integer"},
		{"{ subjects: about, record: { table: records, grantor: loose, grantee: { column: grantee, to: user } } }",
			"compare by a collation that takes different ids for the same"},
		{"{ subjects: odd, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user } } }",
			"have different collations: PostgreSQL would not know by which to compare"},
		{"{ subjects: numbers, but: id, record: { table: records, grantor: number, grantee: { column: grantee, " +
			"to: user } } }", "public.notes.numbers is a integer[] and the attribute id a uuid (declare the attribute with the type of the column's ids)"},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: number, to: user, " +
			"all: x } } }", "public.records.number is a integer: it cannot hold a word for everybody"},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user }, " +
			"scope: { column: scope } } }", "a scope that no row has is no scope"},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user }, " +
			"match: [ stack ] } }", "match must be a mapping, not a list"},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user }, " +
			"where: [ visible: { wards: { ward: grantor } } ] } }", "where speaks of the table's own columns only"},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user }, " +
			"revoked: revoked } }", `has no column "revoked" (did you mean "revoked_at"?)`},
		{"{ subjects: about, record: { table: records, grantor: grantor, grantee: { column: grantee, to: user }, " +
			"expires: grantee } }", "both sides must be of one kind"},
	} {
		doc, err := policy.Parse("p.yaml", []byte(recordsHead+"consent: "+c.block))
		if err == nil {
			_, err = policy.Compile(doc, recordsSnapshot())
		}
		var errs policy.Errors
		if !errors.As(err, &errs) || !strings.Contains(errs.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.block, err, c.want)
		}
	}
}

// A policy gets a warning if no index serves its look-up of records. The warning contains the statement that creates
// the index.
func TestRecordsWithoutAnIndex(t *testing.T) {
	doc, err := policy.Parse("p.yaml", []byte(recordsHead+
		"consent: { subjects: about, record: { table: records, match: { stack: stack }, grantor: grantor, "+
		"grantee: { column: grantee, to: user }, guardians: { table: wards, subject: ward, guardian: guardian } } }"))
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := policy.Lint(doc, recordsSnapshot(), policy.LintContext{})
	if err != nil {
		t.Fatal(err)
	}
	want := "p.yaml:6:47: no index of public.records begins with stack, grantor, by which the rule looks rows up " +
		"(CREATE INDEX CONCURRENTLY ON public.records (stack, grantor);)"
	var got []string
	for _, w := range warnings {
		if strings.Contains(w.Error(), "index") {
			got = append(got, w.Error())
		}
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
}
