package proxy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A client's statement that the proxy's cache has prepared is on the server under the proxy's name only. Bind and
// Describe find it, since the proxy translates names. Before SQL such as EXECUTE that names it, the proxy prepares it
// under the client's name as well.

// statementToRename returns the existing statement with the name of a new Parse, or nil. PostgreSQL refuses such a
// Parse. If the server does not have the statement under that name, the proxy prepares one there first, so that the
// Parse fails as well.
func (r *requests) statementToRename(name string) (*statement, error) {
	if name == "" {
		return nil, nil
	}
	return r.statement(name)
}

// noteClose notes that a message about to be sent removes the statement with this name. In SQL, such as DEALLOCATE ALL,
// an empty name means all named statements. group is the message's group (messages up to a Sync), or noGroup for a
// Query.
func (r *requests) noteClose(name string, inSQL bool, group uint64) {
	r.ledger.eachStatement(func(n string, st *statement) {
		if n == name || inSQL && name == "" && n != "" {
			st.closeSent, st.closeGroup = true, group
		}
	})
}

// eachStatement calls f for each statement that exists, and for each that a Parse or PREPARE in flight will make if it
// succeeds.
func (l *ledger) eachStatement(f func(name string, st *statement)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, st := range l.pendingStatements.all() {
		for ; st != nil; st = st.previous {
			f(name, st)
		}
	}
	for name, st := range l.statements.all() {
		f(name, st)
	}
}

// dropCachedName forgets the client's statement of this name if the server does not know it by this name.
func (l *ledger) dropCachedName(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.statements.get(name); s != nil && s.hiddenFromServer {
		l.dropStatement(name)
	}
}

// isFree reports whether no statement has this name, and no message in flight makes one.
func (l *ledger) isFree(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.statements.get(name) == nil && l.pendingStatements.get(name) == nil
}

// namedInSQL returns the statements that the text names (EXECUTE, DEALLOCATE and the like) and that the server does not
// know by the client's name.
func (r *requests) namedInSQL(v *verdict.Verdict) (namedStatements map[string]*statement, err error) {
	for _, e := range v.Effects {
		switch e.Kind {
		case verdict.EffectExecute, verdict.EffectExplain, verdict.EffectDeallocate, verdict.EffectPrepare:
		default:
			continue
		}
		if e.Name == "" {
			continue
		}
		st, err := r.statement(e.Name)
		if err != nil {
			return nil, err
		}
		if st != nil && st.hiddenFromServer {
			if namedStatements == nil {
				namedStatements = map[string]*statement{}
			}
			namedStatements[e.Name] = st
		}
	}
	return namedStatements, nil
}

// placeholderText is the text of a statement that must exist on the server under some name, but never runs.
const placeholderText = "SELECT"

// textForSQL returns the text to prepare on the server for SQL that names the statement. If the policy or the catalogs
// have changed since its verdict, this is a placeholder, and SQL that would run the statement is refused.
func (r *requests) textForSQL(st *statement) string {
	v := r.decider.Recheck(r.ctx, st.verdict) // a refusal is recorded later, by the message that runs the statement
	if !v.IsAllowed() || v.Text != st.verdict.Text || v.RightsEpoch < r.seal.RightsEpoch {
		return placeholderText
	}
	return v.PreparedText()
}

// prepareNamed prepares the cached statements that the text names in SQL, before a message of the extended protocol
// with this text.
func (r *requests) prepareNamed(v *verdict.Verdict) error {
	namedStatements, err := r.namedInSQL(v)
	for name, st := range namedStatements {
		r.prepareNameOfClient(verdict.UpstreamName(name), r.textForSQL(st), st.parameterTypes)
	}
	return err
}

// prepareNameOfClient adds messages to the batch that prepare a text under upstreamName, the server's form of a
// client's name.
func (r *requests) prepareNameOfClient(upstreamName, text string, types []byte) {
	r.closeLater(upstreamName)
	r.stageProxyPrepare(upstreamName, text, types)
}

// closeLater notes the server's name of a statement that the proxy closes before a session takes this pooled connection
// next.
func (r *requests) closeLater(upstream string) {
	if c := r.connection; r.pooled() && !slices.Contains(c.namesToClose, upstream) {
		c.namesToClose = append(c.namesToClose, upstream)
	}
}

// prepareNamedFirst does for a Query what prepareNamed does. If no group of messages is open, it also waits for the
// answers, since behind an error the server would skip the Query.
func (r *requests) prepareNamedFirst(v *verdict.Verdict) error {
	namedStatements, err := r.namedInSQL(v)
	if len(namedStatements) == 0 || err != nil {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	r.ledger.waitReady()
	if _, isSettled := r.ledger.certainStatus(); !isSettled {
		return r.prepareNamed(v) // an error here makes the server skip the Query, as any error earlier in the group would
	}
	var entries []entry
	var b []byte
	for name, st := range namedStatements {
		upstream := verdict.UpstreamName(name)
		r.closeLater(upstream)
		entries = append(entries, &closeEntry{object: 'S'}, &parseEntry{})
		b = appendParse(appendClose(b, 'S', upstream), upstream, r.textForSQL(st), st.parameterTypes)
	}
	// An error is ignored here: the Query fails with it as well.
	_, err = r.sendProxyMessages(entries, b)
	return err
}
