package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// attributeCompiler compiles the attributes that the database computes for each statement.
type attributeCompiler struct {
	*resolver
	rules *ruleCompiler
}

// compile compiles the live attributes. The result is ordered so that no attribute needs a later one.
func (c *attributeCompiler) compile() []predicate.LiveAttribute {
	bySetting := map[string]string{}
	var all []predicate.LiveAttribute
	positions := map[string]place{}
	for i := range c.doc.attributes {
		decl := &c.doc.attributes[i]
		positions[decl.Name] = decl.place
		if decl.Source == sourceCredential {
			continue
		}
		if decl.Setting != "" {
			if otherAttribute, isTaken := bySetting[decl.Setting]; isTaken {
				c.fail(*decl.setting, "write a setting for each",
					"the setting %s is that of the attribute %s already", decl.Setting, otherAttribute)
			}
			bySetting[decl.Setting] = decl.Name
		}
		out := predicate.LiveAttribute{Name: decl.Name, Type: decl.SQLType(), Optional: decl.Optional, Setting: decl.Setting}
		c.compileLive(decl, &out)
		all = append(all, out)
	}
	slices.SortFunc(all, func(a, b predicate.LiveAttribute) int { return strings.Compare(a.Name, b.Name) })
	return c.dependencyOrder(all, positions)
}

// compileLive compiles how the database computes the value of an attribute.
func (c *attributeCompiler) compileLive(decl *attributeDecl, out *predicate.LiveAttribute) {
	switch {
	case decl.within != nil && decl.within.source != nil:
		c.compileLookup(decl, decl.within.source, out)
	case decl.within != nil:
		for _, g := range decl.within.attributes {
			a := c.findAttribute(g.place, g.attribute)
			if a == nil {
				continue
			}
			if typeFamily(a.elementType()) != typeFamily(decl.Type) {
				c.fail(g.place, "declare both with one type", "the attribute %s is a %s and %s a %s", decl.Name,
					decl.Type, a.Name, a.Type)
			}
			out.MustEqual = append(out.MustEqual, predicate.Attribute{Name: a.Name, Type: a.SQLType(), Optional: a.Optional})
		}
		for _, v := range decl.within.values {
			if err := decl.Attribute.Check(v.Value); err != nil {
				c.fail(v.Place, "write it as PostgreSQL does", "%s", err)
			}
			out.AllowedValues = append(out.AllowedValues, v.Value)
		}
	case decl.lookup != nil:
		c.compileLookup(decl, decl.lookup, out)
	case decl.sql != nil:
		c.compileLiveExpression(decl, out)
	}
}

// compileLookup compiles the query that reads the value of an attribute, or that finds a row which permits the value
// that the session claims.
func (c *attributeCompiler) compileLookup(decl *attributeDecl, q *lookupDecl, out *predicate.LiveAttribute) {
	table := c.findTable(q.tableAt, q.table)
	if table == nil {
		return
	}
	column := c.findRuleColumn(q.place, table, q.column)
	if column == nil {
		return
	}
	c.checkLookupType(decl, q, table, column)
	var rows predicate.All
	if decl.Setting != "" {
		claim := predicate.Own{Column: q.column, Attribute: predicate.ClaimedValue, Type: decl.SQLType(),
			ComparesText: c.isEnum(column)}
		if isBlankPadded(column.Type) {
			claim.Type = "pg_catalog.bpchar"
		}
		rows = append(rows, claim)
	}
	for _, m := range q.matchedAttributes {
		if comparison := c.rules.compareWithAttribute(m, table); comparison != nil {
			rows = append(rows, *comparison)
		}
	}
	if q.rows != nil {
		outer := c.rules.currentRule
		c.rules.currentRule = nil
		if n := c.rules.compileBlock(q.rows, table); n != nil {
			if _, isOpen := n.(predicate.Open); !isOpen {
				rows = append(rows, n)
			}
		}
		c.rules.currentRule = outer
	}
	out.Table, out.Column, out.Rows = table, q.column, rows
}

// checkLookupType checks that every value of a column is a valid value of the attribute's type. If a cast failed, its
// error would tell an agent that a row exists.
func (c *attributeCompiler) checkLookupType(decl *attributeDecl, q *lookupDecl, table *catalog.Relation, column *catalog.Column) {
	isSameType := false
	switch decl.Type {
	case "text":
		isSameType = typeFamily(column.Type) == "text" || isBlankPadded(column.Type) || c.isEnum(column) ||
			decl.Setting == "" && column.Type == "boolean"
	case "uuid":
		isSameType = column.Type == "uuid"
	case "bigint":
		isSameType = typeFamily(column.Type) == "integer"
	case "integer":
		isSameType = typeFamily(column.Type) == "integer" && (column.Type != "bigint" || decl.Setting != "")
	}
	if !isSameType {
		c.fail(q.place, "declare the attribute with the column's type", "%s.%s is a %s and the attribute %s a %s",
			table.Name, column.Name, column.Type, decl.Name, decl.Type)
	}
}

// compileLiveExpression compiles an expression over other attributes.
func (c *attributeCompiler) compileLiveExpression(decl *attributeDecl, out *predicate.LiveAttribute) {
	x, n := c.rules.parseExpression(*decl.sql, nil, "write the expression alone, as it would stand after SELECT")
	if n == nil {
		return
	}
	o, ok := x.compile(n)
	if !ok {
		return
	}
	want := map[string]predicate.Kind{"text": predicate.Text, "uuid": predicate.UUID, "integer": predicate.Number,
		"bigint": predicate.Number}[decl.Type]
	if o.kind == predicate.Bool && decl.Type == "text" {
		want = predicate.Bool
	}
	if o.kind == predicate.Float && want == predicate.Number || want == "" {
		c.fail(decl.sql.placeAt(0), "", "the expression is a %s and the attribute %s a %s", o.kind, decl.Name, decl.Type)
		return
	}
	if o, ok = x.convert(o, want); !ok {
		return
	}
	if !x.namesColumnOrAttribute {
		c.fail(decl.sql.placeAt(0), "speak of another attribute: attribute('name')",
			"the expression is the same for everybody")
	}
	out.Expr, out.Kind = o.Expr, want
}

// dependencyOrder sorts attributes so that no attribute needs a later one. It reports attributes that need each other.
func (c *attributeCompiler) dependencyOrder(all []predicate.LiveAttribute,
	positions map[string]place) []predicate.LiveAttribute {
	byName := map[string]predicate.LiveAttribute{}
	for _, l := range all {
		byName[l.Name] = l
	}
	var out []predicate.LiveAttribute
	visited, path := map[string]bool{}, []string(nil)
	var visit func(l predicate.LiveAttribute)
	visit = func(l predicate.LiveAttribute) {
		if i := slices.Index(path, l.Name); i >= 0 {
			c.fail(positions[l.Name], "let one of them come from the credential", "attributes go round in a circle: %s",
				strings.Join(append(slices.Clone(path[i:]), l.Name), " → "))
			return
		}
		if visited[l.Name] {
			return
		}
		path = append(path, l.Name)
		for _, neededName := range l.NeededAttributes() {
			if other, live := byName[neededName]; live {
				visit(other)
			}
		}
		path = path[:len(path)-1]
		if !visited[l.Name] {
			visited[l.Name] = true
			out = append(out, l)
		}
	}
	for _, l := range all {
		visit(l)
	}
	return out
}

// AttributeOrigin describes how the database computes a live attribute: the query, the permitted values or the
// expression. It returns "" for an attribute that the credential provides.
func (p *Policy) AttributeOrigin(name string) string {
	for _, l := range p.live {
		if l.Name != name {
			continue
		}
		switch {
		case l.Table != nil:
			sql := "SELECT " + catalog.QuoteIdent(l.Column) + " FROM " + l.Table.Name.SQL()
			if l.Rows != nil {
				// The SQL compares with the claimed value as attr(''), since that attribute has no name there.
				sql += " WHERE " + strings.ReplaceAll(ReadableSQL(predicate.CheckSQL(l.Rows, l.Table)), "(SELECT attr(''))",
					"claim")
			}
			return sql
		case len(l.MustEqual) > 0:
			var ids []string
			for _, a := range l.MustEqual {
				ids = append(ids, "attribute('"+a.Name+"')")
			}
			return strings.Join(ids, ", or ")
		case len(l.AllowedValues) > 0:
			return "'" + strings.Join(l.AllowedValues, "', '") + "'"
		default:
			return strings.Join(strings.Fields(p.attributeExpressions[name]), " ")
		}
	}
	return ""
}
