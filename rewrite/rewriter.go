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

// Mode says which wall the text carries.
type Mode int

// The modes.
const (
	Both           Mode = iota // predicates in the text where they can be, besides row security
	RLS                        // names are only qualified: row security alone holds
	Auto                       // each statement pays one predicate: that of the gate's views if it is vetted, else row security's
	AlwaysSigned               // for tests: as Doors, and what reads few rows takes the gate too
	AlwaysInjected             // for tests: as Both, and a reference that cannot carry its predicate is refused
)

// UsesSignedPath tells whether texts may take the signed path.
func (m Mode) UsesSignedPath() bool { return m == Auto || m == AlwaysSigned }

// Result is what became of a text.
type Result struct {
	Text              string         // what goes upstream, without a signature
	UseHash           bool           // it begins with the hint that row policies should make sets of their helpers
	UseIndex          bool           // it begins with the hint that conditions of its own find few rows by an index
	SearchedByKey     []catalog.Name // tables of which a search finds rows by their keys, behind the gate door
	EstimateRows      []catalog.Name // tables of whose door views it begins with the hint that a search finds few rows, sorted
	NeedsSignature    bool           // the text names gate views: it must be signed
	Path              verdict.Path
	RowSecurityReason string // in mode Doors: what keeps the text from the gate door
	// on the signed path: why part of it is computed only of rows that the rest has found; "": all of it is leak-safe
	AboveReason string
	Position    func(int) int // from a 1-based character position in Text to one in the original

	HardenedReason     string // why its plans are made with care; "": they are not, or where types are declared for parameters alone
	HardenedIfDeclared bool   // they are where these are declared
	HardenBeforeParse  bool   // functions of others may make values of its constants as it is parsed

	lacksPredicate bool              // a table stands without the predicate that the mode asks for
	Renamed        []verdict.Renamed // relations that have another name in Text, longest first

	// what the text reads and writes, catalogs under their own names; sorted, one for a relation and a source
	Accesses      []policy.Access
	Statements    []policy.Statement // of each statement of the text, what contracts judge
	Functions     []string           // functions called, qualified; sorted, each once
	Effects       []verdict.Effect
	Keys          []int  // of each statement, how many keys it fetches columns by that exist by key only
	MultiWriteCTE bool   // one statement writes in several parts, which do not see each other's rows
	Fingerprint   string // of the shape of the text, literals left out
	Tag           string // "SELECT", "COPY", "BEGIN", "SET" …; "multi" for several statements, "" for none

	Forms        map[int32]verdict.Form // what the gate door counts on in the values of parameters
	ExpectsForms bool                   // it would count on some if the gate door paid, which goes by the sizes of tables
	paramKinds   map[int32]kind         // what it takes them for
	paramCasts   map[int32]uint32       // what it casts them to, by OID
	relationUses []*relationUse
	foreignCasts []foreignCast
}

// Rewriter rewrites statements under one policy and one catalog. It is safe for concurrent use.
type Rewriter struct {
	snap              *catalog.Snapshot
	pol               *policy.Policy
	mode              Mode
	sizes             catalog.Sizes
	fragments         map[catalog.Name]*fragment
	pins              map[string]*sqltext.Node // by the SQL of the value
	isView            bool                     // what it judges is the query of a view, which agents read as a table
	hasKeyOnlyColumns bool                     // some table has columns that exist by key only
	listsOnly         bool                     // see [Rewriter.Lists]
	templates         []template
	claims            map[string]string // settings that the policy maps to attributes
}

// New returns a rewriter.
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
			f.hasSignedView = false
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

// Rewrite judges the text of one message and rewrites it. A refusal comes with a Result too, which has the Tag and the
// Fingerprint as far as they are known, for the record, and no Text.
//
// In the extended protocol a text holds one statement at most.
func (r *Rewriter) Rewrite(text string, extended bool) (*Result, *sqlstate.Error) {
	return r.rewrite(text, extended, allowedForms{exactTwin: true, signedViews: true, fence: true})
}

// form says what a text may be made of.
type allowedForms struct {
	exactTwin   bool // a search, with its exact twin; else it is fenced in
	signedViews bool // door views
	fence       bool // rows that are found behind the gate door, and what is computed of them; or their keys
}

// rewrite does.
func (r *Rewriter) rewrite(text string, extended bool, allowed allowedForms) (*Result, *sqlstate.Error) {
	result := &Result{Position: func(p int) int { return p }, Path: verdict.PathRowSecurity}
	source, refused := sqltext.Scan(text)
	if refused != nil {
		return result, refused
	}
	result.Fingerprint = fingerprint(source)
	tree, refused := source.Parse()
	if refused != nil {
		return result, newerThanTheParser(refused, source, r.snap.ServerVersion())
	}
	result.Tag = tagOf(tree)
	if extended && len(tree.Stmts) > 1 {
		return result, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax,
			"cannot insert multiple commands into a prepared statement").
			WithHint("Send one statement at a time, or several in one simple query.")
	}
	w := newWalker(r, source)
	for _, raw := range tree.Stmts {
		result.Effects = append(result.Effects, w.statement(raw))
		if w.refused != nil {
			return result, w.refused
		}
		result.MultiWriteCTE = result.MultiWriteCTE || hasSeveralWrites(raw)
	}
	if refused := checkResets(result.Effects); refused != nil {
		return result, refused
	}
	// The walk must have seen all there is: a second, generic one counts what is in the tree.
	if refused := w.checkNodeCounts(tree); refused != nil {
		return result, refused
	}
	w.checkCollations(tree)
	w.checkCasts()
	if w.refused != nil {
		return result, w.refused
	}
	w.unqualifyColumns()
	result.Statements, result.Accesses = w.analyzeAccesses(tree) // before anything is put into the tree
	w.setHardening(tree, result)
	w.mayFail = result.HardenedReason != "" || result.HardenedIfDeclared
	result.relationUses, result.foreignCasts = w.relationUses, w.foreignCasts
	maySign := len(tree.Stmts) == 1 && !w.runsLater && signable(source)
	grouped := w.aggregateStatement(tree, maySign)
	if w.refused != nil {
		return result, w.refused
	}
	nearest := allowed.exactTwin && !grouped && w.isNearestSearch(tree)
	var search *sqltext.RangeVar
	if nearest {
		search = tree.Stmts[0].GetStmt().GetSelectStmt().FromClause[0].GetRangeVar()
	}
	indexed := nearest && w.mayUseApproximateIndex(search)
	signedPath := !grouped && allowed.signedViews && w.takeSignedPath(tree, result, allowed.fence && !nearest)
	if signedPath { // where nothing can fail
		result.clearHardening()
	}
	if !signedPath && w.searchLeakCheck != nil { // else all types are qualified
		w.searchLeakCheck.qualifyTypes()
	}
	if !signedPath && !grouped {
		w.findFences(tree, search)
		w.editReferences(maySign)
	}
	if w.refused != nil {
		return result, w.refused
	}
	result.Text = text
	result.UseHash = grouped || !signedPath && w.useHash(tree)
	result.UseIndex = !result.UseHash && result.HardenedReason == "" && w.useIndex(tree, signedPath)
	result.EstimateRows = w.estimateRows(tree, signedPath)
	if before := w.omittedMarks(); before != "" {
		w.replace(0, 0, before, func() {})
	}
	refused = w.checkLength()
	if refused != nil && signedPath { // the names of row security may be shorter, and the sizes of tables are not to decide
		return r.rewrite(text, extended, allowedForms{exactTwin: allowed.exactTwin})
	}
	if refused != nil {
		return result, refused
	}
	if len(w.edits) > 0 {
		edits := make([]sqltext.Edit, 0, len(w.edits))
		for _, e := range w.edits {
			if !e.treeOnly {
				edits = append(edits, e.Edit)
			}
			e.apply()
		}
		spliced, refused := sqltext.Splice(text, edits)
		if refused != nil {
			return result, refused
		}
		if refused := sqltext.Prove(tree, spliced.Text); refused != nil && signedPath {
			return r.rewrite(text, extended, allowedForms{exactTwin: allowed.exactTwin}) // as above, of tokens
		} else if refused != nil {
			return result, refused
		}
		if signedPath && !w.namesOnlySignedViews(tree) {
			return result, sqlstate.From(errNotSignedView)
		}
		result.Text, result.Position = spliced.Text, spliced.Position
	}
	if signedPath && w.belowFence != nil {
		behind, position, ok, refused := fenceConditions(result.Text, w.belowFence)
		if refused != nil {
			return result, refused
		}
		if !ok {
			return r.rewrite(text, extended, allowedForms{exactTwin: allowed.exactTwin, signedViews: allowed.signedViews})
		}
		inner := result.Position
		result.Text, result.Position = behind, func(p int) int { return inner(position(p)) }
	}
	if len(w.keySearches) > 0 {
		if !locateSearches(tree, w.keySearches) {
			return r.rewrite(text, extended, allowedForms{exactTwin: allowed.exactTwin, signedViews: allowed.signedViews})
		}
		with, position, ok, refused := addKeyConditions(result.Text, w.keySearches)
		if refused != nil {
			return result, refused
		}
		if !ok {
			return r.rewrite(text, extended, allowedForms{exactTwin: allowed.exactTwin, signedViews: allowed.signedViews})
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
		withTwin, position, ok, refused := write(result.Text)
		if refused != nil {
			return result, refused
		}
		if !ok {
			return r.rewrite(text, extended, allowedForms{signedViews: allowed.signedViews, fence: allowed.fence})
		}
		inner := result.Position
		result.Text, result.Position = withTwin, func(p int) int { return inner(position(p)) }
	}
	if hint := result.hintComments(); hint != "" { // a comment, which counts for no bound: it goes by the sizes of tables
		inner := result.Position
		result.Text = hint + result.Text
		result.Position = func(p int) int { return inner(max(p-len(hint), min(p, 1))) }
	}
	// A statement that was prepared signed reads gate views, which look at the text that is running: the EXECUTE's.
	result.NeedsSignature = w.needsSignature || w.hasExecute && maySign && r.mode != RLS
	result.lacksPredicate = w.lacksPredicate
	result.Renamed = w.renamedViews()
	result.Keys = w.keyCounts()
	for name := range w.functions {
		result.Functions = append(result.Functions, name)
	}
	slices.Sort(result.Functions)
	return result, nil
}

// hint is the comment that tells row policies and signed views which form of what they ask for is the faster.
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

// length refuses what would be too long, before trees are made of it.
func (w *walker) checkLength() *sqlstate.Error {
	total := len(w.source.Text)
	for _, e := range w.edits {
		total += len(e.Text)
	}
	if total <= sqltext.MaxBytes {
		return nil
	}
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
		"statement is longer than %d bytes with its predicates", sqltext.MaxBytes).
		WithHint("It names tables many times: read each once, in a WITH query.")
}

// signable tells whether a text reads the same to the database's check as to the parser whatever the lexer's settings:
// no backslash outside E” strings.
func signable(source *sqltext.Source) bool {
	if !strings.Contains(source.Text, `\`) {
		return true
	}
	clean := strings.Count(source.Text, `\`)
	for _, t := range source.Tokens {
		s := source.String(t)
		if t.Kind == sqltext.Sconst && (s[0] == 'E' || s[0] == 'e') {
			clean -= strings.Count(s, `\`)
		}
	}
	return clean == 0
}

// edit is a change of the text and the same change of the tree.
type edit struct {
	sqltext.Edit
	apply    func()
	treeOnly bool // of the tree alone: another edit changes the text
}

// fragment is what stands for a protected table.
type fragment struct {
	sql              string               // (SELECT * FROM public.t AS pgconsent_row WHERE ...)
	subquery         func() *sqltext.Node // its tree, to be cloned
	needsSignature   bool                 // it names gate views, which raise unless the text is signed
	showsAllRows     bool                 // the predicate is true
	view             catalog.Name         // the view whose name stands for the table's, which agents cannot read; else zero
	visible          *catalog.Relation
	isPlain          func(column string) bool // of a row view: whether a column comes out as it is stored
	keyFunction      *keyFunction             // nil: it has no columns that exist by key only
	viewTables       []catalog.Name           // of a view: the tables it reads
	lacksPredicate   bool                     // of a view: one of them is without its predicate
	lacksRowSecurity bool                     // of a materialised view or a foreign table, or of a view that reads one

	hashSets           []predicate.Set   // of the hashed form of the row policy
	hasSignedView      bool              // there is a door view
	materialized       bool              // row security compares an answer that is kept, where the door looks at the subjects
	aggregate          *policy.Aggregate // some rows count in groups only
	attributeColumns   []string          // columns that equal an attribute in every visible row
	runsUserCode       bool              // what the rule looks into has indexes and the like that run functions of others
	singleValueColumns []string          // those of them that equal one value
}

// stands tells whether a view's name stands for the table's: then no construct can reach past it.
func (f *fragment) isView() bool { return f.view != catalog.Name{} }

// rowAlias names the row inside a fragment. Predicates refer to it and to nothing of the statement.
const rowAlias = "pgconsent_row"
