package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visitFromItem visits an item of FROM and adds it to ownScope. Only LATERAL items can name the items before them.
// notInjected is the reason why tables in the item cannot become subqueries, or mayInject.
func (w *walker) visitFromItem(n *sqltext.Node, ownScope, parent *scope, notInjected notInjectedReason) {
	if ownScope.outerItems+len(ownScope.items) >= maxItems {
		w.refuse(sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
			"statement has more than %d items of FROM in one scope", maxItems).
			WithHint("Divide the statement, or join fewer tables."))
	}
	if w.refused != nil {
		return
	}
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		w.visitRangeVar(n, kind.RangeVar, ownScope, notInjected)
	case *sqltext.Node_RangeSubselect:
		s := kind.RangeSubselect
		w.countNode("RangeSubselect")
		query := s.GetSubquery().GetSelectStmt()
		if query == nil {
			w.refuse(refusalOf(sqltext.NodeKind(s.GetSubquery())))
			return
		}
		outer := parent
		if s.Lateral {
			outer = ownScope
		}
		firstInside := len(w.references)
		columns := w.selectStmt(query, outer)
		name, renamed := w.visitAlias(s.Alias)
		if renamed {
			columns = renamedColumns(s.Alias.GetColnames())
		}
		ownScope.add(&fromItem{name: name, columns: columns, references: w.references[firstInside:]})
	case *sqltext.Node_RangeFunction:
		w.visitRangeFunction(kind.RangeFunction, ownScope)
	case *sqltext.Node_RangeTableFunc:
		w.visitRangeTableFunc(kind.RangeTableFunc, ownScope)
	case *sqltext.Node_JoinExpr:
		w.joinExpr(kind.JoinExpr, ownScope, parent, notInjected)
	default:
		w.refuse(refusalOf(sqltext.NodeKind(n)))
	}
}

// visitAlias visits an alias and tells whether the alias renames columns.
func (w *walker) visitAlias(a *sqltext.Alias) (name string, renamed bool) {
	if a == nil {
		return "", false
	}
	w.countNode("Alias")
	return a.Aliasname, len(a.Colnames) > 0
}

func (w *walker) visitRangeVar(n *sqltext.Node, rv *sqltext.RangeVar, ownScope *scope, notInjected notInjectedReason) {
	if rv.GetSchemaname() == "" && rv.GetCatalogname() == "" {
		if columns, singleRows, found := w.ctes.findCTE(rv.GetRelname()); found {
			w.countNode("RangeVar")
			if singleRows != nil {
				w.singleRowReads = append(w.singleRowReads, singleRows)
			}
			name, renamed := w.visitAlias(rv.Alias)
			if name == "" {
				name = rv.GetRelname()
			}
			if renamed {
				columns = renamedColumns(rv.GetAlias().GetColnames())
			}
			ownScope.add(&fromItem{name: name, columns: columns})
			return
		}
	}
	ref := w.resolveRelation(rv)
	if ref == nil {
		return
	}
	ref.node = n
	if ref.keyLookup = w.keyLookups[rv]; ref.keyLookup != nil {
		ref.relation = ref.keyLookup.function.visible
	}
	name, renamed := w.visitAlias(rv.Alias)
	item := &fromItem{name: name, ref: ref, noAlias: rv.Alias == nil}
	if item.noAlias {
		item.name = rv.GetRelname()
	}
	if aliasCount := len(rv.GetAlias().GetColnames()); ref.fragment != nil && aliasCount > len(ref.relation.Columns) {
		w.refuseAt(sqlstate.New(sqlstate.InvalidColumnReference, sqlstate.ReasonColumn,
			"table %q has %d columns available but %d columns specified", name, len(ref.relation.Columns), aliasCount).
			WithHint("Agents see %d columns of %s: give as many names after %s, or none.", len(ref.relation.Columns),
				ref.name, name), rv.GetLocation())
		return
	}
	if renamed {
		ref.doNotInject(columnAliases)
		ref.allColumns, ref.rowType = true, true
		item.columns = renamedColumns(rv.GetAlias().GetColnames())
	} else if ref.relation != nil {
		item.columns = columnSet(ref.relation)
	}
	if notInjected != mayInject {
		ref.doNotInject(notInjected)
	}
	ownScope.add(item)
}

func columnSet(r *catalog.Relation) map[string]bool {
	columns := make(map[string]bool, len(r.Columns))
	for _, c := range r.Columns {
		columns[c.Name] = true
	}
	return columns
}

func (w *walker) joinExpr(j *sqltext.JoinExpr, ownScope, parent *scope, notInjected notInjectedReason) {
	w.countNode("JoinExpr")
	if j.Alias != nil || j.JoinUsingAlias != nil {
		notInjected = joinAlias
	}
	countBefore := len(ownScope.items)
	w.visitFromItem(j.Larg, ownScope, parent, notInjected)
	w.visitFromItem(j.Rarg, ownScope, parent, notInjected)
	if j.IsNatural {
		w.checkEquality()
		for _, item := range ownScope.items[countBefore:] {
			item.readRowType()
		}
	}
	if len(j.UsingClause) > 0 {
		w.checkEquality()
	}
	for _, column := range j.UsingClause {
		w.columnNames[column.GetString_().GetSval()] = true
	}
	if j.Alias != nil {
		name, _ := w.visitAlias(j.Alias)
		ownScope.add(&fromItem{name: name}) // starColumns expects that the columns of an aliased join are not known
		for _, item := range ownScope.items[countBefore:] {
			item.readRowType()
		}
	}
	if j.JoinUsingAlias != nil {
		name, _ := w.visitAlias(j.JoinUsingAlias)
		ownScope.add(&fromItem{name: name})
	}
	w.visitExpr(j.Quals)
	w.castTimeBounds(j.Quals)
}

func (i *fromItem) readRowType() {
	if i.ref != nil {
		i.ref.allColumns, i.ref.rowType = true, true
	}
}

// visitRangeFunction visits functions in FROM, whose arguments can name the items before them.
func (w *walker) visitRangeFunction(f *sqltext.RangeFunction, ownScope *scope) {
	w.countNode("RangeFunction")
	name, _ := w.visitAlias(f.Alias)
	for i, n := range f.Functions {
		parts := n.GetList().GetItems() // the parts are the call and the definitions of its columns
		if len(parts) == 0 || len(parts) > 2 {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return
		}
		w.visitExpr(parts[0])
		if i == 0 && name == "" { // PostgreSQL names the item after its first function
			if names := parts[0].GetFuncCall().GetFuncname(); len(names) > 0 {
				name = names[len(names)-1].GetString_().GetSval()
			}
		}
		if len(parts) == 2 {
			w.visitColumnDefs(parts[1].GetList().GetItems())
			if parts[1].GetNode() != nil && parts[1].GetList() == nil {
				w.refuse(refusalOf(sqltext.NodeKind(parts[1])))
			}
		}
	}
	w.visitColumnDefs(f.Coldeflist)
	columns := renamedColumns(f.GetAlias().GetColnames())
	for _, n := range f.Coldeflist {
		columns[n.GetColumnDef().GetColname()] = true
	}
	if len(columns) == 0 {
		columns = nil
	}
	ownScope.add(&fromItem{name: name, columns: columns})
}

// visitColumnDefs visits a list of column definitions: names, types and collations.
func (w *walker) visitColumnDefs(defs []*sqltext.Node) {
	for _, n := range defs {
		d := n.GetColumnDef()
		if d == nil {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return
		}
		w.countNode("ColumnDef")
		if d.RawDefault != nil || d.CookedDefault != nil || d.IdentitySequence != nil || len(d.Constraints) > 0 ||
			len(d.Fdwoptions) > 0 {
			w.refuse(refusalOf("ColumnDef"))
			return
		}
		w.visitTypeName(d.TypeName)
		w.refuseNameType(d.TypeName)
		if d.CollClause != nil {
			w.visitCollate(d.CollClause, w.collations)
		}
	}
}

// visitRangeTableFunc visits XMLTABLE.
func (w *walker) visitRangeTableFunc(f *sqltext.RangeTableFunc, ownScope *scope) {
	w.countNode("RangeTableFunc")
	w.visitExpr(f.Docexpr)
	w.visitExpr(f.Rowexpr)
	w.visitResTargets(f.Namespaces)
	for _, n := range f.Columns {
		c := n.GetRangeTableFuncCol()
		if c == nil {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return
		}
		w.countNode("RangeTableFuncCol")
		if c.TypeName != nil {
			w.visitTypeName(c.TypeName)
			w.refuseNameType(c.TypeName)
		}
		w.visitExpr(c.Colexpr)
		w.visitExpr(c.Coldefexpr)
	}
	name, _ := w.visitAlias(f.Alias)
	columns := renamedColumns(f.GetAlias().GetColnames())
	// the alias may rename the first columns, so the names of the others come from the text
	for _, n := range f.Columns[min(len(f.GetAlias().GetColnames()), len(f.Columns)):] {
		columns[n.GetRangeTableFuncCol().GetColname()] = true
	}
	ownScope.add(&fromItem{name: name, columns: columns})
}
