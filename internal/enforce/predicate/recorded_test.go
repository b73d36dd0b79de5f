package predicate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// similarIDs are different ids that a comparison by prefix, pattern or folded case would take for equal.
var similarIDs = []string{"si:ash", "si:ashley", "SI:ash", "si:ash ", "si:a%", "si:_sh", "si:аsh", "si:ash'", `si:"ash"`, "ash", ""}

// Consent by records agrees with the model, for every type of the list of subjects: with subjects, guardians, scopes,
// callers who are subjects, and malformed lists. Lookup tables are emptied, too.
func TestConsentByRecords(t *testing.T) {
	tier.All(t)
	r := newTriples(t)
	for _, form := range []struct{ name, sqlType string }{
		{"text", "text"}, {"array", "text[]"}, {"varchars", "varchar(40)[]"}, {"jsonb", "jsonb"}, {"json", "json"}, {"one", "text"}, {"links", ""}} {
		func() {
			s := recordedSchema(form.name, form.sqlType)
			r.run(r.super, s.sql())
			subjects := "subjects: subjects"
			switch form.name {
			case "one":
				subjects = "subject: subjects"
			case "links":
				subjects = "every: [ " + s.name + ".about: { memory: rid } ], subject: who"
			}
			pol := r.migrate(s, strings.NewReplacer("SUBJECTS", subjects, "SCHEMA", s.name).Replace(`version: 1
attributes: { user: { type: text, source: credential }, contexts: { type: "text[]", source: credential } }
tables:
  SCHEMA.memories:
    rows:
      - consent: { SUBJECTS, but: user,
          record: { table: SCHEMA.records, match: { stack: stack }, grantor: grantor, grantee: { column: grantee, to: [user, contexts], all: "*" },
            guardians: { table: SCHEMA.guardians, match: { stack: stack }, subject: ward, guardian: guardian },
            scope: { column: scope, is: [kind], in: [grants], all: "*" }, where: [ { status: { column: state, is: active } } ] } }
  SCHEMA.records: { rows: open }
  SCHEMA.guardians: { rows: open }
  SCHEMA.about: { rows: open }
`))
			before := r.shownCount
			for range 12 {
				attributes := map[string]string{"user": s.pick(similarIDs...),
					"contexts": predicate.WriteArray([]string{s.pick("ctx:a", "ctx:b"), s.pick(similarIDs...)})}
				if s.chance(10) {
					delete(attributes, s.pick("user", "contexts"))
				}
				r.checkCaller(s, pol, attributes)
				memories, _ := pol.Table(s.relation(s.tables[0]))
				r.checkEmptiedViews(s, s.tables[0], memories, "SELECT rid FROM "+s.relation(s.tables[0]).SQL(), r.world(s, attributes))
			}
			if shownCount := r.shownCount - before; shownCount < 30 {
				t.Errorf("%s: %d rows shown: the sample says little", form.name, shownCount)
			}
		}()
	}
}

func recordedSchema(name, sqlType string) *schema {
	s := &schema{Rand: rand.New(rand.NewPCG(7, 11)), name: "rec_" + name}
	column := func(name, sqlType string) *tableColumn {
		return &tableColumn{name: name, sqlType: sqlType, family: "text"}
	}
	memories := &table{name: "memories", columns: []*tableColumn{
		column("rid", "integer"), column("stack", "text"), column("kind", "text"), column("grants", "jsonb")}}
	if sqlType != "" {
		memories.columns = append(memories.columns, column("subjects", sqlType))
	}
	records := &table{name: "records", columns: []*tableColumn{
		column("rid", "integer"), column("stack", "text"), column("grantor", "text"), column("grantee",
			"text"), column("scope", "text"), column("state", "text")}}
	guardians := &table{name: "guardians", columns: []*tableColumn{
		column("rid", "integer"), column("stack", "text"), column("ward", "text"), column("guardian", "text")}}
	aboutTable := &table{name: "about", columns: []*tableColumn{column("rid", "integer"), column("memory", "integer"), column("who", "text")}}
	s.tables = []*table{memories, records, guardians, aboutTable}
	drawID := func() string {
		if s.chance(70) {
			return s.pick(similarIDs[:3]...)
		}
		return s.pick(similarIDs...)
	}
	for i := range 60 {
		row := predicate.Row{"rid": fmt.Sprint(i), "stack": s.pick("s", "s", "t"), "kind": s.pick("k:1", "k:2"),
			"grants": s.pick(`["ctx:a"]`, `[]`, `["ctx:b", "ctx:a"]`, `{}`)}
		var ids []string
		for range s.IntN(3) {
			ids = append(ids, drawID())
		}
		for _, id := range ids {
			link := predicate.Row{"rid": fmt.Sprint(len(aboutTable.rows)), "memory": fmt.Sprint(i), "who": id}
			if s.chance(5) {
				delete(link, "who")
			}
			aboutTable.rows = append(aboutTable.rows, link)
		}
		list := plainJSON(ids)
		switch {
		case s.chance(7):
		case sqlType == "":
		case strings.HasSuffix(sqlType, "[]"):
			row["subjects"] = predicate.WriteArray(ids)
			if s.chance(5) {
				row["subjects"] = "{NULL}"
			}
		case name == "one":
			row["subjects"] = drawID()
		default:
			if s.chance(15) {
				list = s.pick(`{}`, `null`, `"si:ash"`, `[null]`, `["si:ash", 1]`, `5`, `[]`)
				if name == "text" {
					list = s.pick(list, `[`, ``, `si:ash`, `["si:ash"`, `[["si:ash"]]`)
				}
			}
			row["subjects"] = list
		}
		memories.rows = append(memories.rows, row)
	}
	for i := range 25 {
		row := predicate.Row{"rid": fmt.Sprint(i), "stack": s.pick("s", "s", "s", "t"),
			"grantor": s.pick(drawID(), "human:guardian", "human:guardian"), "grantee": s.pick(drawID(),
				"ctx:a", "*"), "scope": s.pick("*", "ctx:a", "ctx:b", "k:1", "other"),
			"state": s.pick("active", "active", "active", "revoked")}
		for _, c := range []string{"grantor", "grantee", "scope", "state", "stack"} {
			if s.chance(3) {
				delete(row, c)
			}
		}
		records.rows = append(records.rows, row)
	}
	for i := range 6 {
		guardians.rows = append(guardians.rows,
			predicate.Row{"rid": fmt.Sprint(i), "stack": s.pick("s", "s", "t"), "ward": drawID(),
				"guardian": s.pick("human:guardian", "human:other")})
	}
	return s
}
