// Package identity turns the bearer token of a call (HTTP, MCP, console) into a [Caller].
//
// Guarantee: a token that is unknown, revoked or expired, or that names something the configuration does not have, is
// refused with the same error in all cases. The client never learns the reason. Only the SHA-256 of a token is stored,
// and no token is logged. What a caller may do is decided elsewhere.
package identity

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Role is the role of a caller.
type Role string

// The roles of callers. The zero value is no role.
const (
	Subject  Role = "subject"  // a person whose consents are recorded
	Admin    Role = "admin"    // reads consents and changes none
	Agent    Role = "agent"    // an agent of the configuration
	System   Role = "system"   // the application: it acts for its users, and deletes expired data
	Operator Role = "operator" // runs pgconsent: sees sessions and decisions
)

// Roles lists all roles of callers.
var Roles = []Role{Subject, Admin, Agent, System, Operator}

// Caller is the person or program that makes a call, as its token identifies it.
type Caller struct {
	Name      string // the token's name, or for a JWT a name made of its subject; it is in the audit records
	Role      Role
	Subject   string            // id of the data subject, for the role subject
	Agent     string            // name of the agent in the configuration, for the role agent
	Database  string            // name of a database in the configuration; never empty
	Claims    map[string]string // attributes of an agent from its JWT, by their names in the policy; nil: a static token
	ExpiresAt time.Time         // when the JWT expires; zero: never
	// the verified token of the user for whom the agent calls; "": the agent acts for no user
	UserToken string
}

// Verifier verifies bearer tokens.
type Verifier interface {
	// Verify returns the caller. If the token is not accepted, it returns the error of [NewRefusal]. Several goroutines
	// may call Verify at the same time.
	Verify(ctx context.Context, bearer string) (Caller, error)
}

// NewRefusal returns the error with which every [Verifier] refuses a token. The cause is for the log only, and quotes
// nothing of the token.
func NewRefusal(cause error) error {
	return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "a valid bearer token is required").
		WithHint("Send \"Authorization: Bearer TOKEN\"; pgconsent token add makes one.").WithCause(cause)
}

type contextKey struct{}

// NewContext returns a copy of ctx that carries the caller.
func NewContext(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the verified caller that ctx carries, and false if there is none.
func FromContext(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(contextKey{}).(Caller)
	return c, ok
}

// VerifierList tries its verifiers one after the other, and returns the caller of the first one that accepts the token.
type VerifierList []Verifier

// Verify implements Verifier.
func (e VerifierList) Verify(ctx context.Context, bearer string) (Caller, error) {
	refused := NewRefusal(nil)
	for _, v := range e {
		c, err := v.Verify(ctx, bearer)
		if err == nil {
			return c, nil
		}
		refused = err
	}
	return Caller{}, refused
}
