package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// uses is what a text that is about to run does with the session's names.
type uses struct {
	runs     []*verdict.Verdict // what it runs by name
	prepared []*statement       // by the verdict's effects
	declared []*portal          // the same
	fetched  []*portal          // portals that FETCH and MOVE run
	unseals  bool
	ticket   verdict.Ticket // of a refusal
}

// prepareUses goes through the effects of a text that may run now. What it names must be there, decided under the
// versions in force, and a query. group is that of the message.
func (s *session) prepareUses(v *verdict.Verdict, group uint64) (u uses, refused *sqlstate.Error, err error) {
	var made map[string]*statement // by the same text; nil where it is gone
	gone := false                  // all others are
	var opened map[string]*portal  // by the same text
	// What it runs by name may run with other claims than those of now.
	s.astray = verdict.ChangesOnTheWay(v.Effects)
	defer func() { s.astray = false }()
	for i, e := range v.Effects {
		switch e.Kind {
		case verdict.Prepares:
			st := newStatement(e.Body, group)
			if !s.ledger.mayPrepare(st) {
				return u, tooManyStatements(), nil
			}
			if u.prepared == nil {
				u.prepared, made = make([]*statement, len(v.Effects)), map[string]*statement{}
			}
			u.prepared[i], made[e.Name] = st, st
		case verdict.Deallocates:
			if made == nil {
				made = map[string]*statement{}
			}
			if e.Name == "" {
				clear(made)
				gone = true
			} else {
				made[e.Name] = nil
			}
		case verdict.Executes:
			st, here := made[e.Name]
			if !here && !gone {
				if st, err = s.ledger.statement(e.Name, s.group, s.flush); err != nil {
					return u, nil, err
				}
			}
			if refused := s.runs(&u, st, e.Name); refused != nil {
				return u, refused, nil
			}
		case verdict.Declares:
			if !s.ledger.mayBind() {
				return u, tooManyPortals(), nil
			}
			if u.declared == nil {
				u.declared, opened = make([]*portal, len(v.Effects)), map[string]*portal{}
			}
			p := &portal{verdict: e.Body, group: group, hold: e.Hold, binary: e.Binary, fill: s.fill}
			u.declared[i], opened[e.Name] = p, p
		case verdict.Fetches:
			p := opened[e.Name]
			if p == nil {
				if p, err = s.portal(e.Name); err != nil {
					return u, nil, err
				}
			}
			if refused := s.fetches(&u, p, e.Name); refused != nil {
				return u, refused, nil
			}
		case verdict.ChangesGUC:
			if e.Claim == nil {
				continue
			}
			for _, p := range opened {
				if p.hold {
					return u, heldOpen(e.Name), nil
				}
			}
			if held, err := s.heldOpen(); err != nil {
				return u, nil, err
			} else if held {
				return u, heldOpen(e.Name), nil
			}
		case verdict.Unseals, verdict.Discards:
			if err := s.flush(); err != nil {
				return u, nil, err
			}
			if s.executes > 0 || !s.ledger.outside() {
				return u, resetInside(e.Kind), nil
			}
			u.unseals = true
		}
	}
	for i, st := range u.prepared {
		if st != nil {
			s.ledger.prepare(v.Effects[i].Name, st)
		}
	}
	for i, p := range u.declared {
		if p != nil {
			s.ledger.bind(v.Effects[i].Name, p)
		}
	}
	return u, nil, nil
}

// fetches adds a cursor to what runs, or says why it may not.
func (s *session) fetches(u *uses, p *portal, name string) *sqlstate.Error {
	if p == nil {
		return sqlstate.New(invalidCursorName, sqlstate.ReasonNone, "cursor \"%s\" does not exist", name)
	}
	if !s.ledger.usable(p) {
		return notRunnable(name)
	}
	v, refused, t := s.recheck(p.verdict)
	if refused != nil {
		u.ticket = t
		return refused
	}
	if !v.Runnable() {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"portal \"%s\" is no query: FETCH cannot run it", name).
			WithHint("Execute it in the extended protocol, where it was bound.")
	}
	p.verdict = v
	u.runs, u.fetched = append(u.runs, v), append(u.fetched, p)
	return nil
}

// cursors notes from when the cursors see that e declares, and has the age asked for of those that it fetches from.
func (s *session) cursors(e *entry, u uses) {
	for _, p := range u.declared {
		if p != nil {
			s.open(e, p)
		}
	}
	for _, p := range u.fetched {
		s.resumed(e, p)
	}
}

// runs adds a prepared statement to what runs, or says why it may not.
func (s *session) runs(u *uses, st *statement, name string) *sqlstate.Error {
	if st == nil {
		return noStatement(name)
	}
	v, refused, t := s.recheck(st.verdict)
	if refused != nil {
		u.ticket = t
		return refused
	}
	st.verdict = v
	if !v.Runnable() {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"prepared statement \"%s\" is no query: EXECUTE cannot run it", name).
			WithHint("Bind and execute it in the extended protocol, where it was prepared.")
	}
	if v.ExpectsForms {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"prepared statement \"%s\" was prepared by the protocol and takes a pattern, a search or a document "+
				"as a parameter: EXECUTE cannot run it", name).
			WithHint("Bind and execute it in the extended protocol, or prepare it with PREPARE.")
	}
	u.runs = append(u.runs, v)
	return nil
}

// heldOpen tells whether a cursor WITH HOLD is open whose rows are not read yet: the server reads them as its
// transaction ends, with what is claimed then.
func (s *session) heldOpen() (bool, error) {
	if !s.ledger.heldOpen() {
		return false, nil
	}
	if err := s.flush(); err != nil {
		return false, err
	}
	s.ledger.quiet()
	return s.ledger.heldOpen(), nil
}

func heldOpen(setting string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting,
		"parameter %q cannot be changed while a cursor WITH HOLD of this transaction is open", setting).
		WithHint("Its rows are read when the transaction commits: commit first, or close the cursor.")
}

func longName() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
		"the name of a statement or portal is longer than %d bytes", maxName).
		WithHint("Give it a shorter one.")
}

func tooManyPortals() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds, "too many portals in one transaction").
		WithHint("At most %d portals may be open at a time; close those that are not needed.", maxPortals)
}

func tooManyStatements() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds, "too many prepared statements in one session").
		WithHint("At most %d statements and %d MiB of text may be prepared at a time; close those that are not "+
			"needed.", maxStatements, maxStatementBytes>>20)
}
