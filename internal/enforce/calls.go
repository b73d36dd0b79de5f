package enforce

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// subjectRole is the role of callers who are persons. Their names are personal data, so records have references in
// place of them.
const subjectRole = "subject"

// callTimeout limits the query for references, so that a call is answered or refused within two seconds.
const callTimeout = 1500 * time.Millisecond

// RecordCall records a call of an interface (API, MCP, console), and returns when the record is as durable as the
// audit's mode asks. The interface sends no byte of its answer before RecordCall has returned nil. If RecordCall
// returns an error, a *sqlstate.Error (58030), the interface answers with that error.
//
// Call.Subjects has the ids of persons, and so has Call.CallerName if Call.Role is subject; the record has references
// in their place. RecordCall makes new references for the caller, and for the persons whom a successful call is about.
// For a call that failed it makes none: an id that is unknown or was erased is not stored because somebody asked about
// it.
func (e *Enforcer) RecordCall(ctx context.Context, c audit.Call) error {
	if e.cfg.Audit.Mode() == audit.ModeOff {
		return nil
	}
	if err := e.replaceIDs(ctx, &c); err != nil {
		return err
	}
	if err := e.cfg.Audit.Call(c).Release(); err != nil {
		return err
	}
	return nil
}

// replaceIDs replaces the ids of persons in a call by references.
func (e *Enforcer) replaceIDs(ctx context.Context, c *audit.Call) error {
	var make, look []string
	if c.Role == subjectRole && c.CallerName != "" {
		make = append(make, c.CallerName)
	}
	for _, id := range c.Subjects {
		switch {
		case id == "":
		case c.Outcome == audit.OutcomeDone:
			make = append(make, id)
		default:
			look = append(look, id)
		}
	}
	references := map[string]string{}
	if len(make)+len(look) > 0 {
		d := e.databases[c.Database]
		if d == nil {
			return referenceFailedRefusal(nil)
		}
		slices.Sort(make)
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := d.controlPool.run(ctx, d.control, func(ctx context.Context, conn *pgx.Conn) error {
			return lookUpReferences(ctx, conn, slices.Compact(make), look, references)
		}); err != nil {
			return referenceFailedRefusal(err)
		}
	}
	if c.Role == subjectRole {
		c.CallerName = references[c.CallerName]
	}
	var about []string
	for _, id := range c.Subjects {
		if ref := references[id]; ref != "" && !slices.Contains(about, ref) {
			about = append(about, ref)
		}
	}
	c.Subjects = about
	return nil
}

// lookUpReferences finds the references of the names in namesToMake and namesToFind. The names in namesToMake get a
// reference if they have none.
func lookUpReferences(ctx context.Context, conn *pgx.Conn, namesToMake, namesToFind []string,
	references map[string]string) error {
	rows, err := conn.Query(ctx, `SELECT a.name, pgconsent.audit_ref(a.name)::pg_catalog.text
FROM pg_catalog.unnest($1::pg_catalog.text[]) AS a (name)
UNION ALL SELECT s.subject, s.ref::pg_catalog.text FROM pgconsent.audit_subject AS s
  WHERE s.subject = ANY ($2::pg_catalog.text[])`, namesToMake, namesToFind)
	if err != nil {
		return err
	}
	var name, ref string
	_, err = pgx.ForEachRow(rows, []any{&name, &ref}, func() error {
		references[name] = referencePrefix + ref
		return nil
	})
	return err
}

func referenceFailedRefusal(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit, "it cannot be recorded whom this call is about").
		WithHint("No record, no answer: the operator of pgconsent must look at the database.").WithCause(cause)
}
