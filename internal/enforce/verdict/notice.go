package verdict

// Noticer is a [Decider] that sends the client a notice now and then, which belongs to no statement.
type Noticer interface {
	// Notice returns a text for the client to get as a notice before the next ReadyForQuery, or "". It returns each text
	// once, may be called from any goroutine, and does not wait for anything.
	Notice() string
}
