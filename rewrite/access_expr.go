package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// itemsNamed returns the items with the given name in the innermost scope that has such an item.
func (s *usageScope) itemsNamed(name string) []*rangeItem {
	for ; s != nil; s = s.parent {
		var out []*rangeItem
		for _, item := range s.items {
			if item.name == name {
				out = append(out, item)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// qualifiedItems returns the items of FROM that schema.table in a reference schema.table.column can mean.
func (r *usageAnalysis) qualifiedItems(c *sqltext.ColumnRef, ownScope *usageScope) []*rangeItem {
	name, _ := r.snap.ResolveRelation(c.Fields[0].GetString_().GetSval(), c.Fields[1].GetString_().GetSval())
	for s := ownScope; s != nil && name.Name != ""; s = s.parent {
		var out []*rangeItem
		for _, item := range s.items {
			if item.relation == name {
				out = append(out, item)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// resolveColumn returns all output columns that a column reference can mean; in most cases there is only one.
func (r *usageAnalysis) resolveColumn(c *sqltext.ColumnRef, ownScope *usageScope) []*outputColumn {
	var items []*rangeItem
	name := c.Fields[len(c.Fields)-1].GetString_().GetSval()
	switch len(c.Fields) {
	case 1:
		return r.resolveUnqualified(name, ownScope)
	case 2:
		items = ownScope.itemsNamed(c.Fields[0].GetString_().GetSval())
	case 3:
		items = r.qualifiedItems(c, ownScope)
	}
	var out []*outputColumn
	for _, item := range items {
		found := columnsNamed([]*rangeItem{item}, name)
		if len(found) == 0 && item.unknown != nil {
			found = []*outputColumn{item.unknown}
		}
		if len(found) == 0 { // the name is a function of the row in attribute notation, or a system column
			if name == "tableoid" {
				continue
			}
			r.markUsed(item.wholeRow, usageOutput|usageSimilarity)
			r.addFunctionReads("", name)
			found = []*outputColumn{item.wholeRow}
		}
		out = append(out, found...)
	}
	if len(items) == 0 {
		r.markEverything(ownScope, usageOutput|usageSimilarity)
		r.addFunctionReads("", name)
	}
	return out
}

// resolveUnqualified returns what a name without qualifier can mean: a column in the innermost scope that has it, or a
// whole row.
func (r *usageAnalysis) resolveUnqualified(name string, ownScope *usageScope) []*outputColumn {
	var out []*outputColumn
	for s := ownScope; s != nil; s = s.parent {
		found := columnsNamed(s.items, name)
		for _, item := range s.items {
			if item.unknown != nil && len(columnsNamed([]*rangeItem{item}, name)) == 0 {
				out = append(out, item.unknown)
			}
		}
		if len(found) > 0 {
			return append(found, out...)
		}
	}
	if name == "tableoid" {
		return out
	}
	rows := ownScope.itemsNamed(name)
	for _, item := range rows {
		out = append(out, item.wholeRow)
	}
	if len(out) == 0 {
		r.markEverything(ownScope, usageOutput|usageSimilarity)
	}
	return out
}

// markEverything marks all columns of all visible FROM items as used, for a name whose meaning is not known. If there
// are no such items, the analysis has missed something and counts as incomplete.
func (r *usageAnalysis) markEverything(ownScope *usageScope, f usage) {
	noneFound := true
	defer func() { r.incomplete = r.incomplete || noneFound }()
	for s := ownScope; s != nil; s = s.parent {
		for _, item := range s.items {
			noneFound = false
			r.markUsed(item.wholeRow, f)
			r.markAllUsed(&item.resultColumns, f)
		}
	}
}

func (r *usageAnalysis) visitExprs(list []*sqltext.Node, ownScope *usageScope, f usage) {
	for _, n := range list {
		r.visitExpr(n, ownScope, f)
	}
}

// visitExpr marks the columns of an expression as used in the ways f.
func (r *usageAnalysis) visitExpr(n *sqltext.Node, ownScope *usageScope, f usage) {
	if n == nil || n.Node == nil {
		return
	}
	switch kind := n.Node.(type) {
	case *sqltext.Node_ColumnRef:
		if isStar(n) {
			for _, item := range r.starItems(kind.ColumnRef, ownScope) {
				r.markUsed(item.wholeRow, f)
				r.markAllUsed(&item.resultColumns, f)
			}
			return
		}
		for _, o := range r.resolveColumn(kind.ColumnRef, ownScope) {
			if f == usageNullTest && o.mayBeRow() { // whether a row is NULL depends on the values of its columns
				r.markUsed(o, usageOutput)
			}
			r.markUsed(o, f)
		}
	case *sqltext.Node_ParamRef, *sqltext.Node_A_Const, *sqltext.Node_SQLValueFunction, *sqltext.Node_SetToDefault,
		*sqltext.Node_String, *sqltext.Node_Integer, *sqltext.Node_Float, *sqltext.Node_Boolean, *sqltext.Node_BitString:
	case *sqltext.Node_A_Expr:
		r.visitOperator(kind.AExpr, ownScope, f)
	case *sqltext.Node_BoolExpr:
		r.visitExprs(kind.BoolExpr.Args, ownScope, f)
	case *sqltext.Node_NullTest:
		if kind.NullTest.Arg.GetColumnRef() != nil && f&usageSimilarity == 0 {
			r.visitExpr(kind.NullTest.Arg, ownScope, usageNullTest)
			return
		}
		r.visitExpr(kind.NullTest.Arg, ownScope, f)
	case *sqltext.Node_BooleanTest:
		r.visitExpr(kind.BooleanTest.Arg, ownScope, f)
	case *sqltext.Node_TypeCast:
		if r.isEmbeddingTypeName(kind.TypeCast.GetTypeName()) {
			f |= usageSimilarity
		}
		r.visitExpr(kind.TypeCast.Arg, ownScope, f)
	case *sqltext.Node_CollateClause:
		r.visitExpr(kind.CollateClause.Arg, ownScope, f)
	case *sqltext.Node_FuncCall:
		r.visitCall(kind.FuncCall, ownScope, f)
	case *sqltext.Node_NamedArgExpr:
		r.visitExpr(kind.NamedArgExpr.Arg, ownScope, f)
	case *sqltext.Node_CaseExpr:
		r.visitExpr(kind.CaseExpr.Arg, ownScope, f)
		r.visitExprs(kind.CaseExpr.Args, ownScope, f)
		r.visitExpr(kind.CaseExpr.Defresult, ownScope, f)
	case *sqltext.Node_CaseWhen:
		r.visitExpr(kind.CaseWhen.Expr, ownScope, f)
		r.visitExpr(kind.CaseWhen.Result, ownScope, f)
	case *sqltext.Node_CoalesceExpr:
		r.visitExprs(kind.CoalesceExpr.Args, ownScope, f)
	case *sqltext.Node_MinMaxExpr:
		r.visitExprs(kind.MinMaxExpr.Args, ownScope, f)
	case *sqltext.Node_GroupingFunc:
		r.visitExprs(kind.GroupingFunc.Args, ownScope, f)
	case *sqltext.Node_SubLink:
		r.visitSubLink(kind.SubLink, ownScope, f)
	case *sqltext.Node_RowExpr:
		r.visitExprs(kind.RowExpr.Args, ownScope, f)
	case *sqltext.Node_A_ArrayExpr:
		r.visitExprs(kind.AArrayExpr.Elements, ownScope, f)
	case *sqltext.Node_A_Indirection:
		r.visitIndirection(kind.AIndirection, ownScope, f)
	case *sqltext.Node_SortBy:
		if r.isSimilarityOperator(kind.SortBy.UseOp) {
			f |= usageSimilarity
		}
		r.visitExpr(kind.SortBy.Node, ownScope, f)
	case *sqltext.Node_WindowDef:
		r.visitWindow(kind.WindowDef, ownScope, f)
	case *sqltext.Node_GroupingSet:
		r.visitExprs(kind.GroupingSet.Content, ownScope, f)
	case *sqltext.Node_List:
		r.visitExprs(kind.List.Items, ownScope, f)
	case *sqltext.Node_MultiAssignRef:
		r.visitExpr(kind.MultiAssignRef.Source, ownScope, f)
	case *sqltext.Node_XmlExpr:
		for _, n := range kind.XmlExpr.NamedArgs {
			r.visitExpr(n.GetResTarget().GetVal(), ownScope, f)
		}
		r.visitExprs(kind.XmlExpr.Args, ownScope, f)
	case *sqltext.Node_XmlSerialize:
		r.visitExpr(kind.XmlSerialize.Expr, ownScope, f)
	case *sqltext.Node_JsonValueExpr:
		r.visitJSONValue(kind.JsonValueExpr, ownScope, f)
	case *sqltext.Node_JsonKeyValue:
		r.visitJSONKeyValue(kind.JsonKeyValue, ownScope, f)
	case *sqltext.Node_JsonObjectConstructor:
		r.visitExprs(kind.JsonObjectConstructor.Exprs, ownScope, f)
	case *sqltext.Node_JsonArrayConstructor:
		r.visitExprs(kind.JsonArrayConstructor.Exprs, ownScope, f)
	case *sqltext.Node_JsonArrayQueryConstructor:
		r.visitSubQuery(kind.JsonArrayQueryConstructor.GetQuery().GetSelectStmt(), ownScope, f, true)
	case *sqltext.Node_JsonObjectAgg:
		r.visitJSONAggregate(kind.JsonObjectAgg.Constructor, ownScope, f)
		r.visitJSONKeyValue(kind.JsonObjectAgg.Arg, ownScope, f)
	case *sqltext.Node_JsonArrayAgg:
		r.visitJSONAggregate(kind.JsonArrayAgg.Constructor, ownScope, f)
		r.visitJSONValue(kind.JsonArrayAgg.Arg, ownScope, f)
	case *sqltext.Node_JsonIsPredicate:
		r.visitExpr(kind.JsonIsPredicate.Expr, ownScope, f)
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

func (r *usageAnalysis) visitJSONValue(v *sqltext.JsonValueExpr, ownScope *usageScope, f usage) {
	if v != nil {
		r.visitExpr(v.RawExpr, ownScope, f)
		r.visitExpr(v.FormattedExpr, ownScope, f)
	}
}

func (r *usageAnalysis) visitJSONKeyValue(kv *sqltext.JsonKeyValue, ownScope *usageScope, f usage) {
	if kv != nil {
		r.visitExpr(kv.Key, ownScope, f)
		r.visitJSONValue(kv.Value, ownScope, f)
	}
}

func (r *usageAnalysis) visitJSONAggregate(c *sqltext.JsonAggConstructor, ownScope *usageScope, f usage) {
	if c != nil {
		r.visitExpr(c.AggFilter, ownScope, f)
		r.visitExprs(c.AggOrder, ownScope, f)
		r.visitWindow(c.Over, ownScope, f)
	}
}

func (r *usageAnalysis) visitWindow(d *sqltext.WindowDef, ownScope *usageScope, f usage) {
	if d != nil {
		r.visitExprs(d.PartitionClause, ownScope, f)
		r.visitExprs(d.OrderClause, ownScope, f)
		r.visitExpr(d.StartOffset, ownScope, f)
		r.visitExpr(d.EndOffset, ownScope, f)
	}
}

func (r *usageAnalysis) visitIndirection(x *sqltext.A_Indirection, ownScope *usageScope, f usage) {
	for _, n := range x.Indirection {
		if i := n.GetAIndices(); i != nil {
			r.visitExpr(i.Lidx, ownScope, f)
			r.visitExpr(i.Uidx, ownScope, f)
		}
		if s := n.GetString_(); s != nil { // the name may be a function in attribute notation
			if r.isSimilarityFunction("", s.GetSval()) {
				f |= usageSimilarity
			}
			r.addFunctionReads("", s.GetSval())
		}
	}
	r.visitExpr(x.Arg, ownScope, f)
}

func (r *usageAnalysis) visitSubLink(s *sqltext.SubLink, ownScope *usageScope, f usage) {
	if r.isSimilarityOperator(s.OperName) {
		f |= usageSimilarity
	}
	r.visitExpr(s.Testexpr, ownScope, f)
	outs := r.visitSubQuery(s.GetSubselect().GetSelectStmt(), ownScope, f, s.SubLinkType != sqltext.EXISTS_SUBLINK)
	// x IN (SELECT key FROM t) joins the tables of x and key as x = key does
	if s.SubLinkType == sqltext.ANY_SUBLINK && len(s.OperName) == 0 && outs != nil && len(outs.outputs) == 1 &&
		outs.unknown == nil {
		if a := r.singleColumn(s.Testexpr, ownScope); a != nil {
			r.noteEqual(a, outs.outputs[0])
		}
	}
}

// visitSubQuery visits a query inside an expression and marks the columns that it returns as used. A query that was
// visited before is not visited again.
func (r *usageAnalysis) visitSubQuery(s *sqltext.SelectStmt, ownScope *usageScope, f usage,
	returned bool) *resultColumns {
	q := r.subqueries[s]
	if q == nil {
		outer := r.conditionUsage
		if f&usageOutput != 0 {
			r.conditionUsage = usageOutput // the output of the query depends on the conditions in it
		}
		q = r.visitSelect(s, ownScope, r.ctes)
		r.conditionUsage = outer
		r.subqueries[s] = q
	}
	if returned {
		r.markAllUsed(q, f)
	}
	return q
}

// visitCall visits a function call.
func (r *usageAnalysis) visitCall(c *sqltext.FuncCall, ownScope *usageScope, f usage) {
	schema, name, _ := qualifiedName(c.Funcname)
	argumentUsage := f
	switch {
	case r.isSimilarityFunction(schema, name):
		argumentUsage |= usageSimilarity
	case name == "count" && (schema == "" || schema == "pg_catalog") && !c.AggDistinct && len(c.Args) == 1 &&
		c.Args[0].GetColumnRef() != nil && f&usageSimilarity == 0:
		argumentUsage = usageNullTest // the result depends on the number of values only
	}
	r.visitExprs(c.Args, ownScope, argumentUsage)
	r.visitExprs(c.AggOrder, ownScope, f)
	r.visitExpr(c.AggFilter, ownScope, f)
	r.visitWindow(c.Over, ownScope, f)
	r.addFunctionReads(schema, name)
}

// addFunctionReads adds the relations that a called function reads according to the policy.
func (r *usageAnalysis) addFunctionReads(schema, name string) {
	if !r.pol.HasContracts() {
		return
	}
	for _, f := range r.snap.FunctionsNamed(schema, name) {
		policyFunction, ok := r.pol.Function(f.Name)
		if !ok {
			continue
		}
		if policyFunction.Reads == nil {
			use := r.addRelation(f.Name, "", nil)
			use.declaredSource, use.throughObject = "function", ""
			use.isRead = true
			return
		}
		for _, reads := range policyFunction.Reads {
			relation, _ := r.snap.Relation(reads.Relation)
			for _, source := range reads.Sources {
				use := r.addRelation(reads.Relation, "", relation)
				use.declaredSource, use.throughObject = source, f.Name.String()
				use.markUsed("", usageOutput)
			}
		}
		return
	}
}

// visitOperator visits an expression with an operator.
func (r *usageAnalysis) visitOperator(x *sqltext.A_Expr, ownScope *usageScope, f usage) {
	switch x.Kind {
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN, sqltext.AEXPR_BETWEEN_SYM, sqltext.AEXPR_NOT_BETWEEN_SYM:
	default:
		if _, name, _ := qualifiedName(x.Name); r.isSimilarityOperator(x.Name) && !r.isModulo(name, x, ownScope) {
			f |= usageSimilarity
		}
	}
	r.visitExpr(x.Lexpr, ownScope, f)
	r.visitExpr(x.Rexpr, ownScope, f)
}

// isSimilarityOperator tells whether an operator may compute a distance or a similarity. Either its name says so, or
// only extensions that pgconsent does not know have an operator of that name.
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

// isModulo tells whether % means the remainder of a division. That is so if one side is certainly a number, because
// PostgreSQL casts no text or vector to a number implicitly.
func (r *usageAnalysis) isModulo(operator string, x *sqltext.A_Expr, ownScope *usageScope) bool {
	if operator != "%" || x.Kind != sqltext.AEXPR_OP {
		return false
	}
	for _, n := range []*sqltext.Node{x.Lexpr, x.Rexpr} {
		if c := n.GetAConst(); c.GetIval() != nil || c.GetFval() != nil {
			return true
		}
		if o := r.singleColumn(n, ownScope); o != nil {
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

// isSimilarityFunction tells whether a name can mean a function of an extension that computes similarities, or a type
// of embeddings.
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

// isEmbeddingTypeName tells whether a type name in a cast can mean a type of embeddings.
func (r *usageAnalysis) isEmbeddingTypeName(t *sqltext.TypeName) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok {
		return true
	}
	for _, candidate := range r.snap.TypesNamed(schema, name) {
		if r.isEmbedding(candidate.OID) {
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
