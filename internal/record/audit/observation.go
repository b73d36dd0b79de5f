package audit

// Observation is the record of what the policy would have done to a statement over tables that it only observes. It
// names columns and counts rows, but contains no row.
type Observation struct {
	Session       string   `json:"session,omitempty"`
	Agent         string   `json:"agent"`
	Database      string   `json:"database"`
	Policy        string   `json:"policy"`
	Fingerprint   string   `json:"fingerprint"`
	Tag           string   `json:"tag"`
	Tables        []string `json:"tables"`             // the observed tables that the statement reads or writes
	HiddenColumns []string `json:"hidden,omitempty"`   // the columns that would not exist, as table.column
	MaskedColumns []string `json:"masked,omitempty"`   // the columns whose values would be masked, as table.column
	SQLState      string   `json:"sqlstate,omitempty"` // the SQLSTATE of the refusal that the statement would have met
	Reason        string   `json:"reason,omitempty"`
	Contract      string   `json:"contract,omitempty"` // the first contract that would have refused the statement
	Rows          int64    `json:"rows"`               // the rows that the statement returned or changed

	Compared   *Comparison `json:"compared,omitempty"`
	SkipReason string      `json:"skipped,omitempty"` // the reason why this execution was not compared
}

// Comparison has the result of running a statement twice in one snapshot: as it was, and as the policy would have it.
type Comparison struct {
	Rows        int64 `json:"rows"`    // the rows without the policy
	VisibleRows int64 `json:"visible"` // the rows that the policy would show
	Differs     bool  `json:"differs"` // the two answers do not consist of the same rows
}

// Observation queues the record and returns at once. Nobody waits for it.
func (l *Log) Observation(o Observation) {
	l.enqueue(&Ticket{kind: KindObservation, rareRecord: o})
}

// ComparisonFailed is the value of SkipReason for a comparison that has failed.
const ComparisonFailed = "the comparison failed"

// ComparedSeparately is the value of SkipReason if another record has the comparison.
const ComparedSeparately = "it is recorded by itself"

// KindObservation is the member "kind" of these records.
const KindObservation = "observation"
