package policy

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// JudgeRecorded is [Policy.Judge] of a statement of which only the accesses are known, as a record has them, and of a
// session of which these values are; missing are attributes that had none. A refusal is one of every statement with
// these accesses. unsure says why the contracts may refuse it all the same; with neither none does.
func (p *Policy) JudgeRecorded(s Statement, values map[string]string, missing []string) (refused *sqlstate.Error,
	unsure string) {
	if !p.HasContracts() {
		return nil, ""
	}
	var objects []objectAccess
	for _, a := range s.Accesses {
		if a.Source == Calls {
			unsure = "it calls a function, and what that reads each policy says for itself"
		} else if o := p.Object(a.Relation); o != nil {
			objects = append(objects, objectAccess{a, o})
		}
	}
	for _, c := range p.contracts {
		if name := c.unknownAttribute(objects, values, missing); name != "" && unsure != "" {
			continue
		} else if name != "" {
			unsure = "contract " + c.Name + " asks for " + name + ", of which the record has no value"
			continue
		}
		// At the best it is several statements of one access each, plain and of few rows, joined where they must be,
		// and one that has a name.
		for _, t := range objects {
			if t.object.JoinOnly {
				continue
			}
			t.Joined, t.Output = true, false
			best := Statement{Tag: s.Tag, Accesses: []Access{t.Access}, PlainSelect: true, SingleTable: true, Limit: 1, NamedStatements: p.statementTexts()}
			if _, err := c.judge(best, []objectAccess{t}, values); err != nil {
				return err, ""
			}
		}
	}
	for _, t := range objects {
		if !t.object.JoinOnly && !slices.ContainsFunc(p.contracts, func(c *Contract) bool { return c.governs(t.object.Name) }) {
			return denied("no contract allows %s", t.describe()), ""
		}
	}
	if unsure != "" {
		return nil, unsure
	}
	// At the worst it is one, of any form.
	worst := Statement{Tag: s.Tag, Accesses: slices.Clone(s.Accesses), Limit: -1}
	for i := range worst.Accesses {
		worst.Accesses[i].Joined, worst.Accesses[i].Output = false, true
	}
	if p.Judge(worst, values) != nil {
		return nil, "what contracts say of it depends on its form, such as its joins and its LIMIT"
	}
	return nil, ""
}

// unknownAttribute is an attribute that the contract asks for of these objects and of which nobody knows the value; "": there is
// none.
func (c *Contract) unknownAttribute(objects []objectAccess, values map[string]string, missing []string) string {
	if !slices.ContainsFunc(objects, func(t objectAccess) bool { return c.governs(t.object.Name) }) {
		return ""
	}
	unknown := func(name string) bool {
		_, known := values[name]
		return name != "" && !known && !slices.Contains(missing, name)
	}
	if unknown(c.By) {
		return c.By
	}
	terms := c.Always
	if c.By != "" {
		terms = c.Values[values[c.By]]
	}
	if terms == nil || slices.Contains(missing, c.By) {
		return ""
	}
	asked := []string{terms.Plan, terms.Per}
	for _, r := range terms.Requires {
		asked = append(asked, r.Attributes...)
	}
	for _, name := range asked {
		if unknown(name) {
			return name
		}
	}
	return ""
}

// statementTexts are all statements that contracts name.
func (p *Policy) statementTexts() []string {
	all := map[string]bool{}
	for _, c := range p.contracts {
		for _, t := range c.terms() {
			for _, text := range t.Statements {
				all[text] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
