package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// plainTablesSQL has a table that agents write, and alters big so that neither runs code of the owner's.
const plainTablesSQL = `ALTER TABLE big DROP COLUMN co; CREATE TABLE aim (id int PRIMARY KEY, owner text NOT NULL, x int, note text);
INSERT INTO aim VALUES (1, 'me', 1, 'a'), (2, 'me', 0, 'b'), (3, 'other', 2, 'c');`

const plainTablesPolicy = "  aim: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update, delete] } }\n"

// writesWithSameCondition returns writes that evaluate the conditions of a SELECT.
func writesWithSameCondition(sql string) (out []string) {
	if !strings.HasPrefix(sql, "SELECT ") && !strings.HasPrefix(sql, "WITH ") {
		return nil
	}
	if condition, ok := strings.CutPrefix(sql, hidden); ok {
		out = append(out, "UPDATE big SET note = 'q' WHERE a BETWEEN 123 AND 123 AND "+condition,
			"DELETE FROM big WHERE a BETWEEN 123 AND 123 AND "+condition+" RETURNING id")
	}
	if from, ok := strings.CutPrefix(sql, "SELECT count(*) FROM "); ok && !strings.Contains(sql, "GROUP BY") {
		out = append(out, "UPDATE aim SET note = 'f' FROM "+from, "DELETE FROM aim USING "+from+" RETURNING aim.id")
	}
	return append(out, "UPDATE aim SET note = 's' WHERE EXISTS ("+sql+")",
		"UPDATE aim SET note = ARRAY("+sql+")::text", "DELETE FROM aim WHERE x = 9 OR EXISTS ("+sql+") RETURNING EXISTS ("+sql+")")
}

// A condition of a write must reveal no more of hidden rows than the same condition of a SELECT does: nothing, with a
// hardened plan or without.
func TestConditionsOfWritesTellNothing(t *testing.T) {
	tier.All(t)
	for m, mode := range modesOf(instance.Auto, instance.Both) {
		unhardened, writeCount := 0, 0
		for k, f := range reachCases {
			if pgtest.Binaries().Major < f.minVersion || !tier.IsPicked(m+k, 36) || strings.Contains(f.sql, "fcomp") {
				continue
			}
			var statements []string
			for _, sql := range f.statements {
				statements = append(statements, writesWithSameCondition(sql)...)
			}
			if len(statements) == 0 {
				continue
			}
			statements = append(statements, "SELECT id, x, note FROM aim ORDER BY id", "SELECT id, note FROM big ORDER BY id")
			t.Run(fmt.Sprintf("%s, %s", f.name, mode.Name), func(t *testing.T) {
				got, decisions := askTwins(t, mode, costlyRulePolicy+plainTablesPolicy+f.policy, plainTablesSQL+f.sql, f.afterSQL, f.twinSQL, statements)
				for k, sql := range statements {
					if got[0][k] != got[1][k] {
						t.Errorf("%s {%s}\n   %s\n   %s", sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
					}
					if strings.HasSuffix(decisions[k], "hardened: ") {
						unhardened++
					}
					writeCount++
				}
			})
		}
		t.Logf("%s: %d writes, %d of them unhardened", mode.Name, writeCount, unhardened)
	}
}

// probeFunctions are functions of the owner's with a query that runs with the writer's rights. The query fails if it
// reaches the hidden row that the first twin has.
const probeFunctions = `
CREATE FUNCTION asks() RETURNS void LANGUAGE plpgsql AS $$ BEGIN IF row_security_active('public.big') THEN EXECUTE 'SELECT FROM public.big ` +
	`WHERE a BETWEEN 123 AND 123 AND b = (SELECT 1 / min(s.n) FROM public.small s)'; END IF; END $$;
CREATE FUNCTION probe(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN n; END $$;
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.asks(); IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$;
CREATE DOMAIN probed AS int CHECK (probe(1) > 0);
CREATE TYPE level AS ENUM ('low', 'high');
CREATE FUNCTION to_level(int) RETURNS level LANGUAGE plpgsql AS $$ BEGIN PERFORM public.asks(); RETURN 'low'; END $$;
CREATE CAST (int AS level) WITH FUNCTION to_level(int) AS ASSIGNMENT;
CREATE FUNCTION compared(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN btint4cmp($1, $2); END $$;
CREATE OPERATOR CLASS probing FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared(int, int);
CREATE TYPE spans AS RANGE (SUBTYPE = int, SUBTYPE_OPCLASS = probing);
CREATE TYPE grade AS ENUM ('low', 'high');
CREATE FUNCTION compared(grade, grade) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN enum_cmp($1, $2); END $$;
CREATE OPERATOR CLASS grades DEFAULT FOR TYPE grade USING btree AS FUNCTION 1 compared(grade, grade);
CREATE TYPE code AS ENUM ('c1', 'c2');
CREATE FUNCTION code_int(code) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN substr($1::text, 2)::int; END $$;
CREATE CAST (code AS bigint) WITH FUNCTION code_int(code) AS IMPLICIT;
CREATE TABLE coded (id bigint PRIMARY KEY); INSERT INTO coded VALUES (1), (2);
CREATE EXTENSION cube; CREATE EXTENSION earthdistance;
CREATE OR REPLACE FUNCTION earth() RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN 6378168; END $$;
`

// ownersCodeTables are tables whose writes run some code of the owner's. Each has further DDL, and the statements that
// write it.
var ownersCodeTables = []struct {
	name, columns, sql string
	policy             string // the section write of the table's policy
	statements         []string
}{
	{name: "trigger_of_updates", sql: "CREATE TRIGGER t BEFORE UPDATE ON T FOR EACH ROW EXECUTE FUNCTION fire()",
		statements: []string{"UPDATE T SET note = 'x' WHERE id = 1", "UPDATE T SET note = 'y' RETURNING note"}},
	{name: "trigger_of_deletes", sql: "CREATE TRIGGER t AFTER DELETE ON T FOR EACH STATEMENT EXECUTE FUNCTION fire()",
		statements: []string{"DELETE FROM T WHERE id = 1"}},
	{name: "trigger_that_does_more", columns: ", at timestamptz",
		sql: "CREATE FUNCTION stamp_and_ask() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.asks(); " +
			"NEW.at = now(); RETURN NEW; END $$; CREATE TRIGGER t BEFORE UPDATE ON T FOR EACH ROW EXECUTE " +
			"FUNCTION stamp_and_ask()", statements: []string{"UPDATE T SET note = 'x' WHERE id = 1"}},
	{name: "trigger_when",
		sql: "CREATE TRIGGER t BEFORE UPDATE ON T FOR EACH ROW WHEN (probe(1) > 0) EXECUTE FUNCTION " +
			"suppress_redundant_updates_trigger()", statements: []string{"UPDATE T SET note = 'x' WHERE id = 1"}},
	{name: "constraint_trigger",
		sql: "CREATE CONSTRAINT TRIGGER t AFTER UPDATE ON T DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW EXECUTE " +
			"FUNCTION fire()", statements: []string{"UPDATE T SET note = 'x' WHERE id = 1"}},
	{name: "checked", columns: ", CHECK (probe(x) IS NOT NULL)", statements: []string{"UPDATE T SET note = 'x' WHERE id = 1"}},
	{name: "generated", columns: ", g int GENERATED ALWAYS AS (probe(x)) STORED", statements: []string{"UPDATE T SET x = 7 WHERE id = 1"}},
	{name: "indexed", sql: "CREATE INDEX ON T (probe(x))", statements: []string{"UPDATE T SET x = 7 WHERE id = 1"}},
	{name: "indexed_where", sql: "CREATE INDEX ON T (id) WHERE probe(x) > 0", statements: []string{"UPDATE T SET x = 7 WHERE id = 1"}},
	{name: "compared_by_others", sql: "CREATE INDEX ON T (x probing)",
		policy: "accept: [conflicts, values, references]", statements: []string{"UPDATE T SET x = 7 WHERE id = 1"}},
	{name: "domain", columns: ", d probed", statements: []string{"UPDATE T SET d = 5 WHERE id = 1", "UPDATE T SET (note, d) = ('x', x) WHERE id = 1"}},
	{name: "by_default", columns: ", d int DEFAULT probe(1)",
		statements: []string{"UPDATE T SET d = DEFAULT WHERE id = 1", "UPDATE T SET (d, note) = ROW(DEFAULT, 'x') WHERE id = 1"}},
	{name: "cast_as_assigned", columns: ", l level", statements: []string{"UPDATE T SET l = x WHERE id = 1"}},
	{name: "owners_policy",
		sql: "ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON T AS RESTRICTIVE FOR UPDATE USING " +
			"(true) WITH CHECK (probe(x) > 0)", statements: []string{"UPDATE T SET note = 'x' WHERE id = 1"}},
	{name: "cascades", sql: "CREATE TABLE part_of_T (id int PRIMARY KEY, t int REFERENCES T ON DELETE CASCADE); " +
		"INSERT INTO part_of_T VALUES (1, 1); CREATE TRIGGER t AFTER DELETE ON part_of_T FOR EACH ROW EXECUTE " +
		"FUNCTION fire()", policy: "accept: [references]", statements: []string{"DELETE FROM T WHERE id = 1"}},
	{name: "cascades_on",
		sql: "CREATE TABLE part_of_T (id int PRIMARY KEY, t int REFERENCES T ON DELETE CASCADE); INSERT INTO " +
			"part_of_T VALUES (1, 1); CREATE TABLE leaf_of_T (id int PRIMARY KEY, p int REFERENCES part_of_T ON " +
			"DELETE SET NULL); INSERT INTO leaf_of_T VALUES (1, 1); CREATE TRIGGER t AFTER UPDATE ON leaf_of_T FOR EACH ROW EXECUTE FUNCTION fire()",
		policy: "accept: [references]", statements: []string{"DELETE FROM T WHERE id = 1"}},
	{name: "sets_null", sql: "CREATE TABLE part_of_T (id int PRIMARY KEY, t int REFERENCES T ON DELETE SET NULL); " +
		"INSERT INTO part_of_T VALUES (1, 1); CREATE TRIGGER t AFTER UPDATE ON part_of_T FOR EACH ROW EXECUTE " +
		"FUNCTION fire()", policy: "accept: [references]", statements: []string{"DELETE FROM T WHERE id = 1"}},
	{name: "sets_default",
		sql: "CREATE TABLE part_of_T (id int PRIMARY KEY, t int DEFAULT 2 REFERENCES T ON DELETE SET DEFAULT); " +
			"INSERT INTO part_of_T VALUES (1, 1); CREATE TRIGGER t AFTER UPDATE ON part_of_T FOR EACH ROW EXECUTE " +
			"FUNCTION fire()", policy: "accept: [references]", statements: []string{"DELETE FROM T WHERE id = 1"}},
	{name: "keys_change",
		sql: "CREATE TABLE part_of_T (id int PRIMARY KEY, t int REFERENCES T ON UPDATE CASCADE); INSERT INTO " +
			"part_of_T VALUES (1, 1); CREATE TRIGGER t AFTER UPDATE ON part_of_T FOR EACH ROW EXECUTE FUNCTION fire()",
		policy: "columns: [id, note], accept: [references, conflicts]", statements: []string{"UPDATE T SET id = 11 WHERE id = 1"}},
	{name: "inherited", sql: "CREATE TABLE part_of_T () INHERITS ( T ); INSERT INTO part_of_T VALUES (1, 'me', 1, " +
		"'a'); CREATE TRIGGER t AFTER UPDATE OR DELETE ON part_of_T FOR EACH ROW EXECUTE FUNCTION fire()",
		statements: []string{"UPDATE T SET note = 'x' WHERE id = 1", "DELETE FROM T WHERE id = 1"}},
	{name: "compared_as_a_range", columns: ", CHECK ('[-1000,1000]'::spans @> x)", statements: []string{"UPDATE T SET x = 7 WHERE id = 1"}},
	{name: "generated_of_a_range", columns: ", g bool GENERATED ALWAYS AS ('[-1000,1000]'::spans @> x) STORED",
		statements: []string{"UPDATE T SET x = 7 WHERE id = 1"}},
	{name: "indexed_as_an_array", columns: ", ls grade[]", sql: "CREATE INDEX ON T (ls); UPDATE T SET ls = '{low}'",
		policy: "accept: [conflicts, values, references]", statements: []string{"UPDATE T SET ls = '{high}' WHERE id = 1"}},
	{name: "compared_as_an_array", columns: ", ls grade[] DEFAULT '{low}', CHECK (ls <= '{high,high}')",
		statements: []string{"UPDATE T SET note = 'x' WHERE id = 1"}},
	{name: "cast_of_a_key", columns: ", c code DEFAULT 'c1' REFERENCES coded", policy: "accept: [references]",
		statements: []string{"UPDATE T SET c = 'c2' WHERE id = 1"}},
	{name: "replaced_in_an_extension", columns: ", CHECK (gc_to_sec(x) IS NOT NULL)", statements: []string{"UPDATE T SET x = 7 WHERE id = 1"}},
	{name: "cast_in_parts", columns: ", ls level[] DEFAULT '{low}'",
		statements: []string{"UPDATE T SET ls[1] = x WHERE id = 1", "UPDATE T SET ls = ARRAY[x] WHERE id = 1",
			"UPDATE T SET ls[1:2] = ARRAY[x, x] WHERE id = 1", "UPDATE T SET (ls[1], note) = (x, 'b') WHERE id = 1",
			"UPDATE T SET ls = (SELECT array_agg(n) FROM small) WHERE id = 1"}},
}

// A write that runs the owner's code must get a hardened plan and reveal nothing. A write that runs none must be
// planned like a read.
func TestOwnersCodeInWritesTellsNothing(t *testing.T) {
	tier.All(t)
	schema, policy := probeFunctions, costlyRulePolicy
	var statements []string
	addTable := func(name, columns, sql, write string, ask []string) {
		schema += "CREATE TABLE " + name + " (id int PRIMARY KEY, owner text NOT NULL, x int, note text" + columns +
			"); INSERT INTO " + name + " (id, owner, x, note) VALUES (1, 'me', 1, 'a'), (2, 'other', 2, 'b');" + withTable(sql, name) + ";"
		if write != "" {
			write = ", " + write
		}
		policy += "  " + name + ": { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update, delete]" + write + " } }\n"
		for _, sql := range ask {
			statements = append(statements, withTable(sql, name))
		}
	}
	for _, c := range ownersCodeTables {
		addTable(c.name, c.columns, c.sql, c.policy, c.statements)
	}
	firstPlain := len(statements)
	addTable("nothing", ", at timestamptz",
		"CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.at = now(); RETURN NEW; END $$; "+
			"CREATE TRIGGER s BEFORE UPDATE ON T FOR EACH ROW EXECUTE FUNCTION stamp(); CREATE TRIGGER t BEFORE "+
			"INSERT ON T FOR EACH ROW EXECUTE FUNCTION fire(); CREATE TABLE part_of_T (id int PRIMARY KEY, t int "+
			"REFERENCES T ON DELETE CASCADE); CREATE INDEX ON T (lower(note)) WHERE x > 0; ALTER TABLE T ADD "+
			"CHECK (length(note) < 100)", "accept: [references]",
		[]string{"UPDATE T SET note = 'x' WHERE id = 1",
			"UPDATE T SET (note, x) = (SELECT 'y', n FROM small WHERE n = 3) WHERE note ~ 'x' RETURNING id, 1 / x",
			"DELETE FROM T WHERE id = 1 RETURNING note"})
	for _, mode := range modesOf(instance.Auto, instance.Both) {
		got, decisions := askTwins(t, mode, policy, schema, "", "", statements)
		for k, sql := range statements {
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s {%s}\n   %s\n   %s", mode.Name, sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if strings.Contains(got[0][k], "ERROR 42") || strings.Contains(got[0][k], "ERROR 0A000") || strings.Contains(got[0][k], "ERROR XX000") {
				t.Errorf("%s: %s is not asked: %s", mode.Name, sql, instance.OneLine(got[0][k]))
			}
			if unhardened := strings.HasSuffix(decisions[k], "hardened: "); unhardened != (k >= firstPlain) {
				t.Errorf("%s: %s {%s}", mode.Name, sql, decisions[k])
			}
		}
	}
}

// withTable replaces the name T in a statement by a table's name.
func withTable(sql, name string) string {
	return strings.NewReplacer(" T ", " "+name+" ", "of_T", "of_"+name).Replace(sql)
}

// PostgreSQL calls some functions of other roles implicitly, to compare values or to convert them. Statements that need
// them must get a hardened plan, and the functions must not see the signature.
func TestImplicitComparisonsTellNothing(t *testing.T) {
	tier.All(t)
	const schema = probeFunctions + `CREATE TABLE q (id int PRIMARY KEY, owner text NOT NULL, g grade, gs grade[], s spans, c code);
INSERT INTO q VALUES (1, 'me', 'low', '{low,high}', '[1,2]', 'c1'), (3, 'me', 'high', '{high,low}', '[1,3]', 'c2'), (2, 'other', 'low', '{low}', '[1,4]', 'c1');
CREATE TABLE w (id int PRIMARY KEY, owner text NOT NULL, c code, b bigint); INSERT INTO w VALUES (1, 'me', 'c1', 1), (2, 'me', 'c1', 2);`
	policy := costlyRulePolicy + "  q: { rows: [ { own: { column: owner, is: user } } ] }\n  w: { rows: [ { own: { " +
		"column: owner, is: user } } ], write: { commands: [delete] } }\n"
	statements := []string{
		"SELECT id FROM q WHERE gs < '{high,high}'", "SELECT id FROM q ORDER BY gs", "SELECT DISTINCT gs FROM q",
		"SELECT max(gs) FROM q", "SELECT row_number() OVER (ORDER BY gs) FROM q", "SELECT id FROM q WHERE greatest(g, 'high') = 'high'",
		"SELECT id FROM q WHERE s @> 1", "SELECT id FROM q ORDER BY s", "SELECT s && '[1,2]' FROM q",
		"SELECT count(*) FROM q JOIN w ON q.c = w.b", "SELECT id FROM q WHERE c > 5", "SELECT abs(c) FROM q",
		"SELECT sum(c) FROM q", "SELECT id FROM w WHERE b IN (SELECT c FROM q)",
		"SELECT id FROM q LIMIT (SELECT c FROM w LIMIT 1)", "SELECT abs('c1'::code)", "DELETE FROM w WHERE b = c AND id = 2",
	}
	for _, mode := range modesOf(instance.Auto, instance.Both) {
		got, decisions := askTwins(t, mode, policy, schema, "", "", statements)
		for k, sql := range statements {
			if got[0][k] != got[1][k] || strings.HasPrefix(got[0][k], "ERROR") {
				t.Errorf("%s: %s {%s}\n   %s\n   %s", mode.Name, sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if strings.HasSuffix(decisions[k], "hardened: ") || strings.HasPrefix(decisions[k], "signed") {
				t.Errorf("%s: %s {%s}", mode.Name, sql, decisions[k])
			}
		}
	}
}
