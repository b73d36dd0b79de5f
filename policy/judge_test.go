package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Contracts allow exactly what docs/reference/policy-contracts.md says, for random statements over several objects. A
// model of a few lines must give the same result.
func TestContractsHoldForAnyReads(t *testing.T) {
	columns := func() (out []catalog.Column) {
		for _, n := range []string{"id", "x", "y"} {
			out = append(out, catalog.Column{Name: n, Type: "integer", TypeOID: 23})
		}
		return out
	}
	vessels := map[string]string{"a": "user", "b": "shared", "c": "mind", "d": "body", "l": "user", "m": ""}
	spec := catalog.Spec{ServerVersion: 150000, SearchPath: []string{"public"}}
	tables, objects := "", ""
	for i, n := range []string{"a", "b", "c", "d", "l", "m"} {
		spec.Relations = append(spec.Relations,
			&catalog.Relation{OID: uint32(20000 + i), Name: catalog.Name{Schema: "public", Name: n},
				Kind: catalog.Table, Columns: columns(), PrimaryKey: []string{"id"}})
		tables += fmt.Sprintf("  %s: { rows: open }\n", n)
		objectKeys := ""
		if vessels[n] != "" {
			objectKeys += ", vessel: " + vessels[n]
		}
		if joinOnly(n) {
			objectKeys += ", join_only: true"
		}
		objects += fmt.Sprintf("  %s: { table: %s, metadata: [id]%s }\n", n, n, objectKeys)
	}
	doc, err := policy.Parse("p.yaml", []byte(`version: 1
attributes:
  stage: { type: text, source: credential }
  user: { type: integer, source: credential }
  members: { type: integer, source: credential }
  plan: { type: "text[]", source: credential }
tables:
`+tables+"objects:\n"+objects+`contracts:
  retrieval:
    by: stage
    apart: [[user, shared], [mind, body]]
    values:
      columns: { allow: { a: { sources: structured, columns: [id, x] }, b: [metadata, vector], c: write } }
      everything: everything
      except: { allow: everything, except: [b, d] }
      nothing: nothing
      requires: { allow: everything, requires: ["attribute('members') = 2", "attribute('user') = 7"] }
      planned: { allow: everything, plan: plan }
      few: { allow: everything, rows: 5 }
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, catalog.NewSnapshot(spec))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 1))
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	allowedCounts := map[string]int{}
	for range 40_000 {
		s := policy.Statement{Tag: "SELECT", PlainSelect: r.IntN(4) > 0, Limit: []int64{-1, 0, 3, 5, 6}[r.IntN(5)]}
		for range 1 + r.IntN(3) {
			a := policy.Access{Relation: catalog.Name{Schema: "public", Name: pick("a", "a", "b", "c", "d", "l", "m")},
				Source: pick(policy.SourceMetadata, policy.SourceStructured, policy.SourceStructured, policy.SourceVector,
					policy.SourceWrite), JoinedByKey: r.IntN(3) > 0, AffectsOutput: r.IntN(3) == 0}
			a.Written = a.Source == policy.SourceWrite
			a.Columns = [][]string{nil, {}, {"id"}, {"x"}, {"id", "x"}, {"x", "y"}, {"y"}}[r.IntN(7)]
			if r.IntN(6) == 0 {
				a.Through = []string{"public.v"}
			}
			s.Accesses = append(s.Accesses, a)
		}
		values := map[string]string{"stage": pick("columns", "everything", "except", "nothing", "requires", "planned",
			"few", "unlisted"), "members": pick("2", "2", "3"), "user": pick("7", "7", "8")}
		if r.IntN(12) == 0 {
			delete(values, "stage")
		}
		if r.IntN(5) > 0 {
			var plan []string
			for _, a := range s.Accesses {
				plan = append(plan, a.Relation.Name+":"+pick(a.Source, a.Source, a.Source, policy.SourceStructured))
			}
			values["plan"] = "{" + strings.Join(plan[r.IntN(2):], ",") + "}"
		}
		reason := modelRefusal(s, values, vessels)
		refusal := p.Judge(s, values)
		if (refusal != nil) != (reason != "") {
			t.Fatalf("%+v with %v: %v, and the model says %q", s, values, refusal, reason)
		}
		if allowedCounts[reason]++; refusal == nil {
			allowedCounts[values["stage"]]++
		}
	}
	for _, label := range []string{"columns", "everything", "except", "requires", "planned", "few", "joined",
		"apart", "its source", "a column", "all columns", "not planned", "a requirement", "too many", "through"} {
		if allowedCounts[label] < 20 {
			t.Errorf("%s: %d statements only", label, allowedCounts[label])
		}
	}
}

// Reading a partition or child of an object, at any depth, counts as reading the object. Reading its parent table does
// not.
func TestContractsHoldForParts(t *testing.T) {
	public := func(n string) catalog.Name { return catalog.Name{Schema: "public", Name: n} }
	spec := catalog.Spec{ServerVersion: 150000, SearchPath: []string{"public"}}
	for i, tableAndParent := range [][]string{{"all"}, {"events", "all"}, {"late", "events"}, {"latest", "late"}, {"other", "events"}} {
		r := &catalog.Relation{OID: uint32(20000 + i), Name: public(tableAndParent[0]), Kind: catalog.Table,
			PrimaryKey: []string{"id"}, Columns: []catalog.Column{{Name: "id", Type: "integer", TypeOID: 23}, {Name: "x", Type: "integer", TypeOID: 23}}}
		if len(tableAndParent) > 1 {
			r.Parents = []catalog.Name{public(tableAndParent[1])}
		}
		spec.Relations = append(spec.Relations, r)
	}
	const text = `version: 1
attributes: { stage: { type: text, source: credential } }
tables:
  events: { rows: open }
objects:
  event: { table: events, metadata: [id] }
contracts:
  reading: { by: stage, values: { counts: { allow: { event: metadata } } } }
`
	compile := func(text string) (*policy.Policy, error) {
		doc, err := policy.Parse("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return policy.Compile(doc, catalog.NewSnapshot(spec))
	}
	p, err := compile(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"events", "late", "latest", "other"} {
		for source, isComparable := range map[string]bool{policy.SourceMetadata: true, policy.SourceStructured: false} {
			s := policy.Statement{Tag: "SELECT", PlainSelect: true, Limit: -1,
				Accesses: []policy.Access{{Relation: public(table), Source: source, Columns: []string{"id"}, AffectsOutput: true}}}
			for stage, isKnown := range map[string]bool{"counts": true, "unlisted": false} {
				if refusal := p.Judge(s, map[string]string{"stage": stage}); (refusal == nil) != (isComparable && isKnown) {
					t.Errorf("%s, %s at %s: %v", table, source, stage, refusal)
				}
			}
		}
	}
	const viewProblem = "the object event can be read through public.all"
	if _, err := compile(strings.Replace(text, "tables:\n", "tables:\n  all: { rows: open }\n", 1)); err == nil ||
		!strings.Contains(err.Error(), viewProblem) {
		t.Errorf("an object whose parent is listed: %v", err)
	}
	if _, err := compile(strings.NewReplacer("tables:\n", "tables:\n  all: { rows: open }\n", "objects:\n",
		"objects:\n  everything: { table: all }\n").Replace(text)); err != nil {
		t.Errorf("whose parent is an object: %v", err)
	}
}

func joinOnly(object string) bool { return object == "l" }

// modelRefusal returns why the test's contract refuses a statement, or "" if it does not.
func modelRefusal(s policy.Statement, values, vessels map[string]string) string {
	stage, isKnown := values["stage"]
	switch {
	case !isKnown || !slices.Contains([]string{"columns", "everything", "except", "requires", "planned", "few"}, stage):
		return "nothing is allowed"
	case stage == "requires" && (values["members"] != "2" || values["user"] != "7"):
		return "a requirement"
	}
	isSingle, isThroughView := true, false
	seenVessels := map[string]bool{}
	for _, a := range s.Accesses {
		isSingle, isThroughView = isSingle && joinOnly(a.Relation.Name), isThroughView || len(a.Through) > 0
		seenVessels[vessels[a.Relation.Name]] = true
	}
	if seenVessels["user"] && seenVessels["shared"] || seenVessels["mind"] && seenVessels["body"] {
		return "apart"
	}
	for _, a := range s.Accesses {
		n := a.Relation.Name
		if joinOnly(n) {
			if isSingle || !a.JoinedByKey || a.AffectsOutput || a.Source == policy.SourceWrite || a.Source == policy.SourceVector {
				return "joined"
			}
			continue
		}
		sources := map[string][]string{"a": {policy.SourceStructured, policy.SourceMetadata},
			"b": {policy.SourceMetadata, policy.SourceVector}, "c": {policy.SourceWrite}}
		if stage == "columns" && !slices.Contains(sources[n], a.Source) || stage == "except" && (n == "b" || n == "d") {
			return "its source"
		}
		if stage == "columns" && n == "a" {
			if a.Columns == nil {
				return "all columns"
			}
			if slices.Contains(a.Columns, "y") {
				return "a column"
			}
		}
		plan := strings.Split(strings.Trim(values["plan"], "{}"), ",")
		if stage == "planned" && !slices.Contains(plan, n+":"+a.Source) &&
			!(a.Source == policy.SourceMetadata && slices.Contains(plan, n+":"+policy.SourceStructured)) {
			return "not planned"
		}
	}
	if stage == "few" && !isSingle {
		switch {
		case isThroughView:
			return "through"
		case !s.PlainSelect || s.Limit < 0 || s.Limit > 5:
			return "too many"
		}
	}
	return ""
}
