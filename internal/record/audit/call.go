package audit

// Call is the record of a call by HTTP, MCP, the console or the admin console. It has the caller, the operation, the
// persons whom the call is about, and the outcome, but no arguments and no answers.
type Call struct {
	Interface      string   `json:"face"`            // http, mcp, console or admin
	CallerName     string   `json:"by"`              // the name of the token or the operator; for a subject a reference
	Role           string   `json:"role"`            // the caller's role: subject, admin, agent, system or operator
	Agent          string   `json:"agent,omitempty"` // for the role agent: the agent's login
	Database       string   `json:"database"`
	Operation      string   `json:"operation"`           // a fixed name such as consent.history, never a path with values
	MayChangeData  bool     `json:"written,omitempty"`   // the call may change data
	Subjects       []string `json:"about,omitempty"`     // references to the persons whom the call is about
	AboutEverybody bool     `json:"everybody,omitempty"` // the call is about all persons of the database
	Outcome        string   `json:"outcome"`             // done, refused or failed
	Code           string   `json:"code,omitempty"`      // the SQLSTATE or the name of the error
}

// The values of an outcome.
const (
	OutcomeDone    = "done"    // the call succeeded
	OutcomeRefused = "refused" // the call was not allowed, its object was not found, or its arguments were not valid
	OutcomeFailed  = "failed"  // an error of the server made the call fail
)

// Call queues the record and returns at once. The caller may send the answer only after [Ticket.Release] has returned
// nil.
func (l *Log) Call(c Call) *Ticket {
	return l.enqueue(&Ticket{kind: KindCall, rareRecord: c, hasWaiter: l.cfg.Mode == ModeStrict})
}

// KindCall is the member "kind" of the records of calls.
const KindCall = "call"
