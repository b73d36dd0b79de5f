package proxy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// beginGroup decides whether the group of messages that begins may use cached statements. In a failed transaction
// PostgreSQL refuses every Parse. A cached statement needs no Parse, so the proxy must know that the transaction has
// not failed.
func (r *requests) beginGroup() {
	r.group.hasMessages = true
	status, isSettled := r.ledger.certainStatus()
	isSettled = isSettled && len(r.batch.unsent()) == 0
	if isSettled && status == 'I' {
		r.settingsChanged, r.planHardened = false, false
	}
	r.group.usesCache = isSettled && status != 'E'
}

// mayCache reports whether the proxy may keep the statement of this verdict prepared on the server. Only single
// statements that read or write rows qualify.
func (r *requests) mayCache(v *verdict.Verdict) bool {
	return r.group.usesCache && !r.settingsChanged && !r.planHardened && len(v.Effects) == 1 &&
		v.Effects[0].Kind == verdict.EffectNone && (v.Effects[0].ReadsRows || v.Effects[0].WritesRows) &&
		!v.HasHardenedPlan() &&
		!v.HardenBeforeParse && !v.CallsSetConfig
}

// mayCacheNamed reports whether the proxy may keep a named statement of a pooled session prepared on the server. It may
// if the server would parse the text the same way later.
func (r *requests) mayCacheNamed(v *verdict.Verdict) bool {
	return r.group.usesCache && !r.settingsChanged && !r.planHardened && !v.HasHardenedPlan() && !v.HardenBeforeParse &&
		!v.CallsSetConfig && len(v.Effects) <= 1
}

// stageCachedParse handles a Parse with a statement of the cache. It returns false if the cache has none for the text
// and takes none.
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
		// The server answers this Close in the Parse's place, and skips it behind an error as it would skip a Parse.
		e.sentAsClose = true
		r.batch.out = appendClose(r.batch.out, 'S', unusedName)
	}
	r.batch.add(start, e)
	return true
}

// statement returns the client's prepared statement with this name, or nil. A Close sent before removes it, and a Query
// removes the unnamed one, if they succeed. For a statement that only the proxy's cache has on the server, the proxy
// must wait to learn that. A Close in the same group (messages up to a Sync) needs no wait, since the server skips it
// together with the current message.
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
		st.closeSent = false // the statement still exists, so the server has skipped the Close
	}
	return st, err
}

// hasQuery reports whether a Query message is among these items.
func hasQuery(items []item) bool {
	return slices.ContainsFunc(items, func(i item) bool {
		_, isOfKind := i.entry.(*queryEntry)
		return isOfKind
	})
}

// isQueryAwaited reports whether the server has yet to answer a Query.
func (l *ledger) isQueryAwaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.queue.waiting(), func(e entry) bool {
		_, isOfKind := e.(*queryEntry)
		return isOfKind
	})
}

// isOnServer reports whether the statement was prepared under the client's name on the connection that the session has
// now. It does not tell whether the client has closed the statement since.
func (r *requests) isOnServer(st *statement) bool {
	return !st.hiddenFromServer && (!r.pooled() || st.inSQL || st.connection == r.pooling.connections)
}

// closeCached adds Close messages for these statements, which the cache has dropped, to the batch.
func (r *requests) closeCached(names []string) {
	for _, name := range names {
		r.stageProxyMessage(&closeEntry{object: 'S'}, name, appendClose(nil, 'S', name))
	}
}

// upstreamStatement returns the server's name of a client's statement. If the server no longer has the statement, the
// proxy prepares it once more. cached is the statement of the cache, or nil if it is not in the cache.
func (r *requests) upstreamStatement(st *statement, name string, v *verdict.Verdict) (upstream string,
	cached *cachedStatement) {
	switch {
	case st.cached == nil && r.isOnServer(st):
		return verdict.UpstreamName(name), nil
	case st.cached == nil: // the statement was prepared on another connection
	case v.HasHardenedPlan(): // a cached plan may have been made without the settings of a hardened plan
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
			e.verdict = v // refuseOutdated compares this verdict's RightsEpoch before sending
			r.stageProxyMessage(e, s.name, appendParse(nil, s.name, v.PreparedText(), st.parameterTypes))
		}
		return s.name, s
	}
	r.stageProxyPrepare(rowSecurityName, v.Text, st.parameterTypes)
	return rowSecurityName, nil
}

// queryProtocol returns Bindable if the decider may replace literals of a Query by parameters, so that a cached
// statement can run it.
func (r *requests) queryProtocol() verdict.Protocol {
	if r.group.isSingleQuery && r.group.usesCache && !r.settingsChanged && !r.planHardened && r.ledger.hasCacheRoom() {
		return verdict.Bindable
	}
	return verdict.Simple
}

// cachedQuery returns the extended-protocol messages that run a Query of one SELECT by a cached statement. It returns
// nil if the Query must be sent as it is.
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
	text := v.Text
	if !v.NeedsPlan { // a plan is kept, and with it the seal
		text = v.PreparedText()
	}
	var b []byte
	if isNew {
		b = appendParse(b, s.name, text, noParameterTypes)
	}
	b = appendBind(b, "", s.name, textParameters(v.Values))
	b = appendDescribe(b, 'P', "")
	b = appendExecute(b, "", 0)
	b = appendClose(b, 'P', "")
	return appendSync(b)
}

// hasParameters reports whether a text may contain a parameter such as $1. PostgreSQL refuses parameters in a Query,
// but would accept them in a Parse.
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

// runsCached reports whether the proxy sends the messages of a cached statement in place of the Query.
func (e *queryEntry) runsCached() bool { return e.cached != nil && e.steps == nil && e.refusal == nil }

// answerCached handles and hides the answers that the client does not expect to a Query, such as ParseComplete. It
// returns false for all other answers.
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

// confirmCached notes that the server has prepared a statement of the cache.
func (l *ledger) confirmCached(s *cachedStatement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache.confirm(s)
}

// cachedOf returns the cached statement that a message uses or prepares, or nil.
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

// isCacheError reports whether a message failed only because the proxy's cache had prepared its statement earlier.
// Without the cache the client would not have got this error.
func isCacheError(e entry, f *errorFields) bool {
	if e.base().refusal != nil || cachedOf(e) == nil {
		return false
	}
	return f.sqlstate == "0A000" && f.message == changedResultMessage ||
		f.code() == invalidStatementName && strings.Contains(f.message, cachedPrefix)
}
