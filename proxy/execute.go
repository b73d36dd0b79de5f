package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// executeEntry is the entry of an Execute message.
type executeEntry struct {
	execution

	ownPortal [1]*portal // the memory of portals, which has one portal in most cases
	formats   []int16    // the formats of result columns that the client's Bind asked for
	synced    bool       // the Sync behind it is sent together with it, although its result is limited
}

func (e *executeEntry) appendRefused(dst []byte) []byte { return e.refusal.execute(dst) }

func (e *executeEntry) handleAnswer(a *answers, typ byte, length int) (isExpected bool, err *sqlstate.Error) {
	switch typ {
	case 'C': // The type is that of CommandComplete.
		e.completeStatement(a)
		return true, a.endExecute(e)
	case 's': // The type is that of PortalSuspended.
		return true, a.endExecute(e)
	case 'I': // The type is that of EmptyQueryResponse.
		a.succeed()
		return true, nil
	}
	return e.answerRows(a, typ, length), nil
}

// execute decides on an Execute message and adds it to the batch.
func (r *requests) execute(body []byte) error {
	e := &executeEntry{}
	name, rows, ok := decodeExecute(body)
	if !ok {
		r.invalid(e)
		return nil
	}
	p, err := r.portal(name)
	if err != nil {
		return err
	}
	if p == nil || p.hasFailed.Load() {
		refusal := noPortalError(name)
		if p != nil {
			refusal = notRunnableError(name)
		}
		r.refuse(e, refusal, nil, nil)
		return nil
	}
	v, refusal, t := r.recheck(p.verdict)
	if refusal != nil {
		r.refuse(e, refusal, v, t)
		return nil
	}
	if p.fetchedInParts = p.fetchedInParts || rows != 0; p.fetchedInParts {
		partVerdict := *v
		partVerdict.PartialResult, v = true, &partVerdict
	}
	r.snapshots.noteHolds(v)
	n, refusal, err := r.resolveNames(v, r.group.number)
	if err != nil {
		return err
	}
	if refusal != nil {
		r.refuse(e, refusal, v, n.ticket)
		return nil
	}
	if refusal, err = r.readForeign(e, nil, n.namedVerdicts...); err != nil { // The Bind was checked before.
		return err
	} else if refusal != nil {
		r.refuse(e, refusal, v, nil)
		return nil
	}
	if err := r.prepareNamed(v); err != nil {
		return err
	}
	r.stageExecute(e, p, v, &n, name, rows)
	return nil
}

// stageExecute adds an allowed Execute to the batch. rows is how many rows the client asks for; 0: all.
func (r *requests) stageExecute(e *executeEntry, p *portal, v *verdict.Verdict, n *nameUses, name string, rows uint32) {
	if hardened := hardenedStatements(v, n.namedVerdicts); hardened != nil && hardened[0] &&
		v.Effects[0].HardenedPlan != verdict.HardenedAtBind {
		r.hardenPlan()
	}
	r.noteEffects(v, n.namedVerdicts, r.group.number)
	start := len(r.batch.out)
	e.name, e.upstreamName = name, verdict.UpstreamName(name)
	r.batch.out = appendExecute(r.batch.out, e.upstreamName, rows)
	e.verdict, e.ticket = v, r.decider.Record(v, n.namedVerdicts...)
	e.setNames(n)
	e.portals, e.formats = n.fetchedPortals, p.formats
	if len(v.Effects) == 0 || v.Effects[0].Kind != verdict.EffectFetch {
		e.ownPortal[0] = p
		e.portals = e.ownPortal[:]
	}
	e.holdRequests, e.isFirstInGroup = r.ledger.holdRequests(), r.group.executes == 0
	r.snapshots.noteNeed(e)
	r.snapshots.noteUse(&e.execution)
	r.snapshots.addCursors(e, n)
	r.snapshots.resume(&e.execution, p)
	if rows == 0 && p.completeExecute == nil && p.inputPart == r.snapshots.inputPart {
		p.completeExecute = e
	}
	r.batch.add(start, e)
	if hasCopyIn(v) {
		r.copyEntry = e
		r.stageFlush() // The Flush makes the server send its answer: CopyInResponse or an error.
	}
	r.group.executes++
	r.group.dropsSeal = n.dropsSeal
	r.group.lastExecuteEndsTx = n.dropsSeal || len(v.Effects) > 0 && v.Effects[len(v.Effects)-1].Kind == verdict.EffectEnd
	r.group.endsTx = r.group.lastExecuteEndsTx
}
