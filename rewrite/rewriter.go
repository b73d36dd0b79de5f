package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// Mode says which enforcement the rewriter writes into the text, besides row security in the database.
type Mode int

// The modes of a rewriter.
const (
	InjectedMode    Mode = iota // the text contains predicates wherever they can be written, besides row security
	RowSecurityMode             // the text only gets qualified names, and row security alone filters rows
	// AutoMode lets a leak-safe statement read signed views. Other statements read the tables under row security.
	AutoMode
	// AlwaysSignedMode is AutoMode, but the sizes of tables do not influence the choice. [RewriteViewQuery] uses it for
	// copies of views on the signed path.
	AlwaysSignedMode
	// AlwaysInjectedMode is InjectedMode, but refuses a reference that cannot have its predicate. Package enforce uses it
	// to find out what a policy that is only observed would do.
	AlwaysInjectedMode
)

// UsesSignedPath tells whether texts may take the signed path.
func (m Mode) UsesSignedPath() bool { return m == AutoMode || m == AlwaysSignedMode }

// Result is what [Rewriter.Rewrite] returns about a text.
type Result struct {
	Text string // the text for PostgreSQL, still without a signature
	verdict.Rewritten
	PlanHints
	Hardening
	NeedsSignature    bool   // the text names signed views, so it must be signed
	RowSecurityReason string // in AutoMode: the reason why the text does not take the signed path
	// on the signed path: the reason why a part of the text is above OFFSET 0, where PostgreSQL computes it for visible
	// rows only; "": the whole text is leak-safe
	AboveFenceReason string

	lacksPredicate bool // some table in the text lacks the predicate that the mode requires

	// the relations that the text reads and writes, sorted, with one entry for each source; a catalog has its own name,
	// not that of its shadow view
	Accesses []policy.Access
	// for each statement of the text, what it reads and writes; contracts are checked with it
	Statements []policy.Statement
	Functions  []string // the qualified names of the called functions, sorted, each once
	// for each statement, by how many keys it fetches rows with columns that exist by key only
	Keys        []int
	Fingerprint string // a hash of the shape of the text, without its literals
	// the kind of the text, such as "SELECT", "COPY", "BEGIN", "SET"; "multi" for several statements, "" for none
	Tag string

	paramKinds   map[int32]kind   // the kinds of type that the leak check assumes for parameters
	paramCasts   map[int32]uint32 // the types, by OID, to which the text casts parameters
	relationUses []*relationUse   // the mentions of relations, with how the text uses them
	foreignCasts []foreignCast    // casts that other roles have created, and that PostgreSQL might use for the text
	checkValues  valueCheck       // checks the values of parameters; nil: all values are accepted

	RepresentedUserParameter RepresentedUserParameter // the parameter whose value names the user for whom the session acts

	// the literals of a simple query in whose place parameters may stand, by their numbers; nil: there are none
	Bindable []BindableLiteral
}

// PlanHints says which comments the rewriter puts at the beginning of a text. They tell row policies and signed views
// how many rows the planner should expect.
type PlanHints struct {
	UseHash       bool           // row policies should build hash sets of their lookup tables
	UseIndex      bool           // the statement's own conditions find few rows by an index
	SearchedByKey []catalog.Name // the tables whose rows a search finds by their keys, through signed views
	EstimateRows  []catalog.Name // the tables, sorted, in whose signed views a search finds few rows
}

// Hardening tells whether PostgreSQL plans a text with settings under which no function of another role runs on hidden
// rows.
type Hardening struct {
	// the reason for hardened plans; "": the plans are not hardened, or only if the client declares types for parameters
	HardenedReason     string
	HardenedIfDeclared bool // the plans are hardened if the client declares types for parameters
}

// Rewriter rewrites statements under one policy and one catalog. It is safe for concurrent use.
type Rewriter struct {
	snap      *catalog.Snapshot
	pol       *policy.Policy
	mode      Mode
	sizes     catalog.Sizes
	fragments map[catalog.Name]*fragment // for each relation of the policy, what the rewriter can put in its place
	pins      map[string]*sqltext.Node   // the parsed values of pinned arguments, with their SQL as keys
	// the text is the query of a view that agents read, not a text of an agent
	isView            bool
	hasKeyOnlyColumns bool // some table has columns that exist by key only
	// agents of this rewriter may not fetch rows by key: see [Rewriter.ListsOnly]
	listsOnly       bool
	templates       []template        // the named statements of the policy
	representedUser *RepresentedUser  // how a session says for which user it acts; nil: the session acts for nobody
	claims          map[string]string // the settings from which the policy takes attributes of the session
	// tells whether a name is one of the session's own role; nil: there is no such name
	isOwnRole func(name string) bool
}

// New returns a rewriter for the relations in snap under the policy pol.
func New(snap *catalog.Snapshot, pol *policy.Policy, mode Mode) *Rewriter {
	r := &Rewriter{snap: snap, pol: pol, mode: mode, fragments: map[catalog.Name]*fragment{},
		pins: map[string]*sqltext.Node{}, templates: readTemplates(pol.NamedStatements()), claims: pol.Settings()}
	for _, t := range pol.Tables() {
		f := newFragment(t, mode)
		r.fragments[t.Relation.Name] = f
		r.hasKeyOnlyColumns = r.hasKeyOnlyColumns || f.keyFunction != nil
	}
	for _, c := range pol.Children() {
		if c.ReadableByName && c.Relation.HasOurPolicy {
			f := newFragment(&policy.Table{Relation: c.Relation, Rows: c.Rows}, mode)
			f.hasSignedView, f.partOf = false, c.PartOf
			r.fragments[c.Relation.Name] = f
		}
	}
	for _, v := range pol.Views() {
		if v.Listed {
			r.fragments[v.Relation.Name] = r.viewFragment(v)
		}
	}
	for _, f := range pol.Functions() {
		for _, pin := range f.Pins {
			r.pins[pin.Value] = parseExpression(pin.Value)
		}
	}
	return r
}

// Rewrite checks the text of one message and rewrites it. If it refuses the text, it still returns a Result for the
// audit record. That Result has the Tag and the Fingerprint, as far as they are known, and no Text.
//
// In the extended protocol a text contains at most one statement.
func (r *Rewriter) Rewrite(text string, extended bool) (*Result, *sqlstate.Error) {
	return r.rewriteAs(text, extended, allowedForms{exactTwin: true, signedViews: true, optimizationFence: true})
}

// allowedForms says which forms the rewritten text may have. If one of them cannot be written, the rewriter starts
// again without that form.
type allowedForms struct {
	// the exact twin beside a nearest-neighbour search; false: the table of the search is behind OFFSET 0
	exactTwin         bool
	signedViews       bool // signed views in the place of tables
	optimizationFence bool // OFFSET 0 between leak-safe conditions and others; or a search that finds rows by their keys
}

// rewriteAs rewrites a text into one of the allowed forms.
func (r *Rewriter) rewriteAs(text string, extended bool, forms allowedForms) (*Result, *sqlstate.Error) {
	result := &Result{Rewritten: verdict.Rewritten{Position: func(p int) int { return p }, Path: verdict.PathRowSecurity}}
	source, refusal := sqltext.Scan(text)
	if refusal != nil {
		return result, refusal
	}
	result.Fingerprint = fingerprint(source)
	tree, refusal := source.Parse()
	if refusal != nil {
		return result, explainNewerSyntax(refusal, source, r.snap.ServerVersion())
	}
	result.Tag = tagOf(tree)
	if extended && len(tree.Stmts) > 1 {
		return result, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax,
			"cannot insert multiple commands into a prepared statement").
			WithHint("Send one statement at a time, or several in one simple query.")
	}
	w := newWalker(r, source)
	w.extended, w.statementCount = extended, len(tree.Stmts)
	for _, raw := range tree.Stmts {
		result.Effects = append(result.Effects, w.visitStatement(raw))
		if w.refused != nil {
			return result, w.refused
		}
		result.MultiWriteCTE = result.MultiWriteCTE || hasSeveralWrites(raw)
	}
	if w.needsPlanStandIn {
		return r.explainStandIn(source, tree, extended)
	}
	if refusal := checkDiscards(result.Effects); refusal != nil {
		return result, refusal
	}
	// The walker must have visited every node. To check that, a second, generic walk counts the nodes of the tree.
	if refusal := w.checkNodeCounts(tree); refusal != nil {
		return result, refusal
	}
	w.checkCollations(tree)
	w.checkCasts()
	if w.refused != nil {
		return result, w.refused
	}
	if w.checkParamUses(tree); w.refused != nil {
		return result, w.refused
	}
	result.checkValues = w.valueCheck()
	result.RepresentedUserParameter = w.representedUserParameter
	result.NeedsValueCheck = result.checkValues != nil || w.representedUserParameter.Number != 0
	// A statement that names the user for whom the session acts may not run by EXECUTE, because the proxy would not
	// notice.
	result.ExpectsForms = result.NeedsValueCheck || w.userClaimOfSelect != nil
	result.CallsSetConfig = w.functions["pg_catalog.set_config"]
	w.unqualifyColumns()
	result.Statements, result.Accesses = w.analyzeAccesses(tree) // this must be done before the tree is edited
	w.setHardening(tree, result)
	w.mayFail = result.HardenedReason != "" || result.HardenedIfDeclared
	// If only declared parameters need hardened plans, catalogs need no fence: PostgreSQL converts parameters when it
	// plans, whatever the rows are.
	w.fencesCatalogs = result.HardenedReason != ""
	if !extended {
		result.Bindable = w.bindableLiterals(tree)
	}
	result.relationUses, result.foreignCasts = w.relationUses, w.foreignCasts
	maySign := len(tree.Stmts) == 1 && !w.runsLater && isSignable(source)
	grouped := w.useGroupView(tree, maySign)
	if w.refused != nil {
		return result, w.refused
	}
	nearest := forms.exactTwin && !grouped && w.isNearestSearch(tree)
	var search *sqltext.RangeVar
	if nearest {
		search = tree.Stmts[0].GetStmt().GetSelectStmt().FromClause[0].GetRangeVar()
	}
	indexed := nearest && w.mayUseApproximateIndex(search)
	signedPath := !grouped && forms.signedViews && w.takeSignedPath(tree, result, forms.optimizationFence && !nearest)
	if signedPath { // on the signed path no expression can fail
		result.clearHardening()
	}
	if !signedPath && w.searchLeakCheck != nil { // on the signed path, useSignedViews has already qualified all types
		w.searchLeakCheck.qualifyTypes()
	}
	// These conditions must be the same on both paths, since the sizes of tables decide between the paths. A text with a
	// group view, a nearest search, a search by key or OFFSET 0 gets none, because those forms read the text's conditions
	// again.
	if !grouped && !nearest && len(w.keySearches) == 0 && w.belowFence == nil {
		w.addCheapConditions()
		w.addTimeWindows()
	}
	if !signedPath && !grouped {
		w.findFences(tree, search)
		w.editReferences(maySign)
	}
	if w.refused != nil {
		return result, w.refused
	}
	result.Text = text
	result.EstimateRows = w.rowHintTables(tree, signedPath)
	result.UseHash = grouped || (!signedPath || len(result.EstimateRows) == 0 && w.readsHashedParts(tree)) && w.wantsHashHint(tree)
	result.UseIndex = !result.UseHash && result.HardenedReason == "" && w.wantsIndexHint(tree, signedPath)
	if before := w.omittedMarks(); before != "" {
		w.replace(0, 0, before, func() {})
	}
	refusal = w.checkLength()
	// Under row security the names may be shorter. But whether a text is too long must not depend on the sizes of tables.
	if refusal != nil && signedPath {
		return r.rewriteAs(text, extended, allowedForms{exactTwin: forms.exactTwin})
	}
	if refusal != nil {
		return result, refusal
	}
	if len(w.edits) > 0 {
		edits := make([]sqltext.Edit, 0, len(w.edits))
		for _, e := range w.edits {
			if !e.treeOnly {
				edits = append(edits, e.Edit)
			}
			e.apply()
		}
		spliced, refusal := sqltext.ApplyEdits(text, edits)
		if refusal != nil {
			return result, refusal
		}
		if refusal := sqltext.ProveSameTree(tree, spliced.Text); refusal != nil && signedPath {
			// if the tokens differ, try again without these forms, as above
			return r.rewriteAs(text, extended, allowedForms{exactTwin: forms.exactTwin})
		} else if refusal != nil {
			return result, refusal
		}
		if signedPath && !w.namesOnlySignedViews(tree) {
			return result, sqlstate.AsError(errNotSignedView)
		}
		result.Text, result.Position = spliced.Text, spliced.Position
	}
	if signedPath && w.belowFence != nil {
		after, position, ok, refusal := fenceConditions(result.Text, w.belowFence)
		if refusal != nil {
			return result, refusal
		}
		if !ok {
			return r.rewriteAs(text, extended, allowedForms{exactTwin: forms.exactTwin, signedViews: forms.signedViews})
		}
		inner := result.Position
		result.Text, result.Position = after, func(p int) int { return inner(position(p)) }
	}
	if len(w.keySearches) > 0 {
		if !locateSearches(tree, w.keySearches) {
			return r.rewriteAs(text, extended, allowedForms{exactTwin: forms.exactTwin, signedViews: forms.signedViews})
		}
		with, position, ok, refusal := addKeyConditions(result.Text, w.keySearches)
		if refusal != nil {
			return result, refusal
		}
		if !ok {
			return r.rewriteAs(text, extended, allowedForms{exactTwin: forms.exactTwin, signedViews: forms.signedViews})
		}
		inner := result.Position
		result.Text, result.Position = with, func(p int) int { return inner(position(p)) }
		for _, search := range w.keySearches {
			result.SearchedByKey = append(result.SearchedByKey, search.ref.name)
		}
	}
	if nearest {
		write := fenceSearch
		if indexed {
			write = withExactTwin
			w.functions["pg_catalog.count"] = true
		}
		withTwin, position, ok, refusal := write(result.Text)
		if refusal != nil {
			return result, refusal
		}
		if !ok {
			return r.rewriteAs(text, extended, allowedForms{signedViews: forms.signedViews,
				optimizationFence: forms.optimizationFence})
		}
		inner := result.Position
		result.Text, result.Position = withTwin, func(p int) int { return inner(position(p)) }
	}
	// the comment is not counted in the length of the text, because it depends on the sizes of tables
	if hint := result.hintComments(); hint != "" {
		inner := result.Position
		result.Text = hint + result.Text
		result.Position = func(p int) int { return inner(max(p-len(hint), min(p, 1))) }
	}
	// An EXECUTE may run a prepared statement that reads signed views. The views check the signature of the current text,
	// which is that of the EXECUTE.
	result.NeedsSignature = w.needsSignature || w.hasExecute && maySign && r.mode != RowSecurityMode
	result.lacksPredicate = w.lacksPredicate
	result.RenamedRelations = w.renamedViews()
	result.Keys = w.keyCounts()
	for name := range w.functions {
		result.Functions = append(result.Functions, name)
	}
	slices.Sort(result.Functions)
	return result, nil
}

// hintComments returns the comments that make row policies and signed views use the faster form of their conditions.
func (r *Result) hintComments() string {
	var b strings.Builder
	switch {
	case r.UseHash:
		b.WriteString(predicate.UseHashHint)
	case r.UseIndex:
		b.WriteString(predicate.UseIndexHint)
	}
	for _, table := range r.EstimateRows {
		b.WriteString(predicate.EstimateRowsHint(table))
	}
	return b.String()
}

// checkLength refuses a text that the edits make too long, before the text is parsed again.
func (w *walker) checkLength() *sqlstate.Error {
	total := len(w.source.Text)
	for _, e := range w.edits {
		total += len(e.Text)
	}
	if total <= sqltext.MaxBytes() {
		return nil
	}
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
		"statement is longer than %d bytes with its predicates", sqltext.MaxBytes()).
		WithHint("It names tables many times: read each once, in a WITH query.")
}

// isSignable tells whether PostgreSQL reads a text as the parser does, whatever its lexer settings are. Only such a
// text can be signed. In it, backslashes stand only in strings with a leading E.
func isSignable(source *sqltext.Source) bool {
	if !strings.Contains(source.Text, `\`) {
		return true
	}
	clean := strings.Count(source.Text, `\`)
	for _, t := range source.Tokens {
		s := source.TokenText(t)
		if t.Kind == sqltext.Sconst && (s[0] == 'E' || s[0] == 'e') {
			clean -= strings.Count(s, `\`)
		}
	}
	return clean == 0
}

// edit is a change of the text, together with the same change of the tree.
type edit struct {
	sqltext.Edit
	apply    func()
	treeOnly bool // this edit changes only the tree, since another edit changes the text
}

// fragment is what the rewriter can put in the place of a relation of the policy.
type fragment struct {
	sql            string               // the subquery: (SELECT * FROM public.t AS pgconsent_row WHERE ...)
	subquery       func() *sqltext.Node // returns the tree of the subquery, which callers must clone
	needsSignature bool                 // the subquery names signed views, which raise an error unless the text is signed
	showsAllRows   bool                 // the predicate is true, so that agents see every row
	// the view that the rewriter names in place of the relation, because agents have no right to read the relation itself;
	// zero: there is none
	view        catalog.Name
	visible     *catalog.Relation        // the relation, with only the columns that agents see
	isPlain     func(column string) bool // tells whether the row view returns a column as the table stores it
	keyFunction *keyFunction             // the function that fetches rows by key; nil: no column exists by key only
	viewTables  []catalog.Name           // if the relation is a view: the tables that it reads
	// the tables of the policy of which the relation is a partition or an inheritance child
	partOf         []catalog.Name
	lacksPredicate bool // some table that the view reads lacks the predicate
	// the relation is a materialized view, a foreign table, or a view that reads one
	lacksRowSecurity bool

	hashSets      []predicate.HashedSet // the sets that PostgreSQL builds if the text has the hint for hash sets
	hasSignedView bool                  // the table has a signed view
	// with the hint for hash sets, PostgreSQL builds such sets for parts of the signed view
	hasHashedPart bool
	// row security compares a materialized answer, while the signed view reads the subjects' consent
	materialized     bool
	aggregate        *policy.Aggregate // set if agents see some rows only as part of group results
	attributeColumns []string          // the columns that equal an attribute in every visible row
	// the rule reads lookup tables for whose indexes or types PostgreSQL runs functions of the owner
	runsUserCode       bool
	singleValueColumns []string // the columns among attributeColumns that equal one value, not one of several
}

// isView tells whether the rewriter names a view in place of the relation, wherever the statement names it.
func (f *fragment) isView() bool { return f.view != catalog.Name{} }

// rowAlias is the alias of the table in a fragment's subquery. Predicates refer to the table by it, and to no name of
// the statement.
const rowAlias = "pgconsent_row"
