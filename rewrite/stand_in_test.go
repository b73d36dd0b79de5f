package rewrite

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// pgconsent answers some PostgreSQL functions by functions of its own. They are called even if the policy lists
// functions of the same name, which an unqualified call might otherwise mean.
func TestStandInsAnswerDespiteListedFunctions(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	var names, listedFunctions []string
	var schema strings.Builder
	for _, f := range catalog.ShadowFunctions() {
		if _, isStandIn := catalog.ShadowFunction(f.Name); isStandIn && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
			listedFunctions = append(listedFunctions, "public."+f.Name+": { reads: nothing }")
			schema.WriteString("CREATE FUNCTION public." + f.Name + "(VARIADIC int[]) RETURNS int LANGUAGE sql RETURN 1;")
		}
	}
	if _, err := conn.PgConn().Exec(context.Background(), schema.String()).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("p.yaml",
		[]byte("version: 1\nattributes: { user: { type: uuid, source: credential } }\ntables: { memories: { rows: "+
			"[ own: { column: user_id, is: user } ] } }\nfunctions: { "+strings.Join(listedFunctions, ", ")+" }\n"))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	r := New(snap, pol, InjectedMode)
	for _, f := range catalog.ShadowFunctions() {
		if !slices.Contains(names, f.Name) || !snap.HasCatalogFunction(f.Name) {
			continue
		}
		arguments := strings.TrimSuffix(strings.Repeat("NULL, ", len(f.Args)), ", ")
		for _, call := range []string{f.Name + "(" + arguments + ")", "pg_catalog." + f.Name + "(" + arguments + ")",
			"(" + f.Name + "(" + arguments + "))::text", `"` + f.Name + `"` + "(" + arguments + ")"} {
			for _, sql := range []string{"SELECT " + call, "SELECT x FROM " + f.Name + "(" + arguments + ") AS x",
				"SELECT id FROM memories WHERE " + call + " IS NULL"} {
				// A plan would contain the body of an inlined function, so EXPLAIN of such a call shows no plan.
				if result, refusal := r.Rewrite("EXPLAIN "+sql, false); refusal == nil && !strings.Contains(result.Text, "plan not shown") {
					t.Errorf("EXPLAIN %s goes out as %s", sql, result.Text)
				}
				if result, refusal := r.Rewrite(sql, false); refusal == nil && !strings.Contains(result.Text, catalog.ShadowSchema+"."+f.Name+"(") {
					t.Errorf("%s goes out as %s", sql, result.Text)
				}
			}
		}
		if result, refusal := r.Rewrite("SELECT public."+f.Name+"("+arguments+")", false); refusal != nil ||
			!strings.Contains(result.Text, "public."+f.Name+"(") {
			t.Errorf("the policy's own %s: %v", f.Name, refusal)
		}
	}
	if len(names) < 25 {
		t.Errorf("%d stand-ins were tried", len(names))
	}
}
