package audit

// SubjectReport is the record of an access report to a data subject: who requested it and about whom, but not its
// contents.
type SubjectReport struct {
	RequestedBy string `json:"by"` // the person who requested the report
	// a reference to the person whom the report is about; left out: the person is unknown
	Subject      string `json:"about,omitempty"`
	Database     string `json:"database"`          // the database whose rows and registry the report uses
	Format       string `json:"format,omitempty"`  // json or html
	HasCopy      bool   `json:"data,omitempty"`    // the report includes a copy of the rows
	SubjectKnown bool   `json:"found"`             // false: the person is unknown, and there is no report
	Records      uint64 `json:"records,omitempty"` // number of records in the logs that were read
	LogsIntact   bool   `json:"intact"`            // the logs that were read have passed verification
}

// SubjectReport queues the record and returns at once. The caller may hand the report out only after [Ticket.Release]
// has returned nil.
func (l *Log) SubjectReport(m SubjectReport) *Ticket {
	return l.enqueue(&Ticket{kind: KindSubjectReport, rareRecord: m, hasWaiter: l.cfg.Mode != ModeOff})
}

// Seq returns the number of the record, after Release has returned nil.
func (t *Ticket) Seq() uint64 { return t.seq }

// KindSubjectReport is the member "kind" of the records of access reports.
const KindSubjectReport = "report"
