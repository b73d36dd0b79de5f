package verdict

// NoticeSource is a [Decider] that sometimes has a notice for the client which is about no statement.
type NoticeSource interface {
	// NextNotice returns the text of a notice that the proxy sends to the client before the next ReadyForQuery, or "". It
	// returns each text once, may be called from any goroutine, and does not wait for anything.
	NextNotice() string
}

// ChannelFilter is a [Decider] that decides from which channels the client may get notifications. The proxy calls it
// for each notification, since the policy may have changed since the client's LISTEN.
type ChannelFilter interface {
	// AllowsChannel reports whether the client may get notifications from a channel. It may be called from any goroutine
	// and does not wait for anything.
	AllowsChannel(channel string) bool
}
