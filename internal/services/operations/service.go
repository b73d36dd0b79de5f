// Package operations has the operations that callers of HTTP, MCP and the console can request, and decides which roles
// may request them. Those packages translate requests and answers; they have no rules.
//
// Guarantee: an operation checks the caller before it looks anything up, so that a refusal is the same whether the
// object exists or not. Package consent decides about changes of consents, by the caller's party; rows are read and
// written over connections through the proxy.
package operations

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Service has what the operations need. An operation that needs a part which is nil says that it is not available.
type Service struct {
	Databases map[string]*Database // the databases, by their names in the configuration

	// Connect opens an agent's session through the proxy. The caller closes it.
	Connect func(context.Context, identity.Caller) (*pgx.Conn, error)

	Reminders *air.Tracker

	Answers AnswerStore // answers to calls with an idempotency key

	// Record records a call. No byte of an answer is sent before it has returned nil.
	Record func(context.Context, audit.Call) error
}

// Database is one of the databases that are served.
type Database struct {
	Name     string
	Registry *registry.Registry    // nil: no consent registry is configured
	Policy   func() *policy.Policy // the active policy; nil while agents are not served
	Privacy  *privacy.Service      // memories, grants, contexts
}

// Database returns the caller's database.
func (d *Service) Database(c identity.Caller) (*Database, error) {
	db, ok := d.Databases[c.Database]
	if !ok {
		return nil, sqlstate.New(sqlstate.InvalidCatalogName, sqlstate.ReasonIdentity, "the token's database is not served")
	}
	return db, nil
}

// registry returns the consent registry of the caller's database.
func (d *Service) registry(c identity.Caller) (*registry.Registry, error) {
	db, err := d.Database(c)
	if err != nil {
		return nil, err
	}
	if db.Registry == nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonConsent, "this database has no consent registry").
			WithHint("Add \"consent: {}\" to the configuration and run pgconsent migrate.")
	}
	return db.Registry, nil
}

// PartyOfCaller returns the party that the caller is in matters of consent. Admins and operators are no party: they
// change nothing.
func PartyOfCaller(c identity.Caller) consent.Party {
	switch c.Role {
	case identity.Subject:
		return consent.Party{Role: consent.RoleSubject, ID: c.Subject}
	case identity.Agent:
		return consent.Party{Role: consent.RoleAgent, ID: c.Agent}
	case identity.System:
		return consent.Party{Role: consent.RoleSystem, ID: c.Name}
	default:
		return consent.Party{Role: consent.Role(c.Role)} // This party has a role without any rights.
	}
}

// RequireRole refuses callers with other roles and names the roles that may call. The refusal depends on the operation
// and the caller's own credential only.
func RequireRole(c identity.Caller, roles ...identity.Role) error {
	if slices.Contains(roles, c.Role) {
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity, "the caller may not do this").
		WithHint("This is for the roles: %s. The caller's is %s.", RoleList(roles), c.Role)
}

// RoleList lists roles in a text.
func RoleList(roles []identity.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// SubjectOf returns the subject of an operation: the requested one, or else the caller. A subject may name no other;
// the refusal does not depend on whether that other exists.
func SubjectOf(c identity.Caller, requestedSubject string) (string, error) {
	switch {
	case c.Role == identity.Subject && (requestedSubject == "" || requestedSubject == c.Subject):
		return c.Subject, nil
	case c.Role == identity.Subject:
		return "", newForbiddenError()
	case requestedSubject == "":
		return "", consent.Command{Action: consent.ActionNoteReport}.Check()
	default:
		return requestedSubject, nil
	}
}

// PartyFor returns the party that a caller is for a subject: a subject acts for itself and, as a guardian, for others.
// Package consent decides whether it is a guardian; a stranger gets the same refusal.
func PartyFor(c identity.Caller, requestedSubject string) (subject string, party consent.Party, err error) {
	party = PartyOfCaller(c)
	if c.Role == identity.Subject && requestedSubject != "" && requestedSubject != c.Subject {
		return requestedSubject, consent.Party{Role: consent.RoleGuardian, ID: c.Subject}, nil
	}
	subject, err = SubjectOf(c, requestedSubject)
	return subject, party, err
}

// newForbiddenError is the refusal of every caller who names another person than itself: one fixed text.
func newForbiddenError() error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity, "the caller may not do this").
		WithHint("Subjects act for themselves; admins read and change nothing; agents decide about " +
			"partnerships; the system records expiries.")
}
