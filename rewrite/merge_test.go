package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// MERGE is refused on a server version whose MERGE ignores row security policies (CVE-2023-39418).
func TestMergeNeedsAServerThatHeedsRowSecurity(t *testing.T) {
	for version, want := range map[int]bool{150000: false, 150003: false, 150004: true, 160000: true} {
		notes := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "notes"}, Kind: catalog.Table, Columns: []catalog.Column{
			{Name: "id", Type: "uuid", TypeOID: 2950, NotNull: true}, {
				Name: "owner", Type: "text", TypeOID: 25, NotNull: true}, {Name: "body", Type: "text", TypeOID: 25}}}
		snap := catalog.NewSnapshot(catalog.Spec{
			Database: "d", ServerVersion: version, SearchPath: []string{"public"}, Relations: []*catalog.Relation{
				notes}, CatalogOperators: map[string]bool{"=": true}})
		doc, err := policy.Parse("policy.yaml",
			[]byte("version: 1\nattributes: { user: { type: text, source: credential } }\ntables:\n  notes: { "+
				"rows: [ own: { column: owner, is: user } ], write: { commands: [delete, update], columns: [body] } }\n"))
		if err != nil {
			t.Fatal(err)
		}
		pol, err := policy.Compile(doc, snap)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []Mode{AutoMode, InjectedMode} {
			for _, preparePrefix := range []string{"", "PREPARE p AS "} {
				_, refusal := New(snap, pol, mode).
					Rewrite(preparePrefix+"MERGE INTO notes USING (VALUES ('a')) AS v(o) ON notes.owner = v.o WHEN MATCHED THEN DELETE", false)
				if (refusal == nil) != want || refusal != nil && !strings.Contains(refusal.Message, "MERGE is not available to agents on this server") {
					t.Errorf("%d, %v, %q: %v", version, mode, preparePrefix, refusal)
				}
			}
		}
	}
}
