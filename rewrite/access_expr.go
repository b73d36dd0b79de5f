package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// itemsNamed returns the items with the given name, from the innermost level that has such an item.
func (s *usageScope) itemsNamed(name string) []*rangeItem {
	for ; s != nil; s = s.parent {
		var out []*rangeItem
		for _, it := range s.items {
			if it.name == name {
				out = append(out, it)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// qualifiedItems are the items that schema.table can mean.
func (r *columnUsage) qualifiedItems(c *sqltext.ColumnRef, own *usageScope) []*rangeItem {
	name, _ := r.snap.ResolveRelation(c.Fields[0].GetString_().GetSval(), c.Fields[1].GetString_().GetSval())
	for s := own; s != nil && name.Name != ""; s = s.parent {
		var out []*rangeItem
		for _, it := range s.items {
			if it.relation == name {
				out = append(out, it)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// resolveColumn returns all outputs that a reference can mean. Mostly it is one.
func (r *columnUsage) resolveColumn(c *sqltext.ColumnRef, own *usageScope) []*outputColumn {
	var items []*rangeItem
	name := c.Fields[len(c.Fields)-1].GetString_().GetSval()
	switch len(c.Fields) {
	case 1:
		return r.resolveUnqualified(name, own)
	case 2:
		items = own.itemsNamed(c.Fields[0].GetString_().GetSval())
	case 3:
		items = r.qualifiedItems(c, own)
	}
	var out []*outputColumn
	for _, it := range items {
		found := columnsNamed([]*rangeItem{it}, name)
		if len(found) == 0 && it.unknown != nil {
			found = []*outputColumn{it.unknown}
		}
		if len(found) == 0 { // a function of the row in attribute notation, or a system column
			if name == "tableoid" {
				continue
			}
			r.markUsed(it.wholeRow, usageOutput|usageSimilarity)
			r.addFunctionReads("", name)
			found = []*outputColumn{it.wholeRow}
		}
		out = append(out, found...)
	}
	if len(items) == 0 {
		r.markEverything(own, usageOutput|usageSimilarity)
		r.addFunctionReads("", name)
	}
	return out
}

// resolveUnqualified returns what a bare name can mean: a column of the innermost level that has it, or a whole row.
func (r *columnUsage) resolveUnqualified(name string, own *usageScope) []*outputColumn {
	var out []*outputColumn
	for s := own; s != nil; s = s.parent {
		found := columnsNamed(s.items, name)
		for _, it := range s.items {
			if it.unknown != nil && len(columnsNamed([]*rangeItem{it}, name)) == 0 {
				out = append(out, it.unknown)
			}
		}
		if len(found) > 0 {
			return append(found, out...)
		}
	}
	if name == "tableoid" {
		return out
	}
	rows := own.itemsNamed(name)
	for _, it := range rows {
		out = append(out, it.wholeRow)
	}
	if len(out) == 0 {
		r.markEverything(own, usageOutput|usageSimilarity)
	}
	return out
}

// markEverything marks all columns in sight, where a name is not known. With nothing in sight the walk has missed the
// item that has the name.
func (r *columnUsage) markEverything(own *usageScope, f usage) {
	none := true
	defer func() { r.incomplete = r.incomplete || none }()
	for s := own; s != nil; s = s.parent {
		for _, it := range s.items {
			none = false
			r.markUsed(it.wholeRow, f)
			r.markAllUsed(&it.resultColumns, f)
		}
	}
}

func (r *columnUsage) exprs(list []*sqltext.Node, own *usageScope, f usage) {
	for _, n := range list {
		r.expr(n, own, f)
	}
}

// expr marks the columns of an expression.
func (r *columnUsage) expr(n *sqltext.Node, own *usageScope, f usage) {
	if n == nil || n.Node == nil {
		return
	}
	switch kind := n.Node.(type) {
	case *sqltext.Node_ColumnRef:
		if isStar(n) {
			for _, it := range r.starItems(kind.ColumnRef, own) {
				r.markUsed(it.wholeRow, f)
				r.markAllUsed(&it.resultColumns, f)
			}
			return
		}
		for _, o := range r.resolveColumn(kind.ColumnRef, own) {
			if f == usageNullTest && o.mayBeRow() { // whether a row is NULL depends on its columns
				r.markUsed(o, usageOutput)
			}
			r.markUsed(o, f)
		}
	case *sqltext.Node_ParamRef, *sqltext.Node_A_Const, *sqltext.Node_SQLValueFunction, *sqltext.Node_SetToDefault,
		*sqltext.Node_String, *sqltext.Node_Integer, *sqltext.Node_Float, *sqltext.Node_Boolean, *sqltext.Node_BitString:
	case *sqltext.Node_A_Expr:
		r.operation(kind.AExpr, own, f)
	case *sqltext.Node_BoolExpr:
		r.exprs(kind.BoolExpr.Args, own, f)
	case *sqltext.Node_NullTest:
		if kind.NullTest.Arg.GetColumnRef() != nil && f&usageSimilarity == 0 {
			r.expr(kind.NullTest.Arg, own, usageNullTest)
			return
		}
		r.expr(kind.NullTest.Arg, own, f)
	case *sqltext.Node_BooleanTest:
		r.expr(kind.BooleanTest.Arg, own, f)
	case *sqltext.Node_TypeCast:
		if r.isEmbeddingTypeName(kind.TypeCast.GetTypeName()) {
			f |= usageSimilarity
		}
		r.expr(kind.TypeCast.Arg, own, f)
	case *sqltext.Node_CollateClause:
		r.expr(kind.CollateClause.Arg, own, f)
	case *sqltext.Node_FuncCall:
		r.call(kind.FuncCall, own, f)
	case *sqltext.Node_NamedArgExpr:
		r.expr(kind.NamedArgExpr.Arg, own, f)
	case *sqltext.Node_CaseExpr:
		r.expr(kind.CaseExpr.Arg, own, f)
		r.exprs(kind.CaseExpr.Args, own, f)
		r.expr(kind.CaseExpr.Defresult, own, f)
	case *sqltext.Node_CaseWhen:
		r.expr(kind.CaseWhen.Expr, own, f)
		r.expr(kind.CaseWhen.Result, own, f)
	case *sqltext.Node_CoalesceExpr:
		r.exprs(kind.CoalesceExpr.Args, own, f)
	case *sqltext.Node_MinMaxExpr:
		r.exprs(kind.MinMaxExpr.Args, own, f)
	case *sqltext.Node_GroupingFunc:
		r.exprs(kind.GroupingFunc.Args, own, f)
	case *sqltext.Node_SubLink:
		r.subLink(kind.SubLink, own, f)
	case *sqltext.Node_RowExpr:
		r.exprs(kind.RowExpr.Args, own, f)
	case *sqltext.Node_A_ArrayExpr:
		r.exprs(kind.AArrayExpr.Elements, own, f)
	case *sqltext.Node_A_Indirection:
		r.indirection(kind.AIndirection, own, f)
	case *sqltext.Node_SortBy:
		if r.isSimilarityOperator(kind.SortBy.UseOp) {
			f |= usageSimilarity
		}
		r.expr(kind.SortBy.Node, own, f)
	case *sqltext.Node_WindowDef:
		r.window(kind.WindowDef, own, f)
	case *sqltext.Node_GroupingSet:
		r.exprs(kind.GroupingSet.Content, own, f)
	case *sqltext.Node_List:
		r.exprs(kind.List.Items, own, f)
	case *sqltext.Node_MultiAssignRef:
		r.expr(kind.MultiAssignRef.Source, own, f)
	case *sqltext.Node_XmlExpr:
		for _, n := range kind.XmlExpr.NamedArgs {
			r.expr(n.GetResTarget().GetVal(), own, f)
		}
		r.exprs(kind.XmlExpr.Args, own, f)
	case *sqltext.Node_XmlSerialize:
		r.expr(kind.XmlSerialize.Expr, own, f)
	case *sqltext.Node_JsonValueExpr:
		r.jsonValue(kind.JsonValueExpr, own, f)
	case *sqltext.Node_JsonKeyValue:
		r.jsonKeyValue(kind.JsonKeyValue, own, f)
	case *sqltext.Node_JsonObjectConstructor:
		r.exprs(kind.JsonObjectConstructor.Exprs, own, f)
	case *sqltext.Node_JsonArrayConstructor:
		r.exprs(kind.JsonArrayConstructor.Exprs, own, f)
	case *sqltext.Node_JsonArrayQueryConstructor:
		r.subQuery(kind.JsonArrayQueryConstructor.GetQuery().GetSelectStmt(), own, f, true)
	case *sqltext.Node_JsonObjectAgg:
		r.jsonAggregate(kind.JsonObjectAgg.Constructor, own, f)
		r.jsonKeyValue(kind.JsonObjectAgg.Arg, own, f)
	case *sqltext.Node_JsonArrayAgg:
		r.jsonAggregate(kind.JsonArrayAgg.Constructor, own, f)
		r.jsonValue(kind.JsonArrayAgg.Arg, own, f)
	case *sqltext.Node_JsonIsPredicate:
		r.expr(kind.JsonIsPredicate.Expr, own, f)
	default:
		r.incomplete = true
	}
}

// mayBeRow tells whether an output is, or may be, a whole row.
func (o *outputColumn) mayBeRow() bool {
	switch origin := o.origin(); {
	case origin == nil:
		return true
	case origin.relation != nil:
		return origin.column == ""
	default:
		return origin.name == ""
	}
}

func (r *columnUsage) jsonValue(v *sqltext.JsonValueExpr, own *usageScope, f usage) {
	if v != nil {
		r.expr(v.RawExpr, own, f)
		r.expr(v.FormattedExpr, own, f)
	}
}

func (r *columnUsage) jsonKeyValue(kv *sqltext.JsonKeyValue, own *usageScope, f usage) {
	if kv != nil {
		r.expr(kv.Key, own, f)
		r.jsonValue(kv.Value, own, f)
	}
}

func (r *columnUsage) jsonAggregate(c *sqltext.JsonAggConstructor, own *usageScope, f usage) {
	if c != nil {
		r.expr(c.AggFilter, own, f)
		r.exprs(c.AggOrder, own, f)
		r.window(c.Over, own, f)
	}
}

func (r *columnUsage) window(d *sqltext.WindowDef, own *usageScope, f usage) {
	if d != nil {
		r.exprs(d.PartitionClause, own, f)
		r.exprs(d.OrderClause, own, f)
		r.expr(d.StartOffset, own, f)
		r.expr(d.EndOffset, own, f)
	}
}

func (r *columnUsage) indirection(x *sqltext.A_Indirection, own *usageScope, f usage) {
	for _, n := range x.Indirection {
		if i := n.GetAIndices(); i != nil {
			r.expr(i.Lidx, own, f)
			r.expr(i.Uidx, own, f)
		}
		if s := n.GetString_(); s != nil { // it may be a function in attribute notation
			if r.isSimilarityFunction("", s.GetSval()) {
				f |= usageSimilarity
			}
			r.addFunctionReads("", s.GetSval())
		}
	}
	r.expr(x.Arg, own, f)
}

func (r *columnUsage) subLink(s *sqltext.SubLink, own *usageScope, f usage) {
	if r.isSimilarityOperator(s.OperName) {
		f |= usageSimilarity
	}
	r.expr(s.Testexpr, own, f)
	outs := r.subQuery(s.GetSubselect().GetSelectStmt(), own, f, s.SubLinkType != sqltext.EXISTS_SUBLINK)
	// x IN (SELECT key FROM t) joins as x = key does.
	if s.SubLinkType == sqltext.ANY_SUBLINK && len(s.OperName) == 0 && outs != nil && len(outs.outputs) == 1 &&
		outs.unknown == nil {
		if a := r.singleColumn(s.Testexpr, own); a != nil {
			r.noteEqual(a, outs.outputs[0])
		}
	}
}

// subQuery visits a query in an expression, once, and marks what it returns.
func (r *columnUsage) subQuery(s *sqltext.SelectStmt, own *usageScope, f usage, returned bool) *resultColumns {
	q := r.subqueries[s]
	if q == nil {
		outer := r.conditionUsage
		if f&usageOutput != 0 {
			r.conditionUsage = usageOutput // the output depends on its conditions
		}
		q = r.selectStmt(s, own, r.ctes)
		r.conditionUsage = outer
		r.subqueries[s] = q
	}
	if returned {
		r.markAllUsed(q, f)
	}
	return q
}

// call visits a function call.
func (r *columnUsage) call(c *sqltext.FuncCall, own *usageScope, f usage) {
	schema, name, _ := qualifiedName(c.Funcname)
	inside := f
	switch {
	case r.isSimilarityFunction(schema, name):
		inside |= usageSimilarity
	case name == "count" && (schema == "" || schema == "pg_catalog") && !c.AggDistinct && len(c.Args) == 1 &&
		c.Args[0].GetColumnRef() != nil && f&usageSimilarity == 0:
		inside = usageNullTest // it depends on how many there are
	}
	r.exprs(c.Args, own, inside)
	r.exprs(c.AggOrder, own, f)
	r.expr(c.AggFilter, own, f)
	r.window(c.Over, own, f)
	r.addFunctionReads(schema, name)
}

// addFunctionReads adds the relations that, says the policy, a function of its list reads.
func (r *columnUsage) addFunctionReads(schema, name string) {
	if !r.pol.HasContracts() {
		return
	}
	for _, f := range r.snap.FunctionsNamed(schema, name) {
		listed, ok := r.pol.Function(f.Name)
		if !ok {
			continue
		}
		if listed.Reads == nil {
			one := r.addRelation(f.Name, "", nil)
			one.declaredSource, one.via = "function", ""
			one.isRead = true
			return
		}
		for _, reads := range listed.Reads {
			relation, _ := r.snap.Relation(reads.Relation)
			for _, source := range reads.Sources {
				one := r.addRelation(reads.Relation, "", relation)
				one.declaredSource, one.via = source, f.Name.String()
				one.mark("", usageOutput)
			}
		}
		return
	}
}

// operation visits an operator.
func (r *columnUsage) operation(x *sqltext.A_Expr, own *usageScope, f usage) {
	switch x.Kind {
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN, sqltext.AEXPR_BETWEEN_SYM, sqltext.AEXPR_NOT_BETWEEN_SYM:
	default:
		if _, name, _ := qualifiedName(x.Name); r.isSimilarityOperator(x.Name) && !r.isModulo(name, x, own) {
			f |= usageSimilarity
		}
	}
	r.expr(x.Lexpr, own, f)
	r.expr(x.Rexpr, own, f)
}

// isSimilarityOperator tells whether an operator may compute a distance or a similarity. Its name may say so; or, where
// it is looked for, only extensions that are not known have it.
func (r *columnUsage) isSimilarityOperator(parts []*sqltext.Node) bool {
	schema, name, ok := qualifiedName(parts)
	if !ok || len(parts) == 0 {
		return false
	}
	if similarityOperators[name] {
		return true
	}
	if schema == "pg_catalog" || schema == "" && r.snap.HasCatalogOperator(name) {
		return false
	}
	return slices.ContainsFunc(r.snap.OperatorsNamed(schema, name), UnknownOperator)
}

// similarityOperators are the names of operators that compute distances and similarities. pgvector, cube, pg_trgm and
// btree_gist have such operators, and PostgreSQL has operators with some of the same names.
var similarityOperators = map[string]bool{
	"<->": true, "<#>": true, "<=>": true, "<+>": true, "<~>": true, "<%>": true, "~>": true,
	"%": true, "<%": true, "%>": true, "<<%": true, "%>>": true, "<<->": true, "<->>": true, "<<<->": true, "<->>>": true,
}

// similarityExtensions are extensions for similarity. All their functions and types count as similarity.
var similarityExtensions = map[string]bool{"vector": true, "cube": true, "pg_trgm": true, "fuzzystrmatch": true,
	"earthdistance": true}

// isModulo tells whether % divides: one side is certain to be a number, and no text or vector is cast to a number
// implicitly.
func (r *columnUsage) isModulo(operator string, x *sqltext.A_Expr, own *usageScope) bool {
	if operator != "%" || x.Kind != sqltext.AEXPR_OP {
		return false
	}
	for _, n := range []*sqltext.Node{x.Lexpr, x.Rexpr} {
		if c := n.GetAConst(); c.GetIval() != nil || c.GetFval() != nil {
			return true
		}
		if o := r.singleColumn(n, own); o != nil {
			if b, _ := o.baseColumn(); b != nil && b.relation.relation != nil && b.column != "" {
				switch b.relation.relation.Column(b.column).Type {
				case "smallint", "integer", "bigint", "numeric", "real", "double precision":
					return true
				}
			}
		}
	}
	return false
}

// isSimilarityFunction tells whether a function, or a type in its place, that the name can mean computes similarity.
func (r *columnUsage) isSimilarityFunction(schema, name string) bool {
	for _, f := range r.snap.FunctionsNamed(schema, name) {
		if similarityExtensions[f.Extension] {
			return true
		}
	}
	for _, t := range r.snap.TypesNamed(schema, name) {
		if r.isEmbedding(t.OID) {
			return true
		}
	}
	return false
}

// isEmbeddingTypeName tells whether a cast names a type of embeddings.
func (r *columnUsage) isEmbeddingTypeName(t *sqltext.TypeName) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok {
		return true
	}
	for _, found := range r.snap.TypesNamed(schema, name) {
		if r.isEmbedding(found.OID) {
			return true
		}
	}
	return false
}

// isEmbedding tells whether a type is, or holds, a vector of pgvector or of cube.
func (w *walker) isEmbedding(oid uint32) bool { return w.holdsEmbedding(oid, maxTypeDepth) }

func (w *walker) holdsEmbedding(oid uint32, depth int) bool {
	t := w.snap.TypeByOID(oid)
	if t == nil || depth == 0 {
		return false
	}
	if t.Extension == "vector" || t.Extension == "cube" {
		return true
	}
	if t.Element != 0 && w.holdsEmbedding(t.Element, depth-1) || t.Base != 0 && w.holdsEmbedding(t.Base, depth-1) {
		return true
	}
	if t.Kind == 'c' {
		if relation, found := w.snap.Relation(t.Name); found {
			for _, c := range relation.Columns {
				if w.holdsEmbedding(c.TypeOID, depth-1) {
					return true
				}
			}
		}
	}
	return false
}
