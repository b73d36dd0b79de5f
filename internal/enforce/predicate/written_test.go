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

// TestTriples checks on random policies that each form is correct. This test draws the same policies each time, and
// compares digests of all forms of each rule, and of the functions about rules, with testdata/written.txt. So no change
// of the SQL goes unnoticed.
func TestSQLFormsAreUnchanged(t *testing.T) {
	const file, schemas, policies = "testdata/written.txt", 6, 10
	conn := pgtest.Database(t).Connect(t, "postgres")
	ctx := context.Background()
	if _, err := conn.Exec(ctx, "CREATE TYPE public.mood AS ENUM ('granted', 'refused', 'none', 'a', 'b')"); err != nil {
		t.Fatal(err)
	}
	committedText, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(committedText)) {
		want[line] = true
	}
	var allLines strings.Builder
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
			checkForm := func(table, form, text string) {
				sum := sha256.Sum256([]byte(text))
				line := fmt.Sprintf("%d.%d %s %s %s\n", number, n, table, form, hex.EncodeToString(sum[:6]))
				allLines.WriteString(line)
				if !want[line] && !*update {
					if problems++; problems <= 3 {
						t.Errorf("schema %d, policy %d: %s of %s is another (run with -update):\n%s\n%s", number, n, form, table, text, source)
					}
				}
			}
			checkForm("-", "live", predicate.LiveFunctionBody(pol.LiveAttributes()))
			for i, table := range pol.Tables() {
				for k, form := range formsOf(table.Rows, table.Relation) {
					checkForm(fmt.Sprint(i, ".", k), form[0], form[1])
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(allLines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got := allLines.String(); got != string(committedText) && problems == 0 {
		t.Error("testdata/written.txt has more than there is now")
	}
}

// formsOf returns the SQL forms of a rule, and the results of the functions about rules.
func formsOf(node predicate.Node, relation *catalog.Relation) [][2]string {
	injectedSQL, signed := predicate.InjectedCondition(node, "r")
	flatSQL, hasSignedView := predicate.SignedViewCondition(node, relation, "t")
	numbered := predicate.Parameters{FirstNumber: 2}
	direct := numbered.Condition(node, "t")
	columns, columnsKnown := predicate.RowColumns(node)
	names := func(relations []*catalog.Relation) (out []string) {
		for _, relation := range relations {
			out = append(out, relation.Name.String())
		}
		return out
	}
	var setTexts, lookupTexts []string
	for _, s := range predicate.HashedSets(node, relation) {
		setTexts = append(setTexts, fmt.Sprint(s.Relation.Name, strings.Join(s.Columns, ","), names(s.SourceTables)))
	}
	for _, h := range predicate.LookupTables(node) {
		lookupTexts = append(lookupTexts, fmt.Sprint(h.Relation.Name, h.Columns))
	}
	out := [][2]string{
		{"policy", predicate.RowPolicySQL(node, relation)}, {"check", predicate.CheckSQL(node, relation)}, {"new",
			predicate.NewRowCondition(node)},
		{"inject", fmt.Sprint(injectedSQL, signed)},
		{"flat", fmt.Sprint(flatSQL, hasSignedView, predicate.HasSignedView(node, relation))}, {
			"direct", predicate.DirectCondition(node, "t", map[string]string{"one_text": "it's", "many_integer": "{1,2}"})},
		{"numbered", fmt.Sprint(direct, numbered.AttributeNames)},
		{"about", fmt.Sprintf("%q %q %v %v grows %q empty %q sets %q reads %q", predicate.AttributesOf(node), columns,
			columnsKnown, predicate.TimeCanHide(node), names(predicate.TablesWhereInsertHides(node)),
			names(predicate.TablesThatShowWhenEmpty(node)), setTexts, lookupTexts)},
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
