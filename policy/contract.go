package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// Contract says what may be retrieved, depending on an attribute of the session. A statement must be allowed by every
// contract that governs an object which it reads or writes.
type Contract struct {
	Name            string
	By              string            // the attribute that selects the terms; "": Always applies to every session
	Values          map[string]*Terms // the terms for each value of the attribute By
	Always          *Terms
	GovernedObjects []string   // objects; nil: all
	SeparateVessels [][]string // vessels, of which a statement may read at most one

	place place
	order []string // the keys of Values in the order of the policy
}

// Terms are what a contract allows.
type Terms struct {
	Nothing  bool
	Allow    map[string]*Allowance // what is allowed of each object; nil: everything
	Except   []string              // objects that are left out, where everything is allowed
	Requires []Condition
	Plan     string // an attribute with a list of object:source
	Rows     int64  // a statement returns at most so many, unchanged; 0: any number
	// an attribute: Rows is for all statements of an agent together, for each of its values; "": for each statement
	Per        string
	Statements map[string]string
	any        *Allowance // what is allowed of every other object
}

// Allowance says how an object may be read or written.
type Allowance struct {
	Sources []string
	Columns []string // nil: all
}

// Condition is an expression over attributes that must be true.
type Condition struct {
	Text       string
	Rule       predicate.Node
	Attributes []string
}

// of returns the allowance for an object, or nil.
func (t *Terms) of(object string) *Allowance {
	switch {
	case t.Nothing:
		return nil
	case t.Allow == nil && t.any == nil:
		if slices.Contains(t.Except, object) {
			return nil
		}
		return &Allowance{Sources: []string{Metadata, Structured, Vector, Writes}}
	}
	if a := t.Allow[object]; a != nil {
		return a
	}
	return t.any
}

// allows tells whether a source is allowed. An agent that may read columns may also read those that are metadata, and
// count.
func (a *Allowance) allows(source string) bool {
	return slices.Contains(a.Sources, source) || source == Metadata && slices.Contains(a.Sources, Structured)
}

func (c *Contract) governs(object string) bool {
	return c.GovernedObjects == nil || slices.Contains(c.GovernedObjects, object)
}

// terms returns all terms, in the order of the policy.
func (c *Contract) terms() []*Terms {
	if c.By == "" {
		return []*Terms{c.Always}
	}
	out := make([]*Terms, 0, len(c.order))
	for _, value := range c.order {
		out = append(out, c.Values[value])
	}
	return out
}

// Contracts returns every contract, as the policy lists them.
func (p *Policy) Contracts() []*Contract { return p.contracts }

// Objects returns every object, sorted by name.
func (p *Policy) Objects() []*Object { return p.objectList }

// NamedStatements are the texts of all statements that contracts name, sorted, each once.
func (p *Policy) NamedStatements() []string {
	var out []string
	for _, c := range p.contracts {
		for _, t := range c.terms() {
			for _, text := range t.Statements {
				out = append(out, text)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
