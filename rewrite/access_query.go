package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// statement visits one statement.
func (r *reader) statement(stmt *sqltext.Node) {
	switch n := stmt.GetNode().(type) {
	case *sqltext.Node_SelectStmt, *sqltext.Node_InsertStmt, *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt,
		*sqltext.Node_MergeStmt:
		r.useRows(r.query(stmt, nil, nil), shows)
	case *sqltext.Node_PrepareStmt:
		r.statement(n.PrepareStmt.Query)
	case *sqltext.Node_DeclareCursorStmt:
		r.statement(n.DeclareCursorStmt.Query)
	case *sqltext.Node_ExplainStmt:
		r.statement(n.ExplainStmt.Query)
	case *sqltext.Node_ExecuteStmt:
		r.exprs(n.ExecuteStmt.Params, &names{}, shows)
	case *sqltext.Node_CopyStmt:
		r.copyStmt(n.CopyStmt)
	}
}

func (r *reader) copyStmt(c *sqltext.CopyStmt) {
	if c.Relation == nil {
		r.statement(c.Query)
		return
	}
	if c.IsFrom {
		t := r.writeTarget(c.Relation)
		for _, n := range c.Attlist {
			t.read.set[n.GetString_().GetSval()] = true
		}
		if len(c.Attlist) == 0 {
			for _, o := range t.outputs {
				t.read.set[o.name] = true
			}
		}
		r.where(c.WhereClause, &names{items: []*item{t}}, nil)
		return
	}
	t := r.table(c.Relation, nil)
	if t.read == nil {
		r.lost = true
		return
	}
	if len(c.Attlist) == 0 {
		r.use(t.row, shows)
	}
	for _, n := range c.Attlist {
		name := n.GetString_().GetSval()
		t.read.mark(name, shows)
		for _, o := range find([]*item{t}, name) {
			r.use(o, shows)
		}
	}
}

// query visits a statement that may return rows.
func (r *reader) query(n *sqltext.Node, parent *names, with *queriesInSight) *rows {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		return r.selectStmt(kind.SelectStmt, parent, with)
	case *sqltext.Node_InsertStmt:
		return r.insertStmt(kind.InsertStmt, with)
	case *sqltext.Node_UpdateStmt:
		return r.updateStmt(kind.UpdateStmt, with)
	case *sqltext.Node_DeleteStmt:
		return r.deleteStmt(kind.DeleteStmt, with)
	case *sqltext.Node_MergeStmt:
		return r.mergeStmt(kind.MergeStmt, with)
	}
	r.lost = true
	return &rows{}
}

func (r *reader) selectStmt(s *sqltext.SelectStmt, parent *names, with *queriesInSight) *rows {
	if s == nil {
		return &rows{}
	}
	own := &names{parent: parent}
	with = r.with(s.WithClause, parent, with)
	var q *rows
	switch {
	case s.Op != sqltext.SETOP_NONE:
		q = r.union(s, parent, with, nil)
	case len(s.ValuesLists) > 0:
		q = r.values(s, own, with)
	default:
		r.from(s.FromClause, own, with)
		q = r.targets(s.TargetList, own, with)
	}
	r.in(own, with, func() {
		r.where(s.WhereClause, own, everyRead)
		for _, n := range s.DistinctClause {
			if n.GetNode() == nil {
				r.useRows(q, shows)
			} else {
				r.sorted(n, q, s.TargetList, own, false)
			}
		}
		for _, n := range s.GroupClause {
			r.sorted(n, q, s.TargetList, own, true)
		}
		r.expr(s.HavingClause, own, shows)
		r.exprs(s.WindowClause, own, shows)
		for _, n := range s.SortClause {
			r.sorted(n, q, s.TargetList, own, false)
		}
		r.expr(s.LimitOffset, own, shows)
		r.expr(s.LimitCount, own, shows)
	})
	return q
}

// in keeps the WITH queries that expressions see.
func (r *reader) in(_ *names, with *queriesInSight, f func()) {
	outer := r.with_
	r.with_ = with
	f()
	r.with_ = outer
}

// union visits a set operation. into is, of a recursive query, what its own name offers.
func (r *reader) union(s *sqltext.SelectStmt, parent *names, with *queriesInSight, into *rows) *rows {
	left := r.selectStmt(s.Larg, parent, with)
	out := into
	if out == nil {
		out = &rows{}
	}
	for i, o := range left.outputs {
		if i < len(out.outputs) {
			r.pass(out.outputs[i], o)
		} else {
			out.outputs = append(out.outputs, &output{name: o.name, from: []*output{o}})
		}
	}
	if left.rest != nil {
		if out.rest == nil {
			out.rest = &output{}
		}
		r.pass(out.rest, left.rest)
	}
	right := r.selectStmt(s.Rarg, parent, with)
	for i, o := range right.outputs {
		if i < len(out.outputs) && left.rest == nil && right.rest == nil {
			r.pass(out.outputs[i], o)
			continue
		}
		// Which column goes into which is not known.
		if out.rest == nil {
			out.rest = &output{}
		}
		r.pass(out.rest, o)
		for _, into := range out.outputs {
			r.pass(into, o)
		}
	}
	if right.rest != nil {
		if out.rest == nil {
			out.rest = &output{}
		}
		r.pass(out.rest, right.rest)
		for _, into := range out.outputs {
			r.pass(into, right.rest)
		}
	}
	if left.rest != nil { // a column of the left may stand anywhere as well
		for _, into := range out.outputs {
			r.pass(into, left.rest)
		}
	}
	if !s.All || s.Op != sqltext.SETOP_UNION {
		r.useRows(out, shows) // rows are compared: equal ones become one, or meet
	}
	return out
}

func (r *reader) values(s *sqltext.SelectStmt, own *names, with *queriesInSight) *rows {
	q := &rows{}
	r.in(own, with, func() {
		for _, row := range s.ValuesLists {
			for i, n := range row.GetList().GetItems() {
				r.expr(n, own, shows)
				if i == len(q.outputs) {
					q.outputs = append(q.outputs, &output{name: "column" + itoa(i+1)})
				}
				r.pass(q.outputs[i], &output{expr: n, scope: own})
			}
		}
	})
	return q
}

// with visits WITH queries.
func (r *reader) with(c *sqltext.WithClause, parent *names, outer *queriesInSight) *queriesInSight {
	if c == nil {
		return outer
	}
	own := &queriesInSight{parent: outer, names: map[string]*rows{}}
	entries := make([]*rows, len(c.Ctes))
	if c.Recursive {
		for i, n := range c.Ctes {
			entries[i] = recursiveRows(n.GetCommonTableExpr())
			own.names[n.GetCommonTableExpr().GetCtename()] = entries[i]
		}
	}
	for i, n := range c.Ctes {
		cte := n.GetCommonTableExpr()
		var q *rows
		if s := cte.GetCtequery().GetSelectStmt(); c.Recursive && s != nil && s.Op != sqltext.SETOP_NONE &&
			s.WithClause == nil && len(s.SortClause) == 0 && s.LimitCount == nil && s.LimitOffset == nil {
			q = r.union(s, parent, own, nil)
		} else {
			q = r.query(cte.GetCtequery(), parent, own)
		}
		var marks []*output
		if cycle := cte.GetCycleClause(); cycle != nil {
			r.expr(cycle.CycleMarkValue, &names{}, shows)
			r.expr(cycle.CycleMarkDefault, &names{}, shows)
		}
		if cte.GetCycleClause() != nil || cte.GetSearchClause() != nil { // columns are added, of the values of others
			r.useRows(q, shows)
			marks = append(marks, &output{from: append([]*output{}, q.outputs...)})
		}
		q = r.renamed(q, cte.GetAliascolnames())
		if len(marks) > 0 {
			if q.rest != nil {
				marks[0].from = append(marks[0].from, q.rest)
			}
			q = &rows{outputs: q.outputs, rest: marks[0]}
		}
		if entries[i] != nil { // those who have named it already get what it offers
			entry := entries[i]
			for j, o := range q.outputs {
				if j < len(entry.outputs) {
					r.pass(entry.outputs[j], o)
				}
			}
			for _, o := range q.outputs {
				r.pass(entry.rest, o)
			}
			if q.rest != nil {
				r.pass(entry.rest, q.rest)
				for _, o := range entry.outputs {
					r.pass(o, q.rest)
				}
			}
			continue
		}
		own.names[cte.GetCtename()] = q
	}
	return own
}

// recursiveRows are what a query of WITH RECURSIVE offers before it was visited: the names that are plain to see, and
// others.
func recursiveRows(cte *sqltext.CommonTableExpr) *rows {
	q := &rows{rest: &output{}}
	for _, n := range cte.GetAliascolnames() {
		q.outputs = append(q.outputs, &output{name: n.GetString_().GetSval()})
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
		if isStar(t.GetVal()) || t.GetVal().GetAIndirection() != nil || t.GetName() == "" && t.GetVal().GetColumnRef() == nil {
			break
		}
		q.outputs = append(q.outputs, &output{name: outputName(t)})
	}
	return q
}

// renamed gives columns the names of an alias.
func (r *reader) renamed(q *rows, aliases []*sqltext.Node) *rows {
	if len(aliases) == 0 {
		return q
	}
	out := &rows{rest: q.rest}
	for i, o := range q.outputs {
		name := o.name
		if i < len(aliases) {
			name = aliases[i].GetString_().GetSval()
		}
		out.outputs = append(out.outputs, &output{name: name, from: []*output{o}})
	}
	for i := len(q.outputs); i < len(aliases) && q.rest != nil; i++ {
		out.outputs = append(out.outputs, &output{name: aliases[i].GetString_().GetSval(), from: []*output{q.rest}})
	}
	if q.rest != nil && len(q.outputs) > 0 { // further columns may come before those that are known
		for _, o := range out.outputs {
			o.from = append(o.from, q.rest)
		}
	}
	return out
}

// maxCopies bounds the outputs that stars make. Beyond it columns are not told apart.
const maxStarOutputs = 100_000

// targets visits what a SELECT or RETURNING returns. A column that is only passed on is marked when it is used.
func (r *reader) targets(list []*sqltext.Node, own *names, with *queriesInSight) *rows {
	q := &rows{}
	r.in(own, with, func() {
		for _, n := range list {
			t := n.GetResTarget()
			val := t.GetVal()
			switch c := val.GetColumnRef(); {
			case c != nil && isStar(val):
				for _, it := range r.starred(c, own) {
					if r.copies += len(it.outputs); r.copies > maxStarOutputs {
						r.useRows(&it.rows, shows|compared)
						r.use(it.row, shows|compared)
						continue
					}
					for _, o := range it.outputs {
						o.idle()
						q.outputs = append(q.outputs, &output{name: o.name, from: []*output{o}})
					}
					if it.rest != nil || it.outputs == nil {
						if q.rest == nil {
							q.rest = &output{}
						}
						it.row.idle()
						r.pass(q.rest, it.row)
						r.pass(q.rest, it.rest)
					}
				}
			case c != nil:
				found := r.column(c, own)
				for _, o := range found {
					o.idle()
				}
				q.outputs = append(q.outputs, &output{name: outputName(t), named: true, from: found})
			default:
				r.expr(val, own, shows)
				o := &output{name: outputName(t), named: t.Name != "", expr: val, scope: own}
				if parts := val.GetAIndirection().GetIndirection(); len(parts) > 0 && parts[len(parts)-1].GetAStar() != nil {
					if q.rest == nil {
						q.rest = &output{}
					}
					r.pass(q.rest, o)
					continue
				}
				q.outputs = append(q.outputs, o)
			}
		}
	})
	return q
}

// starred are the items that * or x.* means.
func (r *reader) starred(c *sqltext.ColumnRef, own *names) []*item {
	switch len(c.Fields) {
	case 1:
		return own.items
	case 2:
		if found := own.called(c.Fields[0].GetString_().GetSval()); len(found) > 0 {
			return found
		}
	case 3:
		if found := r.qualifiedItems(c, own); len(found) > 0 {
			return found
		}
	}
	r.everything(own, shows|compared)
	return nil
}

// sorted visits an item of ORDER BY, GROUP BY or DISTINCT ON: the number or the name of a result column, or an
// expression.
func (r *reader) sorted(n *sqltext.Node, q *rows, targets []*sqltext.Node, own *names, group bool) {
	switch {
	case n.GetSortBy() != nil:
		r.sorted(n.GetSortBy().GetNode(), q, targets, own, group)
		return
	case n.GetGroupingSet() != nil:
		for _, part := range n.GetGroupingSet().GetContent() {
			r.sorted(part, q, targets, own, group)
		}
		return
	case group && n.GetRowExpr() != nil:
		for _, part := range n.GetRowExpr().GetArgs() {
			r.sorted(part, q, targets, own, group)
		}
		return
	case n.GetList() != nil:
		for _, part := range n.GetList().GetItems() {
			r.sorted(part, q, targets, own, group)
		}
		return
	case n.GetAConst() != nil:
		if i := int(n.GetAConst().GetIval().GetIval()); q.rest == nil && i > 0 && i <= len(q.outputs) {
			r.use(q.outputs[i-1], shows)
		} else {
			r.useRows(q, shows)
		}
		return
	}
	c := n.GetColumnRef()
	if c == nil || len(c.Fields) != 1 || isStar(n) {
		r.expr(n, own, shows)
		return
	}
	name := c.Fields[0].GetString_().GetSval()
	matched := r.useNamed(q, name, targets != nil)
	switch {
	case matched && (!group || !own.has(name)): // GROUP BY looks for a column of FROM first
	case own.knows(name):
		r.expr(n, own, shows)
	default: // a name that PostgreSQL gives a result column, or none
		r.useRows(q, shows)
	}
}

// has tells whether an item of this level has, or may have, a column of that name.
func (s *names) has(name string) bool { return len(find(s.items, name)) > 0 || open(s.items) }

// knows tells whether a name may be a column, or a row, of this level or one around it.
func (s *names) knows(name string) bool {
	for ; s != nil; s = s.parent {
		if s.has(name) || len(s.called(name)) > 0 {
			return true
		}
	}
	return false
}

func (r *reader) writeTarget(rv *sqltext.RangeVar) *item {
	before := len(r.reads)
	t := r.table(rv, nil)
	if t.read == nil {
		r.lost = true
		t.read = r.mention(catalog.Name{}, "", nil)
	}
	for _, one := range r.reads[before:] { // of a view, what is written through it as well
		one.written = true
	}
	return t
}

func (r *reader) insertStmt(s *sqltext.InsertStmt, with *queriesInSight) *rows {
	with = r.with(s.WithClause, nil, with)
	t := r.writeTarget(s.Relation)
	own := &names{items: []*item{t}}
	r.in(own, with, func() { r.places(t, s.Cols) })
	if source := s.GetSelectStmt().GetSelectStmt(); source != nil {
		if len(s.Cols) == 0 {
			width, known := sourceWidth(source)
			for i, o := range t.outputs {
				if !known || i < width {
					t.read.set[o.name] = true
				}
			}
		}
		r.useRows(r.selectStmt(source, nil, with), shows)
	}
	if c := s.OnConflictClause; c != nil {
		r.in(own, with, func() {
			for _, n := range c.GetInfer().GetIndexElems() {
				r.expr(n.GetIndexElem().GetExpr(), own, filters)
			}
			r.expr(c.GetInfer().GetWhereClause(), own, filters)
			excluded := &item{name: "excluded", row: &output{}}
			for _, o := range t.outputs {
				excluded.outputs = append(excluded.outputs, &output{name: o.name})
			}
			inner := &names{items: []*item{t, excluded}}
			r.setList(t, c.TargetList, inner)
			r.where(c.WhereClause, inner, nil)
		})
	}
	return r.targets(s.ReturningList, own, with)
}

// places visits the columns that an INSERT names, of which one may have a subscript that is an expression.
func (r *reader) places(t *item, list []*sqltext.Node) {
	for _, n := range list {
		t.read.set[n.GetResTarget().GetName()] = true
		for _, part := range n.GetResTarget().GetIndirection() {
			r.exprs([]*sqltext.Node{part.GetAIndices().GetLidx(), part.GetAIndices().GetUidx()}, &names{}, shows)
		}
	}
}

func (r *reader) setList(t *item, list []*sqltext.Node, own *names) {
	for _, n := range list {
		target := n.GetResTarget()
		t.read.set[target.GetName()] = true
		for _, part := range target.GetIndirection() {
			r.exprs([]*sqltext.Node{part.GetAIndices().GetLidx(), part.GetAIndices().GetUidx()}, own, shows)
		}
		if m := target.GetVal().GetMultiAssignRef(); m != nil {
			r.expr(m.Source, own, shows)
		} else {
			r.expr(target.GetVal(), own, shows)
		}
	}
}

func (r *reader) updateStmt(s *sqltext.UpdateStmt, with *queriesInSight) *rows {
	with = r.with(s.WithClause, nil, with)
	t := r.writeTarget(s.Relation)
	own := &names{items: []*item{t}}
	r.from(s.FromClause, own, with)
	r.in(own, with, func() {
		r.setList(t, s.TargetList, own)
		r.where(s.WhereClause, own, everyRead)
	})
	return r.targets(s.ReturningList, own, with)
}

func (r *reader) deleteStmt(s *sqltext.DeleteStmt, with *queriesInSight) *rows {
	with = r.with(s.WithClause, nil, with)
	t := r.writeTarget(s.Relation)
	own := &names{items: []*item{t}}
	r.from(s.UsingClause, own, with)
	r.in(own, with, func() { r.where(s.WhereClause, own, everyRead) })
	return r.targets(s.ReturningList, own, with)
}

func (r *reader) mergeStmt(s *sqltext.MergeStmt, with *queriesInSight) *rows {
	with = r.with(s.WithClause, nil, with)
	t := r.writeTarget(s.Relation)
	own := &names{items: []*item{t}}
	r.from([]*sqltext.Node{s.SourceRelation}, own, with)
	r.in(own, with, func() {
		r.where(s.JoinCondition, own, nil)
		for _, n := range s.MergeWhenClauses {
			c := n.GetMergeWhenClause()
			r.where(c.GetCondition(), own, nil)
			switch c.GetCommandType() {
			case sqltext.CMD_UPDATE:
				r.setList(t, c.TargetList, own)
			case sqltext.CMD_INSERT:
				r.places(t, c.GetTargetList())
				r.exprs(c.GetValues(), own, shows)
			}
		}
	})
	return &rows{}
}
