package enforce

// MaxSessions returns how many sessions all agents together may have on the server. A fifth of the connections for
// ordinary roles, at least 5 and at most 50, stays free for the server's owner and pgconsent itself. MaxSessions
// returns 0 until a probe has read the server's settings.
func (e *Enforcer) MaxSessions() int {
	room := int(e.connectionLimit.Load())
	if room <= 0 {
		return 0
	}
	return max(1, room-min(max(room/5, 5), 50))
}
