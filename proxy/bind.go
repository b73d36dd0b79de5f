package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// bindEntry is the entry of a Bind message.
type bindEntry struct {
	entryBase

	portal     *portal // the portal that Bind makes; nil if Bind is refused, or is a message of the proxy
	ownPortal  portal  // the memory of the portal, which needs no allocation of its own
	statement  string  // the client's name of the statement that Bind binds
	serverName string  // the server's name of that statement

	cached *cachedStatement // the statement in the proxy's cache that Bind uses; nil: it uses another one
}

func (e *bindEntry) appendRefused(dst []byte) []byte { return e.refusal.bind(dst) }

func (e *bindEntry) handleAnswer(a *answers, typ byte, _ int) (isExpected bool, err *sqlstate.Error) {
	if typ != '2' { // The type is that of BindComplete.
		return false, nil
	}
	a.succeed()
	return true, nil
}

// bind decides on a Bind message and adds it to the batch.
func (r *requests) bind(body []byte) error {
	e := &bindEntry{}
	portalName, name, rest, ok := decodeBind(body)
	if !ok {
		r.invalid(e)
		return nil
	}
	if len(portalName) > maxName {
		r.refuse(e, longNameError(), nil, nil)
		return nil
	}
	st, err := r.statement(name)
	if err != nil {
		return err
	}
	if st == nil {
		r.refuse(e, noStatementError(name), nil, nil)
		return nil
	}
	v, refusal, t := r.recheck(st.verdict)
	if refusal != nil {
		r.refuse(e, refusal, v, t)
		return nil
	}
	if !r.ledger.mayBind() {
		r.refuse(e, tooManyPortalsError(), nil, nil)
		return nil
	}
	st.verdict = v
	if r.discardsBehindEnd(v) {
		if _, err := r.resumeGroup(); err != nil {
			return err
		}
	}
	r.group.lastExecuteEndsTx = false
	v, ok = r.statementForBind(e, st, rest)
	if !ok {
		return nil
	}
	if v.Values != nil {
		if rest, ok = withValues(rest, v.Values); !ok {
			r.invalid(e)
			return nil
		}
	}
	if refusal, err := r.readForeign(e, v); err != nil {
		return err
	} else if refusal != nil {
		r.refuse(e, refusal, v, nil)
		return nil
	}
	p := &e.ownPortal
	p.verdict, p.group, p.inputPart = v, r.group.number, r.snapshots.inputPart
	if v.RecordsKeys {
		p.formats = resultFormats(rest)
	}
	r.ledger.addPendingPortal(portalName, p)
	if err := r.prepareNamed(v); err != nil {
		return err
	}
	if v.HasHardenedPlan() {
		r.hardenPlan()
	}
	upstream := r.prepareForBind(e, st, name, v)
	start := len(r.batch.out)
	e.verdict, e.portal, e.statement, e.serverName = v, p, name, upstream
	e.name, e.upstreamName = portalName, verdict.UpstreamName(portalName)
	r.batch.out = appendBind(r.batch.out, e.upstreamName, upstream, rest)
	r.snapshots.noteNeed(e)
	r.batch.add(start, e)
	return nil
}

// statementForBind returns the verdict to use for a Bind with the values in rest. If the statement's rewritten text
// does not fit the form of these values, the verdict has a text that relies on row security alone. ok is false if e was
// refused.
func (r *requests) statementForBind(e *bindEntry, st *statement, rest []byte) (v *verdict.Verdict, ok bool) {
	v = st.verdict
	if v.NeedsValueCheck {
		values, _, ok := bindValues(rest)
		if !ok {
			r.invalid(e)
			return nil, false
		}
		if v = r.decider.CheckValues(v, values); !v.IsAllowed() {
			r.refuse(e, v.Refusal, v, r.decider.Record(v))
			return nil, false
		}
	}
	valuesFit, ok := valuesFit(v, rest)
	switch {
	case !ok:
		r.invalid(e)
		return nil, false
	case valuesFit:
		return v, true
	}
	if v = r.decider.UseRowSecurity(r.ctx, v, parameterTypes(st.parameterTypes)); !v.IsAllowed() {
		r.refuse(e, v.Refusal, v, r.decider.Record(v))
		return nil, false
	}
	return v, true
}

// prepareForBind returns the server's name of the statement that e binds. If v has another text than the prepared
// statement, the proxy first prepares that text under [rowSecurityName].
func (r *requests) prepareForBind(e *bindEntry, st *statement, name string, v *verdict.Verdict) string {
	if v.Text != st.verdict.Text {
		r.stageProxyPrepare(rowSecurityName, v.Text, st.parameterTypes)
		return rowSecurityName
	}
	upstream, cached := r.upstreamStatement(st, name, v)
	e.cached = cached
	r.seal.runs++
	return upstream
}
