package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// describeEntry is the entry of a Describe message. It also stands for other messages that are refused early, since a
// failing Describe leaves statements and portals as they are.
type describeEntry struct {
	entryBase

	object     byte // 'S' for a statement, 'P' for a portal
	parameters bool // ParameterDescription has come

	cached *cachedStatement // the statement in the proxy's cache that Describe names; nil: it is not cached
}

func (e *describeEntry) appendRefused(dst []byte) []byte { return e.refusal.describe(dst) }

func (e *describeEntry) handleAnswer(a *answers, typ byte, _ int) (isExpected bool, err *sqlstate.Error) {
	switch typ {
	case 't': // The type is that of ParameterDescription.
		isExpected = e.object == 'S' && !e.parameters
		e.parameters = true
		return isExpected, nil
	case 'T', 'n': // The types are those of RowDescription and NoData.
		if e.object == 'S' && !e.parameters {
			return false, nil
		}
		a.succeed()
		return true, nil
	}
	return false, nil
}

// describe decides on a Describe message and adds it to the batch.
func (r *requests) describe(body []byte) error {
	object, name, ok := decodeNamed(body)
	if !ok {
		r.invalid(&describeEntry{object: 'S'})
		return nil
	}
	e := &describeEntry{object: object}
	v, st, err := r.described(object, name)
	if err != nil {
		return err
	}
	if v == nil {
		missing := noStatementError
		if object == 'P' {
			missing = noPortalError
		}
		r.refuse(e, missing(name), nil, nil)
		return nil
	}
	v, refusal, t := r.recheck(v)
	if refusal != nil {
		r.refuse(e, refusal, v, t)
		return nil
	}
	if v.HardenBeforeParse && object == 'S' { // The server may parse the statement again.
		r.hardenPlan()
	}
	if err := r.prepareNamed(v); err != nil {
		return err
	}
	e.verdict, e.name, e.upstreamName = v, name, verdict.UpstreamName(name)
	if st != nil {
		e.upstreamName, e.cached = r.upstreamStatement(st, name, v)
	}
	start := len(r.batch.out)
	r.batch.out = appendDescribe(r.batch.out, object, e.upstreamName)
	r.snapshots.noteNeed(e)
	r.batch.add(start, e)
	return nil
}

// described returns the verdict on the statement or portal that a Describe names, or nil if there is none. The second
// result is the statement, or nil for a portal.
func (r *requests) described(object byte, name string) (*verdict.Verdict, *statement, error) {
	if object == 'S' {
		st, err := r.statement(name)
		if err != nil || st == nil {
			return nil, nil, err
		}
		return st.verdict, st, nil
	}
	p, err := r.portal(name)
	if err != nil || p == nil {
		return nil, nil, err
	}
	return p.verdict, nil, nil
}
