package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// What a statement writes meets nothing: each value goes into a column of its own, which has its collation whatever the
// value's was, and what compares columns there (keys, checks, policies) is not of the text. Conditions and values are
// expressions as those of queries are.

func (m *meeting) insertStmt(n *sqltext.InsertStmt) {
	m.with(n.WithClause)
	if n.SelectStmt != nil { // nobody names its columns
		m.selectStmt(n.SelectStmt.GetSelectStmt(), nil)
	}
	m.depth++
	defer func() { m.depth-- }()
	m.message(n.Relation, m.spot())
	m.set(n.Cols)
	if c := n.OnConflictClause; c != nil {
		m.rows["excluded"] = true
		for _, elem := range c.GetInfer().GetIndexElems() {
			m.apart(elem.GetIndexElem().GetExpr())
		}
		m.apart(c.GetInfer().GetWhereClause(), c.WhereClause)
		m.set(c.TargetList)
	}
	m.returning(n.ReturningList)
}

func (m *meeting) updateStmt(n *sqltext.UpdateStmt) {
	m.with(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.message(n.Relation, m.spot())
	m.apart(n.FromClause...)
	m.set(n.TargetList)
	m.apart(n.WhereClause)
	m.returning(n.ReturningList)
}

func (m *meeting) deleteStmt(n *sqltext.DeleteStmt) {
	m.with(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.message(n.Relation, m.spot())
	m.apart(n.UsingClause...)
	m.apart(n.WhereClause)
	m.returning(n.ReturningList)
}

func (m *meeting) mergeStmt(n *sqltext.MergeStmt) {
	m.with(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.message(n.Relation, m.spot())
	m.apart(n.SourceRelation, n.JoinCondition)
	for _, node := range n.MergeWhenClauses {
		when := node.GetMergeWhenClause()
		m.apart(when.GetCondition())
		m.set(when.GetTargetList())
		m.apart(when.GetValues()...)
	}
}

func (m *meeting) with(c *sqltext.WithClause) {
	m.depth++
	defer func() { m.depth-- }()
	m.apart(c.GetCtes()...)
}

// set visits columns that are set, and what to. What several are set to stands with each of them.
func (m *meeting) set(targets []*sqltext.Node) {
	for _, n := range targets {
		t := n.GetResTarget()
		m.apart(t.GetIndirection()...)
		source := t.GetVal().GetMultiAssignRef().GetSource()
		switch {
		case source.GetSubLink() != nil:
			m.selectStmt(source.GetSubLink().GetSubselect().GetSelectStmt(), nil)
		case source.GetRowExpr() != nil:
			m.apart(source.GetRowExpr().Args...)
		default:
			m.apart(t.GetVal())
		}
	}
}

// returning visits what is returned, where old and new are rows of the table as of PostgreSQL 18.
func (m *meeting) returning(list []*sqltext.Node) {
	if len(list) > 0 {
		m.rows["old"], m.rows["new"] = true, true
	}
	m.targets(list, false)
}
