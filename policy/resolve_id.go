package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// listOfIDs returns how a column stores a list of ids, and the type family of its elements; ok is false if the column
// cannot store a list of ids.
func listOfIDs(column *catalog.Column) (list predicate.List, elements string, ok bool) {
	list.Column = column.Name
	element := strings.TrimSuffix(column.Type, "[]")
	switch {
	case column.Type == "jsonb":
		list.Form = predicate.GrantJSONB
		return list, "text", true
	case column.Type == "json" || typeFamily(column.Type) == "text":
		list.Form = predicate.GrantJSON
		return list, "text", true
	case element == column.Type:
		return list, "", false
	case typeFamily(element) == "text":
		list.Form, list.NeedsCast = predicate.GrantText, element != "text"
	case typeFamily(element) == "uuid":
		list.Form = predicate.GrantUUID
	case typeFamily(element) == "integer":
		list.Form, list.NeedsCast = predicate.GrantInteger, element != "bigint"
	default:
		return list, "", false
	}
	return list, typeFamily(element), true
}

// idForm returns how a column with a single id of this type family stores it.
func idForm(family string) predicate.GrantForm {
	return map[string]predicate.GrantForm{"uuid": predicate.GrantUUID, "integer": predicate.GrantInteger}[family]
}

// findIDList finds a column with a list of ids, and reports an error if the column has no such list.
func (c *resolver) findIDList(position place, r *catalog.Relation, name string) (predicate.List, string, bool) {
	column := c.findRuleColumn(position, r, name)
	if column == nil {
		return predicate.List{}, "", false
	}
	list, elements, ok := listOfIDs(column)
	switch {
	case !ok:
		c.fail(position, "a list is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column",
			"%s.%s is a %s", r.Name, column.Name, column.Type)
	case column.Nondeterministic:
		c.fail(position, "give the column a collation that tells all texts apart",
			"%s.%s has a collation by which different ids are the same", r.Name, column.Name)
		ok = false
	}
	return list, elements, ok
}

// checkIDColumn checks that a column contains ids of the same type as another column, or as the elements of that
// column's list.
func (c *resolver) checkIDColumn(position place, r *catalog.Relation, name string, other *catalog.Column,
	elements string) {
	column := c.findRuleColumn(position, r, name)
	if column == nil {
		return
	}
	switch {
	case typeFamily(column.Type) != elements:
		hint := "ids are uuid, integer or text on both sides"
		if elements == "text" {
			hint = fmt.Sprintf(
				"compare it as text, by a column of its own such as ADD COLUMN %s text GENERATED ALWAYS AS "+
					"(%s::text) STORED", catalog.QuoteIdent(column.Name+"_text"), catalog.QuoteIdent(column.Name))
		}
		c.fail(position, hint, "%s.%s is of type %s, and %s is of ids that are %s", r.Name, column.Name, column.Type,
			other.Name, elements)
	case column.Nondeterministic || other.Nondeterministic:
		c.fail(position, "give it a deterministic collation",
			"%s.%s and %s compare by a collation that takes different ids for the same", r.Name, column.Name, other.Name)
	case other.Type != "jsonb" && other.Type != "json" && column.Collation != other.Collation:
		c.fail(position, "give both columns one collation",
			"%s.%s and %s have different collations: PostgreSQL would not know by which to compare", r.Name, column.Name, other.Name)
	}
}

// findIDAttributes finds attributes and checks that their values can be compared with the ids in a column.
func (c *resolver) findIDAttributes(grantees []attributeRef, r *catalog.Relation, column *catalog.Column,
	elements string) []predicate.Grantee {
	var out []predicate.Grantee
	for _, grantee := range grantees {
		attribute := c.findAttribute(grantee.place, grantee.attribute)
		if attribute == nil {
			continue
		}
		if elements != "text" && typeFamily(attribute.elementType()) != elements {
			c.fail(grantee.place, "declare the attribute with the type of the column's ids",
				"%s.%s is a %s and the attribute %s a %s",
				r.Name, column.Name, column.Type, attribute.Name, attribute.Type)
			continue
		}
		out = append(out, predicate.Grantee{Attribute: attribute.Name, IsList: attribute.IsList(),
			Optional: attribute.Optional})
	}
	return out
}

// findWordAttributes finds attributes and checks that their values are texts.
func (c *resolver) findWordAttributes(grantees []attributeRef) []predicate.Grantee {
	var out []predicate.Grantee
	for _, grantee := range grantees {
		attribute := c.findAttribute(grantee.place, grantee.attribute)
		if attribute == nil {
			continue
		}
		if attribute.elementType() != "text" && typeFamily(attribute.elementType()) == "" {
			c.fail(grantee.place, "declare it as text or text[]", "the attribute %s is a %s", attribute.Name, attribute.Type)
			continue
		}
		out = append(out, predicate.Grantee{Attribute: attribute.Name, IsList: attribute.IsList(),
			Optional: attribute.Optional})
	}
	return out
}

// checkUniqueKey tells whether two rows can never have the same values in these columns. If they can, it reports an
// error.
func (c *resolver) checkUniqueKey(position place, r *catalog.Relation, key []string) bool {
	for _, name := range key {
		if c.findRuleColumn(position, r, name) == nil {
			return false
		}
	}
	hasColumns := func(columns []string) bool {
		return len(columns) == len(key) && !slices.ContainsFunc(key,
			func(name string) bool { return !slices.Contains(columns, name) })
	}
	if hasColumns(r.PrimaryKey) || slices.ContainsFunc(r.BTrees,
		func(i catalog.BTree) bool { return i.IsUnique && hasColumns(i.Columns) }) {
		return true
	}
	c.fail(position, "name the columns of the primary key or of a unique index", "(%s) is no unique key of %s",
		strings.Join(key, ", "), r.Name)
	return false
}
