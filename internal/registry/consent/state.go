package consent

// State is the state of a consent, in the terms of the W3C's Data Privacy Vocabulary.
type State string

// The states. Only Given is a ground for processing, and only until it expires.
const (
	Requested State = "requested" // the subject asked for a partnership and has no other consent
	Given     State = "given"
	// the subject refused, or the agent's side refused the partnership and there was no other consent
	Refused   State = "refused"
	Withdrawn State = "withdrawn" // by the subject or a guardian
	Revoked   State = "revoked"   // by the controller
	Expired   State = "expired"
)

// States are all there are.
var States = []State{Requested, Given, Refused, Withdrawn, Revoked, Expired}

// DPV is the state's term in the vocabulary, https://w3id.org/dpv.
func (s State) DPV() string {
	switch s {
	case Requested:
		return "dpv:ConsentRequested"
	case Given:
		return "dpv:ConsentGiven"
	case Refused:
		return "dpv:ConsentRefused"
	case Withdrawn:
		return "dpv:ConsentWithdrawn"
	case Revoked:
		return "dpv:ConsentRevoked"
	case Expired:
		return "dpv:ConsentExpired"
	default:
		return "dpv:ConsentUnknown"
	}
}

// Event is the event of a record.
type Event string

// The events.
const (
	EventGiven      Event = "given"
	EventRenewed    Event = "renewed"    // the expiry was moved
	EventModified   Event = "modified"   // other categories or purposes
	EventDegraded   Event = "degraded"   // changed to a stream that shows less
	EventRefused    Event = "refused"    // by the subject
	EventWithdrawn  Event = "withdrawn"  // by the subject or a guardian
	EventRevoked    Event = "revoked"    // by the controller
	EventExpired    Event = "expired"    // the consent ended by the clock
	EventRequested  Event = "requested"  // the subject asked for a partnership
	EventApproved   Event = "approved"   // TASK_COMPLETE
	EventRejected   Event = "rejected"   // REJECT
	EventDeferred   Event = "deferred"   // DEFER
	EventLapsed     Event = "lapsed"     // nobody decided in time
	EventWarned     Event = "warned"     // the subject was warned of the expiry ahead
	EventDeleted    Event = "deleted"    // the data were deleted
	EventAnonymised Event = "anonymised" // the data were anonymised
	EventReported   Event = "reported"   // a report about the subject was made
	EventAppointed  Event = "appointed"  // a guardian
	EventDismissed  Event = "dismissed"  // a guardian
	EventErased     Event = "erased"     // the subject
)
