package observe

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The report begins with the statements whose results would change most; refusals and changed rows count alike. Among
// equal ones, the more frequent statement comes first.
func TestReportOrder(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(audit.Config{Mode: audit.ModeBuffered, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		shape                                   string
		executions, refusedCount, differingRows int
	}{
		{shape: "rare", executions: 1}, {shape: "often", executions: 9}, {shape: "refused", executions: 2, refusedCount: 2},
		{shape: "differs", executions: 8, differingRows: 1}, {shape: "both", executions: 3, refusedCount: 1, differingRows: 2},
	} {
		observation := audit.Observation{Agent: "ana", Database: "app", Fingerprint: s.shape, Tag: "SELECT", Tables: []string{"public.t"}}
		for i := range s.executions {
			observation := observation
			if observation.Session = "s"; i < s.refusedCount {
				observation.SQLState = "42501"
			}
			log.Observation(observation)
		}
		for range s.differingRows {
			observation := observation
			observation.Compared = &audit.Comparison{Rows: 2, VisibleRows: 1, Differs: true}
			log.Observation(observation)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	if err := log.Close(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := ReadReport(audit.Folder(dir), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var shapes []string
	for _, s := range r.Statements {
		shapes = append(shapes, s.Fingerprint)
	}
	if got := strings.Join(shapes, ", "); got != "both, refused, differs, often, rare" {
		t.Errorf("the order is %s", got)
	}
}
