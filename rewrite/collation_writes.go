package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// Values that a statement writes meet no others. Each goes into a column of its own, and takes its collation. What
// compares columns there (keys, checks, policies) is not of the text. Conditions and values are expressions like those
// of queries.

func (m *collationAnalysis) insertStmt(n *sqltext.InsertStmt) {
	m.with(n.WithClause)
	if n.SelectStmt != nil { // the statement cannot name its columns
		m.selectStmt(n.SelectStmt.GetSelectStmt(), nil)
	}
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.setTargets(n.Cols)
	if c := n.OnConflictClause; c != nil {
		m.rowNames["excluded"] = true
		for _, elem := range c.GetInfer().GetIndexElems() {
			m.visitEach(elem.GetIndexElem().GetExpr())
		}
		m.visitEach(c.GetInfer().GetWhereClause(), c.WhereClause)
		m.setTargets(c.TargetList)
	}
	m.returning(n.ReturningList)
}

func (m *collationAnalysis) updateStmt(n *sqltext.UpdateStmt) {
	m.with(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.visitEach(n.FromClause...)
	m.setTargets(n.TargetList)
	m.visitEach(n.WhereClause)
	m.returning(n.ReturningList)
}

func (m *collationAnalysis) deleteStmt(n *sqltext.DeleteStmt) {
	m.with(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.visitEach(n.UsingClause...)
	m.visitEach(n.WhereClause)
	m.returning(n.ReturningList)
}

func (m *collationAnalysis) mergeStmt(n *sqltext.MergeStmt) {
	m.with(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.visitEach(n.SourceRelation, n.JoinCondition)
	for _, node := range n.MergeWhenClauses {
		when := node.GetMergeWhenClause()
		m.visitEach(when.GetCondition())
		m.setTargets(when.GetTargetList())
		m.visitEach(when.GetValues()...)
	}
}

func (m *collationAnalysis) with(c *sqltext.WithClause) {
	m.depth++
	defer func() { m.depth-- }()
	m.visitEach(c.GetCtes()...)
}

// setTargets visits SET, or the columns of an INSERT. A sub-select or row that several columns are set to stands in the
// tree with each of them.
func (m *collationAnalysis) setTargets(targets []*sqltext.Node) {
	for _, n := range targets {
		t := n.GetResTarget()
		m.visitEach(t.GetIndirection()...)
		source := t.GetVal().GetMultiAssignRef().GetSource()
		switch {
		case source.GetSubLink() != nil:
			m.selectStmt(source.GetSubLink().GetSubselect().GetSelectStmt(), nil)
		case source.GetRowExpr() != nil:
			m.visitEach(source.GetRowExpr().Args...)
		default:
			m.visitEach(t.GetVal())
		}
	}
}

// returning visits RETURNING, where old and new are rows of the table as of PostgreSQL 18.
func (m *collationAnalysis) returning(list []*sqltext.Node) {
	if len(list) > 0 {
		m.rowNames["old"], m.rowNames["new"] = true, true
	}
	m.targets(list, false)
}
