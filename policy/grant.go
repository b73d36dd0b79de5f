package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/predicate"
)

// grantBlock is `grant: { column: …, to: [attribute, …], all: word }`.
type grantBlock struct {
	place
	column   string
	columnAt place
	to       []grantee
	all      string
	allAt    place
}

type grantee struct {
	place
	attribute string
}

func (d *decoder) grant(at place, n *node) block {
	b := grantBlock{place: at, allAt: at}
	d.fields(n, "grant", map[string]func(*node){
		"column": d.wordAt(&b.column, &b.columnAt, "column"),
		"to": func(v *node) {
			items := v.items
			if v.kind == scalarNode {
				items = []*node{v}
			} else if !d.want(v, listNode, "to") {
				return
			}
			for _, item := range items {
				g := grantee{place: item.place}
				d.word(&g.attribute, "to")(item)
				b.to = append(b.to, g)
			}
			if len(items) == 0 {
				d.fail(v.place, "name the attributes whose values are ids in the column", "to is empty")
			}
		},
		"all": func(v *node) {
			b.allAt = v.place
			d.word(&b.all, "all")(v)
		},
	})
	d.need(n, "grant", "column", "to")
	return b
}

func (c *compiler) grant(b grantBlock, row *catalog.Relation) predicate.Node {
	column := c.column(b.columnAt.or(b.place), row, b.column)
	if column == nil {
		return predicate.Any{}
	}
	out := predicate.Grant{Column: b.column, All: b.all}
	elements := strings.TrimSuffix(column.Type, "[]")
	switch {
	case column.Type == "jsonb":
		out.Form = predicate.GrantJSONB
	case column.Type == "json" || family(column.Type) == "text":
		out.Form = predicate.GrantJSON
	case elements == column.Type:
		c.fail(b.place, "a grant is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column", "%s.%s is a %s", row.Name, column.Name, column.Type)
		return predicate.Any{}
	case family(elements) == "text":
		out.Form, out.Cast = predicate.GrantText, elements != "text"
	case family(elements) == "uuid":
		out.Form = predicate.GrantUUID
	case family(elements) == "integer":
		out.Form, out.Cast = predicate.GrantInteger, elements != "bigint"
	default:
		c.fail(b.place, "a grant is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column", "%s.%s is a %s", row.Name, column.Name, column.Type)
		return predicate.Any{}
	}
	text := out.Form != predicate.GrantUUID && out.Form != predicate.GrantInteger
	if b.all != "" && !text {
		c.fail(b.allAt, "", "%s.%s is a %s: it cannot hold a word for everybody", row.Name, column.Name, column.Type)
	}
	for _, to := range b.to {
		attribute := c.attribute(to.place, to.attribute)
		if attribute == nil {
			continue
		}
		if !text && family(attribute.element()) != family(elements) {
			c.fail(to.place, "declare the attribute with the type of the column's elements", "%s.%s is a %s and the attribute %s a %s",
				row.Name, column.Name, column.Type, attribute.Name, attribute.Type)
		}
		out.To = append(out.To, predicate.Grantee{Attribute: attribute.Name, List: attribute.List()})
	}
	return out
}
