package verdict

// KeyReader is a [Ticket] that has the keys of rows recorded. It is handed the rows of an execution as they are
// relayed, by one goroutine, before Done.
type KeyReader interface {
	// ReadsKeys tells whether it wants them.
	ReadsKeys() bool

	// Row takes the body of a DataRow, the body of the RowDescription that is known of it, and the result formats of its
	// Bind; nil formats are those of the description. Without a description, or a row that is too long to be looked
	// at, what is nil says so.
	Row(description []byte, formats []int16, row []byte)
}
