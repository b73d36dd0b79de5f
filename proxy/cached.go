package proxy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// beginGroup notes what is known of the transaction as the client begins a group of messages, or sends a Query. In a
// transaction that has failed PostgreSQL refuses a Parse, so its state must be known where nothing is sent to be parsed.
func (r *requests) beginGroup() {
	r.group.hasMessages = true
	status, isSettled := r.ledger.certainStatus()
	isSettled = isSettled && len(r.batch.unsent()) == 0
	if isSettled && status == 'I' {
		r.settingsChanged, r.planHardened = false, false
	}
	r.group.usesCache = isSettled && status != 'E'
}

// mayCache tells whether the statement of a text may be one that is kept prepared: one that PostgreSQL plans.
func (r *requests) mayCache(v *verdict.Verdict) bool {
	return r.group.usesCache && !r.settingsChanged && !r.planHardened && len(v.Effects) == 1 &&
		v.Effects[0].Kind == verdict.EffectNone && (v.Effects[0].ReadsRows || v.Effects[0].WritesRows) &&
		!v.HasHardenedPlan() &&
		!v.HardenBeforeParse && !v.CallsSetConfig
}

// mayCacheNamed tells whether a named statement of a pooled session may be kept prepared. It may if the server would
// parse its text the same way later.
func (r *requests) mayCacheNamed(v *verdict.Verdict) bool {
	return r.group.usesCache && !r.settingsChanged && !r.planHardened && !v.HasHardenedPlan() && !v.HardenBeforeParse &&
		!v.CallsSetConfig && len(v.Effects) <= 1
}

// stageCachedParse stages a Parse by a statement that is kept prepared. It is false where there is none.
func (r *requests) stageCachedParse(e *parseEntry, st *statement, types []byte) bool {
	isNamed := r.pooled() && e.name != ""
	if !r.mayCache(e.verdict) && !(isNamed && r.mayCacheNamed(e.verdict)) {
		return false
	}
	s, isNew, leftovers := r.ledger.findCached(e.verdict, types, r.group.number, isNamed)
	if s == nil {
		return false
	}
	r.closeCached(leftovers)
	st.cached, st.hiddenFromServer, e.cached = s, true, s
	st.parameterTypes = append([]byte(nil), types...)
	start := len(r.batch.out)
	if isNew {
		r.snapshots.noteNeed(e)
		r.batch.out = appendParse(r.batch.out, s.name, e.verdict.PreparedText(), types)
	} else {
		// The server answers in its turn, and skips the message behind an error as it skips a Parse.
		e.sentAsClose = true
		r.batch.out = appendClose(r.batch.out, 'S', unusedName)
	}
	r.batch.add(start, e)
	return true
}

// statement finds the statement of a name for the message at hand; nil if there is none. A Close drops it, and a Query
// the one without a name. The server notices that by itself, unless the proxy keeps the statement prepared: then the
// answer is awaited. A Close in the same group needs no wait, since the server skips it together with the message.
func (r *requests) statement(name string) (*statement, error) {
	st, err := r.ledger.statement(name, r.group.number, r.flush)
	switch {
	case st == nil || err != nil || r.isOnServer(st):
		return st, err
	case st.closeSent && st.closeGroup == r.group.number:
		return nil, nil
	case !st.closeSent && !hasQuery(r.batch.unsent()) && !r.ledger.isQueryAwaited():
		return st, nil
	}
	if err := r.flush(); err != nil {
		return nil, err
	}
	r.ledger.waitReady()
	st, err = r.ledger.statement(name, r.group.number, r.flush)
	if st != nil {
		st.closeSent = false // the server has skipped the Close
	}
	return st, err
}

// hasQuery tells whether a Query of the client is among these items.
func hasQuery(items []item) bool {
	return slices.ContainsFunc(items, func(i item) bool {
		_, isOfKind := i.entry.(*queryEntry)
		return isOfKind
	})
}

// isQueryAwaited tells whether the answer to a Query is to come.
func (l *ledger) isQueryAwaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.queue.waiting(), func(e entry) bool {
		_, isOfKind := e.(*queryEntry)
		return isOfKind
	})
}

// isOnServer tells whether the server of the connection knows a statement by the client's name for it, unless it was
// closed.
func (r *requests) isOnServer(st *statement) bool {
	return !st.hiddenFromServer && (!r.pooled() || st.inSQL || st.connection == r.pooling.connections)
}

// closeCached stages messages that close statements of the proxy.
func (r *requests) closeCached(names []string) {
	for _, name := range names {
		r.stageProxyMessage(&closeEntry{object: 'S'}, name, appendClose(nil, 'S', name))
	}
}

// upstreamStatement is the server's name of a statement of the client. A statement that was kept prepared and is gone
// is prepared once more. cached is the cached statement, nil if it is none.
func (r *requests) upstreamStatement(st *statement, name string, v *verdict.Verdict) (upstream string,
	cached *cachedStatement) {
	switch {
	case st.cached == nil && r.isOnServer(st):
		return verdict.UpstreamName(name), nil
	case st.cached == nil: // the statement was prepared on another connection
	case v.HasHardenedPlan(): // the server may have kept a plan that was made without its settings
	case r.ledger.isPrepared(st.cached, r.group.number):
		return st.cached.name, st.cached
	default:
		s, isNew := r.ledger.replaceCached(st.cached, v, r.group.number)
		if s == nil {
			break
		}
		st.cached = s
		if isNew {
			e := &parseEntry{cached: s}
			e.verdict = v // its rights may end before it is sent
			r.stageProxyMessage(e, s.name, appendParse(nil, s.name, v.PreparedText(), st.parameterTypes))
		}
		return s.name, s
	}
	r.stageProxyPrepare(rowSecurityName, v.Text, st.parameterTypes)
	return rowSecurityName, nil
}

// queryProtocol tells how a Query may be sent: with parameters in place of literals where it can be a statement that is
// kept prepared.
func (r *requests) queryProtocol() verdict.Protocol {
	if r.group.isSingleQuery && r.group.usesCache && !r.settingsChanged && !r.planHardened && r.ledger.hasCacheRoom() {
		return verdict.Bindable
	}
	return verdict.Simple
}

// cachedQuery is the messages for a Query of one SELECT by a statement that is kept prepared; nil where there is none.
func (r *requests) cachedQuery(e *queryEntry) []byte {
	v := e.verdict
	if !r.group.isSingleQuery || !r.mayCache(v) || !v.IsRunnable() || v.Effects[0].WritesRows || v.Values == nil &&
		hasParameters(v.Text) {
		return nil
	}
	s, isNew, leftovers := r.ledger.findCached(v, noParameterTypes, noGroup, v.Values != nil)
	if s == nil {
		return nil
	}
	r.closeCached(leftovers)
	e.cached = s
	r.seal.preparedRuns++
	var b []byte
	if isNew {
		b = appendParse(b, s.name, v.PreparedText(), noParameterTypes)
	}
	b = appendBind(b, "", s.name, textParameters(v.Values))
	b = appendDescribe(b, 'P', "")
	b = appendExecute(b, "", 0)
	b = appendClose(b, 'P', "")
	return appendSync(b)
}

// hasParameters tells whether a text may name a parameter: in a Query that is an error, in a Parse it is not.
func hasParameters(text string) bool {
	for {
		_, afterDollar, found := strings.Cut(text, "$")
		if !found {
			return false
		}
		if afterDollar != "" && afterDollar[0] >= '0' && afterDollar[0] <= '9' {
			return true
		}
		text = afterDollar
	}
}

// runsCached tells whether the messages of a cached statement are sent for the Query.
func (e *queryEntry) runsCached() bool { return e.cached != nil && e.steps == nil && e.refusal == nil }

// answerCached takes those answers to the messages of a cached Query that a Query does not have.
func (e *queryEntry) answerCached(a *answers, typ byte) (isExpected bool) {
	switch typ {
	case '1':
		a.ledger.confirmCached(e.cached)
	case '2', '3', 'n':
	default:
		return false
	}
	a.tail.isSkipped = true
	return true
}

// confirmCached notes that the server has prepared a statement.
func (l *ledger) confirmCached(s *cachedStatement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache.confirm(s)
}

// cachedOf is the statement of the cache that a message uses or prepares; nil: none.
func cachedOf(e entry) *cachedStatement {
	switch e := e.(type) {
	case *parseEntry:
		return e.cached
	case *bindEntry:
		return e.cached
	case *describeEntry:
		return e.cached
	case *queryEntry:
		if e.runsCached() {
			return e.cached
		}
	}
	return nil
}

// isCacheError tells whether a message fails only because its statement was kept prepared. The client, which has just
// sent the text, would not have got the error.
func isCacheError(e entry, f *errorFields) bool {
	if e.base().refusal != nil || cachedOf(e) == nil {
		return false
	}
	return f.sqlstate == "0A000" && f.message == changedResultMessage ||
		f.code() == invalidStatementName && strings.Contains(f.message, cachedPrefix)
}
