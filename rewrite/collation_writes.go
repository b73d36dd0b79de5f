package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// The values that a statement writes are not compared with each other, because each goes into a column and takes that
// column's collation. The comparisons that keys, checks and policies make with these columns are not part of the text.
// Conditions and values are expressions like those of queries.

func (m *collationAnalysis) insertStmt(n *sqltext.InsertStmt) {
	m.visitWith(n.WithClause)
	if n.SelectStmt != nil { // the SELECT or VALUES of an INSERT cannot name the target's columns
		m.visitSelect(n.SelectStmt.GetSelectStmt(), nil)
	}
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.visitSetTargets(n.Cols)
	if c := n.OnConflictClause; c != nil {
		m.rowNames["excluded"] = true
		for _, elem := range c.GetInfer().GetIndexElems() {
			m.visitEach(elem.GetIndexElem().GetExpr())
		}
		m.visitEach(c.GetInfer().GetWhereClause(), c.WhereClause)
		m.visitSetTargets(c.TargetList)
	}
	m.visitReturning(n.ReturningList)
}

func (m *collationAnalysis) updateStmt(n *sqltext.UpdateStmt) {
	m.visitWith(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.visitEach(n.FromClause...)
	m.visitSetTargets(n.TargetList)
	m.visitEach(n.WhereClause)
	m.visitReturning(n.ReturningList)
}

// deleteStmt visits a DELETE.
func (m *collationAnalysis) deleteStmt(n *sqltext.DeleteStmt) {
	m.visitWith(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.visitEach(n.UsingClause...)
	m.visitEach(n.WhereClause)
	m.visitReturning(n.ReturningList)
}

func (m *collationAnalysis) mergeStmt(n *sqltext.MergeStmt) {
	m.visitWith(n.WithClause)
	m.depth++
	defer func() { m.depth-- }()
	m.visitMessage(n.Relation, m.newGroup())
	m.visitEach(n.SourceRelation, n.JoinCondition)
	for _, node := range n.MergeWhenClauses {
		whenClause := node.GetMergeWhenClause()
		m.visitEach(whenClause.GetCondition())
		m.visitSetTargets(whenClause.GetTargetList())
		m.visitEach(whenClause.GetValues()...)
	}
}

// visitWith visits the queries of a WITH clause.
func (m *collationAnalysis) visitWith(c *sqltext.WithClause) {
	m.depth++
	defer func() { m.depth-- }()
	m.visitEach(c.GetCtes()...)
}

// visitSetTargets visits the SET of an UPDATE, or the columns of an INSERT. If one sub-select or row sets several
// columns, the tree repeats it under each of them.
func (m *collationAnalysis) visitSetTargets(targets []*sqltext.Node) {
	for _, n := range targets {
		t := n.GetResTarget()
		m.visitEach(t.GetIndirection()...)
		source := t.GetVal().GetMultiAssignRef().GetSource()
		switch {
		case source.GetSubLink() != nil:
			m.visitSelect(source.GetSubLink().GetSubselect().GetSelectStmt(), nil)
		case source.GetRowExpr() != nil:
			m.visitEach(source.GetRowExpr().Args...)
		default:
			m.visitEach(t.GetVal())
		}
	}
}

// visitReturning visits RETURNING, where as of PostgreSQL 18 old and new mean rows of the table.
func (m *collationAnalysis) visitReturning(list []*sqltext.Node) {
	if len(list) > 0 {
		m.rowNames["old"], m.rowNames["new"] = true, true
	}
	m.visitTargets(list, false)
}
