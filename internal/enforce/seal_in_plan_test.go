package enforce

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// If a session does not share its backend, its seal says so, and the plan of a prepared statement contains the seal.
func TestSealGoesIntoPlans(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	v := c.UseRowSecurity(t.Context(), c.Decide(t.Context(), titles, verdict.Extended), nil)
	if !v.IsAllowed() || v.PreparedText() != v.Text+verdict.PreparedMark {
		t.Fatalf("%v: %s", v.Refusal, v.PreparedText())
	}
	if _, err := c.server.Prepare(t.Context(), "titles", v.PreparedText(), nil); err != nil {
		t.Fatal(err)
	}
	if r := c.server.ExecPrepared(t.Context(), "titles", nil, nil, nil).Read(); r.Err != nil || len(r.Rows) != 2 {
		t.Errorf("%d rows, %v", len(r.Rows), r.Err)
	}
	results, err := c.server.Exec(t.Context(), "EXPLAIN (VERBOSE, COSTS OFF) EXECUTE titles").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for _, row := range results[0].Rows {
		plan.Write(row[0])
	}
	if !strings.Contains(plan.String(), c.sealed.Value) {
		t.Error("the seal is not in the plan")
	}
}
