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
	const own, granted = "own: { column: user_id, is: user }", "status: { column: consent, is: granted }"
	const visible = "visible: { people: { id: person_id }"
	memories := func(rows string) string { return "  memories: { rows: [ " + rows + " ] }\n" }
	const ofMemories = "  summaries: { rows: [ derived: { from: { memories: { id: memory_id } } } ] }\n"
	const ofSummaries = "  digests: { rows: [ derived: { from: { summaries: { id: summary_id } } } ] }\n"
	const pointing = "  summaries: { rows: [ visible: { memories: { id: memory_id } } ] }\n" + ofSummaries
	for name, c := range map[string]struct{ people, rest, shown string }{
		"its rule": {granted, memories(own+", "+visible+" }") + ofMemories, "of me|of another's|other|made of a refused one|made of a granted one"},
		"not whose it is": {granted + ", own: { column: id, is: user }", memories(visible+" }") + ofMemories,
			"of me|of another's|other|made of a refused one|made of a granted one"},
		"all of it, where that is inherited": {granted + ", own: { column: id, is: user }",
			memories(visible+" }") + strings.Replace(ofMemories, "memory_id } } } ] }", "memory_id } }, inherit: everything } ] }", 1),
			"of me"},
		"where": {"any: [ " + granted + ", status: { column: consent, is: refused } ]",
			memories(visible+", where: [ status: { column: consent, is: refused } ] }") + ofMemories, "refused"},
		"rows in place of its rule": {"status: { column: consent, is: never }",
			memories(visible+", rows: [ "+granted+" ] }") + ofMemories, "of me|of another's|other|made of a refused one|made of a granted one"},
		"rows in place of it, and whose": {"status: { column: consent, is: never }",
			memories(visible+", rows: [ "+granted+", own: { column: id, is: user } ] }") +
				ofMemories, "of me|of another's|other|made of a refused one|made of a granted one"},
		"nothing but whose it is": {granted,
			memories(visible+", rows: [ own: { column: id, is: user } ] }") +
				ofMemories, "of me|of another's|refused|silent|other|made of a refused one|made of a granted one"},
		"what it points to in turn": {granted, memories(visible+" }") + pointing,
			"of me|of another's|other|made of a refused one|made of a granted one"},
		"what that was made from": {granted,
			memories(own+", "+visible+
				" }, derived: { from: { memories: { id: derived_from } }, unless: [ sql: \"derived_from IS NULL\" ] }") + pointing,
			"of me|of another's|other|made of a granted one"},
		"a status beside what it points to": {granted, memories("status: { column: body, is: y }, "+visible+" }") + pointing, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world
			table := "summaries"
			if strings.Contains(c.rest, "digests") {
				table = "digests"
			}
			p, got := derivedCompile(t, snap, strings.Replace(derivedHead, granted, c.people, 1)+c.rest)
			if p == nil {
				t.Fatal(got)
			}
			compiled, _ := p.Table(public(table))
			var shown []string
			for _, s := range world.Tables[public("summaries")] {
				row := s
				if table == "digests" {
					row = predicate.Row{"id": s["id"], "summary_id": s["id"]}
				}
				if predicate.Eval(compiled.Rows, row, w) {
					shown = append(shown, s["id"])
				}
			}
			if got := strings.Join(shown, "|"); got != c.shown {
				t.Errorf("\n got %s\nwant %s", got, c.shown)
			}
		})
	}
}
