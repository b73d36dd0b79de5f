package consent

import (
	"time"
)

// Everybody is the grantee, and Everything the scope, of a consent that names none.
const (
	Everybody  = "*"
	Everything = "*"
)

// Key identifies a consent: the subject, the grantee and the scope. Streams have Everybody and Everything.
type Key struct {
	Subject string `json:"subject"`
	Grantee string `json:"grantee"` // Everybody, or an id
	Scope   string `json:"scope"`   // Everything, or table:…, row:…, ctx:…
}

// Consent is the state after a record. Times that are zero are not set.
type Consent struct {
	Key
	State               State
	Stream              Stream   // "": a consent to a grantee or about a scope
	Categories          []string // empty unless Given
	Purposes            []string // empty unless Given
	RequestedCategories []string // categories of the requested partnership; nil: none

	GivenAt   time.Time
	ExpiresAt time.Time // zero: it does not expire
	DueAt     time.Time // deadline of the decision about the requested partnership
	DecayFrom time.Time // when the countdown to anonymity began

	// Data older than DecayedBefore have decayed by DecayedDays, in a countdown that has stopped since.
	DecayedBefore time.Time
	DecayedDays   int

	VoidBefore time.Time // older data belong to an ended consent; a new one does not include them
	WarnedAt   time.Time // when the subject was warned of the expiry
	Controller string
}

// ActiveAt reports whether the consent is a ground for processing at that time.
func (c Consent) ActiveAt(at time.Time) bool {
	return c.State == Given && (c.ExpiresAt.IsZero() || at.Before(c.ExpiresAt))
}

// StateAt is the state at that time: a consent expires without a record.
func (c Consent) StateAt(at time.Time) State {
	if c.State == Given && !c.ActiveAt(at) {
		return Expired
	}
	return c.State
}

// EndsAt is when a consent ends, or has ended, by the clock. Zero: it does not, or somebody has ended it.
func (c Consent) EndsAt() time.Time {
	if c.State != Given && c.State != Expired {
		return time.Time{}
	}
	return c.ExpiresAt
}

// Pending reports whether a partnership can be decided at that time.
func (c Consent) Pending(at time.Time) bool { return !c.DueAt.IsZero() && at.Before(c.DueAt) }

// Record is an entry of the registry: an event, and the consent after it.
type Record struct {
	Number int64
	At     time.Time
	Event  Event
	Consent
	Details
	Erased bool // the subject was erased: Subject is a mere reference, and Details are lost
}

// Details can only be read with the subject's key.
type Details struct {
	Grantor  string // who decided: the subject or a guardian
	By       Party  // who had it recorded
	Via      string // the interface: cli, http, mcp, sweep, …
	Reason   string
	Evidence string
	Guardian string // the guardian who was appointed or dismissed
}

// Party is a party that acts.
type Party struct {
	Role Role   `json:"role"`
	ID   string `json:"id,omitempty"`
}

// Role is the role of a party.
type Role string

// The roles.
const (
	RoleSubject     Role = "subject"     // the data subject
	RoleGuardian    Role = "guardian"    // acts for a subject
	RoleAgent       Role = "agent"       // decides about partnerships
	RoleController  Role = "controller"  // the data controller: revokes, appoints guardians
	RoleApplication Role = "application" // reports a user's interactions
	RoleSystem      Role = "system"      // expiries and other work of the clock
)
