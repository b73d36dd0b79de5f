package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visitStatement visits one statement.
func (r *usageAnalysis) visitStatement(stmt *sqltext.Node) {
	switch n := stmt.GetNode().(type) {
	case *sqltext.Node_SelectStmt, *sqltext.Node_InsertStmt, *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt,
		*sqltext.Node_MergeStmt:
		r.markAllUsed(r.visitQuery(stmt, nil, nil), usageOutput)
	case *sqltext.Node_PrepareStmt:
		r.visitStatement(n.PrepareStmt.Query)
	case *sqltext.Node_DeclareCursorStmt:
		r.visitStatement(n.DeclareCursorStmt.Query)
	case *sqltext.Node_ExplainStmt:
		r.visitStatement(n.ExplainStmt.Query)
	case *sqltext.Node_ExecuteStmt:
		r.visitExprs(n.ExecuteStmt.Params, &usageScope{}, usageOutput)
	case *sqltext.Node_CopyStmt:
		r.visitCopy(n.CopyStmt)
	}
}

func (r *usageAnalysis) visitCopy(c *sqltext.CopyStmt) {
	if c.Relation == nil {
		r.visitStatement(c.Query)
		return
	}
	if c.IsFrom {
		t := r.writeTarget(c.Relation)
		for _, n := range c.Attlist {
			t.usage.writtenColumns[n.GetString_().GetSval()] = true
		}
		if len(c.Attlist) == 0 {
			for _, o := range t.outputs {
				t.usage.writtenColumns[o.name] = true
			}
		}
		r.visitWhere(c.WhereClause, &usageScope{items: []*rangeItem{t}}, nil)
		return
	}
	t := r.tableItem(c.Relation, nil)
	if t.usage == nil {
		r.incomplete = true
		return
	}
	if len(c.Attlist) == 0 {
		r.markUsed(t.wholeRow, usageOutput)
	}
	for _, n := range c.Attlist {
		name := n.GetString_().GetSval()
		t.usage.markUsed(name, usageOutput)
		for _, o := range columnsNamed([]*rangeItem{t}, name) {
			r.markUsed(o, usageOutput)
		}
	}
}

// visitQuery visits a statement that may return rows.
func (r *usageAnalysis) visitQuery(n *sqltext.Node, parent *usageScope, ctes *cteLevel) *resultColumns {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		return r.visitSelect(kind.SelectStmt, parent, ctes)
	case *sqltext.Node_InsertStmt:
		return r.visitInsert(kind.InsertStmt, ctes)
	case *sqltext.Node_UpdateStmt:
		return r.visitUpdate(kind.UpdateStmt, ctes)
	case *sqltext.Node_DeleteStmt:
		return r.visitDelete(kind.DeleteStmt, ctes)
	case *sqltext.Node_MergeStmt:
		return r.visitMerge(kind.MergeStmt, ctes)
	}
	r.incomplete = true
	return &resultColumns{}
}

func (r *usageAnalysis) visitSelect(s *sqltext.SelectStmt, parent *usageScope, ctes *cteLevel) *resultColumns {
	if s == nil {
		return &resultColumns{}
	}
	ownScope := &usageScope{parent: parent}
	ctes = r.visitWith(s.WithClause, parent, ctes)
	var q *resultColumns
	switch {
	case s.Op != sqltext.SETOP_NONE:
		q = r.visitUnion(s, parent, ctes, nil)
	case len(s.ValuesLists) > 0:
		q = r.visitValues(s, ownScope, ctes)
	default:
		r.visitFrom(s.FromClause, ownScope, ctes)
		q = r.visitTargets(s.TargetList, ownScope, ctes)
	}
	r.withCTEs(ownScope, ctes, func() {
		r.visitWhere(s.WhereClause, ownScope, acceptsAny)
		for _, n := range s.DistinctClause {
			if n.GetNode() == nil {
				r.markAllUsed(q, usageOutput)
			} else {
				r.visitSortOrGroupItem(n, q, s.TargetList, ownScope, false)
			}
		}
		for _, n := range s.GroupClause {
			r.visitSortOrGroupItem(n, q, s.TargetList, ownScope, true)
		}
		r.visitExpr(s.HavingClause, ownScope, usageOutput)
		r.visitExprs(s.WindowClause, ownScope, usageOutput)
		for _, n := range s.SortClause {
			r.visitSortOrGroupItem(n, q, s.TargetList, ownScope, false)
		}
		r.visitExpr(s.LimitOffset, ownScope, usageOutput)
		r.visitExpr(s.LimitCount, ownScope, usageOutput)
	})
	return q
}

// withCTEs calls f with ctes as the WITH queries that expressions can name.
func (r *usageAnalysis) withCTEs(_ *usageScope, ctes *cteLevel, f func()) {
	outer := r.ctes
	r.ctes = ctes
	f()
	r.ctes = outer
}

// visitUnion visits UNION, INTERSECT or EXCEPT. If into is set, it holds the columns of a recursive query, and the
// operation's columns are added to them.
func (r *usageAnalysis) visitUnion(s *sqltext.SelectStmt, parent *usageScope, ctes *cteLevel,
	into *resultColumns) *resultColumns {
	left := r.visitSelect(s.Larg, parent, ctes)
	out := into
	if out == nil {
		out = &resultColumns{}
	}
	for i, o := range left.outputs {
		if i < len(out.outputs) {
			r.addSource(out.outputs[i], o)
		} else {
			out.outputs = append(out.outputs, &outputColumn{name: o.name, sources: []*outputColumn{o}})
		}
	}
	if left.unknown != nil {
		if out.unknown == nil {
			out.unknown = &outputColumn{}
		}
		r.addSource(out.unknown, left.unknown)
	}
	right := r.visitSelect(s.Rarg, parent, ctes)
	for i, o := range right.outputs {
		if i < len(out.outputs) && left.unknown == nil && right.unknown == nil {
			r.addSource(out.outputs[i], o)
			continue
		}
		// it is not known which column of the right side goes into which output
		if out.unknown == nil {
			out.unknown = &outputColumn{}
		}
		r.addSource(out.unknown, o)
		for _, column := range out.outputs {
			r.addSource(column, o)
		}
	}
	if right.unknown != nil {
		if out.unknown == nil {
			out.unknown = &outputColumn{}
		}
		r.addSource(out.unknown, right.unknown)
		for _, column := range out.outputs {
			r.addSource(column, right.unknown)
		}
	}
	if left.unknown != nil { // a column of the left side may stand at any position
		for _, column := range out.outputs {
			r.addSource(column, left.unknown)
		}
	}
	if !s.All || s.Op != sqltext.SETOP_UNION {
		r.markAllUsed(out, usageOutput) // the operation compares whole rows, so the result depends on all columns
	}
	return out
}

// visitValues visits a VALUES list.
func (r *usageAnalysis) visitValues(s *sqltext.SelectStmt, ownScope *usageScope, ctes *cteLevel) *resultColumns {
	q := &resultColumns{}
	r.withCTEs(ownScope, ctes, func() {
		for _, row := range s.ValuesLists {
			for i, n := range row.GetList().GetItems() {
				r.visitExpr(n, ownScope, usageOutput)
				if i == len(q.outputs) {
					q.outputs = append(q.outputs, &outputColumn{name: "column" + intText(i+1)})
				}
				r.addSource(q.outputs[i], &outputColumn{expr: n, scope: ownScope})
			}
		}
	})
	return q
}

// visitWith visits the queries of a WITH clause.
func (r *usageAnalysis) visitWith(c *sqltext.WithClause, parent *usageScope, outer *cteLevel) *cteLevel {
	if c == nil {
		return outer
	}
	ownLevel := &cteLevel{parent: outer, queries: map[string]*resultColumns{}}
	entries := make([]*resultColumns, len(c.Ctes))
	if c.Recursive {
		for i, n := range c.Ctes {
			entries[i] = recursiveColumns(n.GetCommonTableExpr())
			ownLevel.queries[n.GetCommonTableExpr().GetCtename()] = entries[i]
		}
	}
	for i, n := range c.Ctes {
		cte := n.GetCommonTableExpr()
		var q *resultColumns
		if s := cte.GetCtequery().GetSelectStmt(); c.Recursive && s != nil && s.Op != sqltext.SETOP_NONE &&
			s.WithClause == nil && len(s.SortClause) == 0 && s.LimitCount == nil && s.LimitOffset == nil {
			q = r.visitUnion(s, parent, ownLevel, nil)
		} else {
			q = r.visitQuery(cte.GetCtequery(), parent, ownLevel)
		}
		var marks []*outputColumn
		if cycle := cte.GetCycleClause(); cycle != nil {
			r.visitExpr(cycle.CycleMarkValue, &usageScope{}, usageOutput)
			r.visitExpr(cycle.CycleMarkDefault, &usageScope{}, usageOutput)
		}
		// the columns that SEARCH and CYCLE add are made from the values of the query's own columns
		if cte.GetCycleClause() != nil || cte.GetSearchClause() != nil {
			r.markAllUsed(q, usageOutput)
			marks = append(marks, &outputColumn{sources: append([]*outputColumn{}, q.outputs...)})
		}
		q = r.renameColumns(q, cte.GetAliascolnames())
		if len(marks) > 0 {
			if q.unknown != nil {
				marks[0].sources = append(marks[0].sources, q.unknown)
			}
			q = &resultColumns{outputs: q.outputs, unknown: marks[0]}
		}
		// expressions that name the recursive query already hold entries[i], which gets the query's columns now
		if entries[i] != nil {
			entry := entries[i]
			for j, o := range q.outputs {
				if j < len(entry.outputs) {
					r.addSource(entry.outputs[j], o)
				}
			}
			for _, o := range q.outputs {
				r.addSource(entry.unknown, o)
			}
			if q.unknown != nil {
				r.addSource(entry.unknown, q.unknown)
				for _, o := range entry.outputs {
					r.addSource(o, q.unknown)
				}
			}
			continue
		}
		ownLevel.queries[cte.GetCtename()] = q
	}
	return ownLevel
}

// recursiveColumns returns the columns of a WITH RECURSIVE query before the query is visited. They are the columns
// whose names the text shows, and one for the unknown others.
func recursiveColumns(cte *sqltext.CommonTableExpr) *resultColumns {
	q := &resultColumns{unknown: &outputColumn{}}
	for _, n := range cte.GetAliascolnames() {
		q.outputs = append(q.outputs, &outputColumn{name: n.GetString_().GetSval()})
	}
	if len(q.outputs) > 0 {
		return q
	}
	s := cte.GetCtequery().GetSelectStmt()
	for s != nil && s.Op != sqltext.SETOP_NONE {
		s = s.Larg
	}
	for _, n := range s.GetTargetList() {
		t := n.GetResTarget()
		if isStar(t.GetVal()) || t.GetVal().GetAIndirection() != nil ||
			t.GetName() == "" && t.GetVal().GetColumnRef() == nil {
			break
		}
		q.outputs = append(q.outputs, &outputColumn{name: outputName(t)})
	}
	return q
}

// renameColumns gives the columns of q the names in an alias such as AS x (a, b).
func (r *usageAnalysis) renameColumns(q *resultColumns, aliases []*sqltext.Node) *resultColumns {
	if len(aliases) == 0 {
		return q
	}
	result := &resultColumns{unknown: q.unknown}
	for i, o := range q.outputs {
		name := o.name
		if i < len(aliases) {
			name = aliases[i].GetString_().GetSval()
		}
		result.outputs = append(result.outputs, &outputColumn{name: name, sources: []*outputColumn{o}})
	}
	for i := len(q.outputs); i < len(aliases) && q.unknown != nil; i++ {
		result.outputs = append(result.outputs,
			&outputColumn{name: aliases[i].GetString_().GetSval(), sources: []*outputColumn{q.unknown}})
	}
	if q.unknown != nil && len(q.outputs) > 0 { // columns whose names are not known may stand before the others
		for _, o := range result.outputs {
			o.sources = append(o.sources, q.unknown)
		}
	}
	return result
}

// maxStarOutputs bounds how many output columns stars may make. Beyond the bound, all columns of a star count as one
// unknown column.
const maxStarOutputs = 100_000

// visitTargets visits the target list of a SELECT or RETURNING. A column that the list returns unchanged is marked as
// used only when something uses the output.
func (r *usageAnalysis) visitTargets(list []*sqltext.Node, ownScope *usageScope, ctes *cteLevel) *resultColumns {
	q := &resultColumns{}
	r.withCTEs(ownScope, ctes, func() {
		for _, n := range list {
			t := n.GetResTarget()
			val := t.GetVal()
			switch c := val.GetColumnRef(); {
			case c != nil && isStar(val):
				for _, item := range r.starItems(c, ownScope) {
					if r.starOutputs += len(item.outputs); r.starOutputs > maxStarOutputs {
						r.markAllUsed(&item.resultColumns, usageOutput|usageSimilarity)
						r.markUsed(item.wholeRow, usageOutput|usageSimilarity)
						continue
					}
					for _, o := range item.outputs {
						o.noteUnused()
						q.outputs = append(q.outputs, &outputColumn{name: o.name, sources: []*outputColumn{o}})
					}
					if item.unknown != nil || item.outputs == nil {
						if q.unknown == nil {
							q.unknown = &outputColumn{}
						}
						item.wholeRow.noteUnused()
						r.addSource(q.unknown, item.wholeRow)
						r.addSource(q.unknown, item.unknown)
					}
				}
			case c != nil:
				found := r.resolveColumn(c, ownScope)
				for _, o := range found {
					o.noteUnused()
				}
				q.outputs = append(q.outputs, &outputColumn{name: outputName(t), hasOwnName: true, sources: found})
			default:
				r.visitExpr(val, ownScope, usageOutput)
				o := &outputColumn{name: outputName(t), hasOwnName: t.Name != "", expr: val, scope: ownScope}
				if parts := val.GetAIndirection().GetIndirection(); len(parts) > 0 && parts[len(parts)-1].GetAStar() != nil {
					if q.unknown == nil {
						q.unknown = &outputColumn{}
					}
					r.addSource(q.unknown, o)
					continue
				}
				q.outputs = append(q.outputs, o)
			}
		}
	})
	return q
}

// starItems returns the items whose columns * or x.* means.
func (r *usageAnalysis) starItems(c *sqltext.ColumnRef, ownScope *usageScope) []*rangeItem {
	switch len(c.Fields) {
	case 1:
		return ownScope.items
	case 2:
		if found := ownScope.itemsNamed(c.Fields[0].GetString_().GetSval()); len(found) > 0 {
			return found
		}
	case 3:
		if found := r.qualifiedItems(c, ownScope); len(found) > 0 {
			return found
		}
	}
	r.markEverything(ownScope, usageOutput|usageSimilarity)
	return nil
}

// visitSortOrGroupItem visits an item of ORDER BY, GROUP BY or DISTINCT ON: the number or the name of a result column,
// or an expression.
func (r *usageAnalysis) visitSortOrGroupItem(n *sqltext.Node, q *resultColumns, targets []*sqltext.Node,
	ownScope *usageScope,
	group bool) {
	switch {
	case n.GetSortBy() != nil:
		r.visitSortOrGroupItem(n.GetSortBy().GetNode(), q, targets, ownScope, group)
		return
	case n.GetGroupingSet() != nil:
		for _, part := range n.GetGroupingSet().GetContent() {
			r.visitSortOrGroupItem(part, q, targets, ownScope, group)
		}
		return
	case group && n.GetRowExpr() != nil:
		for _, part := range n.GetRowExpr().GetArgs() {
			r.visitSortOrGroupItem(part, q, targets, ownScope, group)
		}
		return
	case n.GetList() != nil:
		for _, part := range n.GetList().GetItems() {
			r.visitSortOrGroupItem(part, q, targets, ownScope, group)
		}
		return
	case n.GetAConst() != nil:
		if i := int(n.GetAConst().GetIval().GetIval()); q.unknown == nil && i > 0 && i <= len(q.outputs) {
			r.markUsed(q.outputs[i-1], usageOutput)
		} else {
			r.markAllUsed(q, usageOutput)
		}
		return
	}
	c := n.GetColumnRef()
	if c == nil || len(c.Fields) != 1 || isStar(n) {
		r.visitExpr(n, ownScope, usageOutput)
		return
	}
	name := c.Fields[0].GetString_().GetSval()
	matched := r.markNamedUsed(q, name, targets != nil)
	switch {
	// GROUP BY takes a name for a column of FROM before it takes it for a result column
	case matched && (!group || !ownScope.hasColumn(name)):
	case ownScope.mayResolve(name):
		r.visitExpr(n, ownScope, usageOutput)
	default: // the name is one that PostgreSQL itself gives to a result column, or names nothing
		r.markAllUsed(q, usageOutput)
	}
}

// hasColumn tells whether an item of this scope has, or may have, a column of the given name.
func (s *usageScope) hasColumn(name string) bool {
	return len(columnsNamed(s.items, name)) > 0 || hasUnknownColumns(s.items)
}

// mayResolve tells whether a name may mean a column or a row of this scope or a scope around it.
func (s *usageScope) mayResolve(name string) bool {
	for ; s != nil; s = s.parent {
		if s.hasColumn(name) || len(s.itemsNamed(name)) > 0 {
			return true
		}
	}
	return false
}

func (r *usageAnalysis) writeTarget(rv *sqltext.RangeVar) *rangeItem {
	countBefore := len(r.uses)
	t := r.tableItem(rv, nil)
	if t.usage == nil {
		r.incomplete = true
		t.usage = r.addRelation(catalog.Name{}, "", nil)
	}
	for _, use := range r.uses[countBefore:] { // the statement writes the tables under the view, too
		use.isTarget = true
	}
	return t
}

func (r *usageAnalysis) visitInsert(s *sqltext.InsertStmt, ctes *cteLevel) *resultColumns {
	ctes = r.visitWith(s.WithClause, nil, ctes)
	t := r.writeTarget(s.Relation)
	ownScope := &usageScope{items: []*rangeItem{t}}
	r.withCTEs(ownScope, ctes, func() { r.visitTargetColumns(t, s.Cols) })
	if source := s.GetSelectStmt().GetSelectStmt(); source != nil {
		if len(s.Cols) == 0 {
			width, isKnown := sourceWidth(source)
			for i, o := range t.outputs {
				if !isKnown || i < width {
					t.usage.writtenColumns[o.name] = true
				}
			}
		}
		r.markAllUsed(r.visitSelect(source, nil, ctes), usageOutput)
	}
	if c := s.OnConflictClause; c != nil {
		r.withCTEs(ownScope, ctes, func() {
			for _, n := range c.GetInfer().GetIndexElems() {
				r.visitExpr(n.GetIndexElem().GetExpr(), ownScope, usageFilter)
			}
			r.visitExpr(c.GetInfer().GetWhereClause(), ownScope, usageFilter)
			excluded := &rangeItem{name: "excluded", wholeRow: &outputColumn{}}
			for _, o := range t.outputs {
				excluded.outputs = append(excluded.outputs, &outputColumn{name: o.name})
			}
			inner := &usageScope{items: []*rangeItem{t, excluded}}
			r.visitSetList(t, c.TargetList, inner)
			r.visitWhere(c.WhereClause, inner, nil)
		})
	}
	return r.visitTargets(s.ReturningList, ownScope, ctes)
}

// visitTargetColumns notes the columns that an INSERT names, and visits the expressions in their subscripts.
func (r *usageAnalysis) visitTargetColumns(t *rangeItem, list []*sqltext.Node) {
	for _, n := range list {
		t.usage.writtenColumns[n.GetResTarget().GetName()] = true
		for _, part := range n.GetResTarget().GetIndirection() {
			r.visitExprs([]*sqltext.Node{part.GetAIndices().GetLidx(), part.GetAIndices().GetUidx()}, &usageScope{}, usageOutput)
		}
	}
}

func (r *usageAnalysis) visitSetList(t *rangeItem, list []*sqltext.Node, ownScope *usageScope) {
	for _, n := range list {
		target := n.GetResTarget()
		t.usage.writtenColumns[target.GetName()] = true
		for _, part := range target.GetIndirection() {
			r.visitExprs([]*sqltext.Node{part.GetAIndices().GetLidx(), part.GetAIndices().GetUidx()}, ownScope, usageOutput)
		}
		if m := target.GetVal().GetMultiAssignRef(); m != nil {
			r.visitExpr(m.Source, ownScope, usageOutput)
		} else {
			r.visitExpr(target.GetVal(), ownScope, usageOutput)
		}
	}
}

func (r *usageAnalysis) visitUpdate(s *sqltext.UpdateStmt, ctes *cteLevel) *resultColumns {
	ctes = r.visitWith(s.WithClause, nil, ctes)
	t := r.writeTarget(s.Relation)
	ownScope := &usageScope{items: []*rangeItem{t}}
	r.visitFrom(s.FromClause, ownScope, ctes)
	r.withCTEs(ownScope, ctes, func() {
		r.visitSetList(t, s.TargetList, ownScope)
		r.visitWhere(s.WhereClause, ownScope, acceptsAny)
	})
	return r.visitTargets(s.ReturningList, ownScope, ctes)
}

func (r *usageAnalysis) visitDelete(s *sqltext.DeleteStmt, ctes *cteLevel) *resultColumns {
	ctes = r.visitWith(s.WithClause, nil, ctes)
	t := r.writeTarget(s.Relation)
	ownScope := &usageScope{items: []*rangeItem{t}}
	r.visitFrom(s.UsingClause, ownScope, ctes)
	r.withCTEs(ownScope, ctes, func() { r.visitWhere(s.WhereClause, ownScope, acceptsAny) })
	return r.visitTargets(s.ReturningList, ownScope, ctes)
}

func (r *usageAnalysis) visitMerge(s *sqltext.MergeStmt, ctes *cteLevel) *resultColumns {
	ctes = r.visitWith(s.WithClause, nil, ctes)
	t := r.writeTarget(s.Relation)
	ownScope := &usageScope{items: []*rangeItem{t}}
	r.visitFrom([]*sqltext.Node{s.SourceRelation}, ownScope, ctes)
	r.withCTEs(ownScope, ctes, func() {
		r.visitWhere(s.JoinCondition, ownScope, nil)
		for _, n := range s.MergeWhenClauses {
			c := n.GetMergeWhenClause()
			r.visitWhere(c.GetCondition(), ownScope, nil)
			switch c.GetCommandType() {
			case sqltext.CMD_UPDATE:
				r.visitSetList(t, c.TargetList, ownScope)
			case sqltext.CMD_INSERT:
				r.visitTargetColumns(t, c.GetTargetList())
				r.visitExprs(c.GetValues(), ownScope, usageOutput)
			}
		}
	})
	return &resultColumns{}
}
