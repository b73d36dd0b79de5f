package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// queryEntry is the entry of a Query message.
type queryEntry struct {
	execution

	hardenedStatements []bool         // for each statement, whether it is preceded by the settings of a hardened plan
	insertedTexts      []insertedText // the places of these settings in the text
	steps              *queryInSteps  // the steps in which the proxy sends the Query (see steps.go); nil: one message

	// The cached statement that the proxy runs in place of the Query's text; nil: the proxy sends the text.
	cached          *cachedStatement
	commandComplete []byte // the cached statement's CommandComplete, held back until ReadyForQuery

	// The goroutine that reads the server's answers sets the fields below. how many inserted settings the server has yet
	// to answer before the next statement
	settingsToAnswer int
	description      []byte // the RowDescription of the current result, if the audit records keys of its rows
}

func (e *queryEntry) endsWithReady() bool { return true }

func (e *queryEntry) appendRefused(dst []byte) []byte { return e.refusal.query(dst) }

func (e *queryEntry) handleAnswer(a *answers, typ byte, length int) (isExpected bool, err *sqlstate.Error) {
	if e.steps == nil && e.settingsToAnswer > 0 && typ == 'C' {
		e.settingsToAnswer--
		a.tail.isSkipped = true
		return true, nil
	}
	if e.runsCached() && e.answerCached(a, typ) {
		return true, nil
	}
	if e.steps != nil {
		switch typ {
		case '1', '2', '3', 'n': // These types are answers to the extended messages of a step, which a Query does not have.
			a.tail.isSkipped = true
			return true, nil
		}
	}
	switch typ {
	case 'T': // The type is that of RowDescription.
		return true, nil
	case 'I': // The type is that of EmptyQueryResponse.
		if e.steps != nil {
			return true, a.send(e.steps.step(len(e.steps.parts)))
		}
		return true, nil
	case 'C': // The type is that of CommandComplete.
		e.completeStatement(a)
		e.expectSettings()
		return true, nil
	}
	return e.answerRows(a, typ, length), nil
}

// query decides on a Query message and adds it to the batch.
func (r *requests) query(body []byte) error {
	e := &queryEntry{}
	text, ok := decodeQuery(body)
	if !ok {
		r.invalid(e)
		return nil
	}
	v := r.decider.Decide(r.ctx, text, r.queryProtocol())
	if isUnusable(v) {
		r.invalid(e)
		return nil
	}
	if v.IsAllowed() && beginsNextTransaction(v.Effects) && r.seal.isDue(time.Now()) {
		isRenewed, err := r.renewSeal()
		if err != nil {
			return err
		}
		if !isRenewed && r.seal.isTooOld() {
			r.refuse(e, endMustBeAloneError(), v, nil)
			return nil
		}
	}
	if !v.IsAllowed() {
		r.refuse(e, v.Refusal, v, r.decider.Record(v))
		return nil
	}
	if r.discardsBehindEnd(v) {
		if _, err := r.resumeGroup(); err != nil {
			return err
		}
	}
	if r.implicitBlocks && r.group.executes > 0 {
		r.group.executes = 0
		r.refuse(e, queryBehindExecuteError(), v, nil)
		return nil
	}
	if err := r.prepareNamedFirst(v); err != nil {
		return err
	}
	r.snapshots.noteHolds(v)
	n, refusal, err := r.resolveNames(v, noGroup)
	if err != nil {
		return err
	}
	if refusal != nil {
		r.refuse(e, refusal, v, n.ticket)
		return nil
	}
	return r.stageQuery(e, v, &n)
}

// stageQuery adds an allowed Query to the batch. It still refuses the Query if it reads foreign tables again, or cannot
// be divided into its statements.
func (r *requests) stageQuery(e *queryEntry, v *verdict.Verdict, n *nameUses) error {
	e.verdict, e.ticket = v, r.decider.Record(v, n.namedVerdicts...)
	e.setNames(n)
	e.portals = n.fetchedPortals
	e.holdRequests, e.isFirstInGroup = r.ledger.holdRequests(), r.group.executes == 0
	failsOutside, err := r.failsOutsideTx(v)
	if err != nil {
		return err
	}
	readsAgain, err := r.readForeign(e, v, n.namedVerdicts...)
	if err != nil {
		return err
	}
	start := len(r.batch.out)
	text, refusal := v.Text, (*sqlstate.Error)(nil)
	if !failsOutside {
		text, refusal = e.withHardenedPlan()
	}
	if refusal == nil {
		refusal = readsAgain
	}
	if refusal != nil {
		e.refusal = r.unrecordedRefusal(refusal)
		r.batch.out = e.appendRefused(r.batch.out)
		r.batch.add(start, e)
		r.group.executes = 0
		return nil
	}
	r.seal.runs++
	r.snapshots.noteNeed(e)
	r.snapshots.noteUse(&e.execution)
	r.snapshots.addCursors(e, n)
	r.noteEffects(v, n.namedVerdicts, noGroup)
	if b := r.cachedQuery(e); b != nil {
		start = len(r.batch.out)
		r.batch.out = append(r.batch.out, b...)
	} else {
		r.batch.out = appendQuery(r.batch.out, text)
	}
	r.batch.add(start, e)
	r.group.executes, r.group.lastExecuteEndsTx = 0, false
	if hasCopyIn(v) {
		r.copyEntry = e
	}
	return nil
}

// queryBehindExecuteError refuses a Query behind an Execute without a Sync, on PostgreSQL 18 or newer. There the server
// treats the messages behind the Execute as a transaction block. A Query with inserted settings has several statements,
// which end that block; a single statement does not. Whether the proxy inserts settings depends on the sizes of tables,
// which a client must not learn.
func queryBehindExecuteError() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonProtocol,
		"a Query behind an Execute without a Sync is not for agents").
		WithHint("Send a Sync first.")
}
