package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// ContractAttributes returns the attributes whose values contracts read, sorted.
func (p *Policy) ContractAttributes() []string {
	attributes := map[string]bool{}
	for _, c := range p.contracts {
		if c.By != "" {
			attributes[c.By] = true
		}
		for _, t := range c.allTerms() {
			if t.PlanAttribute != "" {
				attributes[t.PlanAttribute] = true
			}
			if t.QuotaAttribute != "" {
				attributes[t.QuotaAttribute] = true
			}
			for _, r := range t.Requirements {
				for _, name := range r.Attributes {
					attributes[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(attributes))
}

// Judge returns an error unless all contracts allow the session to run the statement. values has the present values of
// the session's attributes, without those that have none. The proxy calls Judge for each execution.
func (p *Policy) Judge(s Statement, values map[string]string) *sqlstate.Error {
	_, refusal := p.decide(s, values)
	return refusal
}

// ContractDecision is the decision of one contract about a statement.
type ContractDecision struct {
	Contract         string `json:"contract"`
	By               string `json:"by,omitempty"`
	Value            string `json:"value,omitempty"`
	AttributeMissing bool   `json:"missing,omitempty"` // the session has no value of the contract's attribute
	// allow, deny, or none: the contract governs no object that the statement reads or writes
	Verdict     string `json:"verdict"`
	AllowedText string `json:"allows,omitempty"` // what the terms allow, in words
	// the quota against which the rows of an allowed statement count; nil: none
	Quota *Quota `json:"-"`
}

// Quota bounds a number of rows: of one statement, or of all statements of an agent for one value of an attribute.
type Quota struct {
	Contract, Per, Value string // the contract, its attribute and the value; rows with the same three count together
	MaxRows              int64
	Limit                int64 // the number after LIMIT in the statement

	contract string // the name of the contract in refusals
}

// ExceededRefusal returns the refusal of a statement that may return more rows than the quota has left.
func (q *Quota) ExceededRefusal(left int64) *sqlstate.Error {
	if left <= 0 {
		return contractRefusal("%s: at most %d rows per %s, and they have been taken", q.contract, q.MaxRows, q.Per).
			WithHint("Rows count when they are sent, and as long as a statement runs that may return them. There "+
				"are new ones with the next %s.", q.Per)
	}
	return contractRefusal("%s: at most %d rows per %s, and fewer are left", q.contract, q.MaxRows, q.Per).
		WithHint("Write LIMIT %d or less.", left)
}

// ExplainContracts does the same as [Policy.Judge], and also returns the decision of each contract.
func (p *Policy) ExplainContracts(s Statement, values map[string]string) ([]ContractDecision, *sqlstate.Error) {
	return p.decide(s, values)
}

// objectAccess is an access to a relation that is an object of contracts.
type objectAccess struct {
	Access
	object *Object
}

// decide evaluates all contracts for a statement. It returns their decisions and the first refusal.
func (p *Policy) decide(s Statement, values map[string]string) (decisions []ContractDecision, refusal *sqlstate.Error) {
	if !p.HasContracts() {
		return nil, nil
	}
	var objects []objectAccess
	refuse := func(err *sqlstate.Error) {
		if refusal == nil {
			refusal = err
		}
	}
	for _, a := range s.Accesses {
		if a.Source == SourceFunction {
			refuse(contractRefusal("function %s may not be called: the policy does not say what it reads", a.Relation).
				WithHint("The DBA says it under functions: reads, with the tables and their sources, or nothing."))
			continue
		}
		if t, ok := p.tableIndex[a.Relation]; ok && t.Observed != nil {
			continue
		}
		if o := p.Object(a.Relation); o != nil {
			objects = append(objects, objectAccess{a, o})
		}
	}
	for _, c := range p.contracts {
		d, err := c.judge(s, objects, values)
		decisions = append(decisions, d)
		if err != nil {
			refuse(err)
		}
	}
	if refusal == nil {
		refuse(p.checkJoinOnly(objects))
	}
	for _, t := range objects {
		if !t.object.JoinOnly && !slices.ContainsFunc(p.contracts, func(c *Contract) bool { return c.governs(t.object.Name) }) {
			refuse(contractRefusal("no contract allows %s", t.describe()).
				WithHint("The DBA names the objects that a contract governs under governs, all if there is none."))
		}
	}
	return decisions, refusal
}

func contractRefusal(format string, args ...any) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonContract, format, args...)
}

// checkJoinOnly refuses statements that do more with a join_only object than join it.
func (p *Policy) checkJoinOnly(objects []objectAccess) *sqlstate.Error {
	others := slices.ContainsFunc(objects, func(t objectAccess) bool { return !t.object.JoinOnly })
	for _, t := range objects {
		if !t.object.JoinOnly {
			continue
		}
		hint := fmt.Sprintf("Join %s to another object (%s) on a key of %s, and leave its columns out of the "+
			"result, the order and the groups.",
			t.object.Name, strings.Join(p.selectableObjects(), ", "), t.object.Name)
		switch {
		case t.Written || t.Source == SourceVector:
			return contractRefusal("%s may be joined, and nothing else", t.describe()).WithHint("%s", hint)
		case !others || !t.JoinedByKey:
			return contractRefusal("%s may only be joined to another object, on a key of it", t.describe()).WithHint("%s", hint)
		case t.AffectsOutput:
			return contractRefusal("%s may only be joined: its columns may not be returned", t.describe()).WithHint("%s", hint)
		}
	}
	return nil
}

// selectableObjects returns the names of the objects that a statement may read without a join.
func (p *Policy) selectableObjects() []string {
	var out []string
	for _, o := range p.objects {
		if !o.JoinOnly {
			out = append(out, o.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// describe returns the name of the accessed object, for messages.
func (t objectAccess) describe() string {
	name := t.object.Name
	if len(t.Through) > 0 {
		name += " (through " + strings.Join(t.Through, ", ") + ")"
	}
	return name
}

// actionText returns the verb for the access in messages, such as "read" or "write".
func (t objectAccess) actionText() string {
	switch t.Source {
	case SourceMetadata:
		return "read its metadata"
	case SourceVector:
		return "search it by likeness (vector)"
	case SourceWrite:
		return "write it"
	}
	return "read it (structured)"
}
