package audit

// Call is the record of a call of HTTP, MCP or the console: the caller, the operation, the persons it is about, and the
// outcome. It has nothing of arguments or answers.
type Call struct {
	Face      string   `json:"face"`            // http | mcp | console
	By        string   `json:"by"`              // the token's name; for a subject the reference
	Role      string   `json:"role"`            // subject | admin | agent | system | operator
	Agent     string   `json:"agent,omitempty"` // the login of the role agent
	Database  string   `json:"database"`
	Operation string   `json:"operation"`           // a fixed name such as consent.history, never a path with values
	Written   bool     `json:"written,omitempty"`   // the call may change data
	About     []string `json:"about,omitempty"`     // references to the persons it is about
	Everybody bool     `json:"everybody,omitempty"` // the call is about all persons of the database
	Outcome   string   `json:"outcome"`             // done | refused | failed
	Code      string   `json:"code,omitempty"`      // the SQLSTATE or the name of what refused it
}

// The values of an outcome.
const (
	Done    = "done"    // the call succeeded
	Refused = "refused" // not allowed, not found, not valid
	Failed  = "failed"  // an error of the server
)

// Call queues the record and returns at once. The answer may be handed out when [Ticket.Release] has returned nil.
func (l *Log) Call(c Call) *Ticket {
	return l.add(&Ticket{kind: KindCall, body: c, waits: l.cfg.Mode == Strict})
}

// KindCall is the member "kind" of these records.
const KindCall = "call"
