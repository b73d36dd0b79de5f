package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
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
		"to":     func(v *node) { b.to = d.grantees(v, "to") },
		"all": func(v *node) {
			b.allAt = v.Place
			d.word(&b.all, "all")(v)
		},
	})
	d.need(n, "grant", "column", "to")
	return b
}

// grantees reads an attribute, or a list of attributes.
func (d *decoder) grantees(v *node, what string) []grantee {
	items := v.Items
	if v.Kind == yamlfile.Scalar {
		items = []*node{v}
	} else if !d.want(v, yamlfile.List, what) {
		return nil
	}
	var out []grantee
	for _, item := range items {
		g := grantee{place: item.Place}
		d.word(&g.attribute, what)(item)
		out = append(out, g)
	}
	if len(items) == 0 {
		d.fail(v.Place, "name the attributes whose values are ids in the column", "%s is empty", what)
	}
	return out
}

func (c *compiler) grant(b grantBlock, row *catalog.Relation) predicate.Node {
	column := c.column(b.columnAt.Or(b.place), row, b.column)
	if column == nil {
		return predicate.Any{}
	}
	list, elements, ok := listOfIDs(column)
	if !ok {
		c.fail(b.place, "a grant is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column",
			"%s.%s is a %s", row.Name, column.Name, column.Type)
		return predicate.Any{}
	}
	out := predicate.Grant{Column: b.column, Form: list.Form, Cast: list.Cast, All: b.all}
	text := out.Form != predicate.GrantUUID && out.Form != predicate.GrantInteger
	if b.all != "" && !text {
		c.fail(b.allAt, "", "%s.%s is a %s: it cannot hold a word for everybody", row.Name, column.Name, column.Type)
	}
	for _, to := range b.to {
		attribute := c.attribute(to.place, to.attribute)
		if attribute == nil {
			continue
		}
		if !text && family(attribute.element()) != elements {
			c.fail(to.place, "declare the attribute with the type of the column's elements",
				"%s.%s is a %s and the attribute %s a %s",
				row.Name, column.Name, column.Type, attribute.Name, attribute.Type)
		}
		out.To = append(out.To, predicate.Grantee{
			Attribute: attribute.Name, List: attribute.List(), Optional: attribute.Optional})
	}
	return out
}

// listOfIDs tells how a column holds a list of ids, and the family of its elements.
func listOfIDs(column *catalog.Column) (list predicate.List, elements string, ok bool) {
	list.Column = column.Name
	element := strings.TrimSuffix(column.Type, "[]")
	switch {
	case column.Type == "jsonb":
		list.Form = predicate.GrantJSONB
		return list, "text", true
	case column.Type == "json" || family(column.Type) == "text":
		list.Form = predicate.GrantJSON
		return list, "text", true
	case element == column.Type:
		return list, "", false
	case family(element) == "text":
		list.Form, list.Cast = predicate.GrantText, element != "text"
	case family(element) == "uuid":
		list.Form = predicate.GrantUUID
	case family(element) == "integer":
		list.Form, list.Cast = predicate.GrantInteger, element != "bigint"
	default:
		return list, "", false
	}
	return list, family(element), true
}
