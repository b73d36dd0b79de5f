package policy

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// JudgeRecorded does what [Policy.Judge] does, for an audit record, which has the accesses of a statement but not its
// form. values has the recorded attributes, and missing names those without a value. The result refused is set if the
// contracts refuse every statement with these accesses. The result unsure says why the contracts may refuse the
// statement, depending on its form. If both are empty, the contracts allow every such statement.
func (p *Policy) JudgeRecorded(s Statement, values map[string]string, missing []string) (refusal *sqlstate.Error,
	unsure string) {
	if !p.HasContracts() {
		return nil, ""
	}
	var objects []objectAccess
	for _, a := range s.Accesses {
		if a.Source == SourceFunction {
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
		// In the best case, the accesses belong to several plain, named statements that read one object each and return few
		// rows. The statements join objects where the contracts require joins.
		for _, t := range objects {
			if t.object.JoinOnly {
				continue
			}
			t.JoinedByKey, t.AffectsOutput = true, false
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
	// In the worst case all accesses belong to one statement of any form.
	worst := Statement{Tag: s.Tag, Accesses: slices.Clone(s.Accesses), Limit: -1}
	for i := range worst.Accesses {
		worst.Accesses[i].JoinedByKey, worst.Accesses[i].AffectsOutput = false, true
	}
	if p.Judge(worst, values) != nil {
		return nil, "what contracts say of it depends on its form, such as its joins and its LIMIT"
	}
	return nil, ""
}

// unknownAttribute returns an attribute that the contract needs for its decision about these objects, but whose value
// was not recorded; "": there is none.
func (c *Contract) unknownAttribute(objects []objectAccess, values map[string]string, missing []string) string {
	if !slices.ContainsFunc(objects, func(t objectAccess) bool { return c.governs(t.object.Name) }) {
		return ""
	}
	unknown := func(name string) bool {
		_, isKnown := values[name]
		return name != "" && !isKnown && !slices.Contains(missing, name)
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
	attributes := []string{terms.PlanAttribute, terms.QuotaAttribute}
	for _, r := range terms.Requirements {
		attributes = append(attributes, r.Attributes...)
	}
	for _, name := range attributes {
		if unknown(name) {
			return name
		}
	}
	return ""
}

// statementTexts returns the texts of all statements that contracts name.
func (p *Policy) statementTexts() []string {
	texts := map[string]bool{}
	for _, c := range p.contracts {
		for _, t := range c.allTerms() {
			for _, text := range t.Statements {
				texts[text] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(texts))
}
