package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// closeEntry is the entry of a Close message.
type closeEntry struct {
	entryBase

	object byte // 'S' for a statement, 'P' for a portal
}

func (e *closeEntry) beginsTransaction() bool { return false }

func (e *closeEntry) appendRefused(dst []byte) []byte { return e.refusal.describe(dst) }

func (e *closeEntry) handleAnswer(a *answers, typ byte, _ int) (isExpected bool, err *sqlstate.Error) {
	if typ != '3' { // The type is that of CloseComplete.
		return false, nil
	}
	a.succeed()
	return true, nil
}

// closeNamed adds a Close message of the client to the batch.
func (r *requests) closeNamed(body []byte) {
	object, name, ok := decodeNamed(body)
	if !ok {
		r.invalid(&describeEntry{object: 'S'})
		return
	}
	e := &closeEntry{object: object}
	e.name, e.upstreamName = name, verdict.UpstreamName(name)
	if object == 'S' {
		r.noteClose(name, false, r.group.number)
	}
	start := len(r.batch.out)
	r.batch.out = appendClose(r.batch.out, object, e.upstreamName)
	r.batch.add(start, e)
}
