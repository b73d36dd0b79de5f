package policy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// grantBlock is `grant: { column: …, to: [attribute, …], all: word }`: a row shows if the list of ids in its column
// contains an id of the session.
type grantBlock struct {
	place
	column          string
	columnAt        place
	grantees        []attributeRef
	everybodyWord   string
	everybodyWordAt place
}

func (d *blockDecoder) decodeGrant(position place, n *node) block {
	b := grantBlock{place: position, everybodyWordAt: position}
	d.decodeFields(n, "grant", map[string]func(*node){
		"column": d.decodeWordAt(&b.column, &b.columnAt, "column"),
		"to":     func(v *node) { b.grantees = d.decodeAttributeRefs(v, "to") },
		"all": func(v *node) {
			b.everybodyWordAt = v.Place
			d.decodeWord(&b.everybodyWord, "all")(v)
		},
	})
	d.requireFields(n, "grant", "column", "to")
	return b
}

// compileGrant compiles a grant block, which shows a row to those to whom it is granted.
func (c *ruleCompiler) compileGrant(b grantBlock, row *catalog.Relation) predicate.Node {
	column := c.findRuleColumn(b.columnAt.OrElse(b.place), row, b.column)
	if column == nil {
		return predicate.Any{}
	}
	list, elements, ok := listOfIDs(column)
	if !ok {
		c.fail(b.place, "a grant is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column",
			"%s.%s is a %s", row.Name, column.Name, column.Type)
		return predicate.Any{}
	}
	out := predicate.Grant{Column: b.column, Form: list.Form, NeedsCast: list.NeedsCast, EverybodyWord: b.everybodyWord}
	text := out.Form != predicate.GrantUUID && out.Form != predicate.GrantInteger
	if b.everybodyWord != "" && !text {
		c.fail(b.everybodyWordAt, "", "%s.%s is a %s: it cannot hold a word for everybody", row.Name, column.Name, column.Type)
	}
	for _, grantee := range b.grantees {
		attribute := c.findAttribute(grantee.place, grantee.attribute)
		if attribute == nil {
			continue
		}
		if !text && typeFamily(attribute.elementType()) != elements {
			c.fail(grantee.place, "declare the attribute with the type of the column's elements",
				"%s.%s is a %s and the attribute %s a %s",
				row.Name, column.Name, column.Type, attribute.Name, attribute.Type)
		}
		out.Grantees = append(out.Grantees, predicate.Grantee{
			Attribute: attribute.Name, IsList: attribute.IsList(), Optional: attribute.Optional})
	}
	return out
}
