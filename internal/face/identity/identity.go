// Package identity tells who calls a face of pgconsent (HTTP, MCP, the console): it turns a bearer token into a [Caller].
//
// Guarantee: a token that is not known, was revoked, has expired or names what the configuration does not have is
// refused, and all of these with the same error: the peer never learns why. No token is kept, only its SHA-256; none is
// logged. What a caller may do is not decided here.
package identity

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Role is what a caller is.
type Role string

// The roles. The zero value is none.
const (
	Subject  Role = "subject"  // a person whose consents are recorded
	Admin    Role = "admin"    // reads consents and changes none
	Agent    Role = "agent"    // a login of the configuration
	System   Role = "system"   // the application, on behalf of its users; expiry
	Operator Role = "operator" // runs pgconsent: sees sessions and decisions
)

// Roles are all of them.
var Roles = []Role{Subject, Admin, Agent, System, Operator}

// Caller is who calls.
type Caller struct {
	Name     string // of the token, or the subject of a JWT: for the audit
	Role     Role
	Subject  string            // role subject: whose consents these are
	Agent    string            // role agent: a login of the configuration
	Database string            // as the configuration names it; never empty
	Claims   map[string]string // attributes of an agent that a JWT gave, by their names in the policy; nil for static tokens
	Until    time.Time         // when a JWT expires; zero: never
}

// Verifier tells whose a bearer token is.
type Verifier interface {
	// Verify returns the caller, or the error of [Refused]. It is called by many goroutines.
	Verify(ctx context.Context, bearer string) (Caller, error)
}

// Refused is the error of every [Verifier] for every token that it does not take. The cause is for the log: it says
// what was wrong, and quotes nothing of the token.
func Refused(cause error) error {
	return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "a valid bearer token is required").
		WithHint("Send \"Authorization: Bearer TOKEN\"; pgconsent token add makes one.").WithCause(cause)
}

type key struct{}

// NewContext returns ctx with the caller in it.
func NewContext(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// FromContext returns the caller whom the face has verified.
func FromContext(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(key{}).(Caller)
	return c, ok
}

// Verifiers asks one verifier after the other; the first that knows the token decides.
type Verifiers []Verifier

// Verify implements Verifier.
func (e Verifiers) Verify(ctx context.Context, bearer string) (Caller, error) {
	refused := Refused(nil)
	for _, v := range e {
		c, err := v.Verify(ctx, bearer)
		if err == nil {
			return c, nil
		}
		refused = err
	}
	return Caller{}, refused
}
