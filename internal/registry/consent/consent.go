package consent

import (
	"time"
)

// AnyGrantee is the grantee, and AnyScope the scope, of a consent that names none.
const (
	AnyGrantee = "*"
	AnyScope   = "*"
)

// Key identifies a consent by its subject, grantee and scope. The consent of a stream has the grantee AnyGrantee and the
// scope AnyScope.
type Key struct {
	Subject string `json:"subject"`
	Grantee string `json:"grantee"` // AnyGrantee, or an id
	Scope   string `json:"scope"`   // AnyScope, or table:…, row:…, ctx:…
}

// Consent is the state of a consent after a record. A time that is zero is not set.
type Consent struct {
	Key
	State               State
	Stream              Stream   // the stream; "": the consent is given to a grantee or for a scope
	Categories          []string // empty unless StateGiven
	Purposes            []string // empty unless StateGiven
	RequestedCategories []string // categories of the requested partnership; nil: none

	GivenAt   time.Time
	ExpiresAt time.Time // the time at which it expires; zero: it does not expire
	DueAt     time.Time // the deadline for the decision about the requested partnership
	DecayFrom time.Time // when the countdown to anonymity began

	// Data older than DecayedBefore have decayed for DecayedDays, in a countdown that was stopped later.
	DecayedBefore time.Time
	DecayedDays   int

	VoidBefore time.Time // older data belong to an ended consent, and a new consent does not include them
	WarnedAt   time.Time // when the subject was warned of the expiry
	Controller string
}

// IsActiveAt tells whether the consent is a ground for processing at a time.
func (c Consent) IsActiveAt(at time.Time) bool {
	return c.State == StateGiven && (c.ExpiresAt.IsZero() || at.Before(c.ExpiresAt))
}

// StateAt returns the state at a time: a consent expires without a record.
func (c Consent) StateAt(at time.Time) State {
	if c.State == StateGiven && !c.IsActiveAt(at) {
		return StateExpired
	}
	return c.State
}

// EndsAt returns the time at which a consent ends, or has ended, by the clock. Zero: it does not end, or somebody has
// ended it.
func (c Consent) EndsAt() time.Time {
	if c.State != StateGiven && c.State != StateExpired {
		return time.Time{}
	}
	return c.ExpiresAt
}

// IsPendingAt tells whether a partnership can be decided at a time.
func (c Consent) IsPendingAt(at time.Time) bool { return !c.DueAt.IsZero() && at.Before(c.DueAt) }

// Record is an entry of the registry: an event, and the consent after the event.
type Record struct {
	Number int64
	At     time.Time
	Event  Event
	Consent
	Details
	Erased bool // the subject was erased: Subject is only a reference, and Details are lost
}

// Details are the parts of a record that can only be read with the subject's key.
type Details struct {
	Grantor    string // the person who decided: the subject or a guardian
	RecordedBy Party  // the party that had the event recorded
	Via        string // the interface: cli, http, mcp, sweep, …
	Reason     string
	Evidence   string
	Guardian   string // the guardian who was appointed or dismissed
}

// Party is somebody who acts in the registry.
type Party struct {
	Role Role   `json:"role"`
	ID   string `json:"id,omitempty"`
}

// Role is the role of a party.
type Role string

// The roles.
const (
	RoleSubject     Role = "subject"     // the data subject
	RoleGuardian    Role = "guardian"    // somebody who acts for a subject
	RoleAgent       Role = "agent"       // an agent, which decides about partnerships
	RoleController  Role = "controller"  // the data controller, who revokes consents and appoints guardians
	RoleApplication Role = "application" // an application, which reports interactions of its users
	RoleSystem      Role = "system"      // pgconsent itself, for expiries and other effects of time
)
