package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// Contract says what agents may read or write, depending on an attribute of their session. A statement is allowed only
// if every contract that governs an object in the statement allows it.
type Contract struct {
	Name string
	// the attribute whose value selects the terms; "": the terms in Always apply to every session
	By              string
	Values          map[string]*Terms // the terms for each value of the attribute By
	Always          *Terms
	GovernedObjects []string // the names of the objects to which the contract applies; nil: all objects
	// groups of vessels (stores of objects); a statement may read from at most one vessel of each group
	ExclusiveVessels [][]string

	place place
	order []string // the keys of Values in the order of the policy
}

// Terms are what a contract allows to sessions with one value of its attribute.
type Terms struct {
	AllowsNothing   bool
	Allow           map[string]*Allowance // what is allowed for each object; nil: everything
	ExceptedObjects []string              // the objects that are not allowed, if Allow is nil
	Requirements    []Condition           // the conditions that the session must meet
	// an attribute whose value lists the permitted accesses in the form object:source; "": there is none
	PlanAttribute string
	MaxRows       int64 // the largest number of rows that a statement may return; 0: any number
	// an attribute; for each of its values, MaxRows bounds all statements of an agent together. "": MaxRows bounds each
	// statement
	QuotaAttribute string
	Statements     map[string]string
	otherObjects   *Allowance // what is allowed for every object without an entry in Allow
}

// Allowance says how an object may be read or written.
type Allowance struct {
	Sources []string
	Columns []string // the columns that are allowed; nil: all
}

// Condition is an expression over attributes that must be true.
type Condition struct {
	Text       string
	Rule       predicate.Node
	Attributes []string
}

// allowanceFor returns the allowance for an object, or nil.
func (t *Terms) allowanceFor(object string) *Allowance {
	switch {
	case t.AllowsNothing:
		return nil
	case t.Allow == nil && t.otherObjects == nil:
		if slices.Contains(t.ExceptedObjects, object) {
			return nil
		}
		return &Allowance{Sources: []string{SourceMetadata, SourceStructured, SourceVector, SourceWrite}}
	}
	if a := t.Allow[object]; a != nil {
		return a
	}
	return t.otherObjects
}

// allowsSource tells whether an access with this source is allowed. Whoever may read structured columns may also read
// metadata and count rows.
func (a *Allowance) allowsSource(source string) bool {
	return slices.Contains(a.Sources, source) || source == SourceMetadata && slices.Contains(a.Sources, SourceStructured)
}

// governs tells whether the contract applies to an object.
func (c *Contract) governs(object string) bool {
	return c.GovernedObjects == nil || slices.Contains(c.GovernedObjects, object)
}

// allTerms returns all terms of the contract, in the order of the policy.
func (c *Contract) allTerms() []*Terms {
	if c.By == "" {
		return []*Terms{c.Always}
	}
	out := make([]*Terms, 0, len(c.order))
	for _, value := range c.order {
		out = append(out, c.Values[value])
	}
	return out
}

// Contracts returns all contracts, in the order of the policy.
func (p *Policy) Contracts() []*Contract { return p.contracts }

// Objects returns all objects, sorted by name.
func (p *Policy) Objects() []*Object { return p.objectList }

// NamedStatements returns the texts of all statements that contracts name, sorted, each once.
func (p *Policy) NamedStatements() []string {
	var out []string
	for _, c := range p.contracts {
		for _, t := range c.allTerms() {
			for _, text := range t.Statements {
				out = append(out, text)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
