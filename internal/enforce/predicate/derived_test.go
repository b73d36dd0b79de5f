package predicate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// derivedBlock draws a block derived for a table. The rows are made from rows of tables before it, so there are no
// circles between tables.
func (s *schema) derivedBlock(t *table, i int) object {
	b := object{}
	target := s.tables[s.IntN(i)]
	lists := t.columnsWhere(func(c *tableColumn) bool {
		json := c.use == document || c.use == jsonText
		return c.use == list && c.family == target.key.family && collation(c) == collation(target.key) || json && !collation(c) && !collation(target.key)
	})
	switch {
	case len(lists) > 0 && target.primary && !target.composite && s.chance(40):
		b["sources"], b["of"] = lists[s.IntN(len(lists))].name, s.qualifiedName(target)
	case s.chance(50): // by a link table
		linkTable := s.tables[s.IntN(len(s.tables))]
		from, to := s.link(t, linkTable)
		if from == nil {
			return nil
		}
		next, key := s.link(linkTable, target)
		if next == nil {
			return nil
		}
		b["from"] = []any{object{s.qualifiedName(linkTable): s.pairs(t, linkTable, from, to)}, object{s.qualifiedName(target): s.pairs(linkTable, target, next, key)}}
	default:
		from, to := s.link(t, target)
		if from == nil {
			return nil
		}
		b["from"] = object{s.qualifiedName(target): s.pairs(t, target, from, to)}
	}
	if s.chance(30) {
		b["unless"] = []any{s.ownBlock(t, 0)}
		if other := s.tables[s.IntN(i)]; s.chance(30) {
			if from, to := s.link(t, other); from != nil {
				b["unless"] = []any{object{"any": []any{s.ownBlock(t, 0), object{"visible": object{s.qualifiedName(other): s.pairs(t, other, from,
					to)}}}}}
			}
		}
	}
	if s.chance(20) {
		b["where"] = []any{s.ownBlock(target, 0)}
	}
	if s.chance(30) {
		b["inherit"] = "everything"
	}
	return b
}

// Rows that are made from each other, in each form of the block derived. There are chains, branches that join again,
// circles, chains that are too long, missing sources and malformed lists. Lookup tables are emptied, too.
func TestDerivedFromEachOther(t *testing.T) {
	tier.All(t)
	r := newTriples(t)
	callerCount, unlessClauses := 1, []string{", unless: [ status: { column: kind, is: raw } ]"}
	if tier.IsNightly() {
		callerCount, unlessClauses = 3, append(unlessClauses, "")
	}
	for number, form := range derivedForms {
		for _, unless := range unlessClauses {
			s := form.schema(number)
			if unless == "" {
				s.name += "_strict"
			}
			r.run(r.super, s.sql())
			pairs := "{ id: note }"
			if form.key == "composite" {
				pairs = "{ id: note, rid: note_rid }"
			}
			pol := r.migrate(s, strings.NewReplacer("BLOCK", strings.ReplaceAll(form.block, "S.", s.name+".")+unless,
				"PAIRS", pairs, "S.", s.name+".").Replace(`version: 1
attributes: { user: { type: text, source: credential } }
tables:
  S.notes:
    rows:
      - own: { column: owner, is: user }
      - consent: { every: [ S.about: { note: rid }, S.people: { rid: person } ], status: consent, is: granted }
      - any: [ status: { column: kind, is: raw }, status: { column: kind, is: made } ]
      - derived: { BLOCK }
  S.digests: { rows: [ derived: { from: { S.notes: PAIRS } } ] }
  S.seen: { rows: [ visible: { S.digests: { rid: digest } } ] }
  S.links: { rows: open }
  S.about: { rows: open }
  S.people: { rows: open }
`))
			shownCount := 0
			for range callerCount {
				attributes := map[string]string{"user": s.pick("a", "b")}
				if s.chance(10) {
					attributes = map[string]string{}
				}
				before := r.shownCount
				r.checkCaller(s, pol, attributes)
				shownCount += r.shownCount - before
				for _, table := range s.tables[:3] {
					compiled, _ := pol.Table(s.relation(table))
					r.checkEmptiedViews(s, table, compiled, "SELECT rid FROM "+s.relation(table).SQL(), r.world(s, attributes))
				}
				if t.Failed() {
					return
				}
			}
			w := r.world(s, map[string]string{"user": "a"})
			digests, _ := pol.Table(s.relation(s.tables[1]))
			digestCount := 0
			for _, row := range s.tables[1].rows {
				if predicate.Eval(digests.Rows, row, w) {
					digestCount++
				}
			}
			t.Logf("%s%s: %d rows shown, %d of %d digests", form.name, unless, shownCount, digestCount, len(s.tables[1].rows))
			if unless != "" && (digestCount < 5 || digestCount > len(s.tables[1].rows)*95/100) {
				t.Errorf("%s: %d of %d digests show: the sample says little", form.name, digestCount, len(s.tables[1].rows))
			}
		}
	}
}

// derivedForm is one way to state in a policy which rows a row was made from.
type derivedForm struct{ name, sqlType, key, block string }

var derivedForms = []derivedForm{
	{"column", "uuid", "uuid", "from: { S.notes: { id: made_from } }"},
	{"array", "uuid[]", "uuid", "sources: made_from, of: S.notes"},
	{"varchars", "varchar(40)[]", "varchar(40)", "sources: made_from, of: S.notes"},
	{"jsonb", "jsonb", "uuid", "sources: made_from, of: S.notes"},
	{"json", "text", "integer", "sources: made_from, of: S.notes"},
	{"links", "", "bigint", "from: [ S.links: { note: id }, S.notes: { id: source } ]"},
	{"composite", "uuid", "composite", "from: { S.notes: { id: made_from, rid: made_rid } }"},
}

func (f derivedForm) id(n int) string {
	switch f.key {
	case "uuid", "composite":
		return id(n)
	case "integer", "bigint":
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("n %d", n)
}

// schema returns tables with a chain of notes that may be longer than predicate.MaxDepth, and other notes with random
// sources.
func (f derivedForm) schema(number int) *schema {
	s := &schema{Rand: rand.New(rand.NewPCG(5, uint64(number))), name: "made_" + f.name}
	column := func(name, sqlType string) *tableColumn { return &tableColumn{name: name, sqlType: sqlType} }
	key := f.key
	if key == "composite" {
		key = "uuid"
	}
	notes := &table{name: "notes", primary: true, composite: f.key == "composite",
		columns: []*tableColumn{column("rid", "integer"), column("id", key), column("kind", "text"),
			column("owner", "text"), column("made_rid", "integer")}}
	if f.sqlType != "" {
		notes.columns = append(notes.columns, column("made_from", f.sqlType))
	}
	digests := &table{name: "digests", columns: []*tableColumn{column("rid", "integer"), column("note", key), column("note_rid", "integer")}}
	seenTable := &table{name: "seen", columns: []*tableColumn{column("rid", "integer"), column("digest", "integer")}}
	links := &table{name: "links", columns: []*tableColumn{column("rid", "integer"), column("note", key), column("source", key)}}
	aboutTable := &table{name: "about", columns: []*tableColumn{column("rid", "integer"), column("note", "integer"),
		column("person", "integer")}}
	people := &table{name: "people", columns: []*tableColumn{column("rid", "integer"), column("consent", "text")}}
	s.tables = []*table{notes, digests, seenTable, links, aboutTable, people}
	chainLength := 6
	if f.name == "column" {
		chainLength = predicate.MaxDepth + 4
	}
	for i := range chainLength + 50 {
		row := predicate.Row{"rid": fmt.Sprint(i), "id": f.id(i), "kind": s.pick("made", "made", "raw"),
			"owner": s.pick("a", "a", "b"), "made_rid": fmt.Sprint(i)}
		var sources []int
		switch {
		case i == 0:
			row["kind"] = "raw"
		case i < chainLength:
			sources, row["kind"] = []int{i - 1}, "made"
		case s.chance(20):
			row["kind"] = "raw"
		default:
			for range 1 + s.IntN(2) {
				sources = append(sources, chainLength+s.IntN(i-chainLength+1)) // may be the note itself
				if s.chance(8) {
					sources[len(sources)-1] = chainLength + s.IntN(64) // a circle, or a missing note
				}
			}
			if s.chance(3) {
				row["kind"] = "other"
			}
		}
		f.addSources(s, row, sources, links)
		if i >= chainLength && s.chance(30) {
			aboutTable.rows = append(aboutTable.rows, predicate.Row{"rid": fmt.Sprint(len(aboutTable.rows)), "note": row["rid"],
				"person": fmt.Sprint(s.IntN(9))})
		}
		notes.rows = append(notes.rows, row)
		digests.rows = append(digests.rows, predicate.Row{"rid": fmt.Sprint(i), "note": row["id"], "note_rid": row["rid"]})
		seenTable.rows = append(seenTable.rows, predicate.Row{"rid": fmt.Sprint(i), "digest": fmt.Sprint(i)})
	}
	digests.rows = append(digests.rows, predicate.Row{"rid": "1000"}, predicate.Row{"rid": "1001", "note": f.id(999), "note_rid": "1"})
	for i := range 8 {
		people.rows = append(people.rows, predicate.Row{"rid": fmt.Sprint(i), "consent": s.pick("granted", "granted", "granted", "refused")})
	}
	return s
}

// addSources stores in a row, or in rows of links, which notes it was made from.
func (f derivedForm) addSources(s *schema, row predicate.Row, sources []int, links *table) {
	var ids []string
	for _, n := range sources {
		ids = append(ids, f.id(n))
	}
	if s.chance(2) {
		ids = append(ids, "")
	}
	switch f.name {
	case "links":
		for _, id := range ids {
			link := predicate.Row{"rid": fmt.Sprint(len(links.rows)), "note": row["id"]}
			if id != "" {
				link["source"] = id
			}
			links.rows = append(links.rows, link)
		}
	case "column", "composite":
		if len(ids) > 0 && ids[0] != "" {
			row["made_from"] = ids[0]
			row["made_rid"] = fmt.Sprint(sources[0])
		}
	case "array", "varchars":
		row["made_from"] = strings.ReplaceAll(predicate.WriteArray(ids), `""`, "NULL")
		if len(ids) == 0 && s.chance(50) {
			delete(row, "made_from")
		}
	default:
		if f.name == "jsonb" && s.chance(10) {
			for i := range ids {
				ids[i] = strings.ToUpper(ids[i])
			}
		}
		row["made_from"] = plainJSON(ids)
		if s.chance(4) {
			row["made_from"] = s.pick(`{}`, `null`, `5`, `["x"]`, `[null]`, `["00"]`, `["99999999999999999999"]`, `["1", 2]`)
		}
	}
}
