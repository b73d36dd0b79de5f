package consent

import (
	"time"
)

// Everybody is the grantee, and Everything the scope, of a consent that names none.
const (
	Everybody  = "*"
	Everything = "*"
)

// Key says whose consent, to whom, about what. Streams have Everybody and Everything.
type Key struct {
	Subject string `json:"subject"`
	Grantee string `json:"grantee"` // Everybody, or an id
	Scope   string `json:"scope"`   // Everything, or table:…, row:…, ctx:…
}

// Consent is what holds after a record. Times that are zero are not set.
type Consent struct {
	Key
	State               State
	Stream              Stream   // "": a consent to a grantee or scope
	Categories          []string // empty unless Given
	Purposes            []string // empty unless Given
	RequestedCategories []string // categories of the partnership asked for; nil: none is

	GivenAt   time.Time
	ExpiresAt time.Time // zero: it does not expire
	DueAt     time.Time // until when Asked can be decided
	DecayFrom time.Time // the countdown to anonymity began

	// What is older than DecayedBefore has decayed by DecayedDays, in a countdown that has stopped since.
	DecayedBefore time.Time
	DecayedDays   int

	VoidBefore time.Time // what is older went with a consent that ended, and a new one does not bring it back
	WarnedAt   time.Time // of the expiry ahead
	Controller string
}

// ActiveAt tells whether the consent is a ground for processing at that time.
func (c Consent) ActiveAt(at time.Time) bool {
	return c.State == Given && (c.ExpiresAt.IsZero() || at.Before(c.ExpiresAt))
}

// StateAt is the state at that time: a consent expires by itself.
func (c Consent) StateAt(at time.Time) State {
	if c.State == Given && !c.ActiveAt(at) {
		return Expired
	}
	return c.State
}

// Pending tells whether a partnership can be decided at that time.
func (c Consent) Pending(at time.Time) bool { return !c.DueAt.IsZero() && at.Before(c.DueAt) }

// Record is an entry of the registry: what happened, and what holds since.
type Record struct {
	Number int64
	At     time.Time
	Event  Event
	Consent
	Details
	Erased bool // the subject was erased: Subject is a reference without meaning, Details are gone
}

// Details are what only the registry, by the subject's key, can read.
type Details struct {
	Grantor  string // whose will it is: the subject or a guardian
	By       Party  // who had it recorded
	Via      string // where: cli, http, mcp, sweep, …
	Reason   string
	Evidence string
	Guardian string // who was appointed or dismissed
}

// Party is somebody who acts.
type Party struct {
	Role Role   `json:"role"`
	ID   string `json:"id,omitempty"`
}

// Role is what a credential is worth in matters of consent.
type Role string

// The roles.
const (
	RoleSubject     Role = "subject"     // whose data it is
	RoleGuardian    Role = "guardian"    // speaks for a subject
	RoleAgent       Role = "agent"       // the agent's side: decides about partnerships
	RoleController  Role = "controller"  // who answers for the data: revokes, appoints guardians
	RoleApplication Role = "application" // tells of a user's interactions
	RoleSystem      Role = "system"      // the clock's work
)
