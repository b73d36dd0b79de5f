package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// checkAgents warns of agents whose attributes differ from those that the policy declares. It also warns of rules that
// compare with a value which no agent has.
func (l *linter) checkAgents() {
	if l.context.Agents == nil {
		return
	}
	declared := map[string]attributeDecl{}
	for _, a := range l.doc.attributes {
		declared[a.Name] = a
	}
	for _, agent := range slices.Sorted(maps.Keys(l.context.Agents)) {
		values := l.context.Agents[agent]
		for _, a := range l.doc.attributes {
			value, ok := values[a.Name]
			claimed := slices.Contains(l.context.TokenAttributes[agent], a.Name)
			switch {
			case ok && claimed:
				l.warn(a.place, "leave it out of agents."+agent+".attributes",
					"agent %s has an attribute %s of the configuration that its tokens give as well, and is not served", agent, a.Name)
			case a.Source != sourceCredential && claimed:
				l.warn(a.place, "leave it out of jwt.claims.attributes",
					"the tokens of agent %s give an attribute %s whose source is %s: it is not served with one "+
						"that does", agent, a.Name, a.Source)
			case claimed: // the value becomes known only when a client presents a token
			case a.Source != sourceCredential && ok:
				l.warn(a.place, "leave it out of the configuration",
					"agent %s has an attribute %s whose source is %s, and is not served", agent, a.Name, a.Source)
			case a.Source != sourceCredential, a.Optional && !ok:
			case !ok:
				l.warn(a.place, "agents."+agent+".attributes of the configuration",
					"agent %s has no attribute %s, and is not served", agent, a.Name)
			default:
				if err := a.Check(value); err != nil {
					l.warn(a.place, "agents."+agent+".attributes of the configuration", "agent %s is not served: %s", agent, err)
				}
			}
		}
		for _, name := range l.context.TokenAttributes[agent] {
			if _, ok := declared[name]; !ok {
				l.warn(l.filePlace(), closest(name, slices.Sorted(maps.Keys(declared))),
					"the tokens of agent %s may give an attribute %s that the policy does not declare: it is not "+
						"served with one that does", agent, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if _, ok := declared[name]; !ok {
				position := l.filePlace()
				if len(l.doc.attributes) > 0 {
					position = l.doc.attributes[0].place
				}
				l.warn(position, closest(name, slices.Sorted(maps.Keys(declared))),
					"agent %s has an attribute %s that the policy does not declare, and is not served", agent, name)
			}
		}
	}
	if len(l.context.Agents) == 0 {
		return
	}
	for _, name := range l.tableOrder {
		l.checkRuleValues(l.tables[name].decl.rows, l.tables[name].relation)
	}
}

// checkRuleValues warns of comparisons of an attribute with a constant that no agent has as its value.
func (l *linter) checkRuleValues(b block, row *catalog.Relation) {
	switch b := b.(type) {
	case allBlock:
		for _, part := range b.parts {
			l.checkRuleValues(part, row)
		}
	case anyBlock:
		for _, part := range b.parts {
			l.checkRuleValues(part, row)
		}
	case notBlock:
		l.checkRuleValues(b.part, row)
	case sqlBlock:
		if n, ok := l.recompileBlock(b, row).(predicate.SQL); ok {
			for _, c := range comparedAttributes(n.Expr) {
				l.checkValue(b.place, c[0], c[1])
			}
		}
	case ownBlock:
		l.checkColumnValues(b, row)
	case tenantBlock:
		l.checkColumnValues(b.ownBlock, row)
	}
}

func (l *linter) checkValue(position place, attribute, value string) {
	a, ok := l.policy.Attribute(attribute)
	if !ok || a.Source != "credential" || l.mayComeFromToken(attribute) {
		return
	}
	for _, values := range l.context.Agents {
		if a.IsList() {
			if elements, ok := predicate.ParseArray(values[attribute]); !ok ||
				slices.ContainsFunc(elements, func(e *string) bool { return e != nil && *e == value }) {
				return
			}
		} else if values[attribute] == value {
			return
		}
	}
	l.warn(position, "", "no agent of the configuration has %s = %q", attribute, value)
}

// mayComeFromToken tells whether an agent's tokens may provide the attribute, so that its values are not known in
// advance.
func (l *linter) mayComeFromToken(attribute string) bool {
	for _, names := range l.context.TokenAttributes {
		if slices.Contains(names, attribute) {
			return true
		}
	}
	return false
}

// checkColumnValues warns of a comparison of an attribute with a column that cannot contain the value of any agent.
func (l *linter) checkColumnValues(b ownBlock, row *catalog.Relation) {
	column, a := row.Column(b.column), l.findAttribute(b.attributeAt, b.attribute)
	if column == nil || a == nil || a.IsList() || a.Source != "credential" || l.mayComeFromToken(b.attribute) {
		return
	}
	values := column.AllowedValues
	if t := l.snap.TypeByOID(column.TypeOID); t != nil && t.Kind == 'e' {
		values = t.Labels
	}
	if len(values) == 0 {
		return
	}
	for _, has := range l.context.Agents {
		if value, ok := has[b.attribute]; ok && slices.Contains(values, value) {
			return
		}
	}
	l.warn(b.At(), "", "%s.%s holds %s only, and no agent of the configuration has one of these as %s", row.Name,
		b.column, quotedList(values), b.attribute)
}

// comparedAttributes returns the attributes that an expression compares with constants, each with its constant.
func comparedAttributes(e predicate.Expr) [][2]string {
	switch e := e.(type) {
	case predicate.And:
		return comparisonsIn(e)
	case predicate.Or:
		return comparisonsIn(e)
	case predicate.Comparison:
		for _, pair := range [][2]predicate.Expr{{e.Left, e.Right}, {e.Right, e.Left}} {
			a, ok := pair[0].(predicate.Attribute)
			value, constant := pair[1].(predicate.Constant)
			if ok && constant && e.Op == "=" {
				return [][2]string{{a.Name, value.Value}}
			}
		}
	case predicate.AnyOf:
		a, ok := e.List.(predicate.Attribute)
		value, constant := e.Left.(predicate.Constant)
		if ok && constant {
			return [][2]string{{a.Name, strings.TrimSpace(value.Value)}}
		}
	}
	return nil
}

func comparisonsIn(parts []predicate.Expr) [][2]string {
	var out [][2]string
	for _, part := range parts {
		out = append(out, comparedAttributes(part)...)
	}
	return out
}
