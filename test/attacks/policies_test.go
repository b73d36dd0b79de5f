package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// policyFunctions are functions that read tables, for permissive policies of the owner's. PostgreSQL drops such
// policies beside pgconsent's own before it runs anything.
const policyFunctions = `
CREATE FUNCTION steady(n int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM public.asks(); RETURN n; END $$;
CREATE FUNCTION free(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM public.asks(); RETURN n; END $$;
CREATE FUNCTION definer(n int) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT public.probe($1)';
CREATE FUNCTION pathed(n int) RETURNS int LANGUAGE sql STABLE SET search_path = public AS 'SELECT public.probe(1)';
CREATE FUNCTION nested(n int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM public.small WHERE n > public.probe(1))';
CREATE FUNCTION uid() RETURNS text LANGUAGE sql STABLE
  AS $$ SELECT coalesce(nullif(current_setting('request.uid', true), ''), nullif(current_setting('request.claims', true), '')::jsonb ->> 'sub') $$;
`

var ownersPolicyCases = []struct{ name, sql string }{
	{"steady", "CREATE POLICY a ON T USING (steady(1) > 0) WITH CHECK (steady(x) > 0)"},
	{"selected", "CREATE POLICY a ON T USING ((SELECT steady(1)) > x); CREATE POLICY b ON T FOR UPDATE USING (x > " +
		"(SELECT free(2))) WITH CHECK (steady(3) > 0)"},
	{"free", "CREATE POLICY a ON T FOR SELECT USING (free(1) > 0 OR free(x) > 1); CREATE POLICY b ON T FOR DELETE USING (free(1) > 0)"},
	{"definer", "CREATE POLICY a ON T USING (definer(1) > 0 AND definer(x) > 0)"},
	{"pathed", "CREATE POLICY a ON T USING (CASE WHEN pathed(1) > 0 THEN pathed(x) > 0 END)"},
	{"nested", "CREATE POLICY a ON T USING (nested(1)); CREATE POLICY b ON T USING (nested(x))"},
	{"uid", "CREATE POLICY a ON T USING (uid() = owner); CREATE POLICY b ON T USING ((SELECT uid()) = owner)"},
	{"of_another_role", "CREATE POLICY a ON T AS RESTRICTIVE TO pg_monitor USING (probe(1) > 0); CREATE POLICY b " +
		"ON T TO pg_monitor USING (probe(1) > x)"},
}

// Permissive policies of the owner's, and policies for other roles, must run nothing in agents' statements. A statement
// must be planned as if they did not exist, and answer alike on both twins.
func TestOwnersPoliciesTellNothing(t *testing.T) {
	tier.All(t)
	schema, policy, views := probeFunctions+policyFunctions+plainTablesSQL, costlyRulePolicy+plainTablesPolicy, "views: {"
	var statements []string
	allCases := ownersPolicyCases
	for _, c := range ownersPolicyCases { // PostgreSQL applies policies in the order of their names: these come before pgconsent's.
		c.name, c.sql = "before_"+c.name, strings.NewReplacer("POLICY a", "POLICY z", "POLICY b", "POLICY y").Replace(c.sql)
		allCases = append(allCases, c)
	}
	for _, c := range allCases {
		schema += withTableName("CREATE TABLE T (id int PRIMARY KEY, owner text NOT NULL, x int, note text); INSERT INTO "+
			"T (id, owner, x, note) VALUES (1, 'me', 1, 'a'), (3, 'me', 3, 'c'), (2, 'other', 2, 'b'); ALTER "+
			"TABLE T ENABLE ROW LEVEL SECURITY; CREATE VIEW view_of_T AS SELECT id, x FROM T;"+c.sql+";", c.name)
		policy += withTableName("  T: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [insert, "+
			"update, delete], accept: [conflicts] } }\n", c.name)
		views += withTableName(" view_of_T: {},", c.name)
		for _, sql := range []string{
			"SELECT id FROM T WHERE note LIKE '%a%'", "SELECT id FROM T WHERE x = 1", "SELECT count(*) FROM T",
			"SELECT T.id FROM T JOIN aim USING (id) WHERE T.note LIKE '%a%'", "SELECT id FROM view_of_T WHERE x > 0",
			"SELECT id FROM T WHERE x = 1 FOR UPDATE",
			"UPDATE T SET note = 'x' WHERE note ~ 'a'",
			"UPDATE aim SET note = 'y' FROM T WHERE T.id = aim.id AND T.note ILIKE '%c%'",
			"DELETE FROM T WHERE note LIKE 'zz%'", "DELETE FROM T USING aim WHERE T.id = aim.id AND T.id = 77",
			"INSERT INTO T (id, owner, x, note) VALUES (10, 'me', 10, 'new') RETURNING id",
		} {
			statements = append(statements, withTableName(sql, c.name))
		}
	}
	for _, mode := range modesOf(instance.SignedViews, instance.Auto, instance.Both) {
		got, decisions := askTwins(t, mode, policy+views+" }\n", schema, "", "", statements)
		for k, sql := range statements {
			if got[0][k] != got[1][k] || strings.HasPrefix(got[0][k], "ERROR") {
				t.Errorf("%s: %s {%s}\n   %s\n   %s", mode.Name, sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if !strings.HasPrefix(sql, "INSERT") && !strings.HasSuffix(decisions[k], "hardened: ") {
				t.Errorf("%s: %s {%s}", mode.Name, sql, decisions[k])
			}
		}
	}
}
