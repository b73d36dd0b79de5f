package proxy

import (
	"container/list"
	"hash/maphash"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A text that comes again on a connection to the server is prepared there under a name of the proxy. From then on the
// server neither parses it nor, where it keeps a plan, plans it:
//
//   - A Parse without a name sends nothing that the server has to parse; the Bind behind it names the proxy's statement.
//   - A Query of one SELECT goes as Bind, Describe, Execute and Sync of that statement. The client gets the answers that
//     it would have got to the Query.
//
// The client notices nothing. Settings that PostgreSQL reads as it parses a text may not have changed since (see
// settings_changed.go). A statement is prepared anew when the policy or the catalogs have changed. Where the server
// finds a change before the proxy does, the client's messages are sent once more (see retry.go).

// DefaultStatementCache is how many statements of a session the proxy keeps prepared, unless the
// configuration sets another number.
const DefaultStatementCache = 100

const (
	maxCachedText  = 64 << 10 // bytes of one text in the cache
	maxCachedTexts = 1 << 20  // bytes of all texts in the cache
	maxSeenHashes  = 128      // how many texts are remembered that came once
)

const (
	cachedPrefix = "pgconsent_q"    // of the server's names of cached statements; no client's name has it
	unusedName   = "pgconsent_none" // names nothing: closing it does nothing

	// changedResultMessage is PostgreSQL's message for a prepared statement whose result has other columns now
	// (plancache.c).
	changedResultMessage = "cached plan must not change result type"
)

// cachedState is what is known of a cached statement.
type cachedState int

const (
	beingPrepared cachedState = iota // the Parse of the statement is staged or sent
	prepared                         // the server has the statement
	dropped                          // the statement must not be used any more
)

// cachedStatement is a statement that the proxy has prepared, or is about to.
type cachedStatement struct {
	cache    *statementCache
	key      cacheKey
	name     string // the server's name
	versions verdict.Versions
	group    uint64 // the group of messages that prepares it
	state    cachedState
	element  *list.Element
}

// isPrepared tells whether the server has the statement when it comes to a message of this group. Where its Parse
// fails, the rest of its own group is skipped.
func (s *cachedStatement) isPrepared(group uint64) bool {
	return s.state == prepared || s.state == beingPrepared && s.group == group && group != noGroup
}

type cacheKey struct{ text, types string }

// statementCache has the statements that are kept prepared on one connection to the server. The ledger's lock guards
// it.
type statementCache struct {
	maxStatements  int  // how many statements it may have
	preparesAtOnce bool // a text is kept prepared from its first coming on
	statements     map[cacheKey]*cachedStatement
	recent         list.List // of *cachedStatement, the one that was used last in front
	textBytes      int
	seenHashes     []uint64 // hashes of texts that came once, by their remainders
	lastNumber     uint64   // of the last name
	pending        int      // how many statements are being prepared
	namesToClose   []string // names of statements that the server is still to close
}

var cacheSeed = maphash.MakeSeed()

// findOrAdd returns the statement for a text that is allowed, which may be new: then the caller sends its Parse. It is
// nil where the text is not to be kept prepared, or not yet: unless atOnce is true, at its second coming.
func (c *statementCache) findOrAdd(v *verdict.Verdict, types []byte, group uint64, atOnce bool) (s *cachedStatement, isNew bool) {
	if c.maxStatements == 0 || len(v.Text) > maxCachedText {
		return nil, false
	}
	key := cacheKey{text: v.Text}
	if len(types) > len(noParameterTypes) {
		key.types = string(types)
	}
	if s = c.statements[key]; s != nil {
		switch {
		case s.versions != v.Versions:
			c.drop(s)
		case s.isPrepared(group):
			c.recent.MoveToFront(s.element)
			return s, false
		default:
			return nil, false
		}
	} else if !atOnce && !c.wasSeen(v.Text) {
		return nil, false
	}
	return c.add(key, v.Versions, group)
}

// hasRoom tells whether [statementCache.findOrAdd] finds any text at once, or makes room for it: no statement is being
// prepared.
func (c *statementCache) hasRoom() bool {
	return c.maxStatements > 0 && c.pending == 0
}

// wasSeen tells whether a text has come before, as far as that is remembered.
func (c *statementCache) wasSeen(text string) bool {
	if c.preparesAtOnce {
		return true
	}
	if c.seenHashes == nil {
		c.seenHashes = make([]uint64, maxSeenHashes)
	}
	hash := maphash.String(cacheSeed, text)
	slot := &c.seenHashes[hash%maxSeenHashes]
	if *slot == hash {
		return true
	}
	*slot = hash
	return false
}

// add makes room for one more statement, and the statement.
func (c *statementCache) add(key cacheKey, versions verdict.Versions, group uint64) (*cachedStatement, bool) {
	for last := c.recent.Back(); len(c.statements) >= c.maxStatements || c.textBytes+len(key.text) > maxCachedTexts; last = c.recent.Back() {
		if last == nil || last.Value.(*cachedStatement).state == beingPrepared {
			return nil, false
		}
		c.drop(last.Value.(*cachedStatement))
	}
	if c.statements == nil {
		c.statements = map[cacheKey]*cachedStatement{}
	}
	c.lastNumber++
	c.pending++
	s := &cachedStatement{cache: c, key: key, name: cachedPrefix + strconv.FormatUint(c.lastNumber, 10), versions: versions, group: group}
	s.element = c.recent.PushFront(s)
	c.statements[key] = s
	c.textBytes += len(key.text)
	return s, true
}

// drop takes a statement out. The server is told to close it before another one is prepared.
func (c *statementCache) drop(s *cachedStatement) {
	switch s.state {
	case dropped:
		return
	case beingPrepared:
		c.pending--
	}
	s.state = dropped
	c.namesToClose = append(c.namesToClose, s.name)
	c.recent.Remove(s.element)
	delete(c.statements, s.key)
	c.textBytes -= len(s.key.text)
}

// dropAll takes all statements out.
func (c *statementCache) dropAll() {
	for _, s := range c.statements {
		c.drop(s)
	}
}

// confirm notes that the server has prepared a statement.
func (c *statementCache) confirm(s *cachedStatement) {
	if s.state == beingPrepared {
		s.state = prepared
		c.pending--
	}
}

// fail notes that the server has not prepared a statement.
func (c *statementCache) fail(s *cachedStatement) {
	if s.state == beingPrepared {
		c.drop(s)
	}
}

// hasCacheRoom is [statementCache.hasRoom].
func (l *ledger) hasCacheRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cache.hasRoom()
}

// findCached is [statementCache.findOrAdd], and returns what is to be closed before a new statement is prepared.
func (l *ledger) findCached(v *verdict.Verdict, types []byte, group uint64, atOnce bool) (
	s *cachedStatement, isNew bool, leftovers []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, isNew = l.cache.findOrAdd(v, types, group, atOnce)
	if isNew {
		leftovers, l.cache.namesToClose = l.cache.namesToClose, nil
	}
	return s, isNew, leftovers
}

// replaceCached returns a statement in the place of one that was dropped, or that another connection has. It may be
// new; nil: there is no room.
func (l *ledger) replaceCached(dropped *cachedStatement, v *verdict.Verdict, group uint64) (s *cachedStatement,
	isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s = l.cache.statements[dropped.key]; s != nil {
		if s.versions == v.Versions && s.isPrepared(group) {
			l.cache.recent.MoveToFront(s.element)
			return s, false
		}
		l.cache.drop(s)
	}
	return l.cache.add(dropped.key, v.Versions, group)
}

// isPrepared tells whether the server has a statement, on the connection of the session, when it comes to a message of
// this group.
func (l *ledger) isPrepared(s *cachedStatement, group uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.cache == l.cache && s.isPrepared(group)
}

// dropAllCached takes all statements out of the cache.
func (l *ledger) dropAllCached() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache.dropAll()
}
