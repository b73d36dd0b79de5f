package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

func (w *walker) exprs(nodes []*sqltext.Node) {
	for _, n := range nodes {
		w.expr(n)
	}
}

// expr visits an expression. The default arm refuses: so does any kind of node that is not here.
func (w *walker) expr(n *sqltext.Node) {
	if n == nil || n.Node == nil || w.refused != nil {
		return
	}
	switch kind := n.Node.(type) {
	case *sqltext.Node_ColumnRef:
		if !w.catalogSystemColumn(n, nil) {
			w.columnRef(kind.ColumnRef, false)
		}
	case *sqltext.Node_ParamRef:
		w.saw("ParamRef")
	case *sqltext.Node_A_Const:
		w.saw("A_Const")
	case *sqltext.Node_A_Expr:
		w.operatorExpr(kind.AExpr)
	case *sqltext.Node_BoolExpr:
		w.saw("BoolExpr")
		w.exprs(kind.BoolExpr.Args)
	case *sqltext.Node_NullTest:
		w.saw("NullTest")
		w.expr(kind.NullTest.Arg)
	case *sqltext.Node_BooleanTest:
		w.saw("BooleanTest")
		w.expr(kind.BooleanTest.Arg)
	case *sqltext.Node_TypeCast:
		w.saw("TypeCast")
		w.expr(kind.TypeCast.Arg)
		w.typeName(kind.TypeCast.TypeName)
		w.checkNameCast(kind.TypeCast)
	case *sqltext.Node_CollateClause:
		w.collateClause(kind.CollateClause, w.explicitCollations)
	case *sqltext.Node_FuncCall:
		w.funcCall(n, kind.FuncCall)
	case *sqltext.Node_NamedArgExpr:
		w.saw("NamedArgExpr")
		w.expr(kind.NamedArgExpr.Arg)
	case *sqltext.Node_CaseExpr:
		w.caseExpr(kind.CaseExpr)
	case *sqltext.Node_CaseWhen:
		w.saw("CaseWhen")
		w.expr(kind.CaseWhen.Expr)
		w.expr(kind.CaseWhen.Result)
	case *sqltext.Node_CoalesceExpr:
		w.saw("CoalesceExpr")
		w.exprs(kind.CoalesceExpr.Args)
	case *sqltext.Node_MinMaxExpr:
		w.saw("MinMaxExpr")
		w.exprs(kind.MinMaxExpr.Args)
	case *sqltext.Node_SQLValueFunction:
		w.saw("SQLValueFunction")
		if op := kind.SqlvalueFunction.Op; op != sqltext.SVFOP_CURRENT_DATE &&
			op != sqltext.SVFOP_CURRENT_TIMESTAMP && op != sqltext.SVFOP_LOCALTIMESTAMP {
			w.collations["C"] = true // as of values of type name
		}
	case *sqltext.Node_GroupingFunc:
		w.saw("GroupingFunc")
		w.exprs(kind.GroupingFunc.Args)
	case *sqltext.Node_SubLink:
		w.subLink(kind.SubLink)
	case *sqltext.Node_RowExpr:
		w.saw("RowExpr")
		w.exprs(kind.RowExpr.Args)
	case *sqltext.Node_A_ArrayExpr:
		w.saw("A_ArrayExpr")
		w.exprs(kind.AArrayExpr.Elements)
	case *sqltext.Node_A_Indirection:
		w.indirection(kind.AIndirection)
	case *sqltext.Node_SortBy:
		w.saw("SortBy")
		w.expr(kind.SortBy.Node)
		if len(kind.SortBy.UseOp) > 0 {
			w.operator(kind.SortBy.UseOp, kind.SortBy.Location)
		}
	case *sqltext.Node_WindowDef:
		w.windowDef(kind.WindowDef)
	case *sqltext.Node_GroupingSet:
		w.saw("GroupingSet")
		w.exprs(kind.GroupingSet.Content)
	case *sqltext.Node_List:
		w.exprs(kind.List.Items)
	case *sqltext.Node_String, *sqltext.Node_Integer, *sqltext.Node_Float, *sqltext.Node_Boolean, *sqltext.Node_BitString:
		// leaves, which appear in lists such as type modifiers
	case *sqltext.Node_XmlExpr:
		w.saw("XmlExpr")
		w.resTargets(kind.XmlExpr.NamedArgs)
		w.exprs(kind.XmlExpr.Args)
	case *sqltext.Node_XmlSerialize:
		w.saw("XmlSerialize")
		w.expr(kind.XmlSerialize.Expr)
		w.typeName(kind.XmlSerialize.TypeName)
	case *sqltext.Node_JsonValueExpr:
		w.jsonValue(kind.JsonValueExpr)
	case *sqltext.Node_JsonKeyValue:
		w.jsonKeyValue(kind.JsonKeyValue)
	case *sqltext.Node_JsonObjectConstructor:
		w.saw("JsonObjectConstructor")
		w.exprs(kind.JsonObjectConstructor.Exprs)
		w.jsonOutput(kind.JsonObjectConstructor.Output)
	case *sqltext.Node_JsonArrayConstructor:
		w.saw("JsonArrayConstructor")
		w.exprs(kind.JsonArrayConstructor.Exprs)
		w.jsonOutput(kind.JsonArrayConstructor.Output)
	case *sqltext.Node_JsonArrayQueryConstructor:
		w.jsonArrayQuery(kind.JsonArrayQueryConstructor)
	case *sqltext.Node_JsonObjectAgg:
		w.saw("JsonObjectAgg")
		w.jsonAggregate(kind.JsonObjectAgg.Constructor)
		w.jsonKeyValue(kind.JsonObjectAgg.Arg)
	case *sqltext.Node_JsonArrayAgg:
		w.saw("JsonArrayAgg")
		w.jsonAggregate(kind.JsonArrayAgg.Constructor)
		w.jsonValue(kind.JsonArrayAgg.Arg)
	case *sqltext.Node_JsonIsPredicate:
		w.saw("JsonIsPredicate")
		w.expr(kind.JsonIsPredicate.Expr)
		w.jsonFormat(kind.JsonIsPredicate.Format)
	case *sqltext.Node_SetToDefault: // assignedValue takes the ones that are allowed
		w.refuseAt(refusal("SetToDefault(elsewhere)"), kind.SetToDefault.Location)
	default:
		w.refuse(refusal(sqltext.Kind(n)))
	}
}

// resTargets visits named values, as in XMLFOREST(a AS b).
func (w *walker) resTargets(nodes []*sqltext.Node) {
	for _, n := range nodes {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			w.refuse(refusal(sqltext.Kind(n)))
			return
		}
		w.saw("ResTarget")
		w.expr(t.Val)
	}
}

func (w *walker) subLink(s *sqltext.SubLink) {
	w.saw("SubLink")
	w.expr(s.Testexpr)
	switch {
	case len(s.OperName) > 0:
		w.operator(s.OperName, s.Location)
	case s.Testexpr != nil:
		w.equality() // IN
	}
	query := s.GetSubselect().GetSelectStmt()
	if query == nil {
		w.refuseAt(refusal(sqltext.Kind(s.GetSubselect())), s.Location)
		return
	}
	w.selectStmt(query, w.scope)
}

func (w *walker) windowDef(d *sqltext.WindowDef) {
	if d == nil {
		return
	}
	w.saw("WindowDef")
	w.exprs(d.PartitionClause)
	w.exprs(d.OrderClause)
	w.expr(d.StartOffset)
	w.expr(d.EndOffset)
}

// columnRef visits a reference to a column, to a whole row or, in attribute notation, to a function. expanded tells
// that it stands directly in a target list, where a * means columns and not the row.
func (w *walker) columnRef(c *sqltext.ColumnRef, expanded bool) {
	if w.refused != nil {
		return
	}
	w.saw("ColumnRef")
	fields := make([]string, len(c.Fields))
	star := false
	for i, n := range c.Fields {
		switch {
		case n.GetString_() != nil:
			fields[i] = n.GetString_().GetSval()
		case n.GetAStar() != nil && i == len(c.Fields)-1:
			w.saw("A_Star")
			star = true
		default:
			w.refuseAt(refusal(sqltext.Kind(n)), c.Location)
			return
		}
	}
	var items []*fromItem
	switch len(fields) {
	case 1:
		if star {
			for _, item := range w.scope.items {
				item.readWholeRow(expanded)
			}
			return
		}
		// A column; or, if an item has the name, perhaps the whole row.
		for _, item := range w.scope.itemsNamed(fields[0]) {
			item.readWholeRow(false)
		}
	case 2:
		items = w.scope.itemsNamed(fields[0])
	case 3:
		items = w.schemaQualifiedItems(c, fields)
	default:
		w.refuseAt(refusal("RangeVar.catalogname"), c.Location)
	}
	if w.refused != nil {
		return
	}
	if star {
		for _, item := range items {
			item.readWholeRow(expanded)
		}
		return
	}
	last := fields[len(fields)-1]
	w.column(last, c.Location)
	switch len(fields) {
	case 1:
		w.checkKeyOnlyColumn("", last, c.Location)
	case 2:
		w.checkKeyOnlyColumn(fields[0], last, c.Location)
		if !w.scope.hasColumn(fields[0], last) && w.attributeNotation(last, c.Location) {
			for _, item := range items { // the function takes the row
				item.readWholeRow(false)
			}
		}
	case 3:
		if !items[0].columns[last] && w.attributeNotation(last, c.Location) {
			items[0].readWholeRow(false)
		}
	}
}

// readWholeRow notes that the statement reads all columns of an item, and its row type unless a target list expands
// them.
func (i *fromItem) readWholeRow(expanded bool) {
	if i.ref == nil {
		return
	}
	if expanded {
		i.ref.allColumns = true
		i.ref.starCount++
		return
	}
	i.readRowType()
	i.ref.doNotInject(wholeRowReference)
}

// schemaQualifiedItems visits schema.table.column, which only reaches a table without alias.
func (w *walker) schemaQualifiedItems(c *sqltext.ColumnRef, fields []string) []*fromItem {
	name, _ := w.snap.ResolveRelation(fields[0], fields[1])
	items := w.scope.itemsOfRelation(name)
	if name.Name == "" || len(items) == 0 {
		w.refuseAt(sqlstate.New(sqlstate.UndefinedTable, sqlstate.ReasonRelation,
			"missing FROM-clause entry for table %q", fields[1]).
			WithHint("Refer to a table by its alias, or by its name if it has none."), c.Location)
		return nil
	}
	ref := items[0].ref
	if ref.fragment == nil || ref.fragment.isView() {
		w.unqualify(c)
		return items
	}
	column := fields[len(fields)-1]
	w.qualifiedColumns = append(w.qualifiedColumns, qualifiedColumn{c, w.scope, items[0], w.repeated,
		c.Fields[len(c.Fields)-1].GetAStar() != nil || items[0].columns[column]})
	return items
}

// qualifiedColumn is a column reference with a schema.
type qualifiedColumn struct {
	column   *sqltext.ColumnRef
	scope    *scope
	item     *fromItem
	repeated bool
	known    bool // the table has the column; else the server says so, by the name that the client wrote
}

// unqualifyColumns drops the schema where the table's name alone means the same: nothing else in sight has that name.
// The rest of the rewriter, and signed views, whose alias is the name, then see table.column. Some ORMs write
// schema.table.column everywhere.
func (w *walker) unqualifyColumns() {
	for _, q := range w.qualifiedColumns {
		same := q.scope.itemsNamed(q.item.name)
		switch {
		case len(same) == 1 && same[0] == q.item && q.known && !q.scope.hasUnknownNameInSight() && w.schemaIsPlain(q.column):
			if !q.repeated {
				w.removeSchema(q.column, func() {})
			}
			q.column.Fields = q.column.Fields[1:]
		default:
			q.item.ref.doNotInject(schemaQualifiedColumn)
			q.item.ref.qualifiedColumns = append(q.item.ref.qualifiedColumns, q.column)
		}
	}
}

// unqualify drops the schema: what replaces the table has its name as alias.
func (w *walker) unqualify(c *sqltext.ColumnRef) {
	if !w.schemaIsPlain(c) {
		w.refuseAt(refusal("ColumnRef.location"), c.Location)
		return
	}
	w.removeSchema(c, func() { c.Fields = c.Fields[1:] })
}

// schemaIsPlain tells whether a reference begins with a schema, a dot, a name and a dot.
func (w *walker) schemaIsPlain(c *sqltext.ColumnRef) bool {
	i := w.source.At(c.Location)
	return i >= 0 && i+3 < len(w.source.Tokens) && w.source.Kind(i+1) == sqltext.Dot && w.source.Kind(i+3) == sqltext.Dot
}

// removeSchema writes the table's name in place of schema.table, quoted where it needs that without a dot before it, as
// in public.user.id. A comment may stand between the two.
func (w *walker) removeSchema(c *sqltext.ColumnRef, apply func()) {
	i := w.source.At(c.Location)
	w.replace(w.source.Tokens[i].Start, w.source.Tokens[i+2].End,
		catalog.QuoteIdent(c.Fields[1].GetString_().GetSval()), apply)
}

// column notes the name of a column that the statement reads.
func (w *walker) column(name string, location int32) {
	w.columnNames[name] = true
	switch name {
	case "tableoid":
		w.namesTableOID = true
	case "ctid", "xmin", "xmax", "cmin", "cmax":
		w.namesSystemColumn, w.systemColumnAt = true, location
	}
}

// indirection visits (expression).field, (expression)[index] and (expression).*.
func (w *walker) indirection(x *sqltext.A_Indirection) {
	w.saw("A_Indirection")
	w.expr(x.Arg)
	for _, n := range x.Indirection {
		switch part := n.GetNode().(type) {
		case *sqltext.Node_String:
			w.column(part.String_.GetSval(), w.locationOf(x.Arg))
			w.attributeNotation(part.String_.GetSval(), w.locationOf(x.Arg))
		case *sqltext.Node_A_Star:
			w.saw("A_Star")
		case *sqltext.Node_A_Indices:
			w.saw("A_Indices")
			w.expr(part.AIndices.Lidx)
			w.expr(part.AIndices.Uidx)
		default:
			w.refuse(refusal(sqltext.Kind(n)))
		}
	}
}

// locationOf returns where a column reference or call stands, or -1 (no position).
func (w *walker) locationOf(n *sqltext.Node) int32 {
	switch {
	case n.GetColumnRef() != nil:
		return n.GetColumnRef().Location
	case n.GetFuncCall() != nil:
		return n.GetFuncCall().Location
	}
	return -1
}
