package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// minVersion is the oldest version that has security_invoker views and whose catalog functions pgconsent has
// classified.
const minVersion = 150000

func checkServer(ctx context.Context, x *examination) ([]Finding, error) {
	var version, encoding, strings string
	var standby bool
	err := x.conn.QueryRow(ctx, `SELECT pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_encoding'),
		coalesce((SELECT s.reset_val FROM pg_catalog.pg_settings s WHERE s.name = 'standard_conforming_strings'), ''),
		pg_catalog.pg_is_in_recovery()`).
		Scan(&version, &encoding, &strings, &standby)
	if err != nil {
		return nil, err
	}
	var found []Finding
	if n, err := strconv.Atoi(version); err != nil || n < minVersion {
		found = append(found, Finding{"server_version", SeverityUnsafe, "the server is older than PostgreSQL 15",
			"Upgrade the server to version 15 or later."})
	}
	if n, err := strconv.Atoi(version); err == nil {
		found = append(found, checkPlanner(n, x.Policy != nil &&
			slices.ContainsFunc(x.Policy.Tables(), func(table *policy.Table) bool {
				return table.Relation.HasChildren || table.Relation.Kind == catalog.PartitionedTable
			}))...)
	}
	if encoding != "UTF8" {
		found = append(found, Finding{"server_encoding", SeverityUnsafe, "the database's encoding is " + encoding +
			", not UTF8",
			"Move the data to a database created with ENCODING 'UTF8'."})
	}
	if standby {
		found = append(found, Finding{"standby", SeverityUnsafe,
			"the server is a standby: a withdrawal is in force on the primary, and acknowledged, before it has come here",
			"Let upstream name the primary, or promote this server: SELECT pg_promote()."})
	}
	if strings != "on" {
		found = append(found, Finding{"standard_conforming_strings", SeverityWarning,
			"standard_conforming_strings is off by default; agents' sessions have it on, others read '\\' otherwise",
			"ALTER DATABASE … RESET standard_conforming_strings, or set it on in postgresql.conf."})
	}
	return found, nil
}

// fixedMinorVersions are, by major version, the minor releases that fixed CVE-2025-8713. Before, the planner ran
// operators of a statement on statistics of hidden rows in partitions and child tables. A LIKE pattern that raises an
// error could reveal frequent values of hidden rows.
var fixedMinorVersions = map[int]int{15: 14, 16: 10, 17: 6}

func checkPlanner(version int, hasPartitions bool) []Finding {
	major, minor := version/10000, version%10000
	fixedIn, isAffected := fixedMinorVersions[major]
	if !isAffected || minor >= fixedIn {
		return nil
	}
	f := Finding{"server_minor", SeverityWarning,
		fmt.Sprintf("PostgreSQL %d.%d runs operators of agents on statistics of hidden rows where a table has "+
			"partitions or children (CVE-2025-8713)", major, minor),
		fmt.Sprintf("Upgrade the server to %d.%d or later.", major, fixedIn)}
	if hasPartitions {
		f.Severity = SeverityUnsafe
	}
	return []Finding{f}
}
