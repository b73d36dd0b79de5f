package audit

// Call is the record of a call of a face: HTTP, MCP, the console. It says who asked for what, about whom, and what
// became of it. It holds nothing of what was asked with or answered.
type Call struct {
	Face      string   `json:"face"`            // http | mcp | console
	By        string   `json:"by"`              // the token's name; of a subject the reference
	Role      string   `json:"role"`            // subject | admin | agent | system | operator
	Agent     string   `json:"agent,omitempty"` // the login of the role agent
	Database  string   `json:"database"`
	Operation string   `json:"operation"`           // its fixed name, as consent.history: never a path with values
	Written   bool     `json:"written,omitempty"`   // it changes something
	About     []string `json:"about,omitempty"`     // the persons whom it is about: references
	Everybody bool     `json:"everybody,omitempty"` // it is about all persons of the database
	Outcome   string   `json:"outcome"`             // done | refused | failed
	Code      string   `json:"code,omitempty"`      // the SQLSTATE or the name of what refused it
}

// The values of an outcome.
const (
	Done    = "done"    // answered: what was asked about is there
	Refused = "refused" // not allowed, not found, not valid
	Failed  = "failed"  // something did not work
)

// Call queues the record and returns at once. The answer may be handed out when [Ticket.Release] has returned nil.
func (l *Log) Call(c Call) *Ticket {
	return l.add(&Ticket{kind: KindCall, body: c, waits: l.cfg.Mode == Strict})
}

// KindCall is the member "kind" of these records.
const KindCall = "call"
