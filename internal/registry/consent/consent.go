package consent

import (
	"time"
)

// AnyGrantee is the grantee of a consent given to everybody; AnyScope is the scope of a consent about everything.
const (
	AnyGrantee = "*"
	AnyScope   = "*"
)

// Key identifies a consent by its subject, grantee and scope. A consent with a stream has the grantee AnyGrantee and
// the scope AnyScope.
type Key struct {
	Subject string `json:"subject"`
	Grantee string `json:"grantee"` // AnyGrantee, or the id of a grantee
	Scope   string `json:"scope"`   // AnyScope, or a text that begins with table:, row: or ctx:
}

// Consent is the state of a consent after a record. A zero time means that there is none.
type Consent struct {
	Key
	State               State
	Stream              Stream   // "": the consent has no stream, but one grantee or one scope
	Categories          []string // empty unless StateGiven
	Purposes            []string // empty unless StateGiven
	RequestedCategories []string // the categories of the requested partnership; nil: there is no request

	GivenAt   time.Time
	ExpiresAt time.Time // when the consent expires; zero: it does not
	DueAt     time.Time // until when the agent's side can decide about the requested partnership
	DecayFrom time.Time // when the 90 days began after which older data are anonymous; zero: no countdown runs

	// Data older than DecayedBefore had decayed for DecayedDays when an earlier countdown was stopped.
	DecayedBefore time.Time
	DecayedDays   int

	VoidBefore time.Time // data older than this belong to a consent that ended: the present one does not cover them
	WarnedAt   time.Time // when the subject was warned that the consent expires
	Controller string
}

// IsActiveAt reports whether the consent allows processing at a time.
func (c Consent) IsActiveAt(at time.Time) bool {
	return c.State == StateGiven && (c.ExpiresAt.IsZero() || at.Before(c.ExpiresAt))
}

// StateAt returns the state at a time. A consent expires even if no record says so yet.
func (c Consent) StateAt(at time.Time) State {
	if c.State == StateGiven && !c.IsActiveAt(at) {
		return StateExpired
	}
	return c.State
}

// EndsAt returns the time at which the consent expires or has expired. It is zero if the consent does not expire, or if
// somebody has ended it.
func (c Consent) EndsAt() time.Time {
	if c.State != StateGiven && c.State != StateExpired {
		return time.Time{}
	}
	return c.ExpiresAt
}

// IsPendingAt reports whether a partnership is requested and can be decided at a time.
func (c Consent) IsPendingAt(at time.Time) bool { return !c.DueAt.IsZero() && at.Before(c.DueAt) }

// Record is a record of the registry: an event, and the consent after it.
type Record struct {
	Number int64
	At     time.Time
	Event  Event
	Consent
	Details
	Erased bool // the subject was erased: Subject is only a reference, and Details cannot be read
}

// Details are the parts of a record that are encrypted with the subject's key.
type Details struct {
	Grantor    string // the person who decided: the subject or a guardian
	RecordedBy Party  // who had the event recorded
	Via        string // how the command came: cli, http, mcp, sweep and so on
	Reason     string
	Evidence   string
	Guardian   string // the guardian whom the event appointed or dismissed
}

// Party is somebody who acts on a consent, in one of the roles.
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
	RoleAgent       Role = "agent"       // an agent, which decides about requested partnerships
	RoleController  Role = "controller"  // the data controller, who revokes consents and appoints guardians
	RoleApplication Role = "application" // an application, which reports interactions of its users
	RoleSystem      Role = "system"      // pgconsent itself, when a consent expires or a deadline passes
)
