package doctor

import "context"

// checkObserved names the tables whose rule the policy only observes and does not enforce, so agents read all their
// rows.
func checkObserved(_ context.Context, x *examination) ([]Finding, error) {
	var names []string
	for _, table := range x.Policy.Observed() {
		names = append(names, table.Relation.Name.String())
	}
	if len(names) == 0 {
		return nil, nil
	}
	return []Finding{{"observed", SeverityWarning, "NOT PROTECTED, since the policy only observes them: " +
		nameList(names) +
		"; agents read every row of them",
		"pgconsent observe report tells what enforcing them would change; then take observe out of the policy and " +
			"run pgconsent migrate."}}, nil
}
