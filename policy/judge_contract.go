package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// judge returns what the contract decides about a statement.
func (c *Contract) judge(s Statement, accesses []objectAccess, values map[string]string) (ContractDecision,
	*sqlstate.Error) {
	d := ContractDecision{Contract: c.Name, By: c.By, Verdict: "none"}
	terms := c.Always
	if c.By != "" {
		d.Value = values[c.By]
		_, isKnown := values[c.By]
		d.AttributeMissing = !isKnown
		terms = c.Values[d.Value]
	}
	if terms != nil {
		d.AllowedText = terms.describe(c)
	}
	var objects []objectAccess
	only := true // the statement reads only join_only objects
	for _, t := range accesses {
		if c.governs(t.object.Name) {
			objects = append(objects, t)
			only = only && t.object.JoinOnly
		}
	}
	if len(objects) == 0 {
		return d, nil
	}
	err := c.checkTerms(terms, d, s, objects, only, values)
	d.Verdict = "allow"
	if err != nil {
		d.Verdict = "deny"
	} else if terms.QuotaAttribute != "" && !only {
		d.Quota = &Quota{Contract: c.Name, Per: terms.QuotaAttribute, Value: values[terms.QuotaAttribute],
			MaxRows: terms.MaxRows,
			Limit:   s.Limit, contract: c.title(d)}
	}
	return d, err
}

// title returns the words that name the contract in a refusal.
func (c *Contract) title(d ContractDecision) string {
	if c.By == "" {
		return fmt.Sprintf("contract %s", c.Name)
	}
	return fmt.Sprintf("contract %s, %s %s", c.Name, c.By, d.Value)
}

// checkTerms returns a refusal unless the statement meets the terms of a contract. joinOnly tells that the statement
// reads only join_only objects.
func (c *Contract) checkTerms(terms *Terms, d ContractDecision, s Statement, objects []objectAccess, joinOnly bool,
	values map[string]string) *sqlstate.Error {
	firstAccess := objects[0]
	switch {
	case d.AttributeMissing:
		return contractRefusal("contract %s allows nothing: the session has no %s", c.Name, c.By).
			WithHint("The attribute %s decides what may be retrieved, and it has no value in this session now. "+
				"The DBA finds under attributes in the policy where it comes from.", c.By)
	case terms == nil:
		return contractRefusal("%s: nothing is allowed", c.title(d)).WithHint("The contract lists %s, and no other value of %s.",
			strings.Join(c.order, ", "), c.By)
	case terms.AllowsNothing:
		return contractRefusal("%s: nothing may be retrieved; this statement would %s: %s", c.title(d),
			firstAccess.actionText(),
			firstAccess.describe()).
			WithHint("At %s %s the contract allows nothing at all.", c.By, d.Value)
	}
	for _, t := range objects {
		if t.object.JoinOnly {
			continue
		}
		if err := c.checkObject(terms, d, t); err != nil {
			return err
		}
	}
	if err := c.checkVessels(d, objects); err != nil {
		return err
	}
	if err := c.checkRequires(terms, d, values); err != nil {
		return err
	}
	if terms.PlanAttribute != "" {
		if err := c.checkPlan(d, terms.PlanAttribute, objects, values); err != nil {
			return err
		}
	}
	if len(terms.Statements) > 0 && !slices.ContainsFunc(sortedKeys(terms.Statements),
		func(name string) bool { return slices.Contains(s.NamedStatements, terms.Statements[name]) }) {
		return contractRefusal("%s: the statement is none of those that the contract allows", c.title(d)).
			WithHint("It allows the statements %s, as they are written in the policy, with other values for their "+
				"parameters.", strings.Join(sortedKeys(terms.Statements), ", "))
	}
	if _, isKnown := values[terms.QuotaAttribute]; terms.QuotaAttribute != "" && !isKnown && !joinOnly {
		return contractRefusal("%s: rows are counted per %s, and the session has none", c.title(d), terms.QuotaAttribute).
			WithHint("The attribute %s has no value in this session now. The DBA finds under attributes in the "+
				"policy where it comes from.", terms.QuotaAttribute)
	}
	if terms.MaxRows > 0 && !joinOnly {
		return c.checkRowLimit(d, terms.MaxRows, s, objects)
	}
	return nil
}

// checkObject returns a refusal unless the terms allow the source and the columns of one access.
func (c *Contract) checkObject(terms *Terms, d ContractDecision, t objectAccess) *sqlstate.Error {
	allowance := terms.allowanceFor(t.object.Name)
	if allowance == nil || !allowance.allowsSource(t.Source) {
		return contractRefusal("%s: %s is not allowed; this statement would %s", c.title(d), t.describe(), t.actionText()).
			WithHint("Here it allows %s.", d.AllowedText)
	}
	if allowance.Columns == nil {
		return nil
	}
	if t.Columns == nil {
		return contractRefusal("%s: this statement reads all columns of %s", c.title(d), t.describe()).
			WithHint("Name columns: it allows %s.", strings.Join(allowance.Columns, ", "))
	}
	for _, column := range t.Columns {
		if !slices.Contains(allowance.Columns, column) {
			return contractRefusal("%s: column %q of %s is not allowed", c.title(d), column, t.describe()).
				WithHint("It allows %s.", strings.Join(allowance.Columns, ", "))
		}
	}
	return nil
}

// checkRequires returns a refusal unless the session meets the requirements of the terms.
func (c *Contract) checkRequires(terms *Terms, d ContractDecision, values map[string]string) *sqlstate.Error {
	for _, r := range terms.Requirements {
		world := predicate.World{Attributes: values, Sealed: true, Now: time.Now()}
		if !predicate.Eval(r.Rule, predicate.Row{}, world) {
			return contractRefusal("%s: a condition of the contract does not hold in this session", c.title(d)).
				WithHint("It requires more of a session than its %s; the DBA finds the condition under requires "+
					"in the policy.", orElse(c.By, "attributes"))
		}
	}
	return nil
}

// checkVessels refuses a statement that reads from two vessels of the same exclusive group.
func (c *Contract) checkVessels(d ContractDecision, objects []objectAccess) *sqlstate.Error {
	for _, group := range c.ExclusiveVessels {
		var seen *objectAccess
		for i, t := range objects {
			if !slices.Contains(group, t.object.Vessel) {
				continue
			}
			if seen != nil && seen.object.Vessel != t.object.Vessel {
				return contractRefusal("%s: %s and %s may not be in one statement: their vessels are %s and %s",
					c.title(d), seen.describe(), t.describe(), seen.object.Vessel, t.object.Vessel).
					WithHint("Read each vessel in a statement of its own.")
			}
			seen = &objects[i]
		}
	}
	return nil
}

// checkPlan refuses an access that the session's plan does not list.
func (c *Contract) checkPlan(d ContractDecision, attribute string, objects []objectAccess,
	values map[string]string) *sqlstate.Error {
	value, ok := values[attribute]
	if !ok {
		return contractRefusal("%s: there is no plan", c.title(d)).
			WithHint("What may be retrieved is planned first (attribute %s), and this session has no plan now.", attribute)
	}
	plan := strings.Split(value, ",")
	// a plan that is a text never has the form of an array literal, so the form tells lists from texts
	if elements, list := predicate.ParseArray(value); list {
		plan = nil
		for _, e := range elements {
			if e != nil {
				plan = append(plan, *e)
			}
		}
	}
	for _, t := range objects {
		if t.object.JoinOnly {
			continue
		}
		entry := t.object.Name + ":" + t.Source
		if !slices.Contains(plan, entry) && !(t.Source == SourceMetadata &&
			slices.Contains(plan, t.object.Name+":"+SourceStructured)) {
			return contractRefusal("%s: %s is not in the plan; this statement would %s", c.title(d), t.describe(),
				t.actionText()).
				WithHint("The plan of this session lists %s.", orElse(strings.Join(plan, ", "), "nothing"))
		}
	}
	return nil
}

// checkRowLimit refuses a statement unless it is a plain SELECT from tables, without views, whose LIMIT is at most the
// permitted number of rows.
func (c *Contract) checkRowLimit(d ContractDecision, rows int64, s Statement, objects []objectAccess) *sqlstate.Error {
	isThroughView := slices.ContainsFunc(objects, func(t objectAccess) bool { return len(t.Through) > 0 })
	if s.PlainSelect && !isThroughView && s.Limit >= 0 && s.Limit <= rows {
		return nil
	}
	return contractRefusal("%s: at most %d rows, as they are", c.title(d), rows).
		WithHint("Write SELECT columns FROM a table, with joins, conditions and an order if need be, and LIMIT %d or less.", rows)
}

// describe lists in words what the terms allow.
func (t *Terms) describe(c *Contract) string {
	if t.QuotaAttribute != "" {
		return fmt.Sprintf("%s, at most %d rows per %s", t.describeObjects(), t.MaxRows, t.QuotaAttribute)
	}
	return t.describeObjects()
}

func (t *Terms) describeObjects() string {
	switch {
	case t.AllowsNothing:
		return "nothing"
	case t.Allow == nil && t.otherObjects == nil && len(t.ExceptedObjects) == 0:
		return "everything"
	case t.Allow == nil && t.otherObjects == nil:
		return "everything except " + strings.Join(t.ExceptedObjects, ", ")
	}
	var out []string
	for _, name := range sortedKeys(t.Allow) {
		out = append(out, name+" ("+strings.Join(t.Allow[name].Sources, ", ")+")")
	}
	if t.otherObjects != nil {
		out = append(out, "any object ("+strings.Join(t.otherObjects.Sources, ", ")+")")
	}
	return strings.Join(out, ", ")
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
