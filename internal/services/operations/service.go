// Package operations has the operations that callers of HTTP, MCP and the console can request, and decides which roles
// may request them. The packages api, mcp and console translate requests and answers, and make no decisions.
//
// Guarantee: an operation checks the caller's role before it reads any data, so that a refusal is the same whether the
// object exists or not. Package consent decides who may change a consent. Rows are read and written over connections
// through the proxy.
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

// Service has what the operations need. If a field is nil, the operations that need it return an error that says they
// are not available.
type Service struct {
	Databases map[string]*Database // the databases, by their names in the configuration

	// Connect opens a session of the caller's agent through the proxy. The caller closes it.
	Connect func(context.Context, identity.Caller) (*pgx.Conn, error)

	Reminders *air.Tracker

	Answers AnswerStore // answers to calls with an idempotency key

	// Record writes the audit record of a call. No byte of the answer is sent before Record has returned nil.
	Record func(context.Context, audit.Call) error
}

// Database is one of the databases that are served.
type Database struct {
	Name     string
	Registry *registry.Registry    // nil: no consent registry is configured
	Policy   func() *policy.Policy // returns the active policy; nil while agents are not served
	Privacy  *privacy.Service      // operations on memories, grants and contexts
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

// PartyOfCaller returns the party as which the caller changes consents. Admins and operators get a party without
// rights, since they may change nothing.
func PartyOfCaller(c identity.Caller) consent.Party {
	switch c.Role {
	case identity.Subject:
		return consent.Party{Role: consent.RoleSubject, ID: c.Subject}
	case identity.Agent:
		return consent.Party{Role: consent.RoleAgent, ID: c.Agent}
	case identity.System:
		return consent.Party{Role: consent.RoleSystem, ID: c.Name}
	default:
		return consent.Party{Role: consent.Role(c.Role)} // admins and operators: a role that has no rights in package consent
	}
}

// RequireRole returns an error if the caller has none of the roles. The error names the roles that may call, and
// depends on nothing but the operation and the caller's own role.
func RequireRole(c identity.Caller, roles ...identity.Role) error {
	if slices.Contains(roles, c.Role) {
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity, "the caller may not do this").
		WithHint("This is for the roles: %s. The caller's is %s.", RoleList(roles), c.Role)
}

// RoleList returns the names of roles, separated by commas.
func RoleList(roles []identity.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// SubjectOf returns the subject that an operation is about: the requested one, or the caller if none is requested. A
// subject who requests another subject is refused, whether that one exists or not.
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

// PartyFor returns the subject of a change and the party as which the caller makes it. A subject who names another
// subject acts as a guardian. Package consent decides whether the caller is the guardian; others get the same refusal
// as for an unknown subject.
func PartyFor(c identity.Caller, requestedSubject string) (subject string, party consent.Party, err error) {
	party = PartyOfCaller(c)
	if c.Role == identity.Subject && requestedSubject != "" && requestedSubject != c.Subject {
		return requestedSubject, consent.Party{Role: consent.RoleGuardian, ID: c.Subject}, nil
	}
	subject, err = SubjectOf(c, requestedSubject)
	return subject, party, err
}

// newForbiddenError returns the refusal of a caller who names a person for whom it may not act. Its text is always the
// same.
func newForbiddenError() error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity, "the caller may not do this").
		WithHint("Subjects act for themselves; admins read and change nothing; agents decide about " +
			"partnerships; the system records expiries.")
}
