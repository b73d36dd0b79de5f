package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// itemsNamed returns the items with the given name in the innermost scope that has such an item.
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

// qualifiedItems returns the items that schema.table can mean.
func (r *usageAnalysis) qualifiedItems(c *sqltext.ColumnRef, own *usageScope) []*rangeItem {
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

// resolveColumn returns all outputs that a reference can mean, in most cases one.
func (r *usageAnalysis) resolveColumn(c *sqltext.ColumnRef, own *usageScope) []*outputColumn {
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
		if len(found) == 0 { // the name is a function of the row in attribute notation, or a system column
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

// resolveUnqualified returns what a name without qualifier can mean: a column in the innermost scope that has it, or a
// whole row.
func (r *usageAnalysis) resolveUnqualified(name string, own *usageScope) []*outputColumn {
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

// markEverything marks all columns in sight as used, if it is not known what a name means. If no item is in sight, the
// walk has missed the item with that name, and counts as incomplete.
func (r *usageAnalysis) markEverything(own *usageScope, f usage) {
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

func (r *usageAnalysis) visitExprs(list []*sqltext.Node, own *usageScope, f usage) {
	for _, n := range list {
		r.visitExpr(n, own, f)
	}
}

// visitExpr marks the columns of an expression as used.
func (r *usageAnalysis) visitExpr(n *sqltext.Node, own *usageScope, f usage) {
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
			if f == usageNullTest && o.mayBeRow() { // whether a row is NULL depends on the values of its columns
				r.markUsed(o, usageOutput)
			}
			r.markUsed(o, f)
		}
	case *sqltext.Node_ParamRef, *sqltext.Node_A_Const, *sqltext.Node_SQLValueFunction, *sqltext.Node_SetToDefault,
		*sqltext.Node_String, *sqltext.Node_Integer, *sqltext.Node_Float, *sqltext.Node_Boolean, *sqltext.Node_BitString:
	case *sqltext.Node_A_Expr:
		r.visitOperator(kind.AExpr, own, f)
	case *sqltext.Node_BoolExpr:
		r.visitExprs(kind.BoolExpr.Args, own, f)
	case *sqltext.Node_NullTest:
		if kind.NullTest.Arg.GetColumnRef() != nil && f&usageSimilarity == 0 {
			r.visitExpr(kind.NullTest.Arg, own, usageNullTest)
			return
		}
		r.visitExpr(kind.NullTest.Arg, own, f)
	case *sqltext.Node_BooleanTest:
		r.visitExpr(kind.BooleanTest.Arg, own, f)
	case *sqltext.Node_TypeCast:
		if r.isEmbeddingTypeName(kind.TypeCast.GetTypeName()) {
			f |= usageSimilarity
		}
		r.visitExpr(kind.TypeCast.Arg, own, f)
	case *sqltext.Node_CollateClause:
		r.visitExpr(kind.CollateClause.Arg, own, f)
	case *sqltext.Node_FuncCall:
		r.visitCall(kind.FuncCall, own, f)
	case *sqltext.Node_NamedArgExpr:
		r.visitExpr(kind.NamedArgExpr.Arg, own, f)
	case *sqltext.Node_CaseExpr:
		r.visitExpr(kind.CaseExpr.Arg, own, f)
		r.visitExprs(kind.CaseExpr.Args, own, f)
		r.visitExpr(kind.CaseExpr.Defresult, own, f)
	case *sqltext.Node_CaseWhen:
		r.visitExpr(kind.CaseWhen.Expr, own, f)
		r.visitExpr(kind.CaseWhen.Result, own, f)
	case *sqltext.Node_CoalesceExpr:
		r.visitExprs(kind.CoalesceExpr.Args, own, f)
	case *sqltext.Node_MinMaxExpr:
		r.visitExprs(kind.MinMaxExpr.Args, own, f)
	case *sqltext.Node_GroupingFunc:
		r.visitExprs(kind.GroupingFunc.Args, own, f)
	case *sqltext.Node_SubLink:
		r.visitSubLink(kind.SubLink, own, f)
	case *sqltext.Node_RowExpr:
		r.visitExprs(kind.RowExpr.Args, own, f)
	case *sqltext.Node_A_ArrayExpr:
		r.visitExprs(kind.AArrayExpr.Elements, own, f)
	case *sqltext.Node_A_Indirection:
		r.visitIndirection(kind.AIndirection, own, f)
	case *sqltext.Node_SortBy:
		if r.isSimilarityOperator(kind.SortBy.UseOp) {
			f |= usageSimilarity
		}
		r.visitExpr(kind.SortBy.Node, own, f)
	case *sqltext.Node_WindowDef:
		r.visitWindow(kind.WindowDef, own, f)
	case *sqltext.Node_GroupingSet:
		r.visitExprs(kind.GroupingSet.Content, own, f)
	case *sqltext.Node_List:
		r.visitExprs(kind.List.Items, own, f)
	case *sqltext.Node_MultiAssignRef:
		r.visitExpr(kind.MultiAssignRef.Source, own, f)
	case *sqltext.Node_XmlExpr:
		for _, n := range kind.XmlExpr.NamedArgs {
			r.visitExpr(n.GetResTarget().GetVal(), own, f)
		}
		r.visitExprs(kind.XmlExpr.Args, own, f)
	case *sqltext.Node_XmlSerialize:
		r.visitExpr(kind.XmlSerialize.Expr, own, f)
	case *sqltext.Node_JsonValueExpr:
		r.visitJSONValue(kind.JsonValueExpr, own, f)
	case *sqltext.Node_JsonKeyValue:
		r.visitJSONKeyValue(kind.JsonKeyValue, own, f)
	case *sqltext.Node_JsonObjectConstructor:
		r.visitExprs(kind.JsonObjectConstructor.Exprs, own, f)
	case *sqltext.Node_JsonArrayConstructor:
		r.visitExprs(kind.JsonArrayConstructor.Exprs, own, f)
	case *sqltext.Node_JsonArrayQueryConstructor:
		r.visitSubQuery(kind.JsonArrayQueryConstructor.GetQuery().GetSelectStmt(), own, f, true)
	case *sqltext.Node_JsonObjectAgg:
		r.visitJSONAggregate(kind.JsonObjectAgg.Constructor, own, f)
		r.visitJSONKeyValue(kind.JsonObjectAgg.Arg, own, f)
	case *sqltext.Node_JsonArrayAgg:
		r.visitJSONAggregate(kind.JsonArrayAgg.Constructor, own, f)
		r.visitJSONValue(kind.JsonArrayAgg.Arg, own, f)
	case *sqltext.Node_JsonIsPredicate:
		r.visitExpr(kind.JsonIsPredicate.Expr, own, f)
	default:
		r.incomplete = true
	}
}

// mayBeRow tells whether an output may be a whole row.
func (o *outputColumn) mayBeRow() bool {
	switch origin := o.followOrigin(); {
	case origin == nil:
		return true
	case origin.relation != nil:
		return origin.column == ""
	default:
		return origin.name == ""
	}
}

func (r *usageAnalysis) visitJSONValue(v *sqltext.JsonValueExpr, own *usageScope, f usage) {
	if v != nil {
		r.visitExpr(v.RawExpr, own, f)
		r.visitExpr(v.FormattedExpr, own, f)
	}
}

func (r *usageAnalysis) visitJSONKeyValue(kv *sqltext.JsonKeyValue, own *usageScope, f usage) {
	if kv != nil {
		r.visitExpr(kv.Key, own, f)
		r.visitJSONValue(kv.Value, own, f)
	}
}

func (r *usageAnalysis) visitJSONAggregate(c *sqltext.JsonAggConstructor, own *usageScope, f usage) {
	if c != nil {
		r.visitExpr(c.AggFilter, own, f)
		r.visitExprs(c.AggOrder, own, f)
		r.visitWindow(c.Over, own, f)
	}
}

func (r *usageAnalysis) visitWindow(d *sqltext.WindowDef, own *usageScope, f usage) {
	if d != nil {
		r.visitExprs(d.PartitionClause, own, f)
		r.visitExprs(d.OrderClause, own, f)
		r.visitExpr(d.StartOffset, own, f)
		r.visitExpr(d.EndOffset, own, f)
	}
}

func (r *usageAnalysis) visitIndirection(x *sqltext.A_Indirection, own *usageScope, f usage) {
	for _, n := range x.Indirection {
		if i := n.GetAIndices(); i != nil {
			r.visitExpr(i.Lidx, own, f)
			r.visitExpr(i.Uidx, own, f)
		}
		if s := n.GetString_(); s != nil { // the name may be a function in attribute notation
			if r.isSimilarityFunction("", s.GetSval()) {
				f |= usageSimilarity
			}
			r.addFunctionReads("", s.GetSval())
		}
	}
	r.visitExpr(x.Arg, own, f)
}

func (r *usageAnalysis) visitSubLink(s *sqltext.SubLink, own *usageScope, f usage) {
	if r.isSimilarityOperator(s.OperName) {
		f |= usageSimilarity
	}
	r.visitExpr(s.Testexpr, own, f)
	outs := r.visitSubQuery(s.GetSubselect().GetSelectStmt(), own, f, s.SubLinkType != sqltext.EXISTS_SUBLINK)
	// x IN (SELECT key FROM t) joins the two as x = key does
	if s.SubLinkType == sqltext.ANY_SUBLINK && len(s.OperName) == 0 && outs != nil && len(outs.outputs) == 1 &&
		outs.unknown == nil {
		if a := r.singleColumn(s.Testexpr, own); a != nil {
			r.noteEqual(a, outs.outputs[0])
		}
	}
}

// visitSubQuery visits a query inside an expression, each query once, and marks the columns that it returns as used.
func (r *usageAnalysis) visitSubQuery(s *sqltext.SelectStmt, own *usageScope, f usage, returned bool) *resultColumns {
	q := r.subqueries[s]
	if q == nil {
		outer := r.conditionUsage
		if f&usageOutput != 0 {
			r.conditionUsage = usageOutput // the output of the query depends on the conditions in it
		}
		q = r.visitSelect(s, own, r.ctes)
		r.conditionUsage = outer
		r.subqueries[s] = q
	}
	if returned {
		r.markAllUsed(q, f)
	}
	return q
}

// visitCall visits a function call.
func (r *usageAnalysis) visitCall(c *sqltext.FuncCall, own *usageScope, f usage) {
	schema, name, _ := qualifiedName(c.Funcname)
	inside := f
	switch {
	case r.isSimilarityFunction(schema, name):
		inside |= usageSimilarity
	case name == "count" && (schema == "" || schema == "pg_catalog") && !c.AggDistinct && len(c.Args) == 1 &&
		c.Args[0].GetColumnRef() != nil && f&usageSimilarity == 0:
		inside = usageNullTest // the result depends on the number of values only
	}
	r.visitExprs(c.Args, own, inside)
	r.visitExprs(c.AggOrder, own, f)
	r.visitExpr(c.AggFilter, own, f)
	r.visitWindow(c.Over, own, f)
	r.addFunctionReads(schema, name)
}

// addFunctionReads adds the relations that a function of the policy reads, as the policy declares.
func (r *usageAnalysis) addFunctionReads(schema, name string) {
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
			one.declaredSource, one.throughObject = "function", ""
			one.isRead = true
			return
		}
		for _, reads := range listed.Reads {
			relation, _ := r.snap.Relation(reads.Relation)
			for _, source := range reads.Sources {
				one := r.addRelation(reads.Relation, "", relation)
				one.declaredSource, one.throughObject = source, f.Name.String()
				one.markUsed("", usageOutput)
			}
		}
		return
	}
}

// visitOperator visits an expression with an operator.
func (r *usageAnalysis) visitOperator(x *sqltext.A_Expr, own *usageScope, f usage) {
	switch x.Kind {
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN, sqltext.AEXPR_BETWEEN_SYM, sqltext.AEXPR_NOT_BETWEEN_SYM:
	default:
		if _, name, _ := qualifiedName(x.Name); r.isSimilarityOperator(x.Name) && !r.isModulo(name, x, own) {
			f |= usageSimilarity
		}
	}
	r.visitExpr(x.Lexpr, own, f)
	r.visitExpr(x.Rexpr, own, f)
}

// isSimilarityOperator tells whether an operator may compute a distance or a similarity. It may by its name, or because
// among the schemas where it is looked up only unknown extensions have it.
func (r *usageAnalysis) isSimilarityOperator(parts []*sqltext.Node) bool {
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
	return slices.ContainsFunc(r.snap.OperatorsNamed(schema, name), IsUnknownOperator)
}

// similarityOperators are the names of operators that compute distances and similarities. They are operators of
// pgvector, cube, pg_trgm and btree_gist; PostgreSQL has operators with some of the same names.
var similarityOperators = map[string]bool{
	"<->": true, "<#>": true, "<=>": true, "<+>": true, "<~>": true, "<%>": true, "~>": true,
	"%": true, "<%": true, "%>": true, "<<%": true, "%>>": true, "<<->": true, "<->>": true, "<<<->": true, "<->>>": true,
}

// similarityExtensions are extensions that compute similarity. All their functions and types count as similarity.
var similarityExtensions = map[string]bool{"vector": true, "cube": true, "pg_trgm": true, "fuzzystrmatch": true,
	"earthdistance": true}

// isModulo tells whether % means division: one side is certain to be a number, and no text or vector is cast to a
// number implicitly.
func (r *usageAnalysis) isModulo(operator string, x *sqltext.A_Expr, own *usageScope) bool {
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

// isSimilarityFunction tells whether a name can mean a function that computes similarity, or a type of such an
// extension.
func (r *usageAnalysis) isSimilarityFunction(schema, name string) bool {
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
func (r *usageAnalysis) isEmbeddingTypeName(t *sqltext.TypeName) bool {
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

// isEmbedding tells whether a type is a vector of pgvector or cube, or contains one.
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
