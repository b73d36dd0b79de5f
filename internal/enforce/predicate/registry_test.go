package predicate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/tier"
)

// addRegistry draws records of the consent registry. Their subjects are ids that occur in the tables; their scopes are
// everything, a row, a table or a context.
func (s *schema) addRegistry(rows int) {
	var subjects []string
	for _, family := range families {
		for range 3 {
			subjects = append(subjects, s.value(family))
		}
	}
	s.registry = s.drawRecords(rows/2, subjects, []string{"*", "*", "*", "a", "b", "1"},
		[]string{"*", "*", "*", "row:" + s.name + "." + s.tables[1].name + ":a",
			"row:" + s.name + "." + s.tables[0].name + ":1", "table:" + s.name + "." + s.tables[0].name, "ctx:a"})
}

// drawRecords draws the current record of each subject, grantee and scope.
func (s *schema) drawRecords(n int, subjects, grantees, scopes []string) []predicate.Row {
	var out []predicate.Row
	seenKeys := map[string]bool{}
	now := time.Now().UTC()
	timestampText := func() string { return s.moment(now).Format("2006-01-02 15:04:05.000000+00:00") }
	drawWords := func() string {
		return predicate.WriteArray([]string{s.pick("ESSENTIAL", "a"), s.pick("BEHAVIORAL", "b", "ESSENTIAL/x"), s.pick("ESSENTIAL", "STATISTICAL", "x")})
	}
	for i := range n {
		r := predicate.Row{"subject": s.pick(subjects...), "grantee": s.pick(grantees...), "scope": s.pick(scopes...), "number": fmt.Sprint(i + 1),
			"state":      s.pick("given", "given", "given", "given", "given", "given", "withdrawn", "revoked", "refused", "expired", "requested"),
			"categories": drawWords(), "purposes": drawWords()}
		key := r["subject"] + "\x00" + r["grantee"] + "\x00" + r["scope"]
		if seenKeys[key] || r["subject"] == "" {
			continue
		}
		seenKeys[key] = true
		if !s.chance(15) {
			r["stream"] = s.pick(predicate.Temporary, predicate.Partnered, predicate.Anonymous)
		}
		for _, c := range []string{"expires_at", "decay_from", "decayed_before", "void_before"} {
			if s.chance(30) {
				r[c] = timestampText()
			}
		}
		if c := "decay_from"; s.chance(40) { // close to the days at which something ends
			r[c] = now.Add(-time.Duration(s.IntN(4)*30+
				s.IntN(2))*24*time.Hour - time.Duration(s.IntN(3)-1)*time.Second).Format("2006-01-02 15:04:05.000000+00:00")
		}
		if s.chance(60) {
			r["decayed_days"] = s.pick("0", "29", "30", "31", "89", "90")
		}
		if r["decay_from"] != "" && s.chance(80) {
			r["decay_categories"] = drawWords()
		}
		out = append(out, r)
	}
	return out
}

// addCountdowns replaces the records of some subjects by running countdowns, close to a day on which data are hidden or
// deleted.
func (s *schema) addCountdowns(subjects []string) {
	for i, subject := range subjects {
		if s.chance(40) {
			continue
		}
		s.registry = slices.DeleteFunc(s.registry, func(r predicate.Row) bool { return r["subject"] == subject })
		startedAt := time.Now().UTC().Add(-time.Duration(s.IntN(4)*30+s.IntN(2))*24*time.Hour - time.Duration(s.IntN(3)-1)*time.Minute)
		s.registry = append(s.registry, predicate.Row{
			"subject": subject, "grantee": "*", "scope": "*", "number": fmt.Sprint(100 + i), "state": "given", "stream": predicate.Anonymous,
			"categories": s.pick("{STATISTICAL}",
				"{STATISTICAL,BEHAVIORAL,a}"), "purposes": "{}", "decay_from": startedAt.Format("2006-01-02 15:04:05.000000+00:00"),
			"decay_categories": s.pick("{ESSENTIAL}", "{ESSENTIAL,BEHAVIORAL}", "{a}")})
	}
}

// registrySQL returns the statements that fill the registry with the records of this schema.
func (s *schema) registrySQL() string {
	var b strings.Builder
	b.WriteString("DELETE FROM pgconsent.consent_current;\n")
	for _, r := range s.registry {
		var names, values []string
		for name, v := range r {
			names, values = append(names, name), append(values, catalog.QuoteLiteral(v))
		}
		fmt.Fprintf(&b, "INSERT INTO pgconsent.consent_current (%s) VALUES (%s);\n", strings.Join(names, ", "), strings.Join(values, ", "))
	}
	return b.String()
}

// registryBlock draws a block for consent by the registry.
func (s *schema) registryBlock(t *table) object {
	b := object{}
	subjectTable := t
	if s.chance(25) {
		target := s.tables[s.IntN(len(s.tables))]
		if from, to := s.link(t, target); from != nil {
			b["every"] = []any{object{s.qualifiedName(target): s.pairs(t, target, from, to)}}
			subjectTable = target
		}
	}
	lists := subjectTable.columnsWhere(func(c *tableColumn) bool { return c.use == list || c.use == document || c.use == jsonText })
	var subject *tableColumn
	if len(lists) > 0 && s.chance(35) {
		subject = lists[s.IntN(len(lists))]
		b["subjects"] = subject.name
	} else {
		comparableColumns := subjectTable.columnsWhere((*tableColumn).isComparable)
		subject = comparableColumns[s.IntN(len(comparableColumns))]
		b["subject"] = subject.name
	}
	if s.chance(30) {
		b["but"] = []string{s.pick("one_", "many_") + subject.family}
	}
	r := object{}
	for _, key := range []string{"category", "purpose"} {
		if s.chance(30) {
			r[key] = s.pick("ESSENTIAL", "BEHAVIORAL", "a", "b")
		}
	}
	for _, key := range []string{"categories", "purposes"} {
		if s.chance(15) {
			r[key] = s.pick("one_", "many_", "live_", "opt_") + "text"
		}
	}
	if s.credentialOnly {
		delete(r, "categories")
		delete(r, "purposes")
	}
	if s.chance(30) {
		r["stream"] = []string{s.pick(predicate.Temporary, predicate.Partnered), predicate.Temporary}
	}
	if s.chance(40) {
		r["grantee"] = []string{s.pick("one_", "many_") + s.pick(families...)}
	}
	if s.chance(40) {
		scope := object{}
		if s.chance(70) {
			comparableColumns := t.columnsWhere((*tableColumn).isComparable)
			scope["row"] = comparableColumns[s.IntN(len(comparableColumns))].name
		}
		if s.chance(50) {
			scope["context"] = []string{s.pick("one_", "many_") + "text"}
		}
		if len(scope) > 0 {
			r["scope"] = scope
		}
	}
	if instants := t.columnsWhere(func(c *tableColumn) bool { return c.use == instant }); len(instants) > 0 && s.chance(60) {
		r["since"] = instants[0].name
		if s.chance(60) {
			r["decay"] = object{"less_than": s.pick("30 days", "90 days", "1 day")}
		}
	}
	b["registry"] = r
	return b
}

// Consent by the registry agrees with the model, for each way to name the subjects and for records with all kinds of
// values. Emptied lookup tables show no further rows.
func TestConsentByRegistry(t *testing.T) {
	tier.All(t)
	r := newTriples(t)
	people := []string{"si:ash", "si:ashley", "SI:ash", "si:bob", "5", id(1)}
	sessionContexts, askedCount := [][]string{{"a", "ESSENTIAL"}, {"ESSENTIALS"}, {"ctx:a", "ESSENTIAL/x"}, {}, {"ESSENTIAL/x"},
		{"ESSENTIAL"}, {"xy"}}, 0
	for i, rule := range []string{
		`{ subject: who, registry: {} }`,
		`{ subject: who, registry: { category: ESSENTIAL } }`,
		`{ subject: who, registry: { category: ESSENTIAL, categories: contexts, stream: [TEMPORARY] } }`,
		`{ subject: who, registry: { category: ESSENTIAL/x/y, purpose: [ESSENTIAL/x] } }`,
		`{ subject: who, registry: { purposes: contexts, grantee: [user, contexts] } }`,
		`{ subject: who, but: user, registry: { scope: { row: rid, context: contexts } } }`,
		`{ subject: who, registry: { scope: { context: contexts } } }`,
		`{ subject: who, registry: { category: ESSENTIAL, purposes: contexts, grantee: contexts } }`,
		`{ subject: who, registry: { since: at } }`,
		`{ subject: who, registry: { since: at, decay: { less_than: 90 days }, category: BEHAVIORAL } }`,
		`{ subject: number, registry: { category: a, since: at, decay: { less_than: 30 days } } }`,
		`{ subject: ref, registry: { scope: { row: rid } } }`,
		`{ subjects: list, registry: { category: ESSENTIAL } }`,
		`{ subjects: doc, but: [user], registry: { grantee: user, since: at, decay: { less_than: 1 day } } }`,
		`{ every: [ SCHEMA.about: { memory: rid } ], subject: who, registry: { category: ESSENTIAL, scope: { row: rid } } }`,
	} {
		s := &schema{Rand: rand.New(rand.NewPCG(3, uint64(i))), name: fmt.Sprintf("reg_%d", i)}
		column := func(name, sqlType, family string) *tableColumn {
			return &tableColumn{name: name, sqlType: sqlType, family: family}
		}
		memories := &table{name: "memories", columns: []*tableColumn{
			column("rid", "integer", "integer"), column("who", `text COLLATE "POSIX"`, "text"), column("number", "bigint", "integer"),
			column("ref", "uuid", "uuid"), column("list", "varchar(40)[]", "text"), column("doc", "text", "text"), column("at", "timestamptz", "")}}
		about := &table{name: "about", columns: []*tableColumn{
			column("rid", "integer", "integer"), column("memory", "integer", "integer"), column("who", "text", "text")}}
		s.tables = []*table{memories, about}
		for i := range 80 {
			row := predicate.Row{"rid": fmt.Sprint(i % 40), "who": s.pick(people...), "number": "5", "ref": id(1),
				"list": predicate.WriteArray([]string{s.pick(people...), s.pick(people...)}[:s.IntN(3)]),
				"doc":  plainJSON([]string{s.pick(people...), s.pick(people...)}[:s.IntN(3)]),
				"at":   s.moment(time.Now().UTC()).Format("2006-01-02 15:04:05.000000+00:00")}
			if s.chance(50) {
				row["at"] = "2020-01-01 00:00:00.000000+00:00"
			}
			for name := range row {
				if name != "rid" && s.chance(4) {
					delete(row, name)
				}
			}
			if s.chance(5) {
				row["doc"] = s.pick(`[`, `{}`, `[1]`, `null`)
			}
			memories.rows = append(memories.rows, row)
			about.rows = append(about.rows, predicate.Row{"rid": fmt.Sprint(i), "memory": fmt.Sprint(s.IntN(60)), "who": s.pick(people...)})
		}
		before := r.shownCount
		first := true
		for range tier.Count(1, 2, 3) {
			s.registry = s.drawRecords(24, people, []string{"*", "*", "*", "si:ash", "ctx:a"},
				[]string{"*", "*", "*", "table:" + s.name + ".memories", "table:" + s.name + ".memories",
					"table:" + s.name + ".memories", "table:other", "row:1", "row:" + s.name + ".memories:1", "row:" +
						s.name + ".memories:7", "row:" + s.name + ".memories:30", "ctx:a", "ctx:ESSENTIAL", "ctx:other", "ctx:b"})
			if strings.Contains(rule, "decay") {
				s.addCountdowns(people)
			}
			if first {
				r.run(r.super, s.sql())
				first = false
			}
			pol := r.migrate(s, strings.NewReplacer("RULE", rule, "SCHEMA", s.name).Replace(`version: 1
attributes: { user: { type: text, source: credential }, contexts: { type: "text[]", source: credential } }
tables:
  SCHEMA.memories: { rows: [ consent: `+strings.ReplaceAll(rule, "SCHEMA", s.name)+` ] }
  SCHEMA.about: { rows: open }
`))
			for range 2 {
				attributes := map[string]string{"user": s.pick(people...),
					"contexts": predicate.WriteArray(sessionContexts[askedCount%len(sessionContexts)])}
				askedCount++
				if s.chance(5) {
					delete(attributes, s.pick("user", "contexts"))
				}
				r.checkCaller(s, pol, attributes)
				m, _ := pol.Table(s.relation(memories))
				r.checkEmptiedViews(s, memories, m, "SELECT rid FROM "+s.relation(memories).SQL(), r.world(s, attributes))
			}
			if t.Failed() {
				t.Fatalf("rule %s\nregistry %v", rule, s.registry)
			}
		}
		if shownCount := r.shownCount - before; shownCount < 15 {
			t.Errorf("%s: %d rows shown: the sample says little", rule, shownCount)
		}
	}
}
