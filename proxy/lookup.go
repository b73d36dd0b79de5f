package proxy

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// mayPrepare reports whether the session may have another prepared statement of this size.
func (l *ledger) mayPrepare(s *statement) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.statements.len()+l.pendingStatements.len() < maxStatements && l.statementBytes+s.byteSize <= maxStatementBytes
}

// mayBind reports whether the session may have another portal.
func (l *ledger) mayBind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.portals.len()+l.pendingPortals.len() < maxPortals
}

// addPendingStatement notes the statement that a Parse or PREPARE which is about to be sent will make.
func (l *ledger) addPendingStatement(name string, s *statement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statementBytes += s.byteSize
	s.previous = l.pendingStatements.get(name)
	l.pendingStatements.set(name, s)
}

// addPendingPortal notes the portal that a Bind or DECLARE which is about to be sent will open.
func (l *ledger) addPendingPortal(name string, p *portal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pendingPortals.set(name, p)
}

// dropUnnamedPortal forgets the portal without a name, since a Query that is about to be sent replaces it. If that
// Query fails in a transaction, PostgreSQL is left with an unnamed portal of the Query. An Execute of this portal would
// crash the server, since the portal's statements are gone from memory.
func (l *ledger) dropUnnamedPortal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, portals := range []*byName[portal]{&l.portals, &l.pendingPortals} {
		if p := portals.get(""); p != nil {
			p.droppedByQuery = true
			portals.remove("")
		}
	}
}

// statement returns the statement that a message of this group (messages up to a Sync) means by a name, or nil. If a
// Parse or PREPARE of another group is in flight, statement calls flush and waits for its answer.
func (l *ledger) statement(name string, group uint64, flush func() error) (*statement, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		s := l.pendingStatements.get(name)
		if s == nil {
			return l.statements.get(name), nil
		}
		if s.group == group {
			return s, nil
		}
		if err := l.waitChange(flush); err != nil {
			return nil, err
		}
		flush = nil
	}
}

// portal returns the portal that a message of this group (messages up to a Sync) means by a name, as [ledger.statement]
// does for statements.
func (l *ledger) portal(name string, group uint64, flush func() error) (*portal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		p := l.pendingPortals.get(name)
		if p == nil {
			return l.portals.get(name), nil
		}
		if p.group == group {
			return p, nil
		}
		if err := l.waitChange(flush); err != nil {
			return nil, err
		}
		flush = nil
	}
}

// hasUnreadHold reports whether there is a cursor WITH HOLD whose transaction is still open, so that PostgreSQL has not
// read its rows yet.
func (l *ledger) hasUnreadHold() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, portals := range []*byName[portal]{&l.portals, &l.pendingPortals} {
		for _, p := range portals.all() {
			if p.withHold && !p.txEnded {
				return true
			}
		}
	}
	return false
}

// hasOpenResult reports whether a cursor is open, or a portal whose result the client reads in parts. With
// withoutUnnamed the portal without a name does not count.
func (l *ledger) hasOpenResult(withoutUnnamed bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, portals := range []*byName[portal]{&l.portals, &l.pendingPortals} {
		for name, p := range portals.all() {
			switch latest := l.pendingPortals.get(name); {
			case latest != nil && latest != p: // a message in flight replaces this portal
			case name == "" && withoutUnnamed:
			case p.isCursor || p.fetchedInParts:
				return true
			}
		}
	}
	return false
}

// portal returns the client's portal with a name, or nil. If no transaction is open, a portal ends with the group of
// messages that opened it. So for a portal of an earlier group, the method waits for the answers to that group.
func (r *requests) portal(name string) (*portal, error) {
	p, err := r.ledger.portal(name, r.group.number, r.flush)
	if p == nil || err != nil || p.group == r.group.number || !r.batch.endsWithReady() && !r.ledger.isReadyAwaited() {
		return p, err
	}
	if err := r.flush(); err != nil {
		return nil, err
	}
	r.ledger.waitReady()
	return r.ledger.portal(name, r.group.number, r.flush)
}

func longNameError() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
		"the name of a statement or portal is longer than %d bytes", maxName).
		WithHint("Give it a shorter one.")
}

func tooManyPortalsError() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds, "too many portals in one transaction").
		WithHint("At most %d portals may be open at a time; close those that are not needed.", maxPortals)
}

func tooManyStatementsError() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds, "too many prepared statements in one session").
		WithHint("At most %d statements and %d MiB of text may be prepared at a time; close those that are not "+
			"needed.", maxStatements, maxStatementBytes>>20)
}
