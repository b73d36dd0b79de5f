package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// walker visits the statements of one text. The first refusal stays; after it nothing of the walk counts.
type walker struct {
	*Rewriter
	source         *sqltext.Source
	refused        *sqlstate.Error
	relationOfView map[catalog.Name]catalog.Name // the views that stand for relations in the text, to the relations

	scope *scope    // names of the FROM items in sight
	ctes  *cteFrame // names of the WITH queries in sight

	nodeCounts map[string]int // kinds of nodes visited, for reconcile
	references []*reference
	mayFail    bool // it may fail: see fences
	// on the signed path: which conditions find the rows, where others are asked of these; else nil
	belowFence         []bool
	fencedTables       map[*sqltext.RangeVar]bool       // what a distance may put in order, where an approximate index may lie under it
	firstReferences    []int                            // the first reference of each statement
	keyLookups         map[*sqltext.RangeVar]*keyLookup // the mentions of tables whose key is fixed
	edits              []edit
	stars              []targetStar
	qualifiedColumns   []qualifiedColumn // references schema.table.column, see unqualifyColumns
	functions          map[string]bool
	keySearches        []keySearch     // of which rows are found by key
	searchLeakCheck    *leakChecker    // of their conditions
	columnNames        map[string]bool // last parts of all column references: what columns may have been read
	collations         map[string]bool // other than the database's own: see checkCollations
	explicitCollations map[string]bool // those by COLLATE
	runsUserCodeCached *bool           // see bringsOthers
	valueTypes         map[uint32]int  // types of values and how often they are brought, see checkCasts; PostgreSQL's own not all
	foreignCasts       []foreignCast
	omitted            map[string]bool // marks of columns that the policy fills in; true: every INSERT so far leaves it out
	hasPrefixOperator  bool            // ^@ is there
	needsSignature     bool
	lacksPredicate     bool // a table stands without the predicate that the mode asks for
	starColumnCount    int  // columns copied by starColumns
	runsLater          bool // a part of the text runs later, when another text is the one that is running
	aggregations       []aggregation
	hasExecute         bool // it names a prepared statement, which may be a signed one

	currentOfEnd int                 // the token behind the last CURRENT OF
	insertSource *sqltext.SelectStmt // the VALUES of an INSERT, which may hold DEFAULT
	repeated     bool                // what is visited stands in the text once and was visited before

	relationUses []*relationUse // of the whole text

	// of the statement at hand
	firstReference    int    // its first reference
	writes            bool   // it changes rows
	currentOfCursor   string // of its CURRENT OF
	locks             bool   // it locks rows
	namesSystemColumn bool   // it names one
	systemColumnAt    int32  // where, or -1
	namesTableOID     bool
}

func newWalker(r *Rewriter, source *sqltext.Source) *walker {
	return &walker{Rewriter: r, source: source, nodeCounts: map[string]int{}, functions: map[string]bool{},
		columnNames: map[string]bool{}, relationOfView: map[catalog.Name]catalog.Name{}, collations: map[string]bool{},
		explicitCollations: map[string]bool{}, valueTypes: map[uint32]int{}, omitted: map[string]bool{}}
}

// refuse records the first refusal.
func (w *walker) refuse(e *sqlstate.Error) {
	if w.refused == nil {
		w.refused = e
	}
}

// refuseAt records a refusal with its place, a byte offset of the tree.
func (w *walker) refuseAt(e *sqlstate.Error, location int32) {
	if w.refused == nil {
		w.refused = e.At(w.source.Position(location))
	}
}

func (w *walker) saw(kind string) { w.nodeCounts[kind]++ }

// statement visits one statement and returns what it does to the session.
func (w *walker) statement(raw *sqltext.RawStmt) verdict.Effect {
	w.saw("RawStmt")
	w.firstReferences = append(w.firstReferences, len(w.references))
	w.firstReference, w.namesSystemColumn, w.namesTableOID, w.writes, w.locks, w.currentOfCursor = len(w.references), false, false, false, false, ""
	w.scope, w.ctes = nil, nil
	effect := verdict.Effect{}
	switch n := raw.GetStmt().GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		w.selectStmt(n.SelectStmt, nil)
		effect.Reads = true
	case *sqltext.Node_InsertStmt, *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt:
		w.query(raw.GetStmt(), nil)
		effect.Reads = true
	case *sqltext.Node_MergeStmt:
		w.mergeStmt(n.MergeStmt)
		effect.Reads = true
	case *sqltext.Node_CopyStmt:
		w.copyStmt(n.CopyStmt)
		effect.Reads = !n.CopyStmt.IsFrom
		if n.CopyStmt.IsFrom {
			effect.Kind = verdict.CopiesIn
		}
	case *sqltext.Node_TransactionStmt:
		effect = w.transactionStmt(n.TransactionStmt)
	case *sqltext.Node_VariableSetStmt:
		effect = w.variableSetStmt(n.VariableSetStmt)
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
		w.explainStmt(n.ExplainStmt)
	case *sqltext.Node_DiscardStmt:
		effect = w.discardStmt(n.DiscardStmt)
	case *sqltext.Node_UnlistenStmt:
		effect = w.unlistenStmt()
	default:
		w.refuseAt(refusal(sqltext.Kind(raw.GetStmt())), w.firstToken(raw))
	}
	if w.refused == nil {
		w.checkSystemColumns()
		w.keepRelationsOfWrites()
	}
	effect.Returns = returnsRows(raw.GetStmt())
	if effect.Body != nil {
		effect.Body.Effects[0].Writes = w.writes
		effect.Body.Effects[0].Returns = effect.Returns
		effect.Returns = false
	} else {
		effect.Writes = w.writes
		if w.currentOfCursor != "" {
			effect.Name = w.currentOfCursor
		}
	}
	return effect
}

// firstToken returns where a statement begins, comments left out.
func (w *walker) firstToken(raw *sqltext.RawStmt) int32 {
	for _, t := range w.source.Tokens {
		if t.Start >= raw.GetStmtLocation() {
			return t.Start
		}
	}
	return -1
}

// systemColumns judges the system columns that the statement names, now that its tables are known. A statement that
// names tableoid leaves its tables as they are: a subquery has no such column.
func (w *walker) checkSystemColumns() {
	for _, ref := range w.references[w.firstReference:] {
		if ref.fragment == nil {
			continue
		}
		if w.namesSystemColumn {
			w.refuseAt(refusal("ColumnRef(system column)"), w.systemColumnAt)
			return
		}
		if w.namesTableOID {
			ref.doNotInject(tableOIDColumn)
		}
	}
}

// reconcile compares what the walk visited with what a walk that knows no grammar finds in the tree.
func (w *walker) checkNodeCounts(tree *sqltext.ParseResult) *sqlstate.Error {
	counts, known := sqltext.Count(tree)
	if known {
		for kind, n := range counts {
			if kind != "ParseResult" && !leafKinds[kind] && w.nodeCounts[kind] != n {
				known = false
			}
		}
	}
	if !known {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonProof,
			"pgconsent could not read this statement completely").
			WithHint("Write the statement in a plainer form, and please report it.")
	}
	return nil
}

// leaf lists the kinds that hold no other and name nothing by themselves.
var leafKinds = map[string]bool{"String": true, "Integer": true, "Float": true, "Boolean": true, "BitString": true, "List": true}

// settle turns references into edits, now that all is known of them.
func (w *walker) editReferences(signable bool) {
	for _, ref := range w.references {
		w.editReference(ref, signable)
	}
}
