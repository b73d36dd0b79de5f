package rewrite

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// isIndexedVector tells whether an expression is a text search vector that some index stores for each row of its table.
// If computing the vector could fail for a row, writing the row would have failed. Any other call of to_tsvector may
// fail, or raise a notice, for some row.
func (v *leakChecker) isIndexedVector(n *sqltext.Node, scope *leakScope) bool {
	var of *leakItem
	var types []*sqltext.TypeName // the types before whose names the rewriter must write the schema
	queryForm := &vectorNormalizer{
		partsLeft: maxVectorParts,
		column: func(c *sqltext.ColumnRef) (string, bool) {
			item, name := scope.textColumn(c)
			if item == nil || of != nil && of != item {
				return "", false
			}
			of = item
			return name, true
		},
		isCatalogType: func(t *sqltext.TypeName) bool {
			if i := v.source.TokenAt(t.Location); i < 0 || !v.source.Tokens[i].IsName() || v.source.KindAt(i+1) == sqltext.Dot {
				return false
			}
			types = append(types, t)
			return true
		},
	}
	normalized, ok := queryForm.vector(n)
	if !ok || of == nil || len(v.snap.FunctionsNamed("", "to_tsvector"))+
		len(v.snap.FunctionsNamed("", "setweight")) > 0 || v.hasForeignConcat() {
		return false
	}
	for _, expression := range of.table.IndexedVectors {
		tree, err := sqltext.Parse("SELECT " + expression)
		if err != nil || len(tree.Stmts) != 1 {
			continue
		}
		targets := tree.Stmts[0].GetStmt().GetSelectStmt().GetTargetList()
		if len(targets) != 1 {
			continue
		}
		indexed := &vectorNormalizer{
			partsLeft: maxVectorParts,
			column: func(c *sqltext.ColumnRef) (string, bool) {
				if len(c.Fields) != 1 || c.Fields[0].GetString_() == nil {
					return "", false
				}
				name := c.Fields[0].GetString_().GetSval()
				return name, isTextColumn(of.table, name)
			},
			isCatalogType: func(*sqltext.TypeName) bool { return true },
		}
		if has, ok := indexed.vector(targets[0].GetResTarget().GetVal()); ok && has == normalized {
			v.typesToQualify = append(v.typesToQualify, types...)
			return true
		}
	}
	return false
}

func (v *leakChecker) hasForeignConcat() bool {
	return slices.ContainsFunc(v.snap.OperatorsNamed("", "||"),
		func(o *catalog.Operator) bool { return !isKnownExtension(o.Extension) })
}

// textColumn returns the item whose column a name certainly means, in the innermost query that has such a column. The
// result is nil for a column that USING has merged, because it belongs to another table, too.
func (s *leakScope) textColumn(c *sqltext.ColumnRef) (*leakItem, string) {
	fields := c.GetFields()
	if len(fields) == 0 || len(fields) > 2 || fields[len(fields)-1].GetString_() == nil {
		return nil, ""
	}
	name := fields[len(fields)-1].GetString_().GetSval()
	for ; s != nil; s = s.parent {
		var found *leakItem
		for _, item := range s.items {
			if len(fields) == 2 && item.name != fields[0].GetString_().GetSval() {
				continue
			}
			for _, column := range item.columns {
				switch {
				case column.name != name:
				case found != nil || item.mergedColumns[name] || column.computed:
					return nil, ""
				default:
					found = item
				}
			}
		}
		if found != nil {
			if found.table == nil || !isTextColumn(found.table, name) {
				return nil, ""
			}
			return found, name
		}
	}
	return nil, ""
}

// isTextColumn tells whether a column has type text or varchar, so that a cast to text changes nothing.
func isTextColumn(r *catalog.Relation, name string) bool {
	c := r.Column(name)
	return c != nil && c.Collation == "" && (c.TypeOID == 25 || c.TypeOID == 1043)
}

// vectorNormalizer writes an expression that makes a text search vector in one normal form, without casts that change
// nothing and without the schema pg_catalog. For vectors it accepts to_tsvector with a configuration, setweight and ||;
// for their texts, columns, constants, || and COALESCE. It is called for each part of an expression, so it stops at
// expressions that are longer than those of indexes.
type vectorNormalizer struct {
	partsLeft int // how many more parts of the expression the normalizer may read, which bounds its work
	column    func(*sqltext.ColumnRef) (string, bool)
	// isCatalogType tells whether a type without schema in the text is one of pg_catalog
	isCatalogType func(*sqltext.TypeName) bool
}

const (
	maxVectorParts   = 100 // the largest number of parts of an expression that the normalizer reads
	maxConstantBytes = 200 // the longest constant, in bytes
)

func (v *vectorNormalizer) countPart() bool {
	v.partsLeft--
	return v.partsLeft >= 0
}

func (v *vectorNormalizer) vector(n *sqltext.Node) (string, bool) {
	if !v.countPart() {
		return "", false
	}
	if x := n.GetAExpr(); x != nil {
		return formOfConcatenation(x, v.vector)
	}
	f := n.GetFuncCall()
	schema, name, ok := qualifiedName(f.GetFuncname())
	if f == nil || !ok || schema != "" && schema != "pg_catalog" || len(f.Args) != 2 || f.Over != nil || f.AggStar ||
		f.AggDistinct || f.AggFilter != nil || f.AggWithinGroup ||
		f.FuncVariadic || len(f.AggOrder) > 0 {
		return "", false
	}
	switch name {
	case "to_tsvector":
		configuration, ok := v.constantText(f.Args[0], "regconfig")
		text, isPlain := v.text(f.Args[1])
		return "to_tsvector(" + strconv.Quote(configuration) + "," + text + ")", ok && isPlain
	case "setweight":
		vector, ok := v.vector(f.Args[0])
		weight, isPlain := v.constantText(f.Args[1], "char")
		return "setweight(" + vector + "," + strconv.Quote(weight) + ")", ok && isPlain
	default:
		return "", false
	}
}

func (v *vectorNormalizer) text(n *sqltext.Node) (string, bool) {
	if !v.countPart() {
		return "", false
	}
	if text, ok := v.constantText(n, "text", "varchar"); ok {
		return strconv.Quote(text), true
	}
	switch n := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		name, ok := v.column(n.ColumnRef)
		return "column " + strconv.Quote(name), ok
	case *sqltext.Node_TypeCast:
		if !v.isCastTo(n.TypeCast, "text", "varchar") {
			return "", false
		}
		return v.text(n.TypeCast.Arg)
	case *sqltext.Node_A_Expr:
		return formOfConcatenation(n.AExpr, v.text)
	case *sqltext.Node_CoalesceExpr:
		out := "coalesce("
		for _, arg := range n.CoalesceExpr.Args {
			text, ok := v.text(arg)
			if !ok {
				return "", false
			}
			out += text + ","
		}
		return out + ")", true
	default:
		return "", false
	}
}

// constantText returns the string of a string literal, which may be cast to one of these types.
func (v *vectorNormalizer) constantText(n *sqltext.Node, types ...string) (string, bool) {
	if c := n.GetTypeCast(); c != nil {
		if c.Arg.GetAConst().GetSval() == nil || !v.isCastTo(c, types...) {
			return "", false
		}
		n = c.Arg
	}
	s := n.GetAConst().GetSval()
	return s.GetSval(), s != nil && len(s.GetSval()) <= maxConstantBytes
}

// isCastTo tells whether a cast names one of these types of pg_catalog, without a length.
func (v *vectorNormalizer) isCastTo(c *sqltext.TypeCast, types ...string) bool {
	t := c.TypeName
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok || !slices.Contains(types, name) || len(t.Typmods) > 0 || len(t.ArrayBounds) > 0 || t.Setof || t.PctType {
		return false
	}
	return schema == "pg_catalog" || schema == "" && v.isCatalogType(t)
}

func formOfConcatenation(x *sqltext.A_Expr, form func(*sqltext.Node) (string, bool)) (string, bool) {
	schema, name, ok := qualifiedName(x.Name)
	if !ok || x.Kind != sqltext.AEXPR_OP || name != "||" || schema != "" && schema != "pg_catalog" ||
		x.Lexpr == nil || x.Rexpr == nil {
		return "", false
	}
	left, ok := form(x.Lexpr)
	if !ok {
		return "", false
	}
	right, ok := form(x.Rexpr)
	return "(" + left + "||" + right + ")", ok
}
