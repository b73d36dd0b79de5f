package proxy

import (
	"container/list"
	"hash/maphash"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// When a text is used again on a connection to the server, the proxy prepares it there under a name of its own. From
// then on the server need not parse the text, nor plan it if the plan is cached:
//
//   - For a Parse without a name the proxy sends no text; the Bind behind it names the proxy's statement.
//   - For a Query of one SELECT the proxy sends Bind, Describe, Execute and Sync of that statement. The client gets the
//     answers that it would have got to the Query.
//
// The client notices nothing. The proxy empties the cache when a setting changes that affects parsing (see
// settings_changed.go), and prepares a statement anew when the policy or the catalogs have changed. If the server
// notices a change before the proxy does, the proxy sends the client's messages once more (see retry.go).

// DefaultStatementCache is how many statements the proxy keeps prepared on each connection to the server, unless the
// configuration sets another number.
const DefaultStatementCache = 100

const (
	maxCachedText  = 64 << 10 // limit of each cached text, in bytes
	maxCachedTexts = 1 << 20  // limit of the cached texts together, in bytes
)

const (
	cachedPrefix = "pgconsent_q"    // begins the server's names of cached statements; no client can use such names
	unusedName   = "pgconsent_none" // a name that no statement has, so that a Close of it has no effect

	// changedResultMessage is PostgreSQL's message for a prepared statement whose result has other columns now
	// (plancache.c).
	changedResultMessage = "cached plan must not change result type"
)

// cachedState is the state of a cached statement.
type cachedState int

const (
	beingPrepared cachedState = iota // the Parse of the statement is in the batch or was sent
	prepared                         // the server has the statement
	dropped                          // the statement must not be used any more
)

// cachedStatement is a statement that the proxy has prepared on a connection under a name of its own, or is about to
// prepare.
type cachedStatement struct {
	cache    *statementCache
	key      cacheKey
	name     string // the server's name
	versions verdict.Versions
	group    uint64 // the group of messages that prepares it
	state    cachedState
	element  *list.Element
	uses     int // how many times [statementCache.findOrAdd] has returned it
}

// isPrepared reports whether a message of this group (messages up to a Sync) can rely on the server having the
// statement. Messages of the group that prepares it can: if that Parse fails, the server skips them.
func (s *cachedStatement) isPrepared(group uint64) bool {
	return s.state == prepared || s.state == beingPrepared && s.group == group && group != noGroup
}

// cacheKey identifies a statement of the cache.
type cacheKey struct {
	text, types string

	// neverGeneric says that the server plans each run of the statement with the run's parameters.
	neverGeneric bool
}

// maxCustomPlans is how many runs of a prepared statement PostgreSQL plans with their parameters before it considers
// one generic plan for all (choose_custom_plan in plancache.c; PREPARE in the SQL reference).
const maxCustomPlans = 5

// statementCache has the statements that the proxy keeps prepared on one connection to the server. The lock of the
// session's ledger guards it.
type statementCache struct {
	maxStatements  int  // how many statements the cache may have
	preparesAtOnce bool // a text is cached when it first occurs (see [Upstream].CacheEagerly)
	statements     map[cacheKey]*cachedStatement
	recent         list.List // the *cachedStatement values, the most recently used one in front
	textBytes      int
	seen           seenTexts
	lastNumber     uint64   // the number in the name that was made last
	pending        int      // how many statements are being prepared
	namesToClose   []string // server's names of dropped statements that the proxy must still close
}

var cacheSeed = maphash.MakeSeed()

// findOrAdd returns the cached statement for the text of v. If isNew is true, the caller must send its Parse. It
// returns nil if the text cannot be cached now. Unless atOnce is true, it also returns nil when a text first occurs.
func (c *statementCache) findOrAdd(v *verdict.Verdict, types []byte, group uint64, atOnce bool) (s *cachedStatement, isNew bool) {
	if c.maxStatements == 0 || len(v.Text) > maxCachedText {
		return nil, false
	}
	key := cacheKey{text: v.Text, neverGeneric: v.NeedsPlan}
	if len(types) > len(noParameterTypes) {
		key.types = string(types)
	}
	if s = c.statements[key]; s != nil {
		switch {
		case s.versions != v.Versions || key.neverGeneric && s.uses >= maxCustomPlans:
			c.drop(s)
		case s.isPrepared(group):
			c.recent.MoveToFront(s.element)
			s.uses++
			return s, false
		default:
			return nil, false
		}
	} else if !atOnce && !c.wasSeen(v.Text) {
		return nil, false
	}
	return c.add(key, v.Versions, group)
}

// hasRoom reports whether the cache is in use and no statement is being prepared, so that [statementCache.findOrAdd]
// can always make room.
func (c *statementCache) hasRoom() bool {
	return c.maxStatements > 0 && c.pending == 0
}

// wasSeen reports whether a text has occurred before, as far as the cache remembers.
func (c *statementCache) wasSeen(text string) bool {
	return c.preparesAtOnce || c.seen.add(maphash.String(cacheSeed, text))
}

// add adds a new statement, and drops the least recently used ones to make room. It returns nil if there is no room.
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
	s := &cachedStatement{cache: c, key: key, name: cachedPrefix + strconv.FormatUint(c.lastNumber, 10), versions: versions,
		group: group, uses: 1}
	s.element = c.recent.PushFront(s)
	c.statements[key] = s
	c.textBytes += len(key.text)
	return s, true
}

// drop removes a statement from the cache. The proxy closes it on the server before it prepares another one.
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

// dropAll removes all statements from the cache.
func (c *statementCache) dropAll() {
	for _, s := range c.statements {
		c.drop(s)
	}
}

// confirm notes that the server has prepared a statement of the cache.
func (c *statementCache) confirm(s *cachedStatement) {
	if s.state == beingPrepared {
		s.state = prepared
		c.pending--
	}
}

// fail drops a statement whose Parse the server has not run.
func (c *statementCache) fail(s *cachedStatement) {
	if s.state == beingPrepared {
		c.drop(s)
	}
}

// hasCacheRoom calls [statementCache.hasRoom] with the lock.
func (l *ledger) hasCacheRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cache.hasRoom()
}

// findCached calls [statementCache.findOrAdd] with the lock. leftovers are names of dropped statements that the caller
// must close before it prepares a new one.
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

// replaceCached returns a cached statement with the text of one that was dropped, or that is on another connection. If
// isNew is true, the caller must send its Parse. It returns nil if there is no room.
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

// isPrepared reports whether a message of this group (messages up to a Sync) can rely on the statement being prepared
// on the session's connection.
func (l *ledger) isPrepared(s *cachedStatement, group uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.cache == l.cache && s.isPrepared(group)
}

// dropAllCached removes all statements from the session's cache.
func (l *ledger) dropAllCached() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache.dropAll()
}
