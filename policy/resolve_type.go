package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// typeFamily returns the family of a type, or "". Types of one family can be compared by equality operators of
// pg_catalog that mean the same for both sides. citext has no family: pg_catalog's operators would compare it with
// case, while the application compares it without.
func typeFamily(sqlType string) string {
	switch sqlType {
	case "uuid", "date":
		return sqlType
	case "smallint", "integer", "bigint":
		return "integer"
	case "text", "character varying":
		return "text"
	}
	if strings.HasPrefix(sqlType, "character varying(") && strings.HasSuffix(sqlType, ")") {
		return "text"
	}
	return ""
}

// isEnum tells whether a column has an enum type.
func (c *resolver) isEnum(column *catalog.Column) bool {
	t := c.snap.TypeByOID(column.TypeOID)
	return t != nil && t.Kind == 'e'
}

// comparedType returns the type by which PostgreSQL compares a column: for a domain, its base type.
func (c *resolver) comparedType(column *catalog.Column) string {
	if t := c.snap.TypeByOID(column.TypeOID); t != nil && t.Kind == 'd' {
		return t.BaseName
	}
	return column.Type
}

// innermostType returns the type itself, or the base type of a domain, through several domains if necessary. It returns
// nil for a type that the snapshot does not know.
func (c *resolver) innermostType(oid uint32) *catalog.Type {
	t := c.snap.TypeByOID(oid)
	for range 64 {
		if t == nil || t.Kind != 'd' {
			break
		}
		t = c.snap.TypeByOID(t.Base)
	}
	return t
}

// isBlankPadded tells whether a type is char(n), in which trailing blanks have no meaning. It does not belong to the
// family of texts: PostgreSQL would convert it to compare it with a text, and would use no index.
func isBlankPadded(sqlType string) bool {
	return sqlType == "character" || sqlType == "bpchar" ||
		strings.HasPrefix(sqlType, "character(") && strings.HasSuffix(sqlType, ")")
}

// isScalar tells whether a column's values are not composite. IS NULL on a composite value tests its fields.
func (c *resolver) isScalar(column *catalog.Column) bool {
	t := c.innermostType(column.TypeOID)
	return t != nil && slices.Contains([]byte{'b', 'e', 'r', 'm'}, t.Kind)
}

// expressionColumn returns a column in the type that expressions use: the base type of a domain, text for an enum or a
// char(n), and for a list the widest type of its family of elements.
func (c *resolver) expressionColumn(column *catalog.Column) (predicate.Column, bool) {
	out, baseType := predicate.Column{Name: column.Name}, c.comparedType(column)
	element := strings.TrimSuffix(baseType, "[]")
	isList := element != baseType
	base, _, modified := strings.Cut(element, "(")
	if modified { // the type has a modifier, as in character varying(9) or timestamp(3) with time zone
		_, rest, _ := strings.Cut(element, ")")
		base += rest
	}
	switch {
	case isList && baseType != column.Type: // the elements of the list have a domain type
	case c.isEnum(column), isBlankPadded(baseType):
		out.Kind, out.Cast = predicate.Text, "pg_catalog.text"
	case isList && typeFamily(element) == "text":
		out.Kind = predicate.Text.List()
		if element != "text" {
			out.Cast = "pg_catalog.text[]"
		}
	case isList && typeFamily(element) == "integer":
		out.Kind = predicate.Number.List()
		if element != "bigint" {
			out.Cast = "pg_catalog.int8[]"
		}
	case isList && element == "uuid":
		out.Kind = predicate.UUID.List()
	case isList:
	case typeFamily(element) == "text":
		out.Kind = predicate.Text
	case typeFamily(element) == "integer", base == "numeric":
		out.Kind = predicate.Number
	case base == "real", base == "double precision":
		out.Kind = predicate.Float
	case base == "boolean", base == "uuid", base == "date", base == "jsonb":
		out.Kind = predicate.Kind(base)
	case base == "timestamp without time zone":
		out.Kind = predicate.Timestamp
	case base == "timestamp with time zone":
		out.Kind = predicate.TimestampTZ
	}
	return out, out.Kind != ""
}

// checkStatusColumn checks that a column can contain a word. It returns the column's type if that is boolean, or an
// enum type in the schema of the table.
func (c *resolver) checkStatusColumn(position, isAt place, r *catalog.Relation, name, word string) string {
	column := c.findRuleColumn(position, r, name)
	if column == nil {
		return ""
	}
	// values of a domain are compared as values of its base type
	t, baseType := c.snap.TypeByOID(column.TypeOID), c.comparedType(column)
	domain := t != nil && t.Kind == 'd'
	t = c.innermostType(column.TypeOID)
	switch {
	case typeFamily(baseType) == "text", isBlankPadded(baseType):
		return ""
	case baseType == "boolean":
		if word != "true" && word != "false" {
			c.fail(isAt, "write true or false", "%s.%s is a boolean: it is never %q", r.Name, name, word)
		}
		if domain {
			return ""
		}
		return "boolean"
	}
	if t != nil && t.Kind == 'e' {
		if len(t.Labels) > 0 && !slices.Contains(t.Labels, word) {
			c.fail(isAt, closestOrFew(word, t.Labels), "%s.%s is a %s, which has no value %q", r.Name, name, column.Type, word)
		}
		if domain || t.Name.Schema != r.Name.Schema {
			return ""
		}
		return t.Name.SQL()
	}
	typeText := column.Type
	if domain {
		typeText += ", a domain over " + baseType
	}
	c.fail(position, "a status is a text, varchar, char, enum or boolean column, or a domain over one", "%s.%s is a %s",
		r.Name, name, typeText)
	return ""
}
