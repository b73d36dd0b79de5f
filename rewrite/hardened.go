package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A comparison may hold an expression that names no column of the row, and can raise an error or draw a random number:
// a sub-select, `$1 / $2`, a column of an outer query. Row security lets PostgreSQL compute it once a hidden row has
// got so far, and not if none has. For example, PostgreSQL does not begin the second of two bitmap scans where the
// first finds nothing. So a statement that may hold such an expression gets a hardened plan (decision 73). Row security
// itself puts off expressions that name a column of their own query's table: PostgreSQL computes them for visible rows
// only.
//
// The walk below looks for a reason why a statement may hold such an expression. It knows by name the expressions that
// cannot raise an error. All others count as expressions that can: a mistake on that side costs speed only.

// hardenedAnalysis says of each statement of a text why it gets a hardened plan; "" if it gets none.
type hardenedAnalysis struct {
	*walker
	referenceOf map[*sqltext.RangeVar]*reference
	reason      string

	fromHasSubqueryColumn bool // something in FROM has a sub-select or a virtual column among its columns
	unresolvedColumn      bool // a condition names a column that is not known: it may read such a column
	fromOutputMayFail     bool // a subquery in FROM computes what may raise an error, of its own columns
	subLinkReadsOutput    bool // a sub-select or LATERAL may read such an output

	paramUses   map[int32]*paramUse
	castsParams bool // it casts parameters, and so declares their types

	leakSafe []*sqltext.Node // conditions that cannot raise an error, whatever the row holds

	ctes          *visibleCTE // the WITH queries in sight
	levels        map[*sqltext.SelectStmt]*queryLevel
	outputColumns map[*sqltext.SelectStmt][]levelColumn
	// of the views that it reads; nil where a relation in one is not certain
	viewQueries map[catalog.Name]*sqltext.SelectStmt
	viewCount   int // mentions of views

	starCopies int // columns that stars have copied
	nodeVisits int // the number of nodes that walkNodes has visited
}

// maxNodeVisits bounds the nodes of one statement that are visited again, after the walk: some seconds' work.
const maxNodeVisits = 3_000_000

// paramUse counts where a parameter stands in a statement, and where it stands under a cast.
type paramUse struct {
	uses, casts int
	castTo      string // the type; all counted casts are to it
}

// exprContext says where an expression stands.
type exprContext struct {
	*queryLevel
	shownRowsOnly  bool // it is computed only of rows that row security has let through
	subqueryOutput bool // it is an output of a query in FROM, or of a WITH query
	// in a sub-select that runs when an outer expression needs it: columns of its own do not put it off
	inSubquery bool
}

// hardeningOf says when a statement is planned, and why its plan is hardened, if it is. declared tells that the plan is
// hardened, too, if types are declared for its parameters. It passes over the leak-safe conditions.
func (w *walker) hardeningOf(raw *sqltext.RawStmt, of map[*sqltext.RangeVar]*reference,
	leakSafe ...*sqltext.Node) (when verdict.HardenedPlan, reason string, declared bool) {
	c := &hardenedAnalysis{walker: w, referenceOf: of, leakSafe: leakSafe, paramUses: map[int32]*paramUse{},
		levels: map[*sqltext.SelectStmt]*queryLevel{}, outputColumns: map[*sqltext.SelectStmt][]levelColumn{},
		viewQueries: map[catalog.Name]*sqltext.SelectStmt{}}
	c.countParamUses(raw.GetStmt())
	when = c.statement(raw.GetStmt())
	if c.fromHasSubqueryColumn && c.unresolvedColumn {
		c.harden("what is not known may ask for a sub-select of a query in FROM, or for a virtual column")
	}
	if c.fromOutputMayFail && c.subLinkReadsOutput {
		c.harden("a sub-select may ask for what a query in FROM computes")
	}
	for _, n := range raw.GetStmt().GetPrepareStmt().GetArgtypes() {
		switch name := lastName(n.GetTypeName().GetNames()); {
		case c.castsParams:
			c.harden("it casts a parameter that is declared")
		case !slices.Contains(plainTypeNames, name) || len(n.GetTypeName().GetArrayBounds()) > 0:
			c.harden("it declares a parameter that may have to be converted")
		}
	}
	if w.valuesRunUserCode() {
		c.harden("it brings values that functions of others compare or convert")
	}
	if len(w.foreignCasts) > 0 {
		c.harden("it brings a cast that is not PostgreSQL's own")
	}
	return when, c.reason, c.castsParams
}

// countParamUses counts how parameters are used.
func (c *hardenedAnalysis) countParamUses(n *sqltext.Node) {
	use := func(p *sqltext.ParamRef) *paramUse {
		if c.paramUses[p.Number] == nil {
			c.paramUses[p.Number] = &paramUse{}
		}
		return c.paramUses[p.Number]
	}
	c.walkNodes(n, func(n *sqltext.Node) bool {
		if p := n.GetParamRef(); p != nil {
			use(p).uses++
		}
		if t := n.GetTypeCast(); t.GetArg().GetParamRef() != nil {
			u, to := use(t.Arg.GetParamRef()), castType(t.TypeName)
			if u.casts == 0 || u.castTo == to {
				u.casts, u.castTo = u.casts+1, to
			}
		}
		return true
	})
}

func castType(t *sqltext.TypeName) string {
	_, name, _ := qualifiedName(t.GetNames())
	return name + strings.Repeat("[]", len(t.GetArrayBounds()))
}

// declaresParamType tells whether a cast says which type its parameter has. Then it converts nothing, unless the client
// declares another type.
func (c *hardenedAnalysis) declaresParamType(t *sqltext.TypeCast) bool {
	p := t.GetArg().GetParamRef()
	if p == nil || len(t.GetTypeName().GetTypmods()) > 0 {
		return false
	}
	u := c.paramUses[p.Number]
	if u == nil || u.uses != u.casts || !slices.Contains(plainTypeNames, lastName(t.GetTypeName().GetNames())) {
		return false
	}
	c.castsParams = true
	return true
}

// harden records why the plan is hardened. The first reason stays.
func (c *hardenedAnalysis) harden(reason string) {
	if c.reason == "" {
		c.reason = reason
	}
}

// statement returns when a statement is planned.
func (c *hardenedAnalysis) statement(n *sqltext.Node) verdict.HardenedPlan {
	switch s := n.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		c.query(s.SelectStmt, nil, true, false)
	case *sqltext.Node_CopyStmt:
		switch query := s.CopyStmt.GetQuery(); {
		case s.CopyStmt.IsFrom:
			c.harden("it writes")
		case query != nil:
			c.statement(query)
		}
		return verdict.HardenedAtExecute
	case *sqltext.Node_DeclareCursorStmt:
		c.statement(s.DeclareCursorStmt.GetQuery())
		return verdict.HardenedAtExecute
	case *sqltext.Node_PrepareStmt: // PREPARE is analysed for the EXECUTEs that run it
		c.statement(s.PrepareStmt.GetQuery())
	case *sqltext.Node_TransactionStmt, *sqltext.Node_VariableSetStmt, *sqltext.Node_VariableShowStmt,
		*sqltext.Node_DeallocateStmt, *sqltext.Node_FetchStmt,
		// an EXECUTE is hardened as the statement that it runs
		*sqltext.Node_ClosePortalStmt, *sqltext.Node_DiscardStmt, *sqltext.Node_UnlistenStmt, *sqltext.Node_ExecuteStmt,
		*sqltext.Node_ListenStmt, *sqltext.Node_NotifyStmt, *sqltext.Node_DoStmt: // DO is ours: see createStmt
	case *sqltext.Node_ExplainStmt:
		c.harden("it explains another")
		return verdict.HardenedAtExecute
	case *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt:
		c.updateOrDelete(n)
	default: // what writes may run triggers, defaults and checks
		c.harden("it writes")
	}
	return verdict.HardenedAtBind
}

// query visits a SELECT. shown tells that its rows go to the client, or to an expression that is computed of shown
// rows.
func (c *hardenedAnalysis) query(s *sqltext.SelectStmt, parent *queryLevel, shown, inSubquery bool) {
	if s == nil {
		c.harden("it has a query of another kind")
		return
	}
	defer c.pushCTEs(s, parent, func(query *sqltext.CommonTableExpr) {
		if query.GetCtequery().GetSelectStmt() == nil {
			c.harden("it writes")
			return
		}
		c.query(query.Ctequery.GetSelectStmt(), parent, false, inSubquery)
	})()
	own := c.levelOf(s, parent)
	if inSubquery && len(s.LockingClause) > 0 {
		c.harden("a sub-select locks rows")
	}
	condition, output := exprContext{queryLevel: own, inSubquery: inSubquery},
		exprContext{queryLevel: own, shownRowsOnly: shown, subqueryOutput: !shown, inSubquery: inSubquery}
	if s.Op != sqltext.SETOP_NONE {
		c.query(s.Larg, parent, shown, inSubquery)
		c.query(s.Rarg, parent, shown, inSubquery)
		if !shown && !inSubquery {
			c.checkSetOperation(s, parent)
		}
	}
	if inSubquery {
		c.checkSortAndLimit(s, parent, own)
	}
	for _, n := range s.FromClause {
		c.from(n, condition)
	}
	c.expr(s.WhereClause, condition)
	c.expr(s.HavingClause, condition)
	for _, n := range s.TargetList {
		if at := output; !shown && c.hasLocalAggregate(n.GetResTarget().GetVal(), own) {
			at.shownRowsOnly, at.subqueryOutput = true, false
			c.expr(n, at)
		} else if !shown && !inSubquery && c.containsSubLink(n, own) {
			// it runs for shown rows, unless something that names the column needs it
			c.fromHasSubqueryColumn = true
			at.shownRowsOnly = true
			c.expr(n, at)
		} else {
			c.expr(n, output)
		}
	}
	for _, list := range [][]*sqltext.Node{s.GroupClause, s.SortClause, s.DistinctClause, s.WindowClause,
		s.ValuesLists, {s.LimitCount, s.LimitOffset}} {
		for _, n := range list {
			c.expr(n, output)
		}
	}
}

// checkSortAndLimit looks at what else a sub-select does with its rows. LIMIT and OFFSET may be negative. Rows whose
// columns cannot be compared cannot be sorted or grouped, which PostgreSQL notices when it comes to two of them. The
// halves of a UNION cannot always be converted to each other.
func (c *hardenedAnalysis) checkSortAndLimit(s *sqltext.SelectStmt, parent, own *queryLevel) {
	if !limitCannotFail(s.LimitCount) || !limitCannotFail(s.LimitOffset) {
		c.harden("a sub-select computes its LIMIT")
	}
	columns := c.outputsOf(s, parent, "")
	if together := s.Op != sqltext.SETOP_NONE || len(s.DistinctClause) > 0 ||
		len(s.ValuesLists) > 1; together && (columns == nil ||
		slices.ContainsFunc(columns, func(t levelColumn) bool { return t.oid == 0 })) {
		c.harden("a sub-select compares its rows")
	}
	for _, list := range [][]*sqltext.Node{s.SortClause, s.GroupClause, s.DistinctClause} {
		for _, n := range list {
			if by := n.GetSortBy(); by != nil {
				n = by.Node
			}
			if i := n.GetAConst().GetIval(); i != nil && 0 < i.Ival && int(i.Ival) <= len(columns) &&
				columns[i.Ival-1].oid != 0 {
				continue
			}
			if n.GetNode() != nil && (n.GetAConst() != nil || c.typeOf(n, own) == 0) {
				c.harden("a sub-select sorts or groups by what may not be compared")
			}
		}
	}
}

// limitCannotFail tells whether LIMIT or OFFSET cannot raise an error at run time.
func limitCannotFail(n *sqltext.Node) bool {
	i := n.GetAConst()
	return n.GetNode() == nil || i != nil && (i.Isnull || i.GetIval() != nil && i.GetIval().Ival >= 0)
}

// referencesByRangeVar are the references by their nodes.
func (w *walker) referencesByRangeVar() map[*sqltext.RangeVar]*reference {
	of := map[*sqltext.RangeVar]*reference{}
	for _, ref := range w.references {
		of[ref.rangeVar] = ref
	}
	return of
}

// setHardening notes which statements of a text get a hardened plan.
func (w *walker) setHardening(tree *sqltext.ParseResult, result *Result) {
	of := w.referencesByRangeVar()
	for i, raw := range tree.Stmts {
		when, reason, declared := w.hardeningOf(raw, of)
		if reason == "" {
			result.HardenedIfDeclared = result.HardenedIfDeclared || declared
			continue
		}
		if result.HardenedReason == "" {
			result.HardenedReason = reason
		}
		e := &result.Effects[i]
		if e.Kind == verdict.Prepares {
			if w.valuesRunUserCode() { // it parses what it prepares
				e.HardenedPlan = verdict.HardenedAtExecute
			}
			e = &e.Body.Effects[0]
		}
		e.HardenedPlan = when
	}
	result.HardenBeforeParse = w.valuesRunUserCode()
}

// clearHardening takes that back.
func (r *Result) clearHardening() {
	for i := range r.Effects {
		r.Effects[i].HardenedPlan = verdict.NotHardened
	}
	r.HardenedReason, r.HardenedIfDeclared = "", false
}
