package enforce

// MaxSessions is how many sessions all agents together may have on the server, so that its owner and pgconsent itself
// never find it full: what its settings leave to ordinary roles, less a fifth of that, which is at least 5 and at
// most 50. It is 0 while nothing is known of the server.
func (e *Enforcer) MaxSessions() int {
	room := int(e.room.Load())
	if room <= 0 {
		return 0
	}
	return max(1, room-min(max(room/5, 5), 50))
}
