package doctor

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/rls"
)

// UnsafeTables is the error of [CheckServing] if every unsafe finding is about certain tables. The rest of the database
// is safe to serve.
type UnsafeTables struct {
	Relations []uint32 // OIDs of the tables
	Cause     error
}

func (e *UnsafeTables) Error() string { return e.Cause.Error() }

// Unwrap returns the error that [UnsafeError] made of the findings.
func (e *UnsafeTables) Unwrap() error { return e.Cause }

// findingsWithTable is like findingsOfQuery, for a query whose second column is the OID of the table that a row is
// about.
func (x *examination) findingsWithTable(ctx context.Context, f Finding, sql string, args ...any) ([]Finding, error) {
	rows, err := x.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	var (
		found []Finding
		name  string
		oid   uint32
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &oid}, func() error {
		finding := Finding{f.ID, f.Severity, strings.ReplaceAll(f.Problem, "%s", name), strings.ReplaceAll(f.Fix, "%s", name)}
		x.findingTables[finding] = append(x.findingTables[finding], oid)
		found = append(found, finding)
		return nil
	})
	return found, err
}

// affectedTables returns the tables that unsafe findings are about, or none if such a finding is not about tables only.
func (x *examination) affectedTables(found []Finding) []uint32 {
	var out []uint32
	for _, f := range found {
		if f.Severity != SeverityUnsafe && f.Severity != SeverityUnknown {
			continue
		}
		oids := x.findingTables[f]
		if len(oids) == 0 {
			return nil
		}
		out = append(out, oids...)
	}
	return out
}

// tableOfDrift returns the OID of the policy's table that a line of drift is about. Such a line names a policy, column
// or trigger of the table, or one of pgconsent's views over it. tableOfDrift returns 0 if no table fits, or several.
func (x *examination) tableOfDrift(drift string) uint32 {
	line := drift
	for _, suffix := range []string{" is gone", " is changed", " is new"} {
		line = strings.TrimSuffix(line, suffix)
	}
	var found uint32
	for oid, table := range x.tableNames() {
		name := table.String()
		isOfTable := (strings.HasPrefix(line, "policy ") || strings.HasPrefix(line, "trigger ")) &&
			strings.HasSuffix(line, " on "+name) ||
			strings.HasPrefix(line, "column "+name+".")
		for _, view := range []catalog.Name{
			predicate.LookupView(table), predicate.SignedLookupView(table), predicate.SignedView(table),
			predicate.RowView(table), predicate.FilteredRowView(table),
		} {
			isOfTable = isOfTable || line == "relation "+view.String()
		}
		if isOfTable && found != 0 && found != oid {
			return 0
		}
		if isOfTable {
			found = oid
		}
	}
	return found
}

// tableNames returns the tables of the policy and the others that its rules read, by their OIDs.
func (x *examination) tableNames() map[uint32]catalog.Name {
	out := map[uint32]catalog.Name{}
	for _, r := range rls.PredicateTables(x.Policy) {
		out[r.OID] = r.Name
	}
	return out
}
