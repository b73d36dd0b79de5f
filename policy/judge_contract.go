package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// judge returns the decision of one contract.
func (c *Contract) judge(s Statement, all []objectAccess, values map[string]string) (ContractDecision, *sqlstate.Error) {
	d := ContractDecision{Contract: c.Name, By: c.By, Verdict: "none"}
	terms := c.Always
	if c.By != "" {
		d.Value = values[c.By]
		_, known := values[c.By]
		d.Missing = !known
		terms = c.Values[d.Value]
	}
	if terms != nil {
		d.Allows = terms.describe(c)
	}
	var objects []objectAccess
	only := true // the statement reads nothing but join_only objects
	for _, t := range all {
		if c.governs(t.object.Name) {
			objects = append(objects, t)
			only = only && t.object.JoinOnly
		}
	}
	if len(objects) == 0 {
		return d, nil
	}
	err := c.check(terms, d, s, objects, only, values)
	d.Verdict = "allow"
	if err != nil {
		d.Verdict = "deny"
	} else if terms.Per != "" && !only {
		d.Quota = &Quota{Contract: c.Name, Per: terms.Per, Value: values[terms.Per], AtMost: terms.Rows,
			Limit: s.Limit, contract: c.title(d)}
	}
	return d, err
}

// title names the contract in a refusal.
func (c *Contract) title(d ContractDecision) string {
	if c.By == "" {
		return fmt.Sprintf("contract %s", c.Name)
	}
	return fmt.Sprintf("contract %s, %s %s", c.Name, c.By, d.Value)
}

// check holds a statement to the terms of a contract. joinOnly is true if the statement reads nothing but objects that
// may only be joined.
func (c *Contract) check(terms *Terms, d ContractDecision, s Statement, objects []objectAccess, joinOnly bool,
	values map[string]string) *sqlstate.Error {
	first := objects[0]
	switch {
	case d.Missing:
		return contractRefusal("contract %s allows nothing: the session has no %s", c.Name, c.By).
			WithHint("The attribute %s decides what may be retrieved, and it has no value in this session now. "+
				"The DBA finds under attributes in the policy where it comes from.", c.By)
	case terms == nil:
		return contractRefusal("%s: nothing is allowed", c.title(d)).WithHint("The contract lists %s, and no other value of %s.",
			strings.Join(c.order, ", "), c.By)
	case terms.Nothing:
		return contractRefusal("%s: nothing may be retrieved; this statement would %s: %s", c.title(d), first.action(), first.describe()).
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
	if terms.Plan != "" {
		if err := c.checkPlan(d, terms.Plan, objects, values); err != nil {
			return err
		}
	}
	if len(terms.Statements) > 0 && !slices.ContainsFunc(keys(terms.Statements),
		func(name string) bool { return slices.Contains(s.NamedStatements, terms.Statements[name]) }) {
		return contractRefusal("%s: the statement is none of those that the contract allows", c.title(d)).
			WithHint("It allows the statements %s, as they are written in the policy, with other values for their "+
				"parameters.", strings.Join(keys(terms.Statements), ", "))
	}
	if _, known := values[terms.Per]; terms.Per != "" && !known && !joinOnly {
		return contractRefusal("%s: rows are counted per %s, and the session has none", c.title(d), terms.Per).
			WithHint("The attribute %s has no value in this session now. The DBA finds under attributes in the "+
				"policy where it comes from.", terms.Per)
	}
	if terms.Rows > 0 && !joinOnly {
		return c.checkRowLimit(d, terms.Rows, s, objects)
	}
	return nil
}

// checkObject holds one access to the sources and columns that the terms allow of its object.
func (c *Contract) checkObject(terms *Terms, d ContractDecision, t objectAccess) *sqlstate.Error {
	allowed := terms.of(t.object.Name)
	if allowed == nil || !allowed.allows(t.Source) {
		return contractRefusal("%s: %s is not allowed; this statement would %s", c.title(d), t.describe(), t.action()).
			WithHint("Here it allows %s.", d.Allows)
	}
	if allowed.Columns == nil {
		return nil
	}
	if t.Columns == nil {
		return contractRefusal("%s: this statement reads all columns of %s", c.title(d), t.describe()).
			WithHint("Name columns: it allows %s.", strings.Join(allowed.Columns, ", "))
	}
	for _, column := range t.Columns {
		if !slices.Contains(allowed.Columns, column) {
			return contractRefusal("%s: column %q of %s is not allowed", c.title(d), column, t.describe()).
				WithHint("It allows %s.", strings.Join(allowed.Columns, ", "))
		}
	}
	return nil
}

// checkRequires holds the session to the conditions of the terms.
func (c *Contract) checkRequires(terms *Terms, d ContractDecision, values map[string]string) *sqlstate.Error {
	for _, r := range terms.Requires {
		world := predicate.World{Attributes: values, Sealed: true, Now: time.Now()}
		if !predicate.Eval(r.Rule, predicate.Row{}, world) {
			return contractRefusal("%s: a condition of the contract does not hold in this session", c.title(d)).
				WithHint("It requires more of a session than its %s; the DBA finds the condition under requires "+
					"in the policy.", orElse(c.By, "attributes"))
		}
	}
	return nil
}

// checkVessels refuses a statement that reads two vessels which the contract separates.
func (c *Contract) checkVessels(d ContractDecision, objects []objectAccess) *sqlstate.Error {
	for _, group := range c.SeparateVessels {
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

// checkPlan refuses accesses that the session's plan does not list.
func (c *Contract) checkPlan(d ContractDecision, attribute string, objects []objectAccess,
	values map[string]string) *sqlstate.Error {
	value, ok := values[attribute]
	if !ok {
		return contractRefusal("%s: there is no plan", c.title(d)).
			WithHint("What may be retrieved is planned first (attribute %s), and this session has no plan now.", attribute)
	}
	plan := strings.Split(value, ",")
	if elements, list := predicate.ParseArray(value); list { // a text attribute is never written like a list
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
		if !slices.Contains(plan, entry) && !(t.Source == Metadata && slices.Contains(plan, t.object.Name+":"+Structured)) {
			return contractRefusal("%s: %s is not in the plan; this statement would %s", c.title(d), t.describe(), t.action()).
				WithHint("The plan of this session lists %s.", orElse(strings.Join(plan, ", "), "nothing"))
		}
	}
	return nil
}

// checkRowLimit refuses a statement unless it returns at most so many rows of one table, unchanged.
func (c *Contract) checkRowLimit(d ContractDecision, rows int64, s Statement, objects []objectAccess) *sqlstate.Error {
	through := slices.ContainsFunc(objects, func(t objectAccess) bool { return len(t.Through) > 0 })
	if s.PlainSelect && !through && s.Limit >= 0 && s.Limit <= rows {
		return nil
	}
	return contractRefusal("%s: at most %d rows, as they are", c.title(d), rows).
		WithHint("Write SELECT columns FROM a table, with joins, conditions and an order if need be, and LIMIT %d or less.", rows)
}

// describe lists what terms allow, for people.
func (t *Terms) describe(c *Contract) string {
	if t.Per != "" {
		return fmt.Sprintf("%s, at most %d rows per %s", t.describeObjects(), t.Rows, t.Per)
	}
	return t.describeObjects()
}

func (t *Terms) describeObjects() string {
	switch {
	case t.Nothing:
		return "nothing"
	case t.Allow == nil && t.any == nil && len(t.Except) == 0:
		return "everything"
	case t.Allow == nil && t.any == nil:
		return "everything except " + strings.Join(t.Except, ", ")
	}
	var out []string
	for _, name := range keys(t.Allow) {
		out = append(out, name+" ("+strings.Join(t.Allow[name].Sources, ", ")+")")
	}
	if t.any != nil {
		out = append(out, "any object ("+strings.Join(t.any.Sources, ", ")+")")
	}
	return strings.Join(out, ", ")
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
