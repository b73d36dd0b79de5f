// Package identity turns the bearer token of a call (HTTP, MCP, console) into a [Caller].
//
// Guarantee: a token that is unknown, revoked or expired, or that names something the configuration does not have, is
// refused with one and the same error: the client never learns the reason. Only the SHA-256 of a token is kept, and no
// token is logged. What a caller may do is decided elsewhere.
package identity

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Role is the role of a caller.
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
	Name     string // the name of the token, or the subject of a JWT, for the audit
	Role     Role
	Subject  string            // role subject: whose consents these are
	Agent    string            // role agent: a login of the configuration
	Database string            // as the configuration names it; never empty
	Claims   map[string]string // attributes of an agent from a JWT, by their names in the policy; nil for static tokens
	Until    time.Time         // when a JWT expires; zero: never
}

// Verifier verifies bearer tokens.
type Verifier interface {
	// Verify returns the caller, or the error of [Refusal]. It is called by many goroutines.
	Verify(ctx context.Context, bearer string) (Caller, error)
}

// Refusal is the error of every [Verifier] for every token that it does not accept. The cause is for the log and quotes
// nothing of the token.
func Refusal(cause error) error {
	return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "a valid bearer token is required").
		WithHint("Send \"Authorization: Bearer TOKEN\"; pgconsent token add makes one.").WithCause(cause)
}

type key struct{}

// NewContext returns ctx with the caller in it.
func NewContext(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// FromContext returns the verified caller.
func FromContext(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(key{}).(Caller)
	return c, ok
}

// Verifiers tries verifiers in turn; the first that knows the token decides.
type Verifiers []Verifier

// Verify implements Verifier.
func (e Verifiers) Verify(ctx context.Context, bearer string) (Caller, error) {
	refused := Refusal(nil)
	for _, v := range e {
		c, err := v.Verify(ctx, bearer)
		if err == nil {
			return c, nil
		}
		refused = err
	}
	return Caller{}, refused
}
