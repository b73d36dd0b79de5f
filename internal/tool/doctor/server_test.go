package doctor

import "testing"

// On a server version whose planner reads statistics of hidden rows in partitions, agents of partitioned tables are not
// served.
func TestPlannerVersions(t *testing.T) {
	for _, c := range []struct {
		version       int
		hasPartitions bool
		want          Severity
	}{
		{150013, true, SeverityUnsafe}, {150013, false, SeverityWarning}, {150014, true, ""}, {160009, true, SeverityUnsafe}, {
			160010, true, ""}, {170000, true, SeverityUnsafe}, {170005, false, SeverityWarning}, {170006, true, ""}, {180000, true, ""}, {190000, true, ""},
	} {
		found := checkPlanner(c.version, c.hasPartitions)
		if len(found) > 1 || len(found) == 0 && c.want != "" ||
			len(found) == 1 && (found[0].Severity != c.want || found[0].ID != "server_minor" || found[0].Fix == "") {
			t.Errorf("%d, parts %v: %v", c.version, c.hasPartitions, found)
		}
	}
}
