package audit

// SubjectReport is the record of a report about somebody that was made from the log and the database. It says who asked and for
// whom, and nothing of what the report holds.
type SubjectReport struct {
	By       string `json:"by"`                // who asked
	About    string `json:"about,omitempty"`   // a reference to the person; none: nobody of that name is known
	Database string `json:"database"`          // whose rows and registry it is made from
	Format   string `json:"format,omitempty"`  // json | html
	Data     bool   `json:"data,omitempty"`    // it has a copy of the person's rows
	Found    bool   `json:"found"`             // false: nothing was known, and there is no report
	Records  uint64 `json:"records,omitempty"` // of the logs that were read
	Intact   bool   `json:"intact"`            // those logs hold
}

// SubjectReport queues the record and returns at once. The report may be handed out when [Ticket.Release] has returned nil.
func (l *Log) SubjectReport(m SubjectReport) *Ticket {
	return l.add(&Ticket{kind: KindSubjectReport, body: m, waits: l.cfg.Mode != Off})
}

// Seq is the number of the record, once Release has returned nil.
func (t *Ticket) Seq() uint64 { return t.seq }

// KindSubjectReport is the member "kind" of these records.
const KindSubjectReport = "report"
