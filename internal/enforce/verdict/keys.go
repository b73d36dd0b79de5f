package verdict

// KeyReader is a [Ticket] that records the primary keys of returned rows. One goroutine passes it the rows of an
// execution while they are relayed, before RecordOutcome.
type KeyReader interface {
	// ReadsKeys reports whether the proxy must call Row for the rows of this execution.
	ReadsKeys() bool

	// Row gets the body of a DataRow, the body of its RowDescription, and the result formats of its Bind. If formats is
	// nil, the formats of the description apply. The description is nil if it is not known, and the row is nil if it is
	// too long to be read.
	Row(description []byte, formats []int16, row []byte)
}
