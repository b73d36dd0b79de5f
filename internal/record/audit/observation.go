package audit

// Observation is the record of what the policy would have done to a statement over tables whose rules it only observes.
// It names columns and counts rows, but contains no row.
type Observation struct {
	Session       string   `json:"session,omitempty"`
	Agent         string   `json:"agent"`
	Database      string   `json:"database"`
	Policy        string   `json:"policy"`
	Fingerprint   string   `json:"fingerprint"`
	Tag           string   `json:"tag"`
	Tables        []string `json:"tables"`             // the tables of the statement whose rules are only observed
	HiddenColumns []string `json:"hidden,omitempty"`   // the columns that the policy would have hidden, as table.column
	MaskedColumns []string `json:"masked,omitempty"`   // the columns that the policy would have masked, as table.column
	SQLState      string   `json:"sqlstate,omitempty"` // the SQLSTATE with which the statement would have been refused
	Reason        string   `json:"reason,omitempty"`
	Contract      string   `json:"contract,omitempty"` // the first contract that would have refused the statement
	Rows          int64    `json:"rows"`               // the rows that the statement returned or changed

	Compared   *Comparison `json:"compared,omitempty"`
	SkipReason string      `json:"skipped,omitempty"` // why this execution was not compared
}

// Comparison says how the answer changed when the proxy ran a statement twice in one snapshot, without and with the
// policy.
type Comparison struct {
	Rows        int64 `json:"rows"`    // the number of rows without the policy
	VisibleRows int64 `json:"visible"` // the number of rows with the policy
	Differs     bool  `json:"differs"` // the two answers have different rows
}

// Observation queues the record and returns at once. No statement waits for this record.
func (l *Log) Observation(o Observation) {
	l.enqueue(&Ticket{kind: KindObservation, rareRecord: o})
}

// ComparisonFailed is the SkipReason of an execution whose comparison failed.
const ComparisonFailed = "the comparison failed"

// ComparedSeparately is the SkipReason of an execution whose comparison is in a record of its own.
const ComparedSeparately = "it is recorded by itself"

// KindObservation is the member "kind" of the records of observations.
const KindObservation = "observation"
