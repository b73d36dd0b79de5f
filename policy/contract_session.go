package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// sessionRule returns the condition on a session that must hold for a contract to show rows of an object. Row security
// enforces this condition, too. It cannot enforce which columns a statement uses, and for what.
func (c *contractCompiler) sessionRule(contract *Contract, o *Object) predicate.Node {
	expression := func(format string, args ...any) predicate.Node {
		text := fmt.Sprintf(format, args...)
		return c.rules.compileSQL(sqlBlock{place: contract.place, text: text,
			placeAt: func(int) place { return contract.place }}, sessionRow)
	}
	of := func(t *Terms) (conditions predicate.All, ok bool) {
		allowance := t.allowanceFor(o.Name)
		if allowance == nil {
			return nil, false
		}
		for _, r := range t.Requirements {
			conditions = append(conditions, r.Rule)
		}
		if t.PlanAttribute != "" {
			list := c.findAttribute(contract.place, t.PlanAttribute).IsList()
			var entries []string
			for _, s := range append(slices.Clone(allowance.Sources), SourceMetadata) {
				entries = append(entries, planContainsText(t.PlanAttribute, list, o.Name+":"+s))
			}
			conditions = append(conditions, expression("%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(entries))),
				" OR ")))
		}
		return conditions, true
	}
	if contract.By == "" {
		conditions, ok := of(contract.Always)
		switch {
		case !ok:
			return predicate.Any{}
		case len(conditions) == 0:
			return predicate.Open{}
		}
		return conditions
	}
	var plain []string
	var out predicate.Any
	for _, value := range contract.order {
		conditions, ok := of(contract.Values[value])
		switch literal := c.attributeLiteral(contract.By, value); {
		case !ok:
		case len(conditions) == 0:
			plain = append(plain, literal)
		default:
			out = append(out, append(predicate.All{expression("attribute('%s') = %s", contract.By, literal)}, conditions...))
		}
	}
	if len(plain) > 0 {
		out = append(out, expression("attribute('%s') IN (%s)", contract.By, strings.Join(plain, ", ")))
	}
	return out
}

// planContainsText returns the text of an expression. It is true if the attribute with the plan contains an entry, as
// an element of a list or between the commas of a text.
func planContainsText(attribute string, list bool, entry string) string {
	if list {
		return fmt.Sprintf("%s = ANY (attribute('%s'))", catalog.QuoteLiteral(entry), attribute)
	}
	pattern := strings.ReplaceAll(entry, "_", `\_`)
	var parts []string
	for _, form := range []string{pattern, pattern + ",%", "%," + pattern, "%," + pattern + ",%"} {
		parts = append(parts, fmt.Sprintf("attribute('%s') LIKE '%s'", attribute, form))
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

func (c *contractCompiler) attributeLiteral(attribute, value string) string {
	a := c.findAttribute(place{}, attribute)
	if a.Type == "integer" || a.Type == "bigint" {
		return value
	}
	return catalog.QuoteLiteral(value)
}
