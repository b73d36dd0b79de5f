package verdict

// NoticeSource is a [Decider] that sends the client a notice now and then, which belongs to no statement.
type NoticeSource interface {
	// NextNotice returns a text for the client to get as a notice before the next ReadyForQuery, or "". It returns each
	// text once, may be called from any goroutine, and does not wait for anything.
	NextNotice() string
}

// ChannelFilter is a [Decider] that says from which channels the client may get notifications. It is asked for each
// notification, since the policy may have changed since the client's LISTEN.
type ChannelFilter interface {
	// AllowsChannel reports whether the client may get notifications of a channel. It may be called from any goroutine and
	// does not wait for anything.
	AllowsChannel(channel string) bool
}
