package policy

import "github.com/pgconsent/pgconsent/sqlstate"

// ShapeAttributes are the attributes that Judge asks for, sorted.
func (p *Policy) ShapeAttributes() []string { return nil }

// Judge says whether a session whose attributes have these values may run the statement; one that is absent is missing. The
// values are those of this moment: a statement is judged each time that it runs.
func (p *Policy) Judge(Statement, map[string]string) *sqlstate.Error { return nil }
