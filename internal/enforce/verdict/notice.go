package verdict

// Noticer is a [Decider] that has something to tell the client now and then, apart from any statement.
type Noticer interface {
	// Notice returns a text that the client is to have as a notice before the next ReadyForQuery, or "". Each text is
	// returned once. It may be called from any goroutine, and does not wait for anything.
	Notice() string
}
