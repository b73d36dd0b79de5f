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

// Audit records are stored for long and cannot be changed. So a record has no value that identifies a person, but a
// reference. The database can delete the information whose reference it is.

// referencePrefix is the beginning of each reference, which distinguishes references from values.
const referencePrefix = "ref:"

// ensureReferences makes sure that the database has a reference for each of these values. For a list, it does so for
// each element.
func (s *session) ensureReferences(ctx context.Context, values map[string]string) *sqlstate.Error {
	if s.enforcer.cfg.Audit.Mode() == audit.ModeOff {
		return nil
	}
	var missing []string
	for _, value := range values {
		for _, one := range listElements(value) {
			if s.references[one] == "" && !slices.Contains(missing, one) {
				missing = append(missing, one)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing) // Sessions that begin at the same time lock the rows in the same order.
	err := s.db.controlPool.run(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
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

// listElements returns the elements of a list, or the value itself.
func listElements(value string) []string {
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

// referencesFor returns the reference for a value, or a list of references for a list. For a value without a reference
// it returns "".
func (s *session) referencesFor(value string) string {
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

// auditValue returns the value of an attribute as it is in audit records: the value itself, or its reference.
func (s *session) auditValue(a policy.Attribute, value string) string {
	if a.Audit == policy.AuditPlain || a.Audit == policy.AuditPurpose {
		return value
	}
	return s.referencesFor(value)
}

// auditAttributes is the part of an audit record about the session: its attributes, the person on whose behalf it
// reads, and its purpose.
type auditAttributes struct {
	attributes          map[string]string
	onBehalfOf, purpose string
}

// auditAttributesOf returns the part of an audit record about these attributes. Their references must exist already.
func (s *session) auditAttributesOf(p *policy.Policy, values map[string]string) auditAttributes {
	out := auditAttributes{attributes: make(map[string]string, len(values))}
	for name, value := range values {
		a, _ := p.Attribute(name) // If the policy does not declare the attribute, the record has a reference.
		auditedValue := s.auditValue(a, value)
		out.attributes[name] = auditedValue
		switch name {
		case p.SubjectAttribute():
			out.onBehalfOf = auditedValue
		case p.PurposeAttribute():
			out.purpose = auditedValue
		}
	}
	return out
}

// currentAuditAttributes returns the part of an audit record about the session as it is now. live are the live
// attributes and those of the user for whom the session acts. Without them the result is computed once for each policy.
func (s *session) currentAuditAttributes(live map[string]string) auditAttributes {
	var p *policy.Policy
	if v := s.db.servingState.Load(); v != nil && v.state != nil {
		p = v.state.policy
	}
	switch {
	case s.enforcer.cfg.Audit.Mode() == audit.ModeOff:
		return auditAttributes{}
	case p == nil && s.auditAttributes.attributes == nil:
		return s.auditAttributesOf(&policy.Policy{}, s.attributes)
	case p != nil && p != s.auditAttributesPolicy:
		s.auditAttributes, s.auditAttributesPolicy = s.auditAttributesOf(p, s.attributes), p
	}
	if len(live) == 0 {
		return s.auditAttributes
	}
	attributes := maps.Clone(s.attributes)
	maps.Copy(attributes, live)
	return s.auditAttributesOf(s.auditAttributesPolicy, attributes)
}
