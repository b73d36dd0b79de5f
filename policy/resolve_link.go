package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// linkDecl is a link from a row to rows of another table: `table: { its column: the row's column that equals it }`,
// with one pair for each column of the key.
type linkDecl struct {
	place
	table   string
	pairs   []predicate.ColumnPair
	pairsAt []place // the places of the pairs
}

// coversKey tells whether the link has all columns of a primary key and no other columns.
func (l linkDecl) coversKey(key []string) bool {
	return len(key) == len(l.pairs) && !slices.ContainsFunc(l.pairs,
		func(p predicate.ColumnPair) bool { return !slices.Contains(key, p.Column) })
}

// otherPairs returns the link's pairs without the first.
func (l linkDecl) otherPairs() []predicate.ColumnPair {
	if len(l.pairs) == 1 {
		return nil
	}
	return l.pairs[1:]
}

// followLink checks a link and returns the table to which it leads; nil after an error.
func (c *resolver) followLink(l linkDecl, row *catalog.Relation) *catalog.Relation {
	target := c.findTable(l.place, l.table)
	if target == nil {
		return nil
	}
	for i, p := range l.pairs {
		if !c.checkPair(l.pairsAt[i], target, row, p) {
			return nil
		}
	}
	return target
}

// checkPair tells whether the two columns of a pair can be compared, and reports an error if they cannot.
func (c *resolver) checkPair(position place, target, row *catalog.Relation, p predicate.ColumnPair) bool {
	if target.Column(p.Column) == nil && row.Column(p.FromColumn) == nil && target.Column(p.FromColumn) != nil &&
		row.Column(p.Column) != nil {
		c.fail(position, fmt.Sprintf("write { %s: %s }", p.FromColumn, p.Column),
			"the pair is the other way round: first the column of %s, then the one of %s that it equals", target.Name, row.Name)
		return false
	}
	targetColumn, rowColumn := c.findRuleColumn(position, target, p.Column), c.findRuleColumn(position, row, p.FromColumn)
	switch {
	case targetColumn == nil || rowColumn == nil:
	case c.linkClass(targetColumn) == "" || c.linkClass(targetColumn) != c.linkClass(rowColumn):
		suggestion := "the two columns of a link are of one kind: uuid, integers, text and varchar, char, an " +
			"enum, date, numeric, timestamp, boolean"
		if c.linkClass(targetColumn) == "" && targetColumn.Type == rowColumn.Type {
			suggestion = "links go over uuid, integer, text, char, enum, date, numeric, timestamp and boolean " +
				"columns, and domains over these but enums"
		}
		c.fail(position, suggestion, "%s.%s is a %s and %s.%s a %s: they do not link",
			target.Name, targetColumn.Name, targetColumn.Type, row.Name, rowColumn.Name, rowColumn.Type)
	case targetColumn.Collation != rowColumn.Collation:
		c.fail(position, "give both columns one collation",
			"%s.%s and %s.%s have different collations: PostgreSQL would not know by which to compare",
			target.Name, targetColumn.Name, row.Name, rowColumn.Name)
	default:
		return true
	}
	return false
}

// linkClass returns a class of types: a link can compare two columns of the same class. A class is a type family, or a
// single further type whose equality operator is in pg_catalog. "": the column cannot be part of a link.
func (c *resolver) linkClass(column *catalog.Column) string {
	baseType := c.comparedType(column)
	if f := typeFamily(baseType); f != "" {
		return f
	}
	if c.isEnum(column) {
		return fmt.Sprintf("enum %d", column.TypeOID)
	}
	base, _, modified := strings.Cut(baseType, "(")
	if modified { // the type has a modifier, as in numeric(10,2) or timestamp(3) with time zone
		_, rest, _ := strings.Cut(baseType, ")")
		base += rest
	}
	switch {
	case isBlankPadded(baseType):
		return "character"
	case base == "numeric", base == "timestamp with time zone", base == "timestamp without time zone", base == "boolean":
		return base
	}
	return ""
}
