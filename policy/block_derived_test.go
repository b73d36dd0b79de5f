package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

const derivedSchema = `
CREATE TABLE people (id uuid PRIMARY KEY, consent text);
CREATE TABLE memories (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid, person_id uuid REFERENCES people, body text,
  derived_from uuid REFERENCES memories ON DELETE SET NULL);
CREATE INDEX ON memories (user_id); CREATE INDEX ON memories (person_id);
CREATE TABLE summaries (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid, body text, sources uuid[], memory_id uuid);
CREATE TABLE summary_sources (summary_id uuid REFERENCES summaries ON DELETE CASCADE, memory_id uuid, note text, PRIMARY KEY (summary_id, memory_id));
CREATE TABLE digests (id uuid PRIMARY KEY, summary_id uuid REFERENCES summaries ON DELETE CASCADE, sources jsonb);
CREATE TABLE parts (whole uuid REFERENCES summaries ON DELETE CASCADE, part uuid REFERENCES summaries ON DELETE CASCADE, PRIMARY KEY (whole, part));
CREATE TABLE pairs (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE loose (id uuid, from_id uuid);
`

const derivedHead = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  people: { rows: [ status: { column: consent, is: granted } ] }
`

func derivedCompile(t *testing.T, snap *catalog.Snapshot, text string) (*policy.Policy, string) {
	t.Helper()
	doc, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		return nil, err.Error()
	}
	p, err := policy.Compile(doc, snap)
	if err != nil {
		return nil, err.Error()
	}
	var warnings []string
	for _, w := range p.Warnings() {
		warnings = append(warnings, w.Error())
	}
	return p, strings.Join(warnings, "\n")
}

func derivedSnapshot(t *testing.T, extraSQL ...string) *catalog.Snapshot {
	t.Helper()
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(t.Context(), derivedSchema+strings.Join(extraSQL, "")).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// A policy for derived rows is refused if it cannot be enforced, or if it would let agents remove the source of a row.
func TestDerivedIsRefused(t *testing.T) {
	snap := derivedSnapshot(t)
	const memories = "  memories: { rows: [ own: { column: user_id, is: user }, consent: { every: [ people: { id: " +
		"person_id } ], status: consent, is: granted } ]%s }\n"
	baseType := strings.Replace(memories, "%s", "", 1)
	memoriesWithWrite := func(writeRule string) string { return strings.Replace(memories, "%s", ", write: "+writeRule, 1) }
	const linkedBlock = "derived: { from: [ summary_sources: { summary_id: id }, memories: { id: memory_id } ] }"
	linksWithWrite := func(writeRule string) string {
		return "  summary_sources: { rows: [ visible: { memories: { id: memory_id } } ], write: " + writeRule + " }\n"
	}
	summariesByColumn := func(rows, accept string) string {
		return "  summary_sources: { rows: [ visible: { summaries: { id: summary_id }" +
			rows + " } ], write: { commands: [insert], columns: [summary_id, memory_id], accept: " + accept + " } }\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"by links":          {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }", ""},
		"by a list":         {baseType + "  summaries: { rows: [ derived: { sources: sources, of: memories } ] }", ""},
		"by a list in JSON": {baseType + "  digests: { rows: [ derived: { sources: sources, of: memories } ] }", ""},
		"of itself": {
			"  memories: { rows: [ derived: { from: { memories: { id: derived_from } }, unless: [ sql: \"body = " +
				"'x'\" ] } ] }", "asks for nothing but whose a row is"},
		"forgets": {
			"  memories: { rows: [ own: { column: user_id, is: user }, derived: { from: { memories: { id: " +
				"derived_from } }, unless: [ sql: \"derived_from IS NULL\" ] } ] }", "makes rows of public.memories forget"},
		"agents forget": {
			"  memories: { rows: [ own: { column: user_id, is: user }, derived: { from: { memories: { id: " +
				"derived_from } }, unless: [ sql: \"derived_from IS NULL\" ] } ], write: { commands: [delete] } }",
			"agents could delete rows of public.memories, and rows of public.memories would forget"},
		"nothing": {"  summaries: { rows: [ derived: {} ] }", "derived needs to know what a row is made from"},
		"both": {baseType +
			"  summaries: { rows: [ derived: { from: { memories: { id: memory_id } }, sources: sources, of: " +
			"memories } ] }", "derived goes by links or by a list, not both"},
		"half a list": {baseType + "  summaries: { rows: [ derived: { sources: sources } ] }", `derived needs "of"`},
		"empty from":  {baseType + "  summaries: { rows: [ derived: { from: [] } ] }", "from is empty"},
		"unknown erasure": {baseType +
			"  summaries: { rows: [ derived: { from: { memories: { id: memory_id } }, on_erase: kep } ] }", `unknown word "kep" for on_erase`},
		"unknown inheritance": {baseType +
			"  summaries: { rows: [ derived: { from: { memories: { id: memory_id } }, inherit: all } ] }", `unknown word "all" for inherit`},
		"not listed": {"  summaries: { rows: [ derived: { from: { memories: { id: memory_id } } } ] }",
			"the policy does not list public.memories"},
		"not listed, with where": {
			"  summaries: { rows: [ derived: { from: { memories: { id: memory_id } }, where: [ consent: { every: " +
				"[ people: { id: person_id } ], status: consent, is: granted } ] } ] }", ""},
		"within any, of itself": {
			"  memories: { rows: [ any: [ sql: \"derived_from IS NULL\", derived: { from: { memories: { id: " +
				"derived_from } } } ] ] }", "rows of public.memories are made from each other: derived cannot stand within another block there"},
		"within any": {baseType + "  summaries: { rows: [ any: [ own: { column: user_id, is: user }, " + linkedBlock + " ] ] }", ""},
		"negated": {baseType +
			"  summaries: { rows: [ not: { derived: { from: { memories: { id: memory_id } } } } ] }", "not speaks of the row's own columns only"},
		"circle": {baseType +
			"  summaries: { rows: [ derived: { from: { digests: { id: memory_id } } } ] }\n  digests: { rows: [ " +
			"derived: { from: { summaries: { id: summary_id } } } ] }",
			"derived goes round in a circle: public.summaries → public.digests → public.summaries"},
		"where, of each other": {
			"  memories: { rows: [ derived: { from: { memories: { id: derived_from } }, where: [ own: { column: " +
				"user_id, is: user } ] } ] }", "where would speak of some of them only"},
		"no primary key": {"  loose: { rows: [ derived: { from: { loose: { id: from_id } } } ] }", "it has no primary key to follow them by"},
		"list of pairs": {
			"  pairs: { rows: open }\n  summaries: { rows: [ derived: { sources: sources, of: pairs } ] }", "public.pairs has no primary key of one column"},
		"no list": {baseType + "  summaries: { rows: [ derived: { sources: user_id, of: memories } ] }",
			"public.summaries.user_id is a uuid (a list is"},
		"types": {baseType + "  summaries: { rows: [ derived: { from: { memories: { id: body } } } ] }", "they do not link"},

		"update of a list": {baseType +
			"  summaries: { rows: [ derived: { sources: sources, of: memories } ], write: { commands: [update], " +
			"columns: [sources] } }", "agents could update public.summaries.sources, which says from what a row was made (list it under immutable)"},
		"no update of a list": {baseType +
			"  summaries: { rows: [ derived: { sources: sources, of: memories } ], write: { commands: [insert, " +
			"update], columns: [body, sources], immutable: [sources] } }", ""},
		"update beside it": {baseType +
			"  summaries: { rows: [ any: [ status: { column: body, is: raw }, derived: { sources: sources, of: " +
			"memories } ] ], write: { commands: [update], columns: [body] } }", "agents could update public.summaries.body"},
		"delete of links": {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }\n" +
			linksWithWrite("{ commands: [delete] }"), "agents could delete rows of public.summary_sources"},
		"update of links": {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }\n" +
			linksWithWrite("{ commands: [update], columns: [memory_id], accept: [conflicts] }"), "agents could update rows of public.summary_sources"},
		"a note of links": {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }\n" +
			linksWithWrite("{ commands: [update], columns: [note] }"), ""},
		"links to hidden rows": {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }\n" +
			linksWithWrite("{ commands: [insert], columns: [summary_id, memory_id], accept: [conflicts, references] }"),
			"agents could say of rows of public.summaries that they do not see that they were made from others"},
		"links to rows they see": {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }\n" +
			linksWithWrite("{ commands: [insert], columns: [summary_id, memory_id], accept: [conflicts] }"), ""},
		"links that go along": {
			"  summaries: { rows: [ own: { column: user_id, is: user }, derived: { from: [ parts: { whole: id }, " +
				"summaries: { id: part } ], unless: [ status: { column: body, is: x } ] } ], write: { commands: " +
				"[delete] } }", "agents could delete rows of public.summaries, and with them what says from what rows of public.summaries were made"},
		"links the owner drops": {
			"  summaries: { rows: [ own: { column: user_id, is: user }, status: { column: body, is: x }, derived: " +
				"{ from: [ parts: { whole: id }, summaries: { id: part } ] } ] }",
			"whoever deletes a row of public.summaries takes its row of public.parts along"},
		"a key once more": {
			memoriesWithWrite("{ commands: [insert], columns: [id, user_id, body], accept: [conflicts] }") +
				"  summaries: { rows: [ " + linkedBlock + " ] }", "agents could give a new row of public.memories the key of one that is gone"},
		"links by their rule": {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }\n" +
			summariesByColumn("", "[conflicts, references]"), ""},
		"links by a weaker rule": {baseType + "  summaries: { rows: [ " + linkedBlock + " ] }\n" +
			summariesByColumn(", rows: [ status: { column: body, is: x } ]",
				"[conflicts, references]"), "agents could say of rows of public.summaries that they do not see that they were made from others"},
		"a key by a stamp": {
			memoriesWithWrite("{ commands: [insert], columns: [user_id, body], stamp: { id: { attribute: user } }, accept: "+
				"[conflicts] }") + "  summaries: { rows: [ " + linkedBlock + " ] }", ""},
		"a key by some stamps": {
			memoriesWithWrite("{ commands: [insert], columns: [user_id, body], stamp: { id: { attribute: user, unless: [ "+
				"status: { column: body, is: x } ] } }, accept: [conflicts] }") + "  summaries: { rows: [ " +
				linkedBlock + " ] }", "agents could give a new row of public.memories the key of one that is gone"},
		"a key by default": {memoriesWithWrite("{ commands: [insert], columns: [user_id, body] }") + "  summaries: { rows: [ " + linkedBlock +
			" ] }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := derivedCompile(t, snap, derivedHead+c.text)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A foreign key ensures that the key of a deleted source row is not used again, but only if PostgreSQL has checked it
// for every row.
func TestKeysOfSourcesThatAreGone(t *testing.T) {
	const text = `  memories: { rows: [ own: { column: user_id, is: user }, status: { column: body, is: x } ],
    write: { commands: [insert], columns: [id, user_id, body], accept: [conflicts] } }
  summaries: { rows: [ derived: { from: [ summary_sources: { summary_id: id }, memories: { id: memory_id } ] } ] }`
	for _, c := range []struct {
		keyState string
		since    int
		holds    bool
	}{{"", 15, true}, {"NOT VALID", 15, false}, {"NOT ENFORCED", 18, false}} {
		t.Run("foreign key "+c.keyState, func(t *testing.T) {
			if pgtest.Binaries().Major < c.since {
				t.Skipf("NOT TESTED: PostgreSQL %d has it (make matrix)", c.since)
			}
			snap := derivedSnapshot(t, "ALTER TABLE summary_sources ADD FOREIGN KEY (memory_id) REFERENCES memories "+c.keyState)
			_, got := derivedCompile(t, snap, derivedHead+text)
			if isRefused := strings.Contains(got, "agents could give a new row of public.memories the key of one that is gone"); isRefused == c.holds {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Policy.Derivations returns what a sweep needs to delete derived rows. Each part of a derived block changes the
// policy's version.
func TestDerivations(t *testing.T) {
	snap := derivedSnapshot(t)
	versions := map[string]string{}
	for _, block := range []string{
		"{ from: [ summary_sources: { summary_id: id }, memories: { id: memory_id } ] }",
		"{ from: [ summary_sources: { summary_id: id }, memories: { id: memory_id } ], on_erase: keep }",
		"{ from: [ summary_sources: { summary_id: id }, memories: { id: memory_id } ], inherit: everything }",
		"{ from: [ summary_sources: { summary_id: id }, memories: { id: memory_id } ], unless: [ sql: \"body = 'x'\" ] }",
		"{ from: [ summary_sources: { summary_id: id }, memories: { id: memory_id } ], where: [ status: { column: body, is: x } ] }",
		"{ from: { memories: { id: memory_id } } }",
		"{ sources: sources, of: memories }",
	} {
		p, got := derivedCompile(t, snap, derivedHead+
			"  memories: { rows: [ own: { column: user_id, is: user }, status: { column: body, is: y } ] }\n  "+
			"summaries: { rows: [ any: [ own: { column: user_id, is: user }, derived: "+block+" ] ] }")
		if p == nil {
			t.Fatal(got)
		}
		if otherBlock, isRepeated := versions[p.Version()]; isRepeated {
			t.Errorf("%s and %s have one version", block, otherBlock)
		}
		versions[p.Version()] = block
		derivations := p.Derivations()
		if len(derivations) != 1 || derivations[0].Table.Name.Name != "summaries" ||
			derivations[0].Origin.SourceTable().Name.Name != "memories" || derivations[0].DeleteWithSource == strings.Contains(block, "keep") {
			t.Errorf("%s: %+v", block, derivations)
		}
	}
}
