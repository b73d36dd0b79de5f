package proxy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// parseEntry is the entry of a Parse message.
type parseEntry struct {
	entryBase

	statement *statement // the statement that Parse makes; nil if Parse is refused, or is a message of the proxy

	cached      *cachedStatement // the statement of the proxy's cache that stands for it; nil: it is not cached
	sentAsClose bool             // the cache has prepared it before: the proxy sends a Close of an unused name instead
}

func (e *parseEntry) appendRefused(dst []byte) []byte { return e.refusal.parse(dst, e.upstreamName) }

func (e *parseEntry) handleAnswer(a *answers, typ byte, _ int) (isExpected bool, err *sqlstate.Error) {
	if e.sentAsClose && typ == '3' { // CloseComplete
		a.tail.isSkipped, a.tail.replacement = true, parseComplete
		a.succeed()
		return true, nil
	}
	if typ != '1' || e.sentAsClose { // ParseComplete
		return false, nil
	}
	a.succeed()
	return true, nil
}

var parseComplete = []byte{'1', 0, 0, 0, 4}

// parse decides on a Parse message and adds it to the batch.
func (r *requests) parse(body []byte) error {
	name, text, types, ok := decodeParse(body)
	if !ok {
		r.invalid(&describeEntry{object: 'S'})
		return nil
	}
	if len(name) > maxName {
		r.refuse(&describeEntry{object: 'S'}, longNameError(), nil, nil)
		return nil
	}
	renamed, err := r.statementToRename(name)
	if err != nil {
		return err
	}
	v := r.decider.Decide(r.ctx, text, verdict.Extended)
	if declared := parameterTypes(types); v.IsAllowed() && len(declared) > 0 {
		v = r.decider.DeclareParameters(r.ctx, v, declared)
	}
	if isUnusable(v) {
		r.invalid(&describeEntry{object: 'S'})
		return nil
	}
	e := &parseEntry{}
	e.verdict, e.name, e.upstreamName = v, name, verdict.UpstreamName(name)
	st := newStatement(v, r.group.number)
	st.byteSize += len(name)
	st.connection = r.pooling.connections
	if len(v.Forms) > 0 || r.pooled() {
		st.parameterTypes = slices.Clone(types)
		st.byteSize += len(types)
	}
	switch {
	case !v.IsAllowed():
		e.refusal, e.ticket = newRefusal(v.Refusal), r.decider.Record(v)
	case !r.ledger.mayPrepare(st):
		e.refusal = r.unrecordedRefusal(tooManyStatementsError())
	}
	if e.refusal != nil {
		start := len(r.batch.out)
		r.batch.out = e.appendRefused(r.batch.out)
		r.batch.add(start, e)
		return nil
	}
	e.statement = st
	free := name == "" || r.ledger.isFree(name)
	r.ledger.addPendingStatement(name, st)
	if err := r.prepareNamed(v); err != nil {
		return err
	}
	if renamed != nil && renamed.hiddenFromServer {
		r.prepareNameOfClient(e.upstreamName, placeholderText, noParameterTypes)
	}
	if free && r.stageCachedParse(e, st, types) {
		return nil
	}
	r.snapshots.noteNeed(e)
	if v.HardenBeforeParse {
		r.hardenPlan()
	}
	sentText := v.Text
	if name != "" {
		sentText = v.PreparedText()
	}
	if renamed == nil && name != "" && r.pooled() { // other connections lack it: each Bind prepares it
		st.hiddenFromServer, e.upstreamName = true, rowSecurityName
		r.stageProxyMessage(&closeEntry{object: 'S'}, rowSecurityName, appendClose(nil, 'S', rowSecurityName))
	}
	start := len(r.batch.out)
	r.batch.out = appendParse(r.batch.out, e.upstreamName, sentText, types)
	r.batch.add(start, e)
	return nil
}
