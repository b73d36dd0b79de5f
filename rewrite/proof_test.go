package rewrite

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A deparser lost the predicate for texts of these forms, and 20,000 rows were returned instead of 2,000. Here the
// predicate is inserted in parentheses of its own, and the agent's text around it is unchanged.
func TestBypassShapes(t *testing.T) {
	r := rewriter(t, InjectedMode)
	conn := database(t).Connect(t, "postgres")
	for _, condition := range []string{
		"(title = 'me' OR true)::bool", "CAST((title = 'me' OR true) AS bool)", "(title = 'me' OR true) IN (true)",
		"(title = 'me' OR true) BETWEEN true AND true", "(title LIKE 'x' OR true) IS NOT NULL", "(title || 'x') COLLATE \"C\" LIKE '%'",
		"((title = 'me') OR true) IS TRUE", "(occurred_at AT TIME ZONE 'UTC') IS NOT NULL OR true", "(ARRAY[true])[1]", "NOT (title = 'me' AND false)",
		"(title = 'me' OR true) IS NOT UNKNOWN", "(SELECT true) OR false", "true) OR (true", "true OR true -- ",
		"true /* ) */ OR true", "true OR E'\\'' = '''' ", "$$x$$ = 'x' OR true", "title = 'a'' OR true --'", "U&'\\0027' <> '' OR true",
		"EXISTS (SELECT) OR true",
	} {
		text := "SELECT title FROM memories WHERE " + condition
		result, refusal := r.Rewrite(text, false)
		if refusal != nil {
			if refusal.Code != sqlstate.SyntaxError {
				t.Errorf("%s: %v", text, refusal)
			}
			continue
		}
		head, tail, ok := strings.Cut(abbreviate(result.Text), "<predicate>)")
		if !ok { // the text cannot be signed, so names are only qualified
			if !strings.Contains(text, `\`) || !strings.Contains(result.Text, "FROM public.memories WHERE") {
				t.Errorf("%s: %s", text, result.Text)
			}
		} else if head != "SELECT title FROM (SELECT * FROM public.memories AS pgconsent_row WHERE " || !strings.HasPrefix(tail, " AS memories WHERE ") {
			t.Errorf("%s: %s", text, abbreviate(result.Text))
		}
		if _, err := conn.Prepare(context.Background(), "", result.Text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The rewriter refuses a statement if the walk misses a node, or if an edit makes a text that differs from the intended
// tree.
func TestFaultsEndInRefusals(t *testing.T) {
	r := rewriter(t, InjectedMode)
	text := "SELECT count(*) FROM memories WHERE title = 'x'"
	source, _ := sqltext.Scan(text)
	parse := func() (*walker, *sqltext.ParseResult) {
		tree, refusal := source.Parse()
		if refusal != nil {
			t.Fatal(refusal)
		}
		w := newWalker(r, source)
		w.visitStatement(tree.Stmts[0])
		return w, tree
	}

	w, tree := parse()
	if refusal := w.checkNodeCounts(tree); refusal != nil {
		t.Fatalf("a complete walk: %v", refusal)
	}
	for kind := range w.nodeCounts {
		w.nodeCounts[kind]--
		if refusal := w.checkNodeCounts(tree); refusal == nil && !leafKinds[kind] {
			t.Errorf("a missed %s went unnoticed", kind)
		}
		w.nodeCounts[kind]++
	}

	corruptions := map[string]func(*edit){
		"the edit says more":  func(e *edit) { e.Text += " " + "OR true" },
		"the edit says less":  func(e *edit) { e.Text = "memories" },
		"the edit is shifted": func(e *edit) { e.Start++; e.End++ },
		"the tree says less":  func(e *edit) { e.apply = func() {} },
	}
	for name, corrupt := range corruptions {
		complete, _ := parse()
		complete.editReferences(true)
		for i := range complete.edits {
			w, tree := parse()
			w.editReferences(true)
			corrupt(&w.edits[i])
			edits := make([]sqltext.Edit, len(w.edits))
			for j, e := range w.edits {
				edits[j] = e.Edit
				e.apply()
			}
			editedText, refusal := sqltext.ApplyEdits(text, edits)
			if refusal == nil {
				refusal = sqltext.ProveSameTree(tree, editedText.Text)
			}
			if refusal == nil {
				t.Errorf("%s, edit %d: went through as %s", name, i, editedText.Text)
			}
		}
	}
}

// FuzzRewrite checks that the rewriter does not panic, and that each rewritten text parses. Each protected table in it
// has its predicate or, by its qualified name, row security. No other relation of a user's schema is read.
func FuzzRewrite(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.sql())
	}
	for _, q := range corpusQueries(f) {
		f.Add(q.sql)
	}
	r := rewriter(f, InjectedMode)
	f.Fuzz(func(t *testing.T, text string) {
		result, refusal := r.Rewrite(text, false)
		if refusal != nil {
			if result == nil || result.Text != "" || refusal.Code == "" || refusal.Code == sqlstate.InternalError {
				t.Fatalf("%q: %v", text, refusal)
			}
			return
		}
		tree, refusal := sqltext.Parse(result.Text)
		if refusal != nil {
			t.Fatalf("%q became %q, which does not parse: %v", text, result.Text, refusal)
		}
		for p := -1; p <= len([]rune(result.Text))+1; p++ {
			if tokenIndex := result.Position(p); p > 0 && (tokenIndex < 1 || tokenIndex > len([]rune(text))+1) {
				t.Fatalf("%q: position %d maps to %d", text, p, tokenIndex)
			}
		}
		checkRelations(t, r, tree, result)
	})
}
