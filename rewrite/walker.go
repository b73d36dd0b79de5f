package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// walker visits the statements of one text. It records the first refusal; after that, its other results do not count.
type walker struct {
	*Rewriter
	source  *sqltext.Source
	refused *sqlstate.Error
	// for each view of pgconsent in the rewritten text, the relation that the client named
	relationOfView map[catalog.Name]catalog.Name

	scope *scope    // the FROM items that the visited expression can name
	ctes  *cteFrame // the WITH queries that the visited expression can name

	nodeCounts map[string]int // the number of visited nodes of each kind, for checkNodeCounts
	references []*reference
	mayFail    bool // the plans are, or may have to be, hardened, since the statement may fail: see findFences
	// the plans are hardened, whatever types the client declares, so the text must read catalogs behind OFFSET 0
	fencesCatalogs bool
	// tells which conditions on the signed path stand below OFFSET 0; nil: the text has no such fence
	belowFence []bool
	// the tables whose rows a distance may sort, so that the text reads them behind OFFSET 0 if an index could return them
	// sorted
	fencedTables     map[*sqltext.RangeVar]bool
	firstReferences  []int                            // the index of each statement's first reference
	keyLookups       map[*sqltext.RangeVar]*keyLookup // the mentions of tables whose key the statement fixes
	edits            []edit
	stars            []targetStar
	qualifiedColumns []qualifiedColumn // the references of the form schema.table.column, see unqualifyColumns
	functions        map[string]bool   // the called functions, with their schemas
	timeWindows      []timeWindow
	cheapConditions  []cheapConditions
	keySearches      []keySearch  // the searches whose rows the text finds by key
	searchLeakCheck  *leakChecker // the leak check of the conditions of keySearches
	// the last parts of all column references, which are the names of the columns that the text may read
	columnNames map[string]bool
	// the collations of the text's values that are not the database's default: see checkCollations
	collations         map[string]bool
	explicitCollations map[string]bool // the collations that COLLATE names
	runsUserCodeCached *bool           // the cached result of valuesRunUserCode
	// the types of values in the text, and how often the text makes such values; some types of PostgreSQL are left out:
	// see checkCasts
	valueTypes   map[uint32]int
	foreignCasts []foreignCast
	// the comments for columns that the policy fills in if an INSERT omits them; true: every INSERT so far omits the
	// column
	omittedColumns    map[string]bool
	hasPrefixOperator bool // the text contains ^@ or starts_with
	needsSignature    bool
	lacksPredicate    bool                // some table in the text lacks the predicate that the mode requires
	starColumnCount   int                 // the number of columns that starColumns has added
	plainSelect       *sqltext.SelectStmt // the visited statement, if it is a SELECT; nil: it is another statement
	// the user for whom the session acts after this text, if a SELECT calls set_config for that; else nil
	userClaimOfSelect        *verdict.Claim
	representedUserParameter RepresentedUserParameter
	// a part of the text runs later, when another text is the current query, so that signing this text would not help
	runsLater      bool
	aggregations   []aggregation
	notices        []verdict.Notice // the notices that the client may get for this statement
	singleRowReads []*reference     // see noteSingleRowRead
	hasExecute     bool             // the text runs a prepared statement, which may need a signature
	extended       bool             // the text comes in a Parse message
	checkedParams  map[int32]int    // how often each parameter stands where the proxy must check its value
	// the checks of parameter values that the proxy makes when the client binds them
	valueChecks      []valueCheck
	statementCount   int  // the number of statements in the text
	needsPlanStandIn bool // the text is an EXPLAIN whose plan is not shown to agents: see explainStandIn

	currentOfEnd int                 // the index of the token after the last CURRENT OF that the walker has visited
	insertSource *sqltext.SelectStmt // the VALUES of the visited INSERT, in which DEFAULT is allowed
	// the parser repeats the visited node in the tree, so that edits of it must change only the tree
	repeated bool

	relationUses []*relationUse // the uses of relations in the whole text

	firstReference    int    // the index of the visited statement's first reference
	writesRows        bool   // this statement changes rows
	currentOfCursor   string // the cursor in the WHERE CURRENT OF of this statement
	locksRows         bool   // this statement locks rows
	namesSystemColumn bool   // this statement names a system column other than tableoid
	nullOnStandby     bool   // the visited expression is the ELSE of a CASE that is NULL on a standby
	systemColumnAt    int32  // the offset of the first system column in the text; -1: the statement names none
	namesTableOID     bool
}

func newWalker(r *Rewriter, source *sqltext.Source) *walker {
	return &walker{Rewriter: r, source: source, nodeCounts: map[string]int{}, functions: map[string]bool{},
		columnNames: map[string]bool{}, relationOfView: map[catalog.Name]catalog.Name{}, collations: map[string]bool{},
		explicitCollations: map[string]bool{}, checkedParams: map[int32]int{}, valueTypes: map[uint32]int{}, omittedColumns: map[string]bool{}}
}

// refuse records the first refusal.
func (w *walker) refuse(e *sqlstate.Error) {
	if w.refused == nil {
		w.refused = e
	}
}

// refuseAt records the first refusal, with its position in the text; location is a byte offset in the tree.
func (w *walker) refuseAt(e *sqlstate.Error, location int32) {
	if w.refused == nil {
		w.refused = e.WithPosition(w.source.Position(location))
	}
}

// countNode counts a visited node, for checkNodeCounts.
func (w *walker) countNode(kind string) { w.nodeCounts[kind]++ }

// visitStatement visits one statement and returns what the statement does to the session.
func (w *walker) visitStatement(raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("RawStmt")
	w.firstReferences = append(w.firstReferences, len(w.references))
	w.firstReference, w.namesSystemColumn, w.namesTableOID, w.writesRows, w.locksRows, w.currentOfCursor = len(w.references),
		false, false, false, false, ""
	w.scope, w.ctes, w.notices, w.plainSelect = nil, nil, nil, nil
	effect := verdict.Effect{}
	switch n := raw.GetStmt().GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		w.plainSelect = n.SelectStmt
		claimBefore := w.userClaimOfSelect
		w.selectStmt(n.SelectStmt, nil)
		effect.ReadsRows = true
		if w.userClaimOfSelect != claimBefore {
			effect.Name, effect.Claim = w.representedUser.Setting, w.userClaimOfSelect
		}
	case *sqltext.Node_InsertStmt, *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt:
		w.visitQuery(raw.GetStmt(), nil)
		effect.ReadsRows = true
	case *sqltext.Node_MergeStmt:
		w.mergeStmt(n.MergeStmt)
		effect.ReadsRows = true
	case *sqltext.Node_CopyStmt:
		w.copyStmt(n.CopyStmt)
		effect.ReadsRows = !n.CopyStmt.IsFrom
		if n.CopyStmt.IsFrom {
			effect.Kind = verdict.EffectCopyIn
		}
	case *sqltext.Node_TransactionStmt:
		effect = w.transactionStmt(n.TransactionStmt)
	case *sqltext.Node_VariableSetStmt:
		effect = w.variableSetStmt(n.VariableSetStmt, raw)
	case *sqltext.Node_VariableShowStmt:
		w.variableShowStmt(n.VariableShowStmt)
	case *sqltext.Node_DeallocateStmt:
		effect = w.deallocateStmt(n.DeallocateStmt, raw)
	case *sqltext.Node_PrepareStmt:
		effect = w.prepareStmt(n.PrepareStmt, raw)
	case *sqltext.Node_ExecuteStmt:
		effect = w.executeStmt(n.ExecuteStmt, raw)
	case *sqltext.Node_DeclareCursorStmt:
		effect = w.declareCursorStmt(n.DeclareCursorStmt, raw)
	case *sqltext.Node_FetchStmt:
		effect = w.fetchStmt(n.FetchStmt, raw)
	case *sqltext.Node_ClosePortalStmt:
		effect = w.closePortalStmt(n.ClosePortalStmt, raw)
	case *sqltext.Node_ExplainStmt:
		w.explainStmt(n.ExplainStmt, w.statementCount == 1)
	case *sqltext.Node_DiscardStmt:
		effect = w.discardStmt(n.DiscardStmt)
	case *sqltext.Node_ListenStmt:
		effect = w.listenStmt(n.ListenStmt)
	case *sqltext.Node_NotifyStmt:
		effect = w.notifyStmt(n.NotifyStmt)
	case *sqltext.Node_UnlistenStmt:
		effect = w.unlistenStmt()
	case *sqltext.Node_CreateExtensionStmt, *sqltext.Node_CreateSchemaStmt, *sqltext.Node_CreateStmt, *sqltext.Node_IndexStmt:
		effect = w.createStmt(raw)
	default:
		w.refuseAt(refusalOf(sqltext.NodeKind(raw.GetStmt())), w.firstToken(raw))
	}
	if w.refused == nil {
		w.checkSystemColumns()
		w.keepRelationsOfWrites()
	}
	effect.ReturnsRows = mayReturnRows(raw.GetStmt())
	if effect.Body != nil {
		effect.Body.Effects[0].WritesRows = w.writesRows
		effect.Body.Effects[0].ReturnsRows = effect.ReturnsRows
		effect.Body.Effects[0].Notices = w.notices
		effect.ReturnsRows = false
	} else {
		effect.WritesRows = w.writesRows
		effect.Notices = append(effect.Notices, w.notices...)
		if w.currentOfCursor != "" {
			effect.Name = w.currentOfCursor
		}
	}
	return effect
}

// firstToken returns the position of a statement's first token, behind any comments.
func (w *walker) firstToken(raw *sqltext.RawStmt) int32 {
	for _, t := range w.source.Tokens {
		if t.Start >= raw.GetStmtLocation() {
			return t.Start
		}
	}
	return -1
}

// checkSystemColumns checks the system columns that a statement names, after the walker has found all its tables. A
// statement that names tableoid must name the tables themselves, since a subquery has no tableoid.
func (w *walker) checkSystemColumns() {
	for _, ref := range w.references[w.firstReference:] {
		if ref.fragment == nil {
			continue
		}
		if w.namesSystemColumn {
			w.refuseAt(refusalOf("ColumnRef(system column)"), w.systemColumnAt)
			return
		}
		if w.namesTableOID {
			ref.doNotInject(tableOIDColumn)
		}
	}
}

// checkNodeCounts compares the number of visited nodes with the number that a generic walk finds in the tree. If the
// walker has missed a node, the text is refused.
func (w *walker) checkNodeCounts(tree *sqltext.ParseResult) *sqlstate.Error {
	kindCounts, isKnown := sqltext.CountNodeKinds(tree)
	if isKnown {
		for kind, n := range kindCounts {
			if kind != "ParseResult" && !leafKinds[kind] && w.nodeCounts[kind] != n {
				isKnown = false
			}
		}
	}
	if !isKnown {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonProof,
			"pgconsent could not read this statement completely").
			WithHint("Write the statement in a plainer form, and please report it.")
	}
	return nil
}

// leafKinds are the kinds of nodes that contain no other node and name no object.
var leafKinds = map[string]bool{"String": true, "Integer": true, "Float": true, "Boolean": true, "BitString": true,
	"List": true}

// editReferences makes the edits of all references after the walk.
func (w *walker) editReferences(signable bool) {
	for _, ref := range w.references {
		w.editReference(ref, signable)
	}
}
