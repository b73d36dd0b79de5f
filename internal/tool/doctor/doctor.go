// Package doctor checks whether a database can enforce a policy.
//
// Each [Finding] of severity [SeverityUnsafe] names a state in which an agent could read rows that the policy hides;
// pgconsent does not serve agents from such a database. A check that fails counts as unsafe. [RunChecks] reads only
// catalogs, and changes nothing. [RunProbes] logs in as the agent role and tries what PostgreSQL must refuse.
// [CheckLogins] tests whether PostgreSQL asks for a password when the proxy relays an owner's login.
//
// Not checked: what a superuser does on purpose, and the server's files.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
)

// Severity says what a finding means for serving.
type Severity string

// The severities, worst first.
const (
	SeverityUnsafe       Severity = "unsafe"         // agents are not served
	SeverityUnknown      Severity = "unknown"        // the check failed, so it may be unsafe: agents are not served
	SeverityNoSignedPath Severity = "no_signed_path" // agents are served; all statements take the row security path
	SeverityWarning      Severity = "warning"        // the policy is enforced, but something else may be wrong
	SeverityHardening    Severity = "hardening"      // a superuser can limit the damage if an enforcement layer fails
	SeverityAdvice       Severity = "advice"         // nothing is wrong, but something could be faster
	SeverityOK           Severity = "ok"             // nothing is wrong
)

// SignedPathProbe is the ID of the finding about the signed path. If that probe fails, statements read under row
// security.
const SignedPathProbe = "signed_path"

// Finding is what a check found.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Problem  string   `json:"what"`
	Fix      string   `json:"fix,omitempty"`
}

// Target has everything that is checked, except the connection.
type Target struct {
	// names of the roles; "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string

	Policy   *policy.Policy
	Snapshot *catalog.Snapshot
	Plan     *rls.Plan // the plan of the configured policy

	Owners []string // logins that the proxy relays unchanged; nil: the check of other logins is left out

	PassedProbes map[string]bool // IDs of probes that have passed already: RunProbes leaves them out
	ProbeTime    time.Duration   // how long each statement of [RunProbes] may take; 0: 30 s

	forRunningProxy bool // true while [CheckServing] repeats the checks for a running proxy
}

// examination is one run of the checks.
type examination struct {
	Target
	conn          *pgx.Conn
	roles         map[string]roleAttributes
	findingTables map[Finding][]uint32 // the tables that findings are about, if known
}

// databaseCheck is one check. If run returns no finding, okText is reported.
type databaseCheck struct {
	id     string
	okText string
	run    func(ctx context.Context, x *examination) ([]Finding, error)
}

var checks = []databaseCheck{
	{"server", "the server's version and encoding are supported", checkServer},
	{"roles", "the roles have no rights beyond their purpose", checkRoles},
	{"create", "the agent role may create nothing", checkCreatePrivileges},
	{"access", "the agent role may read what the policy lists and write nothing", checkPrivileges},
	{"row_security", "row security is on, and not forced, for every protected table", checkRowSecurity},
	{"policies", "no row policy of others bears on our roles", checkPolicies},
	{"views", "our views of protected tables belong to the reader", checkViews},
	{"functions", "functions run with the rights they should", checkFunctions},
	{"logins", "no login but the owners' reads protected tables past the proxy", checkDirectLogins},
	{"reach", "nothing of others is in reach of agents", checkReachableFunctions},
	{"installed", "the configured policy is the one installed", checkInstalled},
	{"drift", "what is installed has not been altered", checkDrift},
	{"builtin", "what our functions call is PostgreSQL's own", checkBuiltin},
	{"leakproof", "row security lets no function at hidden rows but those that PostgreSQL vouches for", checkLeakproof},
	{"keys", "there is a good key, and agents cannot read it", checkKeys},
	{"materialized", "materialized rules are up to date", checkMaterialized},
	{"observed", "every table of the policy is enforced", checkObserved},
	{"ddl", "an event trigger tells of DDL before the next statement", checkDDL},
	{"waiting", "no table has columns that wait for pgconsent migrate", checkWaitingColumns},
	{"hardening", "nothing is left to harden", checkServerHardening},
	{"hardened_plan", "no table of the policy needs hardened plans", checkHardenedPlans},
}

// RunChecks runs every check on a connection of the control role, the owner or a superuser. It returns an error only if
// the connection breaks.
func RunChecks(ctx context.Context, conn *pgx.Conn, s Target) ([]Finding, error) {
	return (&examination{Target: s.withDefaultRoles(), conn: conn, findingTables: map[Finding][]uint32{}}).examine(ctx)
}

func (x *examination) examine(ctx context.Context) ([]Finding, error) {
	conn := x.conn
	var found []Finding
	for _, c := range checks {
		f, err := c.run(ctx, x)
		if err != nil {
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || conn.IsClosed() {
				return found, fmt.Errorf("check %s: %w", c.id, err)
			}
			f = append(f, Finding{c.id, SeverityUnknown, fmt.Sprintf("this could not be checked: %s (SQLSTATE %s)", pg.Message,
				pg.Code),
				"Run pgconsent migrate; if that does not help, run pgconsent doctor as the database's owner."})
		}
		if len(f) == 0 {
			f = []Finding{{ID: c.id, Severity: SeverityOK, Problem: c.okText}}
		}
		found = append(found, f...)
	}
	return found, nil
}

// withDefaultRoles fills in the default roles.
func (s Target) withDefaultRoles() Target {
	for role, name := range map[*string]string{&s.AgentRole: "pgconsent_agent", &s.ControlRole: "pgconsent_control",
		&s.ReaderRole: "pgconsent_reader", &s.RowsRole: "pgconsent_rows"} {
		if *role == "" {
			*role = name
		}
	}
	return s
}

// UnsafeError returns an error that names every unsafe finding, or nil if there is none.
func UnsafeError(found []Finding) error {
	var lines []string
	for _, f := range found {
		if f.Severity == SeverityUnsafe || f.Severity == SeverityUnknown {
			lines = append(lines, f.ID+": "+f.Problem+" → "+f.Fix)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale, "the database cannot enforce the policy: %s",
		strings.Join(lines, "; ")).
		WithHint("pgconsent doctor shows every finding.")
}

// CheckServing repeats the checks of [RunChecks] for a running proxy. It returns nil if the database is safe, and an
// [UnsafeTables] error if the unsafe findings are about certain tables only. It leaves out checks that would read large
// tables.
func CheckServing(ctx context.Context, conn *pgx.Conn, s Target) error {
	s.forRunningProxy = true
	x := &examination{Target: s.withDefaultRoles(), conn: conn, findingTables: map[Finding][]uint32{}}
	found, err := x.examine(ctx)
	if err != nil {
		return err
	}
	err = UnsafeError(found)
	if tables := x.affectedTables(found); err != nil && len(tables) > 0 {
		return &UnsafeTables{tables, err}
	}
	return err
}

// queryStrings runs a query that returns one text column, and returns its rows.
func (x *examination) queryStrings(ctx context.Context, sql string, args ...any) ([]string, error) {
	rows, err := x.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// findingsOfQuery makes a finding of every row of a query; %s in the finding's texts is the row's text.
func (x *examination) findingsOfQuery(ctx context.Context, f Finding, sql string, args ...any) ([]Finding, error) {
	names, err := x.queryStrings(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, name := range names {
		found = append(found, Finding{f.ID, f.Severity, strings.ReplaceAll(f.Problem, "%s", name),
			strings.ReplaceAll(f.Fix, "%s", name)})
	}
	return found, nil
}

// collectFindings runs several queries and returns all their findings.
func collectFindings(queries ...func() ([]Finding, error)) ([]Finding, error) {
	var found []Finding
	for _, q := range queries {
		f, err := q()
		if err != nil {
			return found, err
		}
		found = append(found, f...)
	}
	return found, nil
}
