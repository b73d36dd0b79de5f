package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// exprs visits expressions.
func (w *walker) exprs(nodes []*sqltext.Node) {
	for _, n := range nodes {
		w.visitExpr(n)
	}
}

// visitExpr visits an expression. The default case of the switch refuses kinds of nodes that are not listed.
func (w *walker) visitExpr(n *sqltext.Node) {
	if n == nil || n.Node == nil || w.refused != nil {
		return
	}
	switch kind := n.Node.(type) {
	case *sqltext.Node_ColumnRef:
		if !w.catalogSystemColumn(n, nil) {
			w.visitColumnRef(kind.ColumnRef, false)
		}
	case *sqltext.Node_ParamRef:
		w.countNode("ParamRef")
	case *sqltext.Node_A_Const:
		w.countNode("A_Const")
	case *sqltext.Node_A_Expr:
		w.visitOperatorExpr(kind.AExpr)
	case *sqltext.Node_BoolExpr:
		w.countNode("BoolExpr")
		w.exprs(kind.BoolExpr.Args)
	case *sqltext.Node_NullTest:
		w.countNode("NullTest")
		w.visitExpr(kind.NullTest.Arg)
	case *sqltext.Node_BooleanTest:
		w.countNode("BooleanTest")
		w.visitExpr(kind.BooleanTest.Arg)
	case *sqltext.Node_TypeCast:
		w.countNode("TypeCast")
		w.visitExpr(kind.TypeCast.Arg)
		w.visitTypeName(kind.TypeCast.TypeName)
		w.checkNameCast(kind.TypeCast)
	case *sqltext.Node_CollateClause:
		w.visitCollate(kind.CollateClause, w.explicitCollations)
	case *sqltext.Node_FuncCall:
		w.visitFuncCall(n, kind.FuncCall)
	case *sqltext.Node_NamedArgExpr:
		w.countNode("NamedArgExpr")
		w.visitExpr(kind.NamedArgExpr.Arg)
	case *sqltext.Node_CaseExpr:
		w.caseExpr(kind.CaseExpr)
	case *sqltext.Node_CaseWhen:
		w.countNode("CaseWhen")
		w.visitExpr(kind.CaseWhen.Expr)
		w.visitExpr(kind.CaseWhen.Result)
	case *sqltext.Node_CoalesceExpr:
		w.countNode("CoalesceExpr")
		w.exprs(kind.CoalesceExpr.Args)
	case *sqltext.Node_MinMaxExpr:
		w.countNode("MinMaxExpr")
		w.exprs(kind.MinMaxExpr.Args)
	case *sqltext.Node_SQLValueFunction:
		w.countNode("SQLValueFunction")
		if op := kind.SqlvalueFunction.Op; op != sqltext.SVFOP_CURRENT_DATE &&
			op != sqltext.SVFOP_CURRENT_TIMESTAMP && op != sqltext.SVFOP_LOCALTIMESTAMP {
			w.collations["C"] = true // the value has the collation of type name
		}
	case *sqltext.Node_GroupingFunc:
		w.countNode("GroupingFunc")
		w.exprs(kind.GroupingFunc.Args)
	case *sqltext.Node_SubLink:
		w.subLink(kind.SubLink)
	case *sqltext.Node_RowExpr:
		w.countNode("RowExpr")
		w.exprs(kind.RowExpr.Args)
	case *sqltext.Node_A_ArrayExpr:
		w.countNode("A_ArrayExpr")
		w.exprs(kind.AArrayExpr.Elements)
	case *sqltext.Node_A_Indirection:
		w.visitIndirection(kind.AIndirection)
	case *sqltext.Node_SortBy:
		w.countNode("SortBy")
		w.visitExpr(kind.SortBy.Node)
		if len(kind.SortBy.UseOp) > 0 {
			w.checkOperator(kind.SortBy.UseOp, kind.SortBy.Location)
		}
	case *sqltext.Node_WindowDef:
		w.windowDef(kind.WindowDef)
	case *sqltext.Node_GroupingSet:
		w.countNode("GroupingSet")
		w.exprs(kind.GroupingSet.Content)
	case *sqltext.Node_List:
		w.exprs(kind.List.Items)
	case *sqltext.Node_String, *sqltext.Node_Integer, *sqltext.Node_Float, *sqltext.Node_Boolean, *sqltext.Node_BitString:
		// these nodes contain no others; they appear in lists, such as type modifiers
	case *sqltext.Node_XmlExpr:
		w.countNode("XmlExpr")
		w.visitResTargets(kind.XmlExpr.NamedArgs)
		w.exprs(kind.XmlExpr.Args)
	case *sqltext.Node_XmlSerialize:
		w.countNode("XmlSerialize")
		w.visitExpr(kind.XmlSerialize.Expr)
		w.visitTypeName(kind.XmlSerialize.TypeName)
	case *sqltext.Node_JsonValueExpr:
		w.jsonValue(kind.JsonValueExpr)
	case *sqltext.Node_JsonKeyValue:
		w.jsonKeyValue(kind.JsonKeyValue)
	case *sqltext.Node_JsonObjectConstructor:
		w.countNode("JsonObjectConstructor")
		w.exprs(kind.JsonObjectConstructor.Exprs)
		w.jsonOutput(kind.JsonObjectConstructor.Output)
	case *sqltext.Node_JsonArrayConstructor:
		w.countNode("JsonArrayConstructor")
		w.exprs(kind.JsonArrayConstructor.Exprs)
		w.jsonOutput(kind.JsonArrayConstructor.Output)
	case *sqltext.Node_JsonArrayQueryConstructor:
		w.visitJSONArrayQuery(kind.JsonArrayQueryConstructor)
	case *sqltext.Node_JsonObjectAgg:
		w.countNode("JsonObjectAgg")
		w.jsonAggregate(kind.JsonObjectAgg.Constructor)
		w.jsonKeyValue(kind.JsonObjectAgg.Arg)
	case *sqltext.Node_JsonArrayAgg:
		w.countNode("JsonArrayAgg")
		w.jsonAggregate(kind.JsonArrayAgg.Constructor)
		w.jsonValue(kind.JsonArrayAgg.Arg)
	case *sqltext.Node_JsonIsPredicate:
		w.countNode("JsonIsPredicate")
		w.visitExpr(kind.JsonIsPredicate.Expr)
		w.visitJSONFormat(kind.JsonIsPredicate.Format)
	case *sqltext.Node_SetToDefault: // visitAssignedValue visits DEFAULT where it is allowed
		w.refuseAt(refusalOf("SetToDefault(elsewhere)"), kind.SetToDefault.Location)
	default:
		w.refuse(refusalOf(sqltext.NodeKind(n)))
	}
}

// visitResTargets visits named values, as in XMLFOREST(a AS b).
func (w *walker) visitResTargets(nodes []*sqltext.Node) {
	for _, n := range nodes {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return
		}
		w.countNode("ResTarget")
		w.visitExpr(t.Val)
	}
}

func (w *walker) subLink(s *sqltext.SubLink) {
	w.countNode("SubLink")
	w.visitExpr(s.Testexpr)
	switch {
	case len(s.OperName) > 0:
		w.checkOperator(s.OperName, s.Location)
	case s.Testexpr != nil:
		w.checkEquality() // the operator is IN
	}
	query := s.GetSubselect().GetSelectStmt()
	if query == nil {
		w.refuseAt(refusalOf(sqltext.NodeKind(s.GetSubselect())), s.Location)
		return
	}
	w.selectStmt(query, w.scope)
}

func (w *walker) windowDef(d *sqltext.WindowDef) {
	if d == nil {
		return
	}
	w.countNode("WindowDef")
	w.exprs(d.PartitionClause)
	w.exprs(d.OrderClause)
	w.visitExpr(d.StartOffset)
	w.visitExpr(d.EndOffset)
}

// visitColumnRef visits a reference to a column, to a whole row or, in attribute notation, to a function. expanded
// tells whether the reference stands directly in a target list, where x.* means the columns and not the row.
func (w *walker) visitColumnRef(c *sqltext.ColumnRef, expanded bool) {
	if w.refused != nil {
		return
	}
	w.countNode("ColumnRef")
	fields := make([]string, len(c.Fields))
	star := false
	for i, n := range c.Fields {
		switch {
		case n.GetString_() != nil:
			fields[i] = n.GetString_().GetSval()
		case n.GetAStar() != nil && i == len(c.Fields)-1:
			w.countNode("A_Star")
			star = true
		default:
			w.refuseAt(refusalOf(sqltext.NodeKind(n)), c.Location)
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
		// the name means a column or, if an item of FROM has that name, perhaps the item's whole row
		for _, item := range w.scope.itemsNamed(fields[0]) {
			item.readWholeRow(false)
		}
	case 2:
		items = w.scope.itemsNamed(fields[0])
	case 3:
		items = w.schemaQualifiedItems(c, fields)
	default:
		w.refuseAt(refusalOf("RangeVar.catalogname"), c.Location)
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
	w.noteColumn(last, c.Location)
	switch len(fields) {
	case 1:
		w.checkKeyOnlyColumn("", last, c.Location)
	case 2:
		w.checkKeyOnlyColumn(fields[0], last, c.Location)
		if !w.scope.hasColumn(fields[0], last) && w.checkAttributeNotation(last, c.Location) {
			for _, item := range items { // the function in attribute notation takes the whole row of the item
				item.readWholeRow(false)
			}
		}
	case 3:
		if !items[0].columns[last] && w.checkAttributeNotation(last, c.Location) {
			items[0].readWholeRow(false)
		}
	}
}

// readWholeRow notes that the statement reads all columns of an item. Unless a star in a target list expands to the
// columns, the statement also needs the table's row type.
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

// schemaQualifiedItems returns the items of FROM that schema.table.column can mean: those tables that have no alias.
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

// qualifiedColumn is a column reference with a schema: schema.table.column.
type qualifiedColumn struct {
	column   *sqltext.ColumnRef
	scope    *scope
	item     *fromItem
	repeated bool
	known    bool // the table has the column; false: PostgreSQL reports the error with the name that the client wrote
}

// unqualifyColumns replaces schema.table.column by table.column if both mean the same, because no other visible FROM
// item has the table's name. Subqueries and signed views take the table's name as their alias, and have no schema. Some
// ORMs always write schema.table.column.
func (w *walker) unqualifyColumns() {
	for _, q := range w.qualifiedColumns {
		namesakes := q.scope.itemsNamed(q.item.name)
		switch {
		case len(namesakes) == 1 && namesakes[0] == q.item && q.known && !q.scope.hasUnknownNameInSight() &&
			w.isSchemaQualifiedAsWritten(q.column):
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

// unqualify removes the schema from a column reference. The subquery or view in the table's place has the table's name
// as its alias, and no schema.
func (w *walker) unqualify(c *sqltext.ColumnRef) {
	if !w.isSchemaQualifiedAsWritten(c) {
		w.refuseAt(refusalOf("ColumnRef.location"), c.Location)
		return
	}
	w.removeSchema(c, func() { c.Fields = c.Fields[1:] })
}

// isSchemaQualifiedAsWritten tells whether the text of a reference begins with a schema, a dot, a name and a dot.
func (w *walker) isSchemaQualifiedAsWritten(c *sqltext.ColumnRef) bool {
	i := w.source.TokenAt(c.Location)
	return i >= 0 && i+3 < len(w.source.Tokens) && w.source.KindAt(i+1) == sqltext.Dot &&
		w.source.KindAt(i+3) == sqltext.Dot
}

// removeSchema writes the table's name in place of schema.table. If the name needs quotes without a schema, as user in
// public.user.id does, removeSchema adds them. Comments may stand between schema and table.
func (w *walker) removeSchema(c *sqltext.ColumnRef, apply func()) {
	i := w.source.TokenAt(c.Location)
	w.replace(w.source.Tokens[i].Start, w.source.Tokens[i+2].End,
		catalog.QuoteIdent(c.Fields[1].GetString_().GetSval()), apply)
}

// noteColumn notes the name of a column that the statement reads, and whether it is a system column.
func (w *walker) noteColumn(name string, location int32) {
	w.columnNames[name] = true
	switch name {
	case "tableoid":
		w.namesTableOID = true
	case "ctid", "xmin", "xmax", "cmin", "cmax":
		w.namesSystemColumn, w.systemColumnAt = true, location
	}
}

// visitIndirection visits (expression).field, (expression)[index] and (expression).*.
func (w *walker) visitIndirection(x *sqltext.A_Indirection) {
	w.countNode("A_Indirection")
	w.visitExpr(x.Arg)
	for _, n := range x.Indirection {
		switch part := n.GetNode().(type) {
		case *sqltext.Node_String:
			w.noteColumn(part.String_.GetSval(), w.locationOf(x.Arg))
			w.checkAttributeNotation(part.String_.GetSval(), w.locationOf(x.Arg))
		case *sqltext.Node_A_Star:
			w.countNode("A_Star")
		case *sqltext.Node_A_Indices:
			w.countNode("A_Indices")
			w.visitExpr(part.AIndices.Lidx)
			w.visitExpr(part.AIndices.Uidx)
		default:
			w.refuse(refusalOf(sqltext.NodeKind(n)))
		}
	}
}

// locationOf returns the position of a column reference or of a function call; -1 for other expressions.
func (w *walker) locationOf(n *sqltext.Node) int32 {
	switch {
	case n.GetColumnRef() != nil:
		return n.GetColumnRef().Location
	case n.GetFuncCall() != nil:
		return n.GetFuncCall().Location
	}
	return -1
}
