package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// ContractAttributes are the attributes that Judge asks for, sorted.
func (p *Policy) ContractAttributes() []string {
	asked := map[string]bool{}
	for _, c := range p.contracts {
		if c.By != "" {
			asked[c.By] = true
		}
		for _, t := range c.terms() {
			if t.Plan != "" {
				asked[t.Plan] = true
			}
			if t.Per != "" {
				asked[t.Per] = true
			}
			for _, r := range t.Requires {
				for _, name := range r.Attributes {
					asked[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(asked))
}

// Judge says whether a session whose attributes have these values may run the statement; one that is absent is missing.
// The values are those of this moment: a statement is judged each time that it runs.
func (p *Policy) Judge(s Statement, values map[string]string) *sqlstate.Error {
	_, refused := p.decide(s, values)
	return refused
}

// ContractDecision is what a contract says of a statement.
type ContractDecision struct {
	Contract string `json:"contract"`
	By       string `json:"by,omitempty"`
	Value    string `json:"value,omitempty"`
	Missing  bool   `json:"missing,omitempty"` // the attribute has no value
	Verdict  string `json:"verdict"`           // allow, deny, or none where it governs nothing that the statement touches
	Allows   string `json:"allows,omitempty"`
	Quota    *Quota `json:"-"` // of rows, of an allowed statement; nil: none
}

// Quota is how many rows of its own a statement may return, and all of an agent together for one value of an attribute.
type Quota struct {
	Contract, Per, Value string // what is counted together
	AtMost               int64
	Limit                int64 // of the statement: it returns no more

	at string // how a refusal speaks of the contract
}

// Exceeded is the refusal of a statement that may return more rows than are left.
func (q *Quota) Exceeded(left int64) *sqlstate.Error {
	if left <= 0 {
		return denied("%s: at most %d rows per %s, and they have been taken", q.at, q.AtMost, q.Per).
			WithHint("Rows count when they are sent, and as long as a statement runs that may return them. There "+
				"are new ones with the next %s.", q.Per)
	}
	return denied("%s: at most %d rows per %s, and fewer are left", q.at, q.AtMost, q.Per).
		WithHint("Write LIMIT %d or less.", left)
}

// Explain is Judge, with what each contract says.
func (p *Policy) Explain(s Statement, values map[string]string) ([]ContractDecision, *sqlstate.Error) {
	return p.decide(s, values)
}

// touched is an access of an object.
type touched struct {
	Access
	object *Object
}

func (p *Policy) decide(s Statement, values map[string]string) (decisions []ContractDecision, first *sqlstate.Error) {
	if !p.HasContracts() {
		return nil, nil
	}
	var objects []touched
	refuse := func(err *sqlstate.Error) {
		if first == nil {
			first = err
		}
	}
	for _, a := range s.Accesses {
		if a.Source == Calls {
			refuse(denied("function %s may not be called: the policy does not say what it reads", a.Relation).
				WithHint("The DBA says it under functions: reads, with the tables and their sources, or nothing."))
			continue
		}
		if t, ok := p.tableIndex[a.Relation]; ok && t.Observed != nil {
			continue
		}
		if o := p.Object(a.Relation); o != nil {
			objects = append(objects, touched{a, o})
		}
	}
	for _, c := range p.contracts {
		d, err := c.judge(s, objects, values)
		decisions = append(decisions, d)
		if err != nil {
			refuse(err)
		}
	}
	if first == nil {
		refuse(p.joined(objects))
	}
	for _, t := range objects {
		if !t.object.JoinOnly && !slices.ContainsFunc(p.contracts, func(c *Contract) bool { return c.governs(t.object.Name) }) {
			refuse(denied("no contract allows %s", t.describe()).
				WithHint("The DBA names the objects that a contract governs under governs, all if there is none."))
		}
	}
	return decisions, first
}

func denied(format string, args ...any) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonContract, format, args...)
}

// joined holds objects that may only be joined to that.
func (p *Policy) joined(objects []touched) *sqlstate.Error {
	others := slices.ContainsFunc(objects, func(t touched) bool { return !t.object.JoinOnly })
	for _, t := range objects {
		if !t.object.JoinOnly {
			continue
		}
		hint := fmt.Sprintf("Join %s to another object (%s) on a key of %s, and leave its columns out of the "+
			"result, the order and the groups.",
			t.object.Name, strings.Join(p.notJoinedOnly(), ", "), t.object.Name)
		switch {
		case t.Written || t.Source == Vector:
			return denied("%s may be joined, and nothing else", t.describe()).WithHint("%s", hint)
		case !others || !t.Joined:
			return denied("%s may only be joined to another object, on a key of it", t.describe()).WithHint("%s", hint)
		case t.Output:
			return denied("%s may only be joined: its columns may not be returned", t.describe()).WithHint("%s", hint)
		}
	}
	return nil
}

// notJoinedOnly names the objects that stand by themselves.
func (p *Policy) notJoinedOnly() []string {
	var out []string
	for _, o := range p.objects {
		if !o.JoinOnly {
			out = append(out, o.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// describe names an access.
func (t touched) describe() string {
	name := t.object.Name
	if len(t.Through) > 0 {
		name += " (through " + strings.Join(t.Through, ", ") + ")"
	}
	return name
}

// how says what the access does.
func (t touched) how() string {
	switch t.Source {
	case Metadata:
		return "read its metadata"
	case Vector:
		return "search it by likeness (vector)"
	case Writes:
		return "write it"
	}
	return "read it (structured)"
}

// judge is what one contract says.
func (c *Contract) judge(s Statement, all []touched, values map[string]string) (ContractDecision, *sqlstate.Error) {
	d := ContractDecision{Contract: c.Name, By: c.By, Verdict: "none"}
	terms := c.Always
	if c.By != "" {
		d.Value = values[c.By]
		_, known := values[c.By]
		d.Missing = !known
		terms = c.Values[d.Value]
	}
	if terms != nil {
		d.Allows = terms.allows(c)
	}
	var objects []touched
	only := true // it touches nothing but what may be joined
	for _, t := range all {
		if c.governs(t.object.Name) {
			objects = append(objects, t)
			only = only && t.object.JoinOnly
		}
	}
	if len(objects) == 0 {
		return d, nil
	}
	err := c.holds(terms, d, s, objects, only, values)
	d.Verdict = "allow"
	if err != nil {
		d.Verdict = "deny"
	} else if terms.Per != "" && !only {
		d.Quota = &Quota{Contract: c.Name, Per: terms.Per, Value: values[terms.Per], AtMost: terms.Rows,
			Limit: s.Limit, at: c.at(d)}
	}
	return d, err
}

// at is how a refusal speaks of the contract.
func (c *Contract) at(d ContractDecision) string {
	if c.By == "" {
		return fmt.Sprintf("contract %s", c.Name)
	}
	return fmt.Sprintf("contract %s, %s %s", c.Name, c.By, d.Value)
}

func (c *Contract) holds(terms *Terms, d ContractDecision, s Statement, objects []touched, only bool,
	values map[string]string) *sqlstate.Error {
	first := objects[0]
	switch {
	case d.Missing:
		return denied("contract %s allows nothing: the session has no %s", c.Name, c.By).
			WithHint("The attribute %s decides what may be retrieved, and it has no value in this session now. "+
				"The DBA finds under attributes in the policy where it comes from.", c.By)
	case terms == nil:
		return denied("%s: nothing is allowed", c.at(d)).WithHint("The contract lists %s, and no other value of %s.",
			strings.Join(c.order, ", "), c.By)
	case terms.Nothing:
		return denied("%s: nothing may be retrieved; this statement would %s: %s", c.at(d), first.how(), first.describe()).
			WithHint("At %s %s the contract allows nothing at all.", c.By, d.Value)
	}
	hint := "Here it allows " + d.Allows + "."
	for _, t := range objects {
		if t.object.JoinOnly {
			continue
		}
		allowed := terms.of(t.object.Name)
		if allowed == nil || !allowed.allows(t.Source) {
			return denied("%s: %s is not allowed; this statement would %s", c.at(d), t.describe(), t.how()).WithHint("%s", hint)
		}
		if allowed.Columns != nil {
			if t.Columns == nil {
				return denied("%s: this statement reads all columns of %s", c.at(d), t.describe()).
					WithHint("Name columns: it allows %s.", strings.Join(allowed.Columns, ", "))
			}
			for _, column := range t.Columns {
				if !slices.Contains(allowed.Columns, column) {
					return denied("%s: column %q of %s is not allowed", c.at(d), column, t.describe()).
						WithHint("It allows %s.", strings.Join(allowed.Columns, ", "))
				}
			}
		}
	}
	if err := c.separate(d, objects); err != nil {
		return err
	}
	for _, r := range terms.Requires {
		world := predicate.World{Attributes: values, Sealed: true, Now: time.Now()}
		if !predicate.Eval(r.Rule, predicate.Row{}, world) {
			return denied("%s: a condition of the contract does not hold in this session", c.at(d)).
				WithHint("It requires more of a session than its %s; the DBA finds the condition under requires "+
					"in the policy.", orElse(c.By, "attributes"))
		}
	}
	if terms.Plan != "" {
		if err := c.planned(d, terms.Plan, objects, values); err != nil {
			return err
		}
	}
	if len(terms.Statements) > 0 && !slices.ContainsFunc(keys(terms.Statements),
		func(name string) bool { return slices.Contains(s.NamedStatements, terms.Statements[name]) }) {
		return denied("%s: the statement is none of those that the contract allows", c.at(d)).
			WithHint("It allows the statements %s, as they are written in the policy, with other values for their "+
				"parameters.", strings.Join(keys(terms.Statements), ", "))
	}
	if _, known := values[terms.Per]; terms.Per != "" && !known && !only {
		return denied("%s: rows are counted per %s, and the session has none", c.at(d), terms.Per).
			WithHint("The attribute %s has no value in this session now. The DBA finds under attributes in the "+
				"policy where it comes from.", terms.Per)
	}
	if terms.Rows > 0 && !only {
		return c.few(d, terms.Rows, s, objects)
	}
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// separate keeps vessels apart.
func (c *Contract) separate(d ContractDecision, objects []touched) *sqlstate.Error {
	for _, group := range c.SeparateVessels {
		var seen *touched
		for i, t := range objects {
			if !slices.Contains(group, t.object.Vessel) {
				continue
			}
			if seen != nil && seen.object.Vessel != t.object.Vessel {
				return denied("%s: %s and %s may not be in one statement: their vessels are %s and %s",
					c.at(d), seen.describe(), t.describe(), seen.object.Vessel, t.object.Vessel).
					WithHint("Read each vessel in a statement of its own.")
			}
			seen = &objects[i]
		}
	}
	return nil
}

// planned holds accesses to a list that somebody else has written.
func (c *Contract) planned(d ContractDecision, attribute string, objects []touched,
	values map[string]string) *sqlstate.Error {
	value, ok := values[attribute]
	if !ok {
		return denied("%s: there is no plan", c.at(d)).
			WithHint("What may be retrieved is planned first (attribute %s), and this session has no plan now.", attribute)
	}
	plan := strings.Split(value, ",")
	if elements, list := predicate.ParseArray(value); list { // no text attribute reads as a list
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
			return denied("%s: %s is not in the plan; this statement would %s", c.at(d), t.describe(), t.how()).
				WithHint("The plan of this session lists %s.", orElse(strings.Join(plan, ", "), "nothing"))
		}
	}
	return nil
}

// few holds a statement to a number of rows: those of one table, as they are.
func (c *Contract) few(d ContractDecision, rows int64, s Statement, objects []touched) *sqlstate.Error {
	through := slices.ContainsFunc(objects, func(t touched) bool { return len(t.Through) > 0 })
	if s.PlainSelect && !through && s.Limit >= 0 && s.Limit <= rows {
		return nil
	}
	return denied("%s: at most %d rows, as they are", c.at(d), rows).
		WithHint("Write SELECT columns FROM a table, with joins, conditions and an order if need be, and LIMIT %d or less.", rows)
}

// allows lists what terms allow, for people.
func (t *Terms) allows(c *Contract) string {
	if t.Per != "" {
		return fmt.Sprintf("%s, at most %d rows per %s", t.objects(), t.Rows, t.Per)
	}
	return t.objects()
}

func (t *Terms) objects() string {
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
