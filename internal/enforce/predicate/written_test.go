package predicate_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	flags "flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

var update = flags.Bool("update", false, "write testdata/written.txt as it comes out")

// The triples draw policies and say whether each form is right, of the rows that they draw. Here the same policies are
// drawn every time, and every form of each rule, and all that is asked about it, is held to digests that are committed:
// no word changes unseen, nor what is read.
func TestFormsAreWritten(t *testing.T) {
	const file, schemas, policies = "testdata/written.txt", 6, 10
	conn := pgtest.Database(t).Connect(t, "postgres")
	ctx := context.Background()
	if _, err := conn.Exec(ctx, "CREATE TYPE public.mood AS ENUM ('granted', 'refused', 'none', 'a', 'b')"); err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(committed)) {
		want[line] = true
	}
	var all strings.Builder
	problems := 0
	for number := range schemas {
		s := newSchema(7, number, schemaRows)
		if _, err := conn.PgConn().Exec(ctx, s.sql()).ReadAll(); err != nil {
			t.Fatal(err)
		}
		snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		for n := range policies {
			source := s.policy()
			doc, err := policy.Parse("policy.yaml", []byte(source))
			if err != nil {
				t.Fatalf("%v\n%s", err, source)
			}
			pol, err := policy.Compile(doc, snap)
			if err != nil {
				t.Fatalf("%v\n%s", err, source)
			}
			say := func(table, form, text string) {
				sum := sha256.Sum256([]byte(text))
				line := fmt.Sprintf("%d.%d %s %s %s\n", number, n, table, form, hex.EncodeToString(sum[:6]))
				all.WriteString(line)
				if !want[line] && !*update {
					if problems++; problems <= 3 {
						t.Errorf("schema %d, policy %d: %s of %s is another (run with -update):\n%s\n%s", number, n, form, table, text, source)
					}
				}
			}
			say("-", "live", predicate.LiveFunctionBody(pol.LiveAttributes()))
			for i, table := range pol.Tables() {
				for k, form := range formsOf(table.Rows, table.Relation) {
					say(fmt.Sprint(i, ".", k), form[0], form[1])
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got := all.String(); got != string(committed) && problems == 0 {
		t.Error("testdata/written.txt has more than there is now")
	}
}

// formsOf are what a rule becomes, and what is asked about it.
func formsOf(node predicate.Node, of *catalog.Relation) [][2]string {
	inject, signed := predicate.InjectedCondition(node, "r")
	flat, hasSignedView := predicate.SignedViewCondition(node, of, "t")
	numbered := predicate.Parameters{FirstNumber: 2}
	direct := numbered.Condition(node, "t")
	columns, known := predicate.RowColumns(node)
	names := func(relations []*catalog.Relation) (out []string) {
		for _, relation := range relations {
			out = append(out, relation.Name.String())
		}
		return out
	}
	var sets, reads []string
	for _, s := range predicate.HashedSets(node, of) {
		sets = append(sets, fmt.Sprint(s.Relation.Name, strings.Join(s.Columns, ","), names(s.SourceTables)))
	}
	for _, h := range predicate.LookupTables(node) {
		reads = append(reads, fmt.Sprint(h.Relation.Name, h.Columns))
	}
	out := [][2]string{
		{"policy", predicate.RowPolicySQL(node, of)}, {"check", predicate.CheckSQL(node, of)}, {"new", predicate.NewRowCondition(node)},
		{"inject", fmt.Sprint(inject, signed)},
		{"flat", fmt.Sprint(flat, hasSignedView, predicate.HasSignedView(node, of))}, {
			"direct", predicate.DirectCondition(node, "t", map[string]string{"one_text": "it's", "many_integer": "{1,2}"})},
		{"numbered", fmt.Sprint(direct, numbered.AttributeNames)},
		{"about", fmt.Sprintf("%q %q %v %v grows %q empty %q sets %q reads %q", predicate.AttributesOf(node), columns,
			known, predicate.TimeCanHide(node), names(predicate.TablesWhereInsertHides(node)),
			names(predicate.TablesThatShowWhenEmpty(node)), sets, reads)},
	}
	for _, part := range predicate.Conjuncts(node) {
		switch part := part.(type) {
		case predicate.RecordedConsent:
			out = append(out, [2]string{"subjects", predicate.SubjectsQuery(part, "t", nil)})
		case predicate.RegistryConsent:
			out = append(out, [2]string{"registry", predicate.RegistryQuery(part, "t", nil)})
		}
	}
	return out
}
