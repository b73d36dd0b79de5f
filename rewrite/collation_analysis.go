package rewrite

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A meeting tells whether values of different collations may come together in a text that has several: in an operator,
// in the arguments of a function, in a list, in what a sub-select is compared with. Where a value is a boolean by the
// grammar (a condition in AND, OR and NOT, in WHEN, in FILTER, in WHERE) its collation ends, so that what stands beside
// it is apart.
//
// Columns count by their names alone, wherever they are from; so a name may bring more than the column has that is
// meant, and never less. What is not known to be apart meets.
type meeting struct {
	spots   []*spot
	columns map[string]map[string]bool // of a name, the collations
	rows    map[string]bool            // names that may mean a whole row, or any column
	others  map[string]bool            // names that are also of functions which are not PostgreSQL's
	depth   int                        // of queries
	unknown bool                       // something is not understood
}

// A spot is an expression in which collations meet.
type spot struct {
	names    map[string]bool
	explicit map[string]bool // by COLLATE
	inJSON   bool            // a whole row becomes JSON here, or is counted
	anything bool            // it may hold whatever there is
	output   string          // the column that has its value
	unnamed  bool            // its value has a name that is not known
	bare     bool            // a column by itself, or a row, which meets its like alone
}

// maxPasses bounds how often the columns of sub-selects are followed to what they are made of.
const maxPasses = 20

// meets tells whether collations meet in a text. base are those that come not by columns: they count everywhere.
func (w *walker) meets(tree *sqltext.ParseResult, base map[string]bool) bool {
	m := &meeting{columns: map[string]map[string]bool{}, rows: map[string]bool{}, others: map[string]bool{}}
	for name := range w.functions {
		if schema, function, _ := strings.Cut(name, "."); schema != "pg_catalog" {
			m.others[function] = true
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
				m.brings(c.Name, c.Collation)
			}
			for _, name := range w.snap.Collations(c.TypeOID) {
				m.brings(c.Name, name)
			}
		}
	}
	for _, raw := range tree.Stmts {
		m.visit(raw.Stmt, nil)
	}
	return m.unknown || m.several(base)
}

// several follows the columns of sub-selects until nothing is new, and tells whether a spot has more than one collation.
func (m *meeting) several(base map[string]bool) bool {
	everywhere := maps.Clone(base)
	for range maxPasses {
		changed := false
		for _, p := range m.spots {
			found := maps.Clone(everywhere)
			maps.Copy(found, p.explicit)
			for name := range p.names {
				maps.Copy(found, m.columns[name])
			}
			if p.anything {
				for _, of := range m.columns {
					maps.Copy(found, of)
				}
			}
			if len(found) > 1 && !p.bare {
				return true
			}
			for name := range found {
				switch {
				case p.unnamed && !everywhere[name]:
					everywhere[name], changed = true, true
				case p.output != "" && !m.columns[p.output][name]:
					m.brings(p.output, name)
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

func (m *meeting) brings(column, collation string) {
	if m.columns[column] == nil {
		m.columns[column] = map[string]bool{}
	}
	m.columns[column][collation] = true
}

// spot opens one.
func (m *meeting) spot() *spot {
	p := &spot{names: map[string]bool{}, explicit: map[string]bool{}}
	m.spots = append(m.spots, p)
	return p
}

// apart visits each node in a spot of its own.
func (m *meeting) apart(nodes ...*sqltext.Node) {
	for _, n := range nodes {
		own := m.spot()
		own.bare = n.GetColumnRef() != nil || n.GetSortBy().GetNode().GetColumnRef() != nil
		m.visit(n, own)
	}
}

// visit adds what a node reads to a spot, or to a new one. It knows the nodes that divide; all others join what is in
// them.
func (m *meeting) visit(n *sqltext.Node, p *spot) {
	content := sqltext.Content(n)
	if content == nil || m.unknown {
		return
	}
	if p == nil {
		p = m.spot()
	}
	m.message(content, p)
}

func (m *meeting) message(content proto.Message, p *spot) {
	switch n := content.(type) {
	case *sqltext.SelectStmt:
		m.selectStmt(n, nil)
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
		m.rows[n.Ctename] = true
		if search := n.SearchClause; search != nil {
			m.rows[search.SearchSeqColumn] = true // of rows, as the path of a cycle is
		}
		if cycle := n.CycleClause; cycle != nil {
			m.rows[cycle.CyclePathColumn] = true // its mark is a constant
		}
		if query := n.Ctequery.GetSelectStmt(); query != nil {
			m.columnsAs(n.Aliascolnames, m.selectStmt(query, nil))
		} else {
			m.renamed(n.Aliascolnames)
			m.apart(n.Ctequery)
		}
	case *sqltext.RangeVar:
		m.rows[n.Relname] = true
		m.alias(n.Alias)
	case *sqltext.RangeSubselect:
		columns := m.selectStmt(n.Subquery.GetSelectStmt(), nil)
		if n.Alias != nil {
			m.rows[n.Alias.Aliasname] = true
			m.columnsAs(n.Alias.Colnames, columns)
		}
	case *sqltext.RangeFunction:
		p.unnamed = true
		m.alias(n.Alias)
		m.parts(n, p)
	case *sqltext.JoinExpr:
		m.joinExpr(n)
	case *sqltext.SubLink:
		m.visit(n.Testexpr, p)
		if n.SubLinkType == sqltext.EXISTS_SUBLINK {
			p = nil
		}
		m.selectStmt(n.GetSubselect().GetSelectStmt(), p)
	case *sqltext.BoolExpr:
		m.apart(n.Args...)
	case *sqltext.NullTest:
		m.apart(n.Arg)
	case *sqltext.BooleanTest:
		m.apart(n.Arg)
	case *sqltext.CaseExpr:
		m.caseExpr(n, p)
	case *sqltext.CollateClause:
		m.apart(n.Arg)
		if name, ok := collationName(n); ok && name != "default" {
			p.explicit[name] = true
		}
	case *sqltext.FuncCall:
		if m.makesJSON(n) {
			for _, arg := range n.Args {
				own := m.spot()
				own.inJSON = arg.GetColumnRef() != nil || arg.GetSubLink().GetSubLinkType() == sqltext.EXPR_SUBLINK
				m.visit(arg, own)
			}
			m.apart(n.AggOrder...)
			m.apart(n.AggFilter)
			m.windowDef(n.Over)
			return
		}
		for _, list := range [][]*sqltext.Node{n.Args, n.AggOrder} {
			for _, arg := range list {
				m.visit(arg, p)
			}
		}
		m.apart(n.AggFilter)
		m.windowDef(n.Over)
	case *sqltext.WindowDef:
		m.windowDef(n)
	case *sqltext.GroupingSet:
		m.apart(n.Content...)
	case *sqltext.ColumnRef:
		if last := n.Fields[len(n.Fields)-1]; last.GetAStar() != nil {
			p.anything = true
		} else {
			m.reads(last.GetString_().GetSval(), p)
		}
	case *sqltext.A_Indirection:
		m.visit(n.Arg, p)
		for _, part := range n.Indirection {
			if field := part.GetString_(); field != nil {
				m.reads(field.GetSval(), p)
			} else {
				m.visit(part, p)
			}
		}
	case *sqltext.A_Star:
		p.anything = true
	default:
		m.parts(n, p)
	}
}

// JSON functions compare nothing, neither their arguments nor the parts of a row; nor does count look into one.
var jsonFunctions = []string{"row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg", "json_build_object",
	"jsonb_build_object", "json_build_array", "jsonb_build_array", "count"}

func (m *meeting) makesJSON(f *sqltext.FuncCall) bool {
	schema, name, ok := qualifiedName(f.Funcname)
	return ok && (schema == "" || schema == "pg_catalog") && slices.Contains(jsonFunctions, name) &&
		!m.others[name] && !f.AggDistinct && !f.AggWithinGroup
}

// parts visits whatever is in a message, in one spot.
func (m *meeting) parts(of proto.Message, p *spot) {
	sqltext.Messages(of, func(_ string, child proto.Message) { m.part(child, p) })
}

func (m *meeting) part(of proto.Message, p *spot) {
	if n, is := of.(*sqltext.Node); is {
		m.visit(n, p)
		return
	}
	m.message(of, p)
}

// selectStmt visits a query, and returns its columns. They come to a spot too, if it stands there as a value.
func (m *meeting) selectStmt(s *sqltext.SelectStmt, p *spot) []*spot {
	if s == nil {
		m.unknown = true
		return nil
	}
	m.depth++
	defer func() { m.depth-- }()
	columns := m.query(s, p != nil && p.inJSON)
	for _, c := range columns {
		p.join(c)
	}
	return columns
}

// query visits a query, or one of those that UNION and its kin combine, and returns a spot for each of its columns; for
// a star one that may hold anything.
func (m *meeting) query(s *sqltext.SelectStmt, inJSON bool) []*spot {
	m.unknown = m.unknown || s.IntoClause != nil
	for _, cte := range s.GetWithClause().GetCtes() {
		m.apart(cte)
	}
	var columns []*spot
	switch {
	case s.Op != sqltext.SETOP_NONE:
		columns = m.combined(m.query(s.Larg, false), m.query(s.Rarg, false))
	case len(s.ValuesLists) > 0:
		columns = m.values(s.ValuesLists)
	default:
		m.apart(s.FromClause...) // the names of rows come first
		columns = m.targets(s.TargetList, inJSON)
		m.apart(s.DistinctClause...)
		m.apart(s.WhereClause, s.HavingClause)
		m.apart(s.GroupClause...)
		m.apart(s.WindowClause...)
	}
	m.apart(s.LimitOffset, s.LimitCount)
	m.apart(s.SortClause...)
	return columns
}

// targets visits what a query returns, or RETURNING.
func (m *meeting) targets(list []*sqltext.Node, inJSON bool) []*spot {
	var columns []*spot
	for _, n := range list {
		t := n.GetResTarget()
		if isStar(t.GetVal()) {
			columns = append(columns, &spot{anything: true})
			continue
		}
		own := m.spot()
		own.inJSON = inJSON && t.GetVal().GetColumnRef() != nil
		own.output = outputName(t)
		own.unnamed = own.output == "" && m.depth > 1
		own.bare = t.GetVal().GetColumnRef() != nil
		m.visit(t.GetVal(), own)
		columns = append(columns, own)
	}
	return columns
}

// values visits rows, of which PostgreSQL calls the columns column1, column2 and so on.
func (m *meeting) values(rows []*sqltext.Node) []*spot {
	var columns []*spot
	for _, row := range rows {
		for i, value := range row.GetList().GetItems() {
			if i == len(columns) {
				columns = append(columns, m.spot())
				columns[i].output = "column" + strconv.Itoa(i+1)
			}
			m.visit(value, columns[i])
		}
	}
	return columns
}

// combined joins the columns of two queries, one by one, whose names are those of the first; all to one where there is
// a star.
func (m *meeting) combined(left, right []*spot) []*spot {
	if len(left) != len(right) || slices.ContainsFunc(slices.Concat(left, right), func(p *spot) bool { return p.anything }) {
		left, right = []*spot{m.spot()}, []*spot{{anything: true}}
	}
	for i, p := range left {
		p.join(right[i])
		right[i].output, right[i].unnamed = "", false
	}
	return left
}

// join adds what another spot holds.
func (p *spot) join(other *spot) {
	if p == nil {
		return
	}
	p.anything, p.bare = p.anything || other.anything, false
	if p.names == nil {
		p.names = map[string]bool{}
	}
	if p.explicit == nil {
		p.explicit = map[string]bool{}
	}
	maps.Copy(p.names, other.names)
	maps.Copy(p.explicit, other.explicit)
}

func (m *meeting) joinExpr(j *sqltext.JoinExpr) {
	m.apart(j.Larg, j.Rarg)
	m.alias(j.Alias)
	m.alias(j.JoinUsingAlias)
	m.unknown = m.unknown || j.IsNatural
	for _, n := range j.UsingClause {
		m.reads(n.GetString_().GetSval(), m.spot())
	}
	m.apart(j.Quals)
}

// caseExpr: a condition after WHEN is apart, unless it is a value that CASE compares with.
func (m *meeting) caseExpr(c *sqltext.CaseExpr, p *spot) {
	var compared *spot
	if c.Arg != nil {
		compared = m.spot()
		m.visit(c.Arg, compared)
	}
	for _, n := range c.Args {
		m.visit(n.GetCaseWhen().GetExpr(), compared)
		m.visit(n.GetCaseWhen().GetResult(), p)
	}
	m.visit(c.Defresult, p)
}

func (m *meeting) windowDef(d *sqltext.WindowDef) {
	m.apart(d.GetPartitionClause()...)
	m.apart(d.GetOrderClause()...)
	m.apart(d.GetStartOffset(), d.GetEndOffset())
}

// reads adds a column, by its name.
func (m *meeting) reads(name string, p *spot) {
	p.names[name] = true
	p.anything = p.anything || m.rows[name] && !p.inJSON
}

// alias notes the name of an item, which may mean its row, and the names that it gives to columns.
func (m *meeting) alias(a *sqltext.Alias) {
	if a == nil {
		return
	}
	m.rows[a.Aliasname] = true
	m.renamed(a.Colnames)
}

// columnsAs notes names that the columns of a query are given by their order.
func (m *meeting) columnsAs(names []*sqltext.Node, columns []*spot) {
	if len(names) > len(columns) || slices.ContainsFunc(columns, func(p *spot) bool { return p.anything }) {
		m.renamed(names)
		return
	}
	for i, n := range names {
		as := m.spot()
		as.output = n.GetString_().GetSval()
		as.join(columns[i])
		as.bare, columns[i].unnamed = true, false
	}
}

// renamed notes names that columns are given by their order, where this is not known: each may be any.
func (m *meeting) renamed(names []*sqltext.Node) {
	for _, n := range names {
		m.rows[n.GetString_().GetSval()] = true
	}
}
