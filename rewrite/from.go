package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// fromItem visits an item of FROM and adds it to own. Only LATERAL items see those before them. notInjected is why
// tables in it must stay tables, or mayInject.
func (w *walker) fromItem(n *sqltext.Node, own, parent *scope, notInjected notInjectedReason) {
	if own.outerItems+len(own.items) >= maxItems {
		w.refuse(sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
			"statement has more than %d items of FROM in one scope", maxItems).
			WithHint("Divide the statement, or join fewer tables."))
	}
	if w.refused != nil {
		return
	}
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		w.rangeVar(n, kind.RangeVar, own, notInjected)
	case *sqltext.Node_RangeSubselect:
		s := kind.RangeSubselect
		w.saw("RangeSubselect")
		query := s.GetSubquery().GetSelectStmt()
		if query == nil {
			w.refuse(refusal(sqltext.Kind(s.GetSubquery())))
			return
		}
		outer := parent
		if s.Lateral {
			outer = own
		}
		inside := len(w.references)
		columns := w.selectStmt(query, outer)
		name, renamed := w.alias(s.Alias)
		if renamed {
			columns = renamedColumns(s.Alias.GetColnames())
		}
		own.add(&fromItem{name: name, columns: columns, references: w.references[inside:]})
	case *sqltext.Node_RangeFunction:
		w.rangeFunction(kind.RangeFunction, own)
	case *sqltext.Node_RangeTableFunc:
		w.rangeTableFunc(kind.RangeTableFunc, own)
	case *sqltext.Node_JoinExpr:
		w.joinExpr(kind.JoinExpr, own, parent, notInjected)
	default:
		w.refuse(refusal(sqltext.Kind(n)))
	}
}

// alias visits an alias and tells whether it renames columns.
func (w *walker) alias(a *sqltext.Alias) (name string, renamed bool) {
	if a == nil {
		return "", false
	}
	w.saw("Alias")
	return a.Aliasname, len(a.Colnames) > 0
}

func (w *walker) rangeVar(n *sqltext.Node, rv *sqltext.RangeVar, own *scope, notInjected notInjectedReason) {
	if rv.GetSchemaname() == "" && rv.GetCatalogname() == "" {
		if columns, singleRows, found := w.ctes.lookup(rv.GetRelname()); found {
			w.saw("RangeVar")
			if singleRows != nil {
				w.singleRowReads = append(w.singleRowReads, singleRows)
			}
			name, renamed := w.alias(rv.Alias)
			if name == "" {
				name = rv.GetRelname()
			}
			if renamed {
				columns = renamedColumns(rv.GetAlias().GetColnames())
			}
			own.add(&fromItem{name: name, columns: columns})
			return
		}
	}
	ref := w.resolve(rv)
	if ref == nil {
		return
	}
	ref.node = n
	if ref.keyLookup = w.keyLookups[rv]; ref.keyLookup != nil {
		ref.relation = ref.keyLookup.function.visible
	}
	name, renamed := w.alias(rv.Alias)
	item := &fromItem{name: name, ref: ref, noAlias: rv.Alias == nil}
	if item.noAlias {
		item.name = rv.GetRelname()
	}
	if given := len(rv.GetAlias().GetColnames()); ref.fragment != nil && given > len(ref.relation.Columns) {
		w.refuseAt(sqlstate.New(sqlstate.InvalidColumnReference, sqlstate.ReasonColumn,
			"table %q has %d columns available but %d columns specified", name, len(ref.relation.Columns), given).
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
	own.add(item)
}

func columnSet(r *catalog.Relation) map[string]bool {
	columns := make(map[string]bool, len(r.Columns))
	for _, c := range r.Columns {
		columns[c.Name] = true
	}
	return columns
}

func (w *walker) joinExpr(j *sqltext.JoinExpr, own, parent *scope, notInjected notInjectedReason) {
	w.saw("JoinExpr")
	if j.Alias != nil || j.JoinUsingAlias != nil {
		notInjected = joinAlias
	}
	before := len(own.items)
	w.fromItem(j.Larg, own, parent, notInjected)
	w.fromItem(j.Rarg, own, parent, notInjected)
	if j.IsNatural {
		w.equality()
		for _, item := range own.items[before:] {
			item.readRowType()
		}
	}
	if len(j.UsingClause) > 0 {
		w.equality()
	}
	for _, column := range j.UsingClause {
		w.columnNames[column.GetString_().GetSval()] = true
	}
	if j.Alias != nil {
		name, _ := w.alias(j.Alias)
		own.add(&fromItem{name: name}) // its columns stay unknown: starColumns relies on it
		for _, item := range own.items[before:] {
			item.readRowType()
		}
	}
	if j.JoinUsingAlias != nil {
		name, _ := w.alias(j.JoinUsingAlias)
		own.add(&fromItem{name: name})
	}
	w.expr(j.Quals)
	w.timeBounds(j.Quals)
}

func (i *fromItem) readRowType() {
	if i.ref != nil {
		i.ref.allColumns, i.ref.rowType = true, true
	}
}

// rangeFunction visits functions in FROM, which see the items before them.
func (w *walker) rangeFunction(f *sqltext.RangeFunction, own *scope) {
	w.saw("RangeFunction")
	name, _ := w.alias(f.Alias)
	for i, n := range f.Functions {
		parts := n.GetList().GetItems() // the call, and its column definitions
		if len(parts) == 0 || len(parts) > 2 {
			w.refuse(refusal(sqltext.Kind(n)))
			return
		}
		w.expr(parts[0])
		if i == 0 && name == "" { // PostgreSQL names the item after its first function
			if names := parts[0].GetFuncCall().GetFuncname(); len(names) > 0 {
				name = names[len(names)-1].GetString_().GetSval()
			}
		}
		if len(parts) == 2 {
			w.columnDefs(parts[1].GetList().GetItems())
			if parts[1].GetNode() != nil && parts[1].GetList() == nil {
				w.refuse(refusal(sqltext.Kind(parts[1])))
			}
		}
	}
	w.columnDefs(f.Coldeflist)
	columns := renamedColumns(f.GetAlias().GetColnames())
	for _, n := range f.Coldeflist {
		columns[n.GetColumnDef().GetColname()] = true
	}
	if len(columns) == 0 {
		columns = nil
	}
	own.add(&fromItem{name: name, columns: columns})
}

// columnDefs visits a column definition list: names, types and collations.
func (w *walker) columnDefs(defs []*sqltext.Node) {
	for _, n := range defs {
		d := n.GetColumnDef()
		if d == nil {
			w.refuse(refusal(sqltext.Kind(n)))
			return
		}
		w.saw("ColumnDef")
		if d.RawDefault != nil || d.CookedDefault != nil || d.IdentitySequence != nil || len(d.Constraints) > 0 ||
			len(d.Fdwoptions) > 0 {
			w.refuse(refusal("ColumnDef"))
			return
		}
		w.typeName(d.TypeName)
		w.refuseNameType(d.TypeName)
		if d.CollClause != nil {
			w.collateClause(d.CollClause, w.collations)
		}
	}
}

// rangeTableFunc visits XMLTABLE.
func (w *walker) rangeTableFunc(f *sqltext.RangeTableFunc, own *scope) {
	w.saw("RangeTableFunc")
	w.expr(f.Docexpr)
	w.expr(f.Rowexpr)
	w.resTargets(f.Namespaces)
	for _, n := range f.Columns {
		c := n.GetRangeTableFuncCol()
		if c == nil {
			w.refuse(refusal(sqltext.Kind(n)))
			return
		}
		w.saw("RangeTableFuncCol")
		if c.TypeName != nil {
			w.typeName(c.TypeName)
			w.refuseNameType(c.TypeName)
		}
		w.expr(c.Colexpr)
		w.expr(c.Coldefexpr)
	}
	name, _ := w.alias(f.Alias)
	columns := renamedColumns(f.GetAlias().GetColnames())
	// the alias renames the first of them
	for _, n := range f.Columns[min(len(f.GetAlias().GetColnames()), len(f.Columns)):] {
		columns[n.GetRangeTableFuncCol().GetColname()] = true
	}
	own.add(&fromItem{name: name, columns: columns})
}
