package doctor

import (
	"context"
	"fmt"
	"strings"
)

// checkWaitingColumns names tables that have columns added since pgconsent migrate last ran. Agents do not see these
// columns.
func checkWaitingColumns(_ context.Context, x *examination) ([]Finding, error) {
	var found []Finding
	for _, r := range x.Snapshot.Relations() {
		if len(r.WaitingColumns) > 0 {
			found = append(found, Finding{"waiting", SeverityWarning,
				fmt.Sprintf("%s has columns since the last pgconsent migrate, which do not exist for agents: %s",
					r.Name, strings.Join(r.WaitingColumns, ", ")),
				"Run pgconsent migrate, and agents see them as the policy says."})
		}
	}
	return found, nil
}
