package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/policy"
)

// The tree of rules has the policy's structure and positions. Its root is the table's whole rule.
func TestRules(t *testing.T) {
	p, err := compile(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  people:
    rows:
      - own: { column: user_id, is: user }
      - any:
          - status: { column: consent_status, is: granted }
          - not: { status: { column: consent_status, is: revoked } }
  memory_participants: { rows: [ visible: { people: { id: person_id }, where: [ status: { column: consent_status, is: x } ] } ] }
  memories: { rows: open }
`)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var printRule func(r *policy.Rule, depth int)
	printRule = func(r *policy.Rule, depth int) {
		fmt.Fprintf(&b, "%s%s %d:%d\n", strings.Repeat(" ", depth), r.Block, r.Line, r.Column)
		for _, part := range r.Parts {
			printRule(part, depth+1)
		}
	}
	for _, table := range p.Tables() {
		printRule(table.Rule, 0)
		if got, want := predicate.DirectCondition(table.Rule.Node, "r", nil),
			predicate.DirectCondition(table.Rows, "r", nil); got != want {
			t.Errorf("%s: the rule's node is %s, not %s", table.Relation.Name, got, want)
		}
	}
	want := `open 11:21
visible 10:34
all 6:7
 own 6:9
 any 7:9
  status 8:13
  not 9:13
   status 9:20
`
	if got := b.String(); got != want {
		t.Errorf("the rules are\n%s\nwant\n%s", got, want)
	}
	for _, table := range p.Tables() {
		if table.Relation.Name.Name != "people" {
			continue
		}
		leaves := table.Rule.Leaves()
		if len(leaves) != 3 {
			t.Fatalf("%d leaves", len(leaves))
		}
		got := predicate.DirectCondition(table.Rule.Replace(leaves[1], predicate.Open{}), "r", nil)
		if strings.Contains(got, "'granted'") || !strings.Contains(got, "'revoked'") {
			t.Errorf("the second leaf is not replaced alone: %s", got)
		}
	}
}

// Conditions of contracts are added around the blocks. They remain where a block is replaced, and Blocks leaves them
// out.
func TestRulesBehindContracts(t *testing.T) {
	p, err := compile(`version: 1
attributes: { user: { type: uuid, source: credential }, stage: { type: text, source: credential } }
tables: { people: { rows: [ own: { column: user_id, is: user }, status: { column: consent_status, is: granted } ] } }
objects: { person: { table: people } }
contracts: { retrieval: { by: stage, values: { listen: { allow: { person: structured } }, plan: nothing } } }
`)
	if err != nil {
		t.Fatal(err)
	}
	table := p.Tables()[0]
	rows := predicate.DirectCondition(table.Rows, "r", nil)
	for _, leaf := range table.Rule.Leaves() {
		if got := predicate.DirectCondition(table.Rule.Replace(leaf, leaf.Node), "r", nil); got != rows {
			t.Errorf("%s replaced by itself: %s, not %s", leaf.Block, got, rows)
		}
	}
	if leafCount, ownLeafCount := len(table.Rule.Leaves()), len(table.Rule.WithoutContracts().Leaves()); leafCount != 3 || ownLeafCount != 2 {
		t.Errorf("%d rules, %d of them blocks", leafCount, ownLeafCount)
	}
}
