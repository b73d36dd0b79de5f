// Package desk is what callers of the faces (HTTP, MCP, the console) can ask for: one operation each, and who may.
// Faces translate; they hold no rules.
//
// Guarantee: an operation looks at the caller before it looks at anything else, so that a refusal is the same whether
// what was asked about exists or not. Changes of consents are decided by package consent, on the party that the caller
// is; rows are read and written over connections of the proxy's.
package operations

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Service is what operations need. What is nil is not there, and its operations say so.
type Service struct {
	Databases map[string]*Database // as the configuration names them

	// Connect opens an agent's session through the proxy. The caller of it closes it.
	Connect func(context.Context, identity.Caller) (*pgx.Conn, error)

	AIR *air.Tracker

	Answers Answers // to calls with a key

	// Record writes that there was a call. No byte of an answer leaves before it has returned nil.
	Record func(context.Context, audit.Call) error
}

// Database is one of the databases that are served.
type Database struct {
	Name     string
	Registry *registry.Registry    // nil: no consent registry is configured
	Policy   func() *policy.Policy // in force; nil while agents are not served
	Privacy  *privacy.Service      // memories, grants, contexts
}

// Database is the caller's.
func (d *Service) Database(c identity.Caller) (*Database, error) {
	db, ok := d.Databases[c.Database]
	if !ok {
		return nil, sqlstate.New(sqlstate.InvalidCatalogName, sqlstate.ReasonIdentity, "the token's database is not served")
	}
	return db, nil
}

// registry is the consent registry of the caller's database.
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

// Party is the caller in matters of consent. An admin and an operator are none: they change nothing.
func Party(c identity.Caller) consent.Party {
	switch c.Role {
	case identity.Subject:
		return consent.Party{Role: consent.RoleSubject, ID: c.Subject}
	case identity.Agent:
		return consent.Party{Role: consent.RoleAgent, ID: c.Agent}
	case identity.System:
		return consent.Party{Role: consent.RoleSystem, ID: c.Name}
	default:
		return consent.Party{Role: consent.Role(c.Role)} // none that may do anything
	}
}

// RequireRole refuses callers of other roles, and says which may: that depends on nothing but the operation and the caller's
// own credential.
func RequireRole(c identity.Caller, roles ...identity.Role) error {
	if slices.Contains(roles, c.Role) {
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity, "the caller may not do this").
		WithHint("This is for the roles: %s. The caller's is %s.", Roles(roles), c.Role)
}

// Roles names roles in a text.
func Roles(all []identity.Role) string {
	words := make([]string, len(all))
	for i, r := range all {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// Whose is the subject that an operation is about: the one that is named, else the caller. A subject asks about no
// other; the refusal is the same whether there is another or not.
func Whose(c identity.Caller, named string) (string, error) {
	switch {
	case c.Role == identity.Subject && (named == "" || named == c.Subject):
		return c.Subject, nil
	case c.Role == identity.Subject:
		return "", forbidden()
	case named == "":
		return "", consent.Command{Do: consent.Report}.Check()
	default:
		return named, nil
	}
}

// Speaker is the party that a caller is for a subject: a subject speaks for itself, and for those whose guardian it is.
// Whether it is one package consent decides; the refusal is that of a stranger.
func Speaker(c identity.Caller, named string) (subject string, by consent.Party, err error) {
	by = Party(c)
	if c.Role == identity.Subject && named != "" && named != c.Subject {
		return named, consent.Party{Role: consent.RoleGuardian, ID: c.Subject}, nil
	}
	subject, err = Whose(c, named)
	return subject, by, err
}

// forbidden is every refusal of a caller who asks for another: one text, and nothing in it.
func forbidden() error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity, "the caller may not do this").
		WithHint("Subjects act for themselves alone; admins read and change nothing; agents decide about " +
			"partnerships; expiry is the system's.")
}
