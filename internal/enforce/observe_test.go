package enforce

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// stateWithoutDatabase returns a state that serves a policy for a table memories. No database is needed.
func stateWithoutDatabase(t *testing.T, text string) *state {
	t.Helper()
	memories := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "memories"}, Kind: catalog.Table, PrimaryKey: []string{"id"}}
	for column := range strings.FieldsSeq("id:bigint user_id:uuid title:text mood:text") {
		name, kind, _ := strings.Cut(column, ":")
		memories.Columns = append(memories.Columns, catalog.Column{Name: name, Type: kind})
	}
	s := &state{snapshot: catalog.NewSnapshot(catalog.Spec{Database: "memories", ServerVersion: 170000, SearchPath: []string{"public"},
		Relations: []*catalog.Relation{memories}})}
	doc, err := policy.Parse("policy.yaml", []byte("version: 1\nattributes: { user: { type: uuid, source: credential } }\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	if s.policy, err = policy.Compile(doc, s.snapshot); err != nil {
		t.Fatal(err)
	}
	s.activeRewriter, s.observedPolicy = rewrite.New(s.snapshot, s.policy, rewrite.RowSecurityMode), s.newObservedPolicy()
	return s
}

// rewritten rewrites a text that agents may send.
func (s *state) rewritten(t *testing.T, text string) *rewrite.Result {
	t.Helper()
	res, refused := s.activeRewriter.Rewrite(text, false)
	if refused != nil {
		t.Fatalf("%s: %v", text, refused)
	}
	return res
}

// For a table that the policy observes only, the record says which columns would be hidden and which masked.
func TestHiddenAndMaskedColumnsOfObservedTables(t *testing.T) {
	s := stateWithoutDatabase(t, "tables: { memories: { observe: true, rows: [ own: { column: user_id, is: user } ], "+
		"columns: { id: allow, user_id: allow, title: { mask: hash } } } }\n")
	for text, want := range map[string]struct{ hidden, masked []string }{
		"SELECT id, user_id FROM memories":                   {},
		"SELECT mood FROM memories":                          {[]string{"public.memories.mood"}, nil},
		"SELECT title FROM memories":                         {nil, []string{"public.memories.title"}},
		"SELECT a.title, b.mood FROM memories a, memories b": {[]string{"public.memories.mood"}, []string{"public.memories.title"}},
		"SELECT * FROM memories":                             {[]string{"public.memories.mood"}, []string{"public.memories.title"}},
		"SELECT id FROM memories WHERE mood IS NULL":         {[]string{"public.memories.mood"}, nil},
	} {
		o := s.decideObserved(text, verdict.Simple, s.rewritten(t, text))
		if o == nil {
			t.Fatalf("%s: nothing is recorded", text)
		}
		if diff := cmp.Diff(want.hidden, o.record.HiddenColumns) + cmp.Diff(want.masked, o.record.MaskedColumns); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}
