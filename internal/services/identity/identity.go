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
	Agent    Role = "agent"    // a login of the configuration
	System   Role = "system"   // the application, which acts for its users, and removes what has expired
	Operator Role = "operator" // runs pgconsent: sees sessions and decisions
)

// Roles are all roles of callers.
var Roles = []Role{Subject, Admin, Agent, System, Operator}

// Caller is the person or program that makes a call, as its token says.
type Caller struct {
	Name      string // the name of the token, or the subject of a JWT, for the audit
	Role      Role
	Subject   string            // data subject whose consents these are, with the role subject
	Agent     string            // login of the configuration, with the role agent
	Database  string            // name of a database in the configuration; never empty
	Claims    map[string]string // attributes of an agent from a JWT, by their names in the policy; nil for static tokens
	ExpiresAt time.Time         // when a JWT expires; zero: never
	// the token of the user for whom an agent calls, which was verified; "": it calls for nobody
	UserToken string
}

// Verifier verifies bearer tokens.
type Verifier interface {
	// Verify returns the caller, or the error of [NewRefusal]. It is called by many goroutines.
	Verify(ctx context.Context, bearer string) (Caller, error)
}

// NewRefusal is the error of every [Verifier] for every token that it does not accept. The cause is for the log and
// quotes nothing of the token.
func NewRefusal(cause error) error {
	return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "a valid bearer token is required").
		WithHint("Send \"Authorization: Bearer TOKEN\"; pgconsent token add makes one.").WithCause(cause)
}

type contextKey struct{}

// NewContext returns ctx with the caller in it.
func NewContext(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the verified caller that ctx has.
func FromContext(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(contextKey{}).(Caller)
	return c, ok
}

// VerifierList tries verifiers in turn; the first that knows the token decides.
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
