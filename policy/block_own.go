package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// tenantBlock is `tenant: { column: …, is: attribute, shared: value }`. It works like an own block, but rows with the
// shared value belong to every tenant.
type tenantBlock struct {
	ownBlock
	sharedValue string
	sharedAt    place
	sharedNull  bool
}

func (d *blockDecoder) decodeOwn(position place, n *node) block {
	b := ownBlock{place: position, attributeAt: position}
	d.decodeFields(n, "own", d.ownFields(&b))
	d.requireFields(n, "own", "column", "is")
	return b
}

func (d *blockDecoder) ownFields(b *ownBlock) map[string]func(*node) {
	return map[string]func(*node){
		"column": d.decodeWordAt(&b.column, &b.columnAt, "column"),
		"is": func(v *node) {
			b.attributeAt = v.Place
			d.decodeWord(&b.attribute, "is")(v)
		},
	}
}

func (d *blockDecoder) decodeTenant(position place, n *node) block {
	b := tenantBlock{ownBlock: ownBlock{place: position, attributeAt: position}}
	fields := d.ownFields(&b.ownBlock)
	fields["shared"] = func(v *node) {
		b.sharedAt = v.Place
		if v.Kind == yamlfile.NullNode {
			b.sharedNull = true
			return
		}
		d.decodeWord(&b.sharedValue, "shared")(v)
	}
	d.decodeFields(n, "tenant", fields)
	d.requireFields(n, "tenant", "column", "is")
	return b
}

// compileOwn compiles an own block, which shows rows to their owner.
func (c *ruleCompiler) compileOwn(b ownBlock, row *catalog.Relation) predicate.Node {
	if comparison := c.compareWithAttribute(b, row); comparison != nil {
		c.ownAttributes[b.attribute] = true
		return *comparison
	}
	return predicate.Any{}
}

// tenantNode compiles a tenant block.
func (c *ruleCompiler) tenantNode(b tenantBlock, row *catalog.Relation) predicate.Node {
	comparison := c.compareWithAttribute(b.ownBlock, row)
	if comparison == nil {
		return predicate.Any{}
	}
	if b.sharedValue == "" && !b.sharedNull {
		return *comparison
	}
	element := Attribute{Name: "shared", Type: c.findAttribute(b.attributeAt, b.attribute).elementType()}
	if b.sharedValue != "" && element.Type != "text" && !attributeTypes[element.Type].check(b.sharedValue) {
		c.fail(b.sharedAt, "write it as PostgreSQL does", "%s.%s cannot be compared with this value: it is not a %s",
			row.Name, b.column, element.Type)
	}
	return predicate.Tenant{Own: *comparison, SharedValue: b.sharedValue, SharedNull: b.sharedNull}
}

// compareWithAttribute checks that a column can be compared with the attribute that it must equal; nil after an error.
func (c *ruleCompiler) compareWithAttribute(b ownBlock, row *catalog.Relation) *predicate.Own {
	attribute, column := c.findAttribute(b.attributeAt, b.attribute),
		c.findRuleColumn(b.columnAt.OrElse(b.place), row, b.column)
	if attribute == nil || column == nil {
		return nil
	}
	out := &predicate.Own{Column: b.column, Attribute: b.attribute, Type: attribute.SQLType(),
		ComparesText: c.isEnum(column) && attribute.elementType() == "text", Optional: attribute.Optional}
	baseType := c.comparedType(column)
	padded := isBlankPadded(baseType) && attribute.elementType() == "text"
	if padded {
		out.Type = strings.Replace(out.Type, "pg_catalog.text", "pg_catalog.bpchar", 1)
	}
	if f := typeFamily(baseType); !out.ComparesText && !padded && (f == "" || f != typeFamily(attribute.elementType())) {
		suggestion := "declare the attribute with the column's type"
		if f == "" {
			suggestion = "own and tenant compare uuid, integer, text, varchar, char and enum columns, and domains over all but enums"
			if isBlankPadded(baseType) {
				suggestion = "declare the attribute as text"
			}
		}
		if strings.HasSuffix(column.Type, "[]") {
			suggestion = "write grant: { column: " + b.column + ", to: " + b.attribute + " } for a column that holds several"
		}
		c.fail(b.place, suggestion, "%s.%s is a %s and the attribute %s a %s",
			row.Name, column.Name, column.Type, attribute.Name, attribute.Type)
	}
	return out
}
