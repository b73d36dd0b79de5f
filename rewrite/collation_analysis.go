package rewrite

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// collationAnalysis finds out whether a text that has several collations may compare values of different ones. Values
// of two collations can be compared if they are operands of one operator, arguments of one function, or elements of one
// list. The operand and the rows of a sub-select can be compared, too. A condition (in AND, OR, NOT, WHEN, FILTER or
// WHERE) is a boolean and has no collation, so its operands are a group of their own.
//
// Columns count by their names alone, whichever table they belong to. So a name may bring more collations than the
// column that it means, and never fewer. Expressions that are not known to be separate are in one group.
type collationAnalysis struct {
	groups           []*exprGroup
	columnCollations map[string]map[string]bool // the collations of the columns, by the names of the columns
	rowNames         map[string]bool            // names that may mean a whole row, and so the values of any columns
	foreignFunctions map[string]bool            // names of functions that do not belong to PostgreSQL alone
	depth            int                        // how deep queries are nested
	unknown          bool                       // the text has something that the analysis does not understand
}

// exprGroup is a group of expressions whose values PostgreSQL may compare with each other.
type exprGroup struct {
	columns  map[string]bool // the names of the columns whose collations the group may have
	explicit map[string]bool // the collations that COLLATE clauses give to the group's expressions
	// the group's expressions become JSON or are counted, so that PostgreSQL does not compare whole rows in them
	inJSON      bool
	anyColumn   bool   // the group may contain the value of any column
	outputName  string // the output column that has the value of the group's expression
	unknownName bool   // the group's expression is a column whose name is not known
	// the group is a single column or row, which PostgreSQL compares only with values of the same column
	singleColumn bool
}

// maxPasses bounds how often hasMixedGroup repeats, to follow the columns of sub-selects to their sources.
const maxPasses = 20

// mixesCollations tells whether a text may compare values of different collations. base are the collations of values
// that do not come from columns; every group may have them.
func (w *walker) mixesCollations(tree *sqltext.ParseResult, base map[string]bool) bool {
	m := &collationAnalysis{columnCollations: map[string]map[string]bool{}, rowNames: map[string]bool{},
		foreignFunctions: map[string]bool{}}
	for name := range w.functions {
		if schema, function, _ := strings.Cut(name, "."); schema != "pg_catalog" {
			m.foreignFunctions[function] = true
		}
	}
	for _, ref := range w.references {
		if ref.relation == nil && ref.fragment != nil {
			return true
		}
		if ref.relation == nil {
			continue
		}
		for _, c := range ref.relation.Columns {
			if c.Collation != "" {
				m.addCollation(c.Name, c.Collation)
			}
			for _, name := range w.snap.Collations(c.TypeOID) {
				m.addCollation(c.Name, name)
			}
		}
	}
	for _, raw := range tree.Stmts {
		m.visit(raw.Stmt, nil)
	}
	return m.unknown || m.hasMixedGroup(base)
}

// hasMixedGroup follows the columns of sub-selects to their sources until nothing new is found, and tells whether a
// group has more than one collation.
func (m *collationAnalysis) hasMixedGroup(base map[string]bool) bool {
	everywhere := maps.Clone(base)
	for range maxPasses {
		changed := false
		for _, g := range m.groups {
			found := maps.Clone(everywhere)
			maps.Copy(found, g.explicit)
			for name := range g.columns {
				maps.Copy(found, m.columnCollations[name])
			}
			if g.anyColumn {
				for _, collations := range m.columnCollations {
					maps.Copy(found, collations)
				}
			}
			if len(found) > 1 && !g.singleColumn {
				return true
			}
			for name := range found {
				switch {
				case g.unknownName && !everywhere[name]:
					everywhere[name], changed = true, true
				case g.outputName != "" && !m.columnCollations[g.outputName][name]:
					m.addCollation(g.outputName, name)
					changed = true
				}
			}
		}
		if !changed {
			return false
		}
	}
	return true
}

func (m *collationAnalysis) addCollation(column, collation string) {
	if m.columnCollations[column] == nil {
		m.columnCollations[column] = map[string]bool{}
	}
	m.columnCollations[column][collation] = true
}

// newGroup returns a new group of expressions.
func (m *collationAnalysis) newGroup() *exprGroup {
	g := &exprGroup{columns: map[string]bool{}, explicit: map[string]bool{}}
	m.groups = append(m.groups, g)
	return g
}

// visitEach visits each node in a group of its own.
func (m *collationAnalysis) visitEach(nodes ...*sqltext.Node) {
	for _, n := range nodes {
		ownGroup := m.newGroup()
		ownGroup.singleColumn = n.GetColumnRef() != nil || n.GetSortBy().GetNode().GetColumnRef() != nil
		m.visit(n, ownGroup)
	}
}

// visit adds the columns of a node to the group g; if g is nil, to a new group. visit knows the kinds of nodes whose
// parts belong to separate groups. The parts of all other nodes join one group.
func (m *collationAnalysis) visit(n *sqltext.Node, g *exprGroup) {
	content := sqltext.NodeContent(n)
	if content == nil || m.unknown {
		return
	}
	if g == nil {
		g = m.newGroup()
	}
	m.visitMessage(content, g)
}

func (m *collationAnalysis) visitMessage(content proto.Message, g *exprGroup) {
	switch n := content.(type) {
	case *sqltext.SelectStmt:
		m.visitSelect(n, nil)
	case *sqltext.InsertStmt:
		m.insertStmt(n)
	case *sqltext.UpdateStmt:
		m.updateStmt(n)
	case *sqltext.DeleteStmt:
		m.deleteStmt(n)
	case *sqltext.MergeStmt:
		m.mergeStmt(n)
	case *sqltext.RangeTableFunc:
		m.unknown = true
	case *sqltext.CommonTableExpr:
		m.rowNames[n.Ctename] = true
		if search := n.SearchClause; search != nil {
			m.rowNames[search.SearchSeqColumn] = true // the column holds rows, like the path column of a CYCLE clause
		}
		if cycle := n.CycleClause; cycle != nil {
			m.rowNames[cycle.CyclePathColumn] = true // the column that marks a cycle holds a constant
		}
		if query := n.Ctequery.GetSelectStmt(); query != nil {
			m.nameColumns(n.Aliascolnames, m.visitSelect(query, nil))
		} else {
			m.nameUnknownColumns(n.Aliascolnames)
			m.visitEach(n.Ctequery)
		}
	case *sqltext.RangeVar:
		m.rowNames[n.Relname] = true
		m.noteAlias(n.Alias)
	case *sqltext.RangeSubselect:
		columns := m.visitSelect(n.Subquery.GetSelectStmt(), nil)
		if n.Alias != nil {
			m.rowNames[n.Alias.Aliasname] = true
			m.nameColumns(n.Alias.Colnames, columns)
		}
	case *sqltext.RangeFunction:
		g.unknownName = true
		m.noteAlias(n.Alias)
		m.visitChildren(n, g)
	case *sqltext.JoinExpr:
		m.visitJoin(n)
	case *sqltext.SubLink:
		m.visit(n.Testexpr, g)
		if n.SubLinkType == sqltext.EXISTS_SUBLINK {
			g = nil
		}
		m.visitSelect(n.GetSubselect().GetSelectStmt(), g)
	case *sqltext.BoolExpr:
		m.visitEach(n.Args...)
	case *sqltext.NullTest:
		m.visitEach(n.Arg)
	case *sqltext.BooleanTest:
		m.visitEach(n.Arg)
	case *sqltext.CaseExpr:
		m.visitCase(n, g)
	case *sqltext.CollateClause:
		m.visitEach(n.Arg)
		if name, ok := collationName(n); ok && name != "default" {
			g.explicit[name] = true
		}
	case *sqltext.FuncCall:
		if m.makesJSON(n) {
			for _, arg := range n.Args {
				ownGroup := m.newGroup()
				ownGroup.inJSON = arg.GetColumnRef() != nil || arg.GetSubLink().GetSubLinkType() == sqltext.EXPR_SUBLINK
				m.visit(arg, ownGroup)
			}
			m.visitEach(n.AggOrder...)
			m.visitEach(n.AggFilter)
			m.visitWindow(n.Over)
			return
		}
		for _, list := range [][]*sqltext.Node{n.Args, n.AggOrder} {
			for _, arg := range list {
				m.visit(arg, g)
			}
		}
		m.visitEach(n.AggFilter)
		m.visitWindow(n.Over)
	case *sqltext.WindowDef:
		m.visitWindow(n)
	case *sqltext.GroupingSet:
		m.visitEach(n.Content...)
	case *sqltext.ColumnRef:
		if last := n.Fields[len(n.Fields)-1]; last.GetAStar() != nil {
			g.anyColumn = true
		} else {
			m.addColumn(last.GetString_().GetSval(), g)
		}
	case *sqltext.A_Indirection:
		m.visit(n.Arg, g)
		for _, part := range n.Indirection {
			if field := part.GetString_(); field != nil {
				m.addColumn(field.GetSval(), g)
			} else {
				m.visit(part, g)
			}
		}
	case *sqltext.A_Star:
		g.anyColumn = true
	default:
		m.visitChildren(n, g)
	}
}

// jsonFunctions are functions that compare neither their arguments nor the columns of a row.
var jsonFunctions = []string{"row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg", "json_build_object",
	"jsonb_build_object", "json_build_array", "jsonb_build_array", "count"}

func (m *collationAnalysis) makesJSON(f *sqltext.FuncCall) bool {
	schema, name, ok := qualifiedName(f.Funcname)
	return ok && (schema == "" || schema == "pg_catalog") && slices.Contains(jsonFunctions, name) &&
		!m.foreignFunctions[name] && !f.AggDistinct && !f.AggWithinGroup
}

// visitChildren visits all nodes inside a message, in one group.
func (m *collationAnalysis) visitChildren(message proto.Message, g *exprGroup) {
	sqltext.EachMessage(message, func(_ string, child proto.Message) { m.visitChild(child, g) })
}

func (m *collationAnalysis) visitChild(message proto.Message, g *exprGroup) {
	if n, isOfKind := message.(*sqltext.Node); isOfKind {
		m.visit(n, g)
		return
	}
	m.visitMessage(message, g)
}

// visitSelect visits a query, and returns its columns. If the query is a value in an expression (g is not nil), its
// columns join the group g.
func (m *collationAnalysis) visitSelect(s *sqltext.SelectStmt, g *exprGroup) []*exprGroup {
	if s == nil {
		m.unknown = true
		return nil
	}
	m.depth++
	defer func() { m.depth-- }()
	columns := m.visitQuery(s, g != nil && g.inJSON)
	for _, c := range columns {
		g.merge(c)
	}
	return columns
}

// visitQuery visits a query, or one side of a set operation, and returns a group for each of its columns. The group of
// a star may hold any column.
func (m *collationAnalysis) visitQuery(s *sqltext.SelectStmt, inJSON bool) []*exprGroup {
	m.unknown = m.unknown || s.IntoClause != nil
	for _, cte := range s.GetWithClause().GetCtes() {
		m.visitEach(cte)
	}
	var columns []*exprGroup
	switch {
	case s.Op != sqltext.SETOP_NONE:
		columns = m.combineColumns(m.visitQuery(s.Larg, false), m.visitQuery(s.Rarg, false))
	case len(s.ValuesLists) > 0:
		columns = m.visitValues(s.ValuesLists)
	default:
		m.visitEach(s.FromClause...) // FROM is visited first: its items say which names mean rows
		columns = m.visitTargets(s.TargetList, inJSON)
		m.visitEach(s.DistinctClause...)
		m.visitEach(s.WhereClause, s.HavingClause)
		m.visitEach(s.GroupClause...)
		m.visitEach(s.WindowClause...)
	}
	m.visitEach(s.LimitOffset, s.LimitCount)
	m.visitEach(s.SortClause...)
	return columns
}

// visitTargets visits the target list of a query, or RETURNING.
func (m *collationAnalysis) visitTargets(list []*sqltext.Node, inJSON bool) []*exprGroup {
	var columns []*exprGroup
	for _, n := range list {
		t := n.GetResTarget()
		if isStar(t.GetVal()) {
			columns = append(columns, &exprGroup{anyColumn: true})
			continue
		}
		ownGroup := m.newGroup()
		ownGroup.inJSON = inJSON && t.GetVal().GetColumnRef() != nil
		ownGroup.outputName = outputName(t)
		ownGroup.unknownName = ownGroup.outputName == "" && m.depth > 1
		ownGroup.singleColumn = t.GetVal().GetColumnRef() != nil
		m.visit(t.GetVal(), ownGroup)
		columns = append(columns, ownGroup)
	}
	return columns
}

// visitValues visits VALUES, whose columns PostgreSQL calls column1, column2 and so on.
func (m *collationAnalysis) visitValues(rows []*sqltext.Node) []*exprGroup {
	var columns []*exprGroup
	for _, row := range rows {
		for i, value := range row.GetList().GetItems() {
			if i == len(columns) {
				columns = append(columns, m.newGroup())
				columns[i].outputName = "column" + strconv.Itoa(i+1)
			}
			m.visit(value, columns[i])
		}
	}
	return columns
}

// combineColumns merges the columns of two queries pairwise, under the names of the first query. If one query has a
// star, all columns form one group.
func (m *collationAnalysis) combineColumns(left, right []*exprGroup) []*exprGroup {
	if len(left) != len(right) ||
		slices.ContainsFunc(slices.Concat(left, right), func(g *exprGroup) bool { return g.anyColumn }) {
		left, right = []*exprGroup{m.newGroup()}, []*exprGroup{{anyColumn: true}}
	}
	for i, g := range left {
		g.merge(right[i])
		right[i].outputName, right[i].unknownName = "", false
	}
	return left
}

// merge adds the columns and collations of another group to g.
func (g *exprGroup) merge(other *exprGroup) {
	if g == nil {
		return
	}
	g.anyColumn, g.singleColumn = g.anyColumn || other.anyColumn, false
	if g.columns == nil {
		g.columns = map[string]bool{}
	}
	if g.explicit == nil {
		g.explicit = map[string]bool{}
	}
	maps.Copy(g.columns, other.columns)
	maps.Copy(g.explicit, other.explicit)
}

func (m *collationAnalysis) visitJoin(j *sqltext.JoinExpr) {
	m.visitEach(j.Larg, j.Rarg)
	m.noteAlias(j.Alias)
	m.noteAlias(j.JoinUsingAlias)
	m.unknown = m.unknown || j.IsNatural
	for _, n := range j.UsingClause {
		m.addColumn(n.GetString_().GetSval(), m.newGroup())
	}
	m.visitEach(j.Quals)
}

// visitCase visits a CASE expression. A condition after WHEN has a group of its own, unless CASE compares it with a
// value.
func (m *collationAnalysis) visitCase(c *sqltext.CaseExpr, g *exprGroup) {
	var compared *exprGroup
	if c.Arg != nil {
		compared = m.newGroup()
		m.visit(c.Arg, compared)
	}
	for _, n := range c.Args {
		m.visit(n.GetCaseWhen().GetExpr(), compared)
		m.visit(n.GetCaseWhen().GetResult(), g)
	}
	m.visit(c.Defresult, g)
}

func (m *collationAnalysis) visitWindow(d *sqltext.WindowDef) {
	m.visitEach(d.GetPartitionClause()...)
	m.visitEach(d.GetOrderClause()...)
	m.visitEach(d.GetStartOffset(), d.GetEndOffset())
}

// addColumn adds a column name to a group. A name that may mean a row adds any column, unless the group's values become
// JSON.
func (m *collationAnalysis) addColumn(name string, g *exprGroup) {
	g.columns[name] = true
	g.anyColumn = g.anyColumn || m.rowNames[name] && !g.inJSON
}

// noteAlias notes the name of an item, which may mean the item's row, and the names that the alias gives to columns.
func (m *collationAnalysis) noteAlias(a *sqltext.Alias) {
	if a == nil {
		return
	}
	m.rowNames[a.Aliasname] = true
	m.nameUnknownColumns(a.Colnames)
}

// nameColumns notes the names that an alias gives the columns of a query, in their order.
func (m *collationAnalysis) nameColumns(names []*sqltext.Node, columns []*exprGroup) {
	if len(names) > len(columns) || slices.ContainsFunc(columns, func(g *exprGroup) bool { return g.anyColumn }) {
		m.nameUnknownColumns(names)
		return
	}
	for i, n := range names {
		aliasGroup := m.newGroup()
		aliasGroup.outputName = n.GetString_().GetSval()
		aliasGroup.merge(columns[i])
		aliasGroup.singleColumn, columns[i].unknownName = true, false
	}
}

// nameUnknownColumns notes the names that an alias gives to columns which are not known: each name may mean any column.
func (m *collationAnalysis) nameUnknownColumns(names []*sqltext.Node) {
	for _, n := range names {
		m.rowNames[n.GetString_().GetSval()] = true
	}
}
