package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// If a source table's rule contains a visible block, the derived row must also meet the rule of that block's target
// row. The blocks that say whose row it is are left out.
func TestDerivedRowsAskTheTargetRow(t *testing.T) {
	snap := derivedSnapshot(t)
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	const user = "me"
	world := predicate.World{Sealed: true, Now: time.Now(), Attributes: map[string]string{"user": user}, Tables: map[catalog.Name][]predicate.Row{
		public("people"): {{"id": "me", "consent": "granted"}, {"id": "agrees", "consent": "granted"},
			{"id": "refuses", "consent": "refused"}, {"id": "silent"}},
		public("memories"): {
			{"id": "of me", "user_id": user, "person_id": "me", "body": "x"}, {"id": "of another's", "user_id": "other", "person_id": "agrees", "body": "x"},
			{"id": "refused", "user_id": user, "person_id": "refuses", "body": "x"}, {"id": "silent", "user_id": user, "person_id": "silent", "body": "x"},
			{"id": "of none", "user_id": user, "body": "x"}, {"id": "other", "user_id": user, "person_id": "agrees", "body": "y"},
			{"id": "made of a refused one", "user_id": user, "person_id": "agrees", "body": "x", "derived_from": "refused"},
			{"id": "made of a granted one", "user_id": user, "person_id": "agrees", "body": "x", "derived_from": "of me"},
		},
	}}
	for _, m := range world.Tables[public("memories")] {
		world.Tables[public("summaries")] = append(world.Tables[public("summaries")], predicate.Row{"id": m["id"], "memory_id": m["id"]})
	}
	const ownBlock, grantedBlock = "own: { column: user_id, is: user }", "status: { column: consent, is: granted }"
	const visibleBlock = "visible: { people: { id: person_id }"
	memories := func(rows string) string { return "  memories: { rows: [ " + rows + " ] }\n" }
	const ofMemories = "  summaries: { rows: [ derived: { from: { memories: { id: memory_id } } } ] }\n"
	const ofSummaries = "  digests: { rows: [ derived: { from: { summaries: { id: summary_id } } } ] }\n"
	const pointingSummaries = "  summaries: { rows: [ visible: { memories: { id: memory_id } } ] }\n" + ofSummaries
	for name, c := range map[string]struct{ people, otherTables, shownConditions string }{
		"its rule": {grantedBlock, memories(ownBlock+", "+visibleBlock+" }") + ofMemories, "of me|of another's|other|made of a refused one|made of a granted one"},
		"not whose it is": {grantedBlock + ", own: { column: id, is: user }", memories(visibleBlock+" }") + ofMemories,
			"of me|of another's|other|made of a refused one|made of a granted one"},
		"all of it, where that is inherited": {grantedBlock + ", own: { column: id, is: user }",
			memories(visibleBlock+" }") + strings.Replace(ofMemories, "memory_id } } } ] }", "memory_id } }, inherit: everything } ] }", 1),
			"of me"},
		"where": {"any: [ " + grantedBlock + ", status: { column: consent, is: refused } ]",
			memories(visibleBlock+", where: [ status: { column: consent, is: refused } ] }") + ofMemories, "refused"},
		"rows in place of its rule": {"status: { column: consent, is: never }",
			memories(visibleBlock+", rows: [ "+grantedBlock+" ] }") + ofMemories, "of me|of another's|other|made of a refused one|made of a granted one"},
		"rows in place of it, and whose": {"status: { column: consent, is: never }",
			memories(visibleBlock+", rows: [ "+grantedBlock+", own: { column: id, is: user } ] }") +
				ofMemories, "of me|of another's|other|made of a refused one|made of a granted one"},
		"nothing but whose it is": {grantedBlock,
			memories(visibleBlock+", rows: [ own: { column: id, is: user } ] }") +
				ofMemories, "of me|of another's|refused|silent|other|made of a refused one|made of a granted one"},
		"what it points to in turn": {grantedBlock, memories(visibleBlock+" }") + pointingSummaries,
			"of me|of another's|other|made of a refused one|made of a granted one"},
		"what that was made from": {grantedBlock,
			memories(ownBlock+", "+visibleBlock+
				" }, derived: { from: { memories: { id: derived_from } }, unless: [ sql: \"derived_from IS NULL\" ] }") + pointingSummaries,
			"of me|of another's|other|made of a granted one"},
		"a status beside what it points to": {grantedBlock, memories("status: { column: body, is: y }, "+visibleBlock+" }") +
			pointingSummaries, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world
			table := "summaries"
			if strings.Contains(c.otherTables, "digests") {
				table = "digests"
			}
			p, got := derivedCompile(t, snap, strings.Replace(derivedHead, grantedBlock, c.people, 1)+c.otherTables)
			if p == nil {
				t.Fatal(got)
			}
			compiledTable, _ := p.Table(public(table))
			var shownConditions []string
			for _, s := range world.Tables[public("summaries")] {
				row := s
				if table == "digests" {
					row = predicate.Row{"id": s["id"], "summary_id": s["id"]}
				}
				if predicate.Eval(compiledTable.Rows, row, w) {
					shownConditions = append(shownConditions, s["id"])
				}
			}
			if got := strings.Join(shownConditions, "|"); got != c.shownConditions {
				t.Errorf("\n got %s\nwant %s", got, c.shownConditions)
			}
		})
	}
}
