package proxy

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// TestRollbackUndoes says of which messages the proxy may send all statements once more after one of them has failed.
func TestRollbackUndoes(t *testing.T) {
	const (
		statement = verdict.EffectNone
		execute   = verdict.EffectExecute
		begin     = verdict.EffectBegin
		end       = verdict.EffectEnd
	)
	for _, c := range []struct {
		name string
		want bool
		all  []verdict.EffectKind
	}{
		{"a statement", true, []verdict.EffectKind{statement}},
		{"EXECUTE", true, []verdict.EffectKind{execute}},
		{"BEGIN", true, []verdict.EffectKind{begin}},
		{"several statements, which are one transaction", true, []verdict.EffectKind{statement, execute, statement}},
		{"a transaction that stays open", true, []verdict.EffectKind{begin, statement}},
		{"a whole transaction", true, []verdict.EffectKind{begin, statement, statement, end}},
		{"a statement behind a commit", false, []verdict.EffectKind{begin, statement, end, statement}},
		{"a transaction behind another", false, []verdict.EffectKind{begin, statement, end, begin, statement, end}},
		{"a commit of what came before the message", false, []verdict.EffectKind{end}},
		{"the same with statements", false, []verdict.EffectKind{statement, end}},
		{"BEGIN behind a statement", false, []verdict.EffectKind{statement, begin, statement, end}},
		{"SET, whose value the session remembers", false, []verdict.EffectKind{statement, verdict.EffectSet}},
		{"a cursor", false, []verdict.EffectKind{begin, verdict.EffectDeclare, verdict.EffectFetch}},
		{"a savepoint", false, []verdict.EffectKind{begin, verdict.EffectSavepoint, statement}},
		{"PREPARE, which no rollback undoes", false, []verdict.EffectKind{verdict.EffectPrepare, execute}},
		{"COPY FROM STDIN", false, []verdict.EffectKind{verdict.EffectCopyIn}},
	} {
		var effects []verdict.Effect
		for _, kind := range c.all {
			effects = append(effects, verdict.Effect{Kind: kind})
		}
		if got := rollbackUndoes(effects); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// A session's lock that a statement has taken stays when a later statement fails. So the proxy does not send both once
// more.
func TestSessionLocksAreNotTakenAgain(t *testing.T) {
	of := func(effects ...verdict.Effect) *verdict.Verdict {
		return &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: effects}}
	}
	statement := verdict.Effect{Kind: verdict.EffectNone}
	reads, locks, begins, several := of(statement), of(statement), of(verdict.Effect{Kind: verdict.EffectBegin}), of(statement, statement)
	severalWithLock, severalWithSetting := of(statement, statement), of(statement, statement)
	locks.KeepsSessionState, severalWithLock.KeepsSessionState, severalWithSetting.CallsSetConfig = true, true, true
	for _, c := range []struct {
		name     string
		want     bool
		verdicts []*verdict.Verdict
	}{
		{"Parse, Bind and Execute of one", true, []*verdict.Verdict{locks, locks, locks}},
		{"behind BEGIN", true, []*verdict.Verdict{begins, begins, locks, locks}},
		{"behind a statement, which fails first", true, []*verdict.Verdict{reads, locks}},
		{"in front of a statement", false, []*verdict.Verdict{locks, reads}},
		{"in a Query of several", false, []*verdict.Verdict{severalWithLock}},
		{"a setting in a Query of several", false, []*verdict.Verdict{severalWithSetting}},
		{"a Query of several", true, []*verdict.Verdict{several}},
	} {
		state := retryState{isPossible: true}
		for _, v := range c.verdicts {
			state.addVerdict(v)
		}
		if state.isPossible != c.want {
			t.Errorf("%s: %t, want %t", c.name, state.isPossible, c.want)
		}
	}
}

// The same holds if a Query of several statements runs the lock's statement by EXECUTE.
func TestSessionLocksOfExecuteAreNotTakenAgain(t *testing.T) {
	lock := &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: make([]verdict.Effect, 1)}, KeepsSessionState: true}
	execute := verdict.Effect{Kind: verdict.EffectExecute}
	for count, want := range map[int]bool{1: true, 2: false} {
		e := &queryEntry{}
		e.verdict = &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{execute, {}}[:count]}}
		e.namedVerdicts = []*verdict.Verdict{lock}
		state := retryState{isPossible: true}
		state.noteSending([]entry{e})
		if state.isPossible != want {
			t.Errorf("%d statements: %t, want %t", count, state.isPossible, want)
		}
	}
}
