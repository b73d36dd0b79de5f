package proxy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A client's statement that is one of the cache is not on the server under the client's name. The messages of the protocol
// find it all the same; for SQL that names it, it is prepared there as well, each time.

// statementToRename is the statement whose name a Parse gives to another one; nil: there is none. If the server does
// not know it by that name, it is prepared under it before the Parse, which then fails where PostgreSQL says so.
func (r *requests) statementToRename(name string) (*statement, error) {
	if name == "" {
		return nil, nil
	}
	return r.statement(name)
}

// noteClose notes that a message about to be sent, of this group or a Query, takes a statement away. An empty name in
// SQL stands for all of them.
func (r *requests) noteClose(name string, inSQL bool, group uint64) {
	r.ledger.eachStatement(func(n string, st *statement) {
		if n == name || inSQL && name == "" && n != "" {
			st.closeSent, st.closeGroup = true, group
		}
	})
}

// eachStatement calls f for each statement that a name stands for, or will once the messages in flight are answered: they
// may fail.
func (l *ledger) eachStatement(f func(name string, st *statement)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, st := range l.pendingStatements {
		for ; st != nil; st = st.previous {
			f(name, st)
		}
	}
	for name, st := range l.statements {
		f(name, st)
	}
}

// dropCachedName forgets a statement of this name that is one of the cache.
func (l *ledger) dropCachedName(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.statements[name]; s != nil && s.hiddenFromServer {
		l.dropStatement(name)
	}
}

// isFree tells whether there is no statement of this name, nor is one about to be.
func (l *ledger) isFree(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.statements[name] == nil && l.pendingStatements[name] == nil
}

// namedInSQL are the statements of the cache that a text names, by their names.
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

// placeholderText is the text of a statement that needs to be there and is not run.
const placeholderText = "SELECT"

// textForSQL is the text by which a statement is prepared for SQL that names it. Where the policy or the catalogs have
// changed it does not run: SQL that would run it is refused.
func (r *requests) textForSQL(st *statement) string {
	v := r.decider.Recheck(r.ctx, st.verdict) // the message that runs the statement records a refusal
	if !v.IsAllowed() || v.Text != st.verdict.Text || v.RightsEpoch < r.seal.RightsEpoch {
		return placeholderText
	}
	return v.PreparedText()
}

// prepareNamed prepares what a text names in SQL, before a message of the extended protocol that looks for it.
func (r *requests) prepareNamed(v *verdict.Verdict) error {
	namedStatements, err := r.namedInSQL(v)
	for name, st := range namedStatements {
		r.prepareNameOfClient(verdict.UpstreamName(name), r.textForSQL(st), st.parameterTypes)
	}
	return err
}

// prepareNameOfClient stages messages that prepare a statement under the server's form of a client's name.
func (r *requests) prepareNameOfClient(upstreamName, text string, types []byte) {
	r.closeLater(upstreamName)
	r.stageProxyPrepare(upstreamName, text, types)
}

// closeLater notes that the server may know a statement which is to be closed before the session takes a connection
// again, or another does.
func (r *requests) closeLater(upstream string) {
	if c := r.connection; r.pooled() && !slices.Contains(c.namesToClose, upstream) {
		c.namesToClose = append(c.namesToClose, upstream)
	}
}

// prepareNamedFirst is prepareNamed for a Query, which the server would not answer behind an error: outside a group of
// messages it waits for the answers.
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
		return r.prepareNamed(v) // its error makes the server skip the Query, as any error in the group before it
	}
	var entries []entry
	var b []byte
	for name, st := range namedStatements {
		upstream := verdict.UpstreamName(name)
		r.closeLater(upstream)
		entries = append(entries, &closeEntry{object: 'S'}, &parseEntry{})
		b = appendParse(appendClose(b, 'S', upstream), upstream, r.textForSQL(st), st.parameterTypes)
	}
	// An error comes again as the answer to the Query.
	_, err = r.sendProxyMessages(entries, b)
	return err
}
