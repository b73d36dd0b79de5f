package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A condition may contain an expression that names no column of the row, and that can raise an error or draw a random
// number. Examples are a sub-select, `$1 / $2`, and a column of an outer query. Under row security PostgreSQL may
// compute such an expression when it reaches a hidden row, and not if there is none. For example, PostgreSQL does not
// begin the second of two bitmap scans if the first finds nothing. So a statement that may contain such an expression
// gets a hardened plan (decision 73). Expressions that name a column of their own query's table need none: row security
// has PostgreSQL compute them for visible rows only.
//
// The analysis below searches for a reason why a statement may contain such an expression. It lists the expressions
// that cannot raise an error. All others count as expressions that can: a mistake on that side costs speed only.

// hardenedAnalysis finds the reason why a statement gets a hardened plan; "" if it gets none.
type hardenedAnalysis struct {
	*walker
	referenceOf map[*sqltext.RangeVar]*reference
	reason      string

	fromHasSubqueryColumn bool // an item of FROM has a column computed by a sub-select, or a virtual column
	// a condition names a column that is not known, and that may be computed by a sub-select or virtual
	unresolvedColumn  bool
	fromOutputMayFail bool // a subquery in FROM computes an output that may raise an error from its own columns
	// a sub-select or a LATERAL item may read an output of a subquery in FROM that may raise an error
	subqueryReadsOutput bool

	paramUses   map[int32]*paramUse
	castsParams bool // the statement casts parameters, and so declares their types

	leakSafe []*sqltext.Node // conditions that cannot raise an error, whatever the row holds

	ctes          *visibleCTE // the WITH queries that the visited expression can name
	levels        map[*sqltext.SelectStmt]*queryLevel
	outputColumns map[*sqltext.SelectStmt][]levelColumn
	// the queries of the views that the text reads; nil if it is not certain which relations a view reads
	viewQueries map[catalog.Name]*sqltext.SelectStmt
	viewCount   int // the number of mentions of views whose queries the analysis has visited

	starCopies int // the number of columns that stars have copied
	nodeVisits int // the number of nodes that walkNodes has visited
}

// maxNodeVisits bounds how many nodes of one statement the analysis visits after the first walk. So many visits take
// some seconds.
const maxNodeVisits = 3_000_000

// paramUse counts how often a statement names a parameter, and how often it casts the parameter.
type paramUse struct {
	useCount, castCount int
	castTo              string // the type of the casts; all counted casts are to this type
}

// exprContext says in which place of a statement an expression stands.
type exprContext struct {
	*queryLevel
	shownRowsOnly  bool // PostgreSQL computes the expression only for rows that the row policies have accepted
	subqueryOutput bool // the expression is an output of a query in FROM, or of a WITH query
	// the expression is in a sub-select that runs when an outer expression needs it. PostgreSQL may compute it early,
	// although it names columns of the sub-select.
	inSubquery bool
}

// newHardenedAnalysis returns the analysis of one statement. references holds the reference for each mention of a
// relation.
func (w *walker) newHardenedAnalysis(references map[*sqltext.RangeVar]*reference) *hardenedAnalysis {
	return &hardenedAnalysis{walker: w, referenceOf: references, paramUses: map[int32]*paramUse{},
		levels: map[*sqltext.SelectStmt]*queryLevel{}, outputColumns: map[*sqltext.SelectStmt][]levelColumn{},
		viewQueries: map[catalog.Name]*sqltext.SelectStmt{}}
}

// hardeningOf tells why a statement gets a hardened plan ("": it gets none), and at which message PostgreSQL plans it.
// declared: the plan must be hardened if the client declares the types of parameters. The analysis skips the conditions
// leakSafe.
func (w *walker) hardeningOf(raw *sqltext.RawStmt, references map[*sqltext.RangeVar]*reference,
	leakSafe ...*sqltext.Node) (hardenedPlan verdict.HardenedPlan, reason string, declared bool) {
	c := w.newHardenedAnalysis(references)
	c.leakSafe = leakSafe
	c.countParamUses(raw.GetStmt())
	hardenedPlan = c.visitStatement(raw.GetStmt())
	if c.fromHasSubqueryColumn && c.unresolvedColumn {
		c.harden("what is not known may ask for a sub-select of a query in FROM, or for a virtual column")
	}
	if c.fromOutputMayFail && c.subqueryReadsOutput {
		c.harden("a sub-select may ask for what a query in FROM computes")
	}
	for _, n := range raw.GetStmt().GetPrepareStmt().GetArgtypes() {
		switch name := lastNamePart(n.GetTypeName().GetNames()); {
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
	return hardenedPlan, c.reason, c.castsParams
}

// countParamUses counts how often a statement uses its parameters.
func (c *hardenedAnalysis) countParamUses(n *sqltext.Node) {
	use := func(p *sqltext.ParamRef) *paramUse {
		if c.paramUses[p.Number] == nil {
			c.paramUses[p.Number] = &paramUse{}
		}
		return c.paramUses[p.Number]
	}
	c.walkNodes(n, func(n *sqltext.Node) bool {
		if p := n.GetParamRef(); p != nil {
			use(p).useCount++
		}
		if t := n.GetTypeCast(); t.GetArg().GetParamRef() != nil {
			u, targetType := use(t.Arg.GetParamRef()), castType(t.TypeName)
			if u.castCount == 0 || u.castTo == targetType {
				u.castCount, u.castTo = u.castCount+1, targetType
			}
		}
		return true
	})
}

func castType(t *sqltext.TypeName) string {
	_, name, _ := qualifiedName(t.GetNames())
	return name + strings.Repeat("[]", len(t.GetArrayBounds()))
}

// declaresParamType tells whether a cast only declares the type of its parameter. Such a cast converts nothing, unless
// the client declares another type for the parameter.
func (c *hardenedAnalysis) declaresParamType(t *sqltext.TypeCast) bool {
	p := t.GetArg().GetParamRef()
	if p == nil || len(t.GetTypeName().GetTypmods()) > 0 {
		return false
	}
	u := c.paramUses[p.Number]
	if u == nil || u.useCount != u.castCount || !slices.Contains(plainTypeNames, lastNamePart(t.GetTypeName().GetNames())) {
		return false
	}
	c.castsParams = true
	return true
}

// harden records the first reason why the plan is hardened.
func (c *hardenedAnalysis) harden(reason string) {
	if c.reason == "" {
		c.reason = reason
	}
}

// visitStatement tells at which message PostgreSQL plans a statement, and searches for a reason to harden the plan.
func (c *hardenedAnalysis) visitStatement(n *sqltext.Node) verdict.HardenedPlan {
	switch s := n.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		c.visitQuery(s.SelectStmt, nil, true, false)
	case *sqltext.Node_CopyStmt:
		switch query := s.CopyStmt.GetQuery(); {
		case s.CopyStmt.IsFrom:
			c.harden("it writes")
		case query != nil:
			c.visitStatement(query)
		}
		return verdict.HardenedAtExecute
	case *sqltext.Node_DeclareCursorStmt:
		c.visitStatement(s.DeclareCursorStmt.GetQuery())
		return verdict.HardenedAtExecute
	case *sqltext.Node_PrepareStmt: // the reason found for PREPARE applies to each EXECUTE of its query
		c.visitStatement(s.PrepareStmt.GetQuery())
	case *sqltext.Node_TransactionStmt, *sqltext.Node_VariableSetStmt, *sqltext.Node_VariableShowStmt,
		*sqltext.Node_DeallocateStmt, *sqltext.Node_FetchStmt,
		// EXECUTE gets the same kind of plan as the statement that it runs
		*sqltext.Node_ClosePortalStmt, *sqltext.Node_DiscardStmt, *sqltext.Node_UnlistenStmt, *sqltext.Node_ExecuteStmt,
		// the only DO is the one that createStmt writes
		*sqltext.Node_ListenStmt, *sqltext.Node_NotifyStmt, *sqltext.Node_DoStmt:
	case *sqltext.Node_ExplainStmt:
		c.harden("it explains another")
		return verdict.HardenedAtExecute
	case *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt:
		c.visitUpdateOrDelete(n)
	default: // a statement that writes may run triggers, defaults and checks
		c.harden("it writes")
	}
	return verdict.HardenedAtBind
}

// visitQuery visits a SELECT. isShown tells whether its rows go to the client, or to an expression that PostgreSQL
// computes for visible rows only.
func (c *hardenedAnalysis) visitQuery(s *sqltext.SelectStmt, parent *queryLevel, isShown, inSubquery bool) {
	if s == nil {
		c.harden("it has a query of another kind")
		return
	}
	defer c.pushCTEs(s, parent, func(query *sqltext.CommonTableExpr) {
		if query.GetCtequery().GetSelectStmt() == nil {
			c.harden("it writes")
			return
		}
		c.visitQuery(query.Ctequery.GetSelectStmt(), parent, false, inSubquery)
	})()
	ownLevel := c.levelOf(s, parent)
	if inSubquery && len(s.LockingClause) > 0 {
		c.harden("a sub-select locks rows")
	}
	condition, output := exprContext{queryLevel: ownLevel, inSubquery: inSubquery},
		exprContext{queryLevel: ownLevel, shownRowsOnly: isShown, subqueryOutput: !isShown, inSubquery: inSubquery}
	if s.Op != sqltext.SETOP_NONE {
		c.visitQuery(s.Larg, parent, isShown, inSubquery)
		c.visitQuery(s.Rarg, parent, isShown, inSubquery)
		if !isShown && !inSubquery {
			c.checkSetOperation(s, parent)
		}
	}
	if inSubquery {
		c.checkSortAndLimit(s, parent, ownLevel)
	}
	for _, n := range s.FromClause {
		c.analyzeFromItem(n, condition)
	}
	c.visitExpr(s.WhereClause, condition)
	c.visitExpr(s.HavingClause, condition)
	for _, n := range s.TargetList {
		if context := output; !isShown && c.hasLocalAggregate(n.GetResTarget().GetVal(), ownLevel) {
			context.shownRowsOnly, context.subqueryOutput = true, false
			c.visitExpr(n, context)
		} else if !isShown && !inSubquery && c.containsSubLink(n, ownLevel) {
			// PostgreSQL runs the sub-select for visible rows, unless another expression names the column and needs it earlier
			c.fromHasSubqueryColumn = true
			context.shownRowsOnly = true
			c.visitExpr(n, context)
		} else {
			c.visitExpr(n, output)
		}
	}
	for _, list := range [][]*sqltext.Node{s.GroupClause, s.SortClause, s.DistinctClause, s.WindowClause,
		s.ValuesLists, {s.LimitCount, s.LimitOffset}} {
		for _, n := range list {
			c.visitExpr(n, output)
		}
	}
}

// checkSortAndLimit checks how a sub-select sorts, groups, combines and limits its rows. A computed LIMIT or OFFSET may
// be negative, which is an error. Values of some types cannot be compared, so sorting or grouping by them fails as soon
// as there are two rows. The two sides of a UNION cannot always be converted to one type.
func (c *hardenedAnalysis) checkSortAndLimit(s *sqltext.SelectStmt, parent, ownLevel *queryLevel) {
	if !limitCannotFail(s.LimitCount) || !limitCannotFail(s.LimitOffset) {
		c.harden("a sub-select computes its LIMIT")
	}
	columns := c.outputsOf(s, parent, "")
	if sortsTogether := s.Op != sqltext.SETOP_NONE || len(s.DistinctClause) > 0 ||
		len(s.ValuesLists) > 1; sortsTogether && (columns == nil ||
		slices.ContainsFunc(columns, func(t levelColumn) bool { return t.oid == 0 })) {
		c.harden("a sub-select compares its rows")
	}
	for _, list := range [][]*sqltext.Node{s.SortClause, s.GroupClause, s.DistinctClause} {
		for _, n := range list {
			if sortBy := n.GetSortBy(); sortBy != nil {
				n = sortBy.Node
			}
			if i := n.GetAConst().GetIval(); i != nil && 0 < i.Ival && int(i.Ival) <= len(columns) &&
				columns[i.Ival-1].oid != 0 {
				continue
			}
			if n.GetNode() != nil && (n.GetAConst() != nil || c.typeOf(n, ownLevel) == 0) {
				c.harden("a sub-select sorts or groups by what may not be compared")
			}
		}
	}
}

// limitCannotFail tells whether LIMIT or OFFSET cannot raise an error when the statement runs.
func limitCannotFail(n *sqltext.Node) bool {
	i := n.GetAConst()
	return n.GetNode() == nil || i != nil && (i.Isnull || i.GetIval() != nil && i.GetIval().Ival >= 0)
}

// referencesByRangeVar returns the references of the text, with their nodes in the tree as keys.
func (w *walker) referencesByRangeVar() map[*sqltext.RangeVar]*reference {
	references := map[*sqltext.RangeVar]*reference{}
	for _, ref := range w.references {
		references[ref.rangeVar] = ref
	}
	return references
}

// setHardening records in the result which statements of a text get a hardened plan, and why.
func (w *walker) setHardening(tree *sqltext.ParseResult, result *Result) {
	references := w.referencesByRangeVar()
	for i, raw := range tree.Stmts {
		hardenedPlan, reason, declared := w.hardeningOf(raw, references)
		if reason == "" {
			result.HardenedIfDeclared = result.HardenedIfDeclared || declared
			continue
		}
		if result.HardenedReason == "" {
			result.HardenedReason = reason
		}
		e := &result.Effects[i]
		if e.Kind == verdict.EffectPrepare {
			if w.valuesRunUserCode() { // PREPARE parses its query, which may already run functions of an owner
				e.HardenedPlan = verdict.HardenedAtExecute
			}
			e = &e.Body.Effects[0]
		}
		e.HardenedPlan = hardenedPlan
	}
	result.HardenBeforeParse = w.valuesRunUserCode()
}

// clearHardening removes from the result what setHardening recorded.
func (r *Result) clearHardening() {
	for i := range r.Effects {
		r.Effects[i].HardenedPlan = verdict.NotHardened
	}
	r.HardenedReason, r.HardenedIfDeclared = "", false
}
