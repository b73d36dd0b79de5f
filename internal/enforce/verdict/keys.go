package verdict

// KeyReader is a [Ticket] that records the keys of rows. One goroutine hands it the rows of an execution as they are
// relayed, before Done.
type KeyReader interface {
	// ReadsKeys reports whether the ticket needs the rows.
	ReadsKeys() bool

	// Row gets the body of a DataRow, the body of its RowDescription, and the result formats of its Bind; nil formats
	// mean the formats of the description. The description is nil if it is not known, the row if it is too long to be
	// read.
	Row(description []byte, formats []int16, row []byte)
}
