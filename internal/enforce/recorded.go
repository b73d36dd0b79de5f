package enforce

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Records outlive the persons of whom they speak, and cannot be changed. So what identifies somebody is in none of
// them: a reference is, and the database can forget whose it is.

// referencePrefix tells a reference from a value.
const referencePrefix = "ref:"

// refer makes sure that there is a reference for each of these values, or each element of the lists among them.
func (s *session) refer(ctx context.Context, values map[string]string) *sqlstate.Error {
	if s.e.cfg.Audit.Mode() == audit.Off {
		return nil
	}
	var missing []string
	for _, value := range values {
		for _, one := range elements(value) {
			if s.references[one] == "" && !slices.Contains(missing, one) {
				missing = append(missing, one)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing) // two sessions that begin at once take locks in one order
	err := s.db.askers.ask(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx,
			"SELECT a.name, pgconsent.audit_ref(a.name)::pg_catalog.text FROM "+
				"pg_catalog.unnest($1::pg_catalog.text[]) AS a (name)", missing)
		if err != nil {
			return err
		}
		var name, ref string
		_, err = pgx.ForEachRow(rows, []any{&name, &ref}, func() error {
			s.references[name] = referencePrefix + ref
			return nil
		})
		return err
	})
	if err != nil {
		hint := "No record, no answer: the operator of pgconsent must look at the database."
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "25006" {
			hint = "The database takes no writes, and has no reference for an attribute of this agent yet: " +
				"connect once to the one that it follows."
		}
		return sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit,
			"it cannot be recorded on whose behalf this session reads").WithHint("%s", hint).WithCause(err)
	}
	return nil
}

// elements are those of a list, or the value itself.
func elements(value string) []string {
	list, ok := predicate.ParseArray(value)
	if !ok {
		return []string{value}
	}
	var out []string
	for _, e := range list {
		if e != nil {
			out = append(out, *e)
		}
	}
	return out
}

// reference is a value as records have it. What has none was not asked for, and is left out.
func (s *session) reference(value string) string {
	list, ok := predicate.ParseArray(value)
	if !ok {
		return s.references[value]
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		if e != nil {
			out = append(out, s.references[*e])
		}
	}
	return predicate.WriteArray(out)
}

// recordedAs is the value of an attribute as records have it.
func (s *session) recordedAs(a policy.Attribute, value string) string {
	if a.Audit == policy.AsIs || a.Audit == policy.AsPurpose {
		return value
	}
	return s.reference(value)
}

// spoken is what records say of a session: its attributes, the person on whose behalf it reads, and what for.
type spoken struct {
	attributes          map[string]string
	onBehalfOf, purpose string
}

// spoken makes it of attributes that have their references.
func (s *session) spoken(p *policy.Policy, values map[string]string) spoken {
	out := spoken{attributes: make(map[string]string, len(values))}
	for name, value := range values {
		a, _ := p.Attribute(name) // without one it is recorded as a reference
		as := s.recordedAs(a, value)
		out.attributes[name] = as
		switch name {
		case p.Subject():
			out.onBehalfOf = as
		case p.Purpose():
			out.purpose = as
		}
	}
	return out
}

// says is what records say of the session now. That of the credential's attributes is worked out once for each policy.
func (s *session) says(live map[string]string) spoken {
	var p *policy.Policy
	if v := s.db.view.Load(); v != nil && v.state != nil {
		p = v.state.policy
	}
	switch {
	case s.e.cfg.Audit.Mode() == audit.Off:
		return spoken{}
	case p == nil && s.says0.attributes == nil:
		return s.spoken(&policy.Policy{}, s.attributes)
	case p != nil && p != s.saidBy:
		s.says0, s.saidBy = s.spoken(p, s.attributes), p
	}
	if len(live) == 0 {
		return s.says0
	}
	whole := maps.Clone(s.attributes)
	maps.Copy(whole, live)
	return s.spoken(s.saidBy, whole)
}
