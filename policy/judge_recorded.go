package policy

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// JudgeRecorded is [Policy.Judge] for an audit record, which has the accesses of a statement and not its form. values
// are the recorded attributes, missing those that had no value. A refusal is certain: every statement with these
// accesses is refused. unsure says why the contracts may refuse the statement all the same. Without both, none refuses
// it.
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
		// In the best case these are several plain statements with one access each, with few rows, joined where they
		// must be, and with a name.
		for _, t := range objects {
			if t.object.JoinOnly {
				continue
			}
			t.Joined, t.Output = true, false
			best := Statement{Tag: s.Tag, Accesses: []Access{t.Access}, PlainSelect: true,
				SingleTable: true, Limit: 1, NamedStatements: p.statementTexts()}
			if _, err := c.judge(best, []objectAccess{t}, values); err != nil {
				return err, ""
			}
		}
	}
	for _, t := range objects {
		if !t.object.JoinOnly && !slices.ContainsFunc(p.contracts, func(c *Contract) bool { return c.governs(t.object.Name) }) {
			return contractRefusal("no contract allows %s", t.describe()), ""
		}
	}
	if unsure != "" {
		return nil, unsure
	}
	// In the worst case it is one statement of any form.
	worst := Statement{Tag: s.Tag, Accesses: slices.Clone(s.Accesses), Limit: -1}
	for i := range worst.Accesses {
		worst.Accesses[i].Joined, worst.Accesses[i].Output = false, true
	}
	if p.Judge(worst, values) != nil {
		return nil, "what contracts say of it depends on its form, such as its joins and its LIMIT"
	}
	return nil, ""
}

// unknownAttribute returns an attribute that the contract needs for these objects and whose value is not recorded; "":
// there is none.
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

// statementTexts are the texts of all statements that contracts name.
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
