package consent

// State is the state of a consent, in the terms of the W3C's Data Privacy Vocabulary.
type State string

// Only StateGiven allows processing, and only until the consent expires.
const (
	StateRequested State = "requested" // the subject has requested a partnership and has no other consent
	StateGiven     State = "given"
	// the subject refused, or the agent's side declined the partnership and there was no other consent
	StateRefused   State = "refused"
	StateWithdrawn State = "withdrawn" // the subject or a guardian has withdrawn the consent
	StateRevoked   State = "revoked"   // the controller has revoked the consent
	StateExpired   State = "expired"
)

// States are all states.
var States = []State{StateRequested, StateGiven, StateRefused, StateWithdrawn, StateRevoked, StateExpired}

// DPVTerm returns the vocabulary's term for the state, see https://w3id.org/dpv.
func (s State) DPVTerm() string {
	switch s {
	case StateRequested:
		return "dpv:ConsentRequested"
	case StateGiven:
		return "dpv:ConsentGiven"
	case StateRefused:
		return "dpv:ConsentRefused"
	case StateWithdrawn:
		return "dpv:ConsentWithdrawn"
	case StateRevoked:
		return "dpv:ConsentRevoked"
	case StateExpired:
		return "dpv:ConsentExpired"
	default:
		return "dpv:ConsentUnknown"
	}
}

// Event says what happened to a consent in a record.
type Event string

// The events.
const (
	EventGiven      Event = "given"
	EventRenewed    Event = "renewed"    // the expiry was moved to a later time
	EventModified   Event = "modified"   // categories or purposes were changed
	EventDegraded   Event = "degraded"   // the subject changed to a stream that allows less
	EventRefused    Event = "refused"    // the subject was asked and refused
	EventWithdrawn  Event = "withdrawn"  // the subject or a guardian has withdrawn the consent
	EventRevoked    Event = "revoked"    // the controller has revoked the consent
	EventExpired    Event = "expired"    // the consent has expired
	EventRequested  Event = "requested"  // the subject asked for a partnership
	EventApproved   Event = "approved"   // the agent's side has approved the partnership: TASK_COMPLETE
	EventRejected   Event = "rejected"   // the agent's side has declined the partnership: REJECT
	EventDeferred   Event = "deferred"   // the agent's side has deferred the decision: DEFER
	EventLapsed     Event = "lapsed"     // nobody decided about the partnership in time
	EventWarned     Event = "warned"     // the subject was warned that the consent expires
	EventDeleted    Event = "deleted"    // the data were deleted
	EventAnonymised Event = "anonymised" // the data were anonymised
	EventReported   Event = "reported"   // an access report about the subject was made
	EventAppointed  Event = "appointed"  // a guardian was appointed
	EventDismissed  Event = "dismissed"  // a guardian was dismissed
	EventErased     Event = "erased"     // all consents were ended, and the subject's name and key destroyed
)
