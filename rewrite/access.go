package rewrite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// The files access*.go find out what a statement reads. The analysis follows columns through aliases, sub-selects, WITH
// queries, views and joins to their tables, and notes how the statement uses them. It runs over the client's own tree,
// before any edit, and after the walker has checked every construct. Where a name may mean several columns, all of them
// count as used. A kind of node that the analysis does not know makes everything count as used in every way.

// usage is a set of ways in which a statement uses the value of a column.
type usage uint8

const (
	usageNullTest   usage = 1 << iota // the statement asks whether there is a value: by IS NULL or count(x)
	usageFilter                       // a condition depends on the value
	usageOutput                       // the result depends on the value: its values, order or groups
	usageSimilarity                   // a distance or a similarity is computed from the value
)

// relationUse is one mention of a table, view or catalog in the text.
type relationUse struct {
	name           catalog.Name
	relation       *catalog.Relation // the relation; nil for a catalog that the snapshot does not describe
	alias          string
	throughObject  string // the view or the function through which the statement mentions it
	declaredSource string // the source that the policy declares; "": the source follows from the columns

	columnUsage   map[string]usage // how the statement uses each column
	rowUsage      usage            // how the statement uses all columns, as parts of a row
	unusedColumns map[string]bool  // columns that a sub-select returns, but that nothing outside of it uses
	unusedRow     bool             // a sub-select returns a whole row of the relation and nothing uses the row
	// the columns that must equal a constant or a parameter in each row that the statement reads
	constantColumns map[string]bool
	joinedByKey     bool            // the statement compares a key column with a column of another table
	isTarget        bool            // the statement writes the relation
	isRead          bool            // isTarget is set, and the statement also reads columns of the relation
	writtenColumns  map[string]bool // columns that the statement writes
}

// markUsed notes how the text uses a column.
func (r *relationUse) markUsed(column string, f usage) {
	r.isRead = true
	if column == "" {
		r.rowUsage |= f
		return
	}
	r.columnUsage[column] |= f
	if r.relation == nil {
		return
	}
	// if the expression of a virtual column fails, the error shows the values from which PostgreSQL computes the column
	if c := r.relation.Column(column); c != nil && c.Virtual {
		for _, from := range c.ComputedFrom {
			r.columnUsage[from] |= f | usageOutput
		}
	}
}

// outputColumn is a column that an item of FROM or a query returns.
type outputColumn struct {
	name       string
	hasOwnName bool // the output has a name by AS, or the name of a table's column
	usage      usage

	relation *relationUse // the table that has the column; if column is "", the value is a whole row of the table
	column   string
	sources  []*outputColumn // the columns whose value this one passes on, if it does
	expr     *sqltext.Node   // for a computed column: its expression, whose columns are marked already
	scope    *usageScope
}

// usageAnalysis follows how one statement uses its columns.
type usageAnalysis struct {
	*walker
	uses    []*relationUse
	visited map[*sqltext.RangeVar]bool
	// the results of subqueries in expressions, which may be visited twice
	subqueries map[*sqltext.SelectStmt]*resultColumns
	ctes       *cteLevel // the WITH queries that the current expression can name
	// the usage of columns in conditions: usageOutput in a sub-select whose result is output, else usageFilter
	conditionUsage usage
	viewName       string // the view into whose query the analysis has descended; "": none
	viewCount      int    // how many mentions of views the analysis has descended into
	starOutputs    int    // how many output columns the stars (* and x.*) stand for
	incomplete     bool   // the analysis met something that it does not understand
}

// resultColumns are the columns that a query returns.
type resultColumns struct {
	outputs []*outputColumn
	unknown *outputColumn // stands for further columns whose names are not known; nil: there are none
	byName  map[string]*sameName
}

// sameName holds the output columns that have one name. Thousands of references may name thousands of columns of the
// same name, so each name is marked as used only once.
type sameName struct {
	ownName  []*outputColumn // the outputs whose name comes from AS or from a table's column
	all      []*outputColumn
	isMarked [2]bool // whether ownName, and whether all, are marked as used
}

// markNamedUsed marks the outputs that have the given name as used, and tells whether there are any. With givenOnly,
// only names by AS and names of columns count.
func (r *usageAnalysis) markNamedUsed(q *resultColumns, name string, givenOnly bool) bool {
	if q.byName == nil {
		q.byName = make(map[string]*sameName, len(q.outputs))
		for _, o := range q.outputs {
			namesakes := q.byName[o.name]
			if namesakes == nil {
				namesakes = &sameName{}
				q.byName[o.name] = namesakes
			}
			if namesakes.all = append(namesakes.all, o); o.hasOwnName {
				namesakes.ownName = append(namesakes.ownName, o)
			}
		}
	}
	namesakes := q.byName[name]
	if namesakes == nil {
		return false
	}
	index, outputs := 1, namesakes.all
	if givenOnly {
		index, outputs = 0, namesakes.ownName
	}
	if !namesakes.isMarked[index] {
		namesakes.isMarked[index] = true
		for _, o := range outputs {
			r.markUsed(o, usageOutput)
		}
	}
	return len(outputs) > 0
}

// rangeItem is an item of FROM.
type rangeItem struct {
	resultColumns
	name            string
	relation        catalog.Name   // the name of a table without an alias
	wholeRow        *outputColumn  // the output that stands for the whole row
	usage           *relationUse   // the mention of the table; nil: the item is no table
	joinedRelations []*relationUse // the tables of a join that has an alias
}

// usageScope holds the items of FROM of one query. parent is the scope of the query around it.
type usageScope struct {
	items  []*rangeItem
	parent *usageScope
}

// cteLevel holds the WITH queries of one WITH clause.
type cteLevel struct {
	parent  *cteLevel
	queries map[string]*resultColumns
}

// markUsed marks the table columns from which an output column comes as used in the ways f.
func (r *usageAnalysis) markUsed(o *outputColumn, f usage) {
	if o == nil {
		return
	}
	f &^= o.usage
	if f == 0 {
		return
	}
	o.usage |= f
	if o.relation != nil {
		o.relation.markUsed(o.column, f)
	}
	for _, inner := range o.sources {
		r.markUsed(inner, f)
	}
	if o.expr != nil && f&usageSimilarity != 0 {
		r.visitExpr(o.expr, o.scope, f)
	}
}

// addSource notes that the output o also comes from the output inner.
func (r *usageAnalysis) addSource(o, inner *outputColumn) {
	o.sources = append(o.sources, inner)
	if o.usage != 0 {
		r.markUsed(inner, o.usage)
	}
}

func (r *usageAnalysis) markAllUsed(q *resultColumns, f usage) {
	if q == nil {
		return
	}
	for _, o := range q.outputs {
		r.markUsed(o, f)
	}
	r.markUsed(q.unknown, f)
}

// baseColumn returns the column of a table that an output column passes on unchanged. isDirect tells whether the output
// belongs to the table itself, and not to a sub-select. The result is nil if the output is no column of a table, or may
// be one of several.
func (o *outputColumn) baseColumn() (found *outputColumn, isDirect bool) {
	found = o.followOrigin()
	if found == nil || found.relation == nil {
		return nil, false
	}
	return found, found == o
}

// followOrigin follows an output as long as it passes on exactly one other output, and returns the last. The result is
// nil if the last output is unknown, or if the output comes from itself. An example is WITH RECURSIVE x (n) AS (SELECT
// n FROM x), which PostgreSQL refuses.
func (o *outputColumn) followOrigin() *outputColumn {
	mark, steps, next := o, 0, 1 // mark is set again after 1, 2, 4, … steps, so that a walk in a circle reaches it
	for o != nil && o.relation == nil && len(o.sources) == 1 && o.expr == nil {
		if o = o.sources[0]; o == mark {
			return nil
		}
		if steps++; steps == next {
			mark, steps, next = o, 0, 2*next
		}
	}
	return o
}

// noteUnused notes that a sub-select returns the column o and that nothing has used it so far.
func (o *outputColumn) noteUnused() {
	if b, _ := o.baseColumn(); b != nil && b.relation != nil {
		if b.column == "" {
			b.relation.unusedRow = true
		} else {
			b.relation.unusedColumns[b.column] = true
		}
	}
}

// analyzeAccesses finds out what each statement of the text reads and writes, and what all of them do together. Every
// relation that the walker has met is in the result.
func (w *walker) analyzeAccesses(tree *sqltext.ParseResult) (statements []policy.Statement, all []policy.Access) {
	analyses := make([]*usageAnalysis, 0, len(tree.Stmts))
	visited := map[*sqltext.RangeVar]bool{}
	knownNames := map[catalog.Name]bool{}
	for _, raw := range tree.Stmts {
		r := &usageAnalysis{walker: w, visited: visited, subqueries: map[*sqltext.SelectStmt]*resultColumns{},
			conditionUsage: usageFilter}
		r.visitStatement(raw.GetStmt())
		for _, use := range r.uses {
			knownNames[use.name] = true
			if r.incomplete {
				use.markUsed("", usageOutput|usageSimilarity)
			}
		}
		analyses = append(analyses, r)
	}
	// A relation that the walker has found and this analysis has not counts as read in every way, by each statement.
	for _, ref := range w.references {
		names := []catalog.Name{ref.name}
		if ref.fragment != nil {
			names = append(names, ref.fragment.viewTables...)
		}
		for _, name := range names {
			if knownNames[name] && (ref.rangeVar == nil || visited[ref.rangeVar]) {
				continue
			}
			knownNames[name] = true
			for _, r := range analyses {
				r.addRelation(name, name.Name, ref.relation).markUsed("", usageOutput|usageSimilarity)
			}
		}
	}
	var allUses []*relationUse
	for i, r := range analyses {
		stmt := tree.Stmts[i].GetStmt()
		s := policy.Statement{Tag: tagOfStatement(stmt), Accesses: w.mergeAccesses(r.uses)}
		if w.pol.RecordsKeys() {
			s.SingleTable = readsOneTableOnce(stmt)
		}
		if w.pol.HasContracts() {
			s.Limit, s.PlainSelect = isPlainSelect(stmt)
			if len(tree.Stmts) == 1 {
				s.NamedStatements = w.templatesOf(stmt)
			}
		}
		statements, allUses = append(statements, s), append(allUses, r.uses...)
	}
	w.relationUses = allUses
	return statements, w.mergeAccesses(allUses)
}

// mergeAccesses merges the mentions that read the same relation in the same way into one access.
func (w *walker) mergeAccesses(reads []*relationUse) []policy.Access {
	type key struct {
		relation    catalog.Name
		levelItem   string
		byKey       bool
		writeTarget bool
	}
	order, found := []key{}, map[key]*policy.Access{}
	add := func(r *relationUse, k key, columns map[string]bool, isWholeRow bool) {
		a := found[k]
		if a == nil {
			a = &policy.Access{Relation: r.name, Source: k.levelItem, ByKey: k.byKey, Written: k.writeTarget, JoinedByKey: true,
				Columns: []string{}}
			found[k], order = a, append(order, k)
		}
		a.JoinedByKey = a.JoinedByKey && r.joinedByKey
		if r.alias != r.name.Name && r.alias != "" && !slices.Contains(a.Aliases, r.alias) {
			a.Aliases = append(a.Aliases, r.alias)
		}
		if r.throughObject != "" && !slices.Contains(a.Through, r.throughObject) {
			a.Through = append(a.Through, r.throughObject)
		}
		switch {
		case isWholeRow || a.Columns == nil:
			a.Columns = nil
		case r.relation != nil:
			for _, c := range r.relation.Columns { // the columns in the order of the table
				if columns[c.Name] && !slices.Contains(a.Columns, c.Name) {
					a.Columns = append(a.Columns, c.Name)
				}
			}
		}
	}
	for _, r := range reads {
		if r.isTarget {
			add(r, key{r.name, policy.SourceWrite, false, true}, r.writtenColumns, false)
			if !r.isRead {
				continue
			}
		}
		used := map[string]bool{}
		flows := r.rowUsage
		for name, f := range r.columnUsage {
			used[name] = f != 0
			flows |= f
		}
		source := r.declaredSource
		if source == "" {
			source = w.accessSource(r)
		}
		k := key{r.name, source, r.readsOneKey(), false}
		add(r, k, used, r.rowUsage != 0)
		if flows&(usageOutput|usageSimilarity) != 0 {
			found[k].AffectsOutput = true
		}
	}
	out := make([]policy.Access, 0, len(order))
	for _, k := range order {
		a := *found[k]
		if r, ok := w.snap.Relation(a.Relation); ok && len(a.Columns) == len(r.Columns) && len(a.Columns) > 1 {
			a.Columns = nil
		}
		slices.Sort(a.Aliases)
		slices.Sort(a.Through)
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b policy.Access) int {
		return cmp.Or(strings.Compare(a.Relation.String(), b.Relation.String()), strings.Compare(a.Source, b.Source),
			compareBool(a.ByKey, b.ByKey))
	})
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// readsOneKey tells whether the mention reads only the row of a single key.
func (r *relationUse) readsOneKey() bool {
	if r.relation == nil || len(r.relation.PrimaryKey) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.relation.PrimaryKey, func(c string) bool { return !r.constantColumns[c] })
}

// accessSource tells which kind of columns the statement uses of a mentioned relation: embeddings, other contents, or
// metadata only.
func (w *walker) accessSource(r *relationUse) string {
	if r.relation == nil {
		return policy.SourceStructured
	}
	object := w.pol.Object(r.name)
	source := policy.SourceMetadata
	for _, c := range r.relation.Columns {
		f := r.columnUsage[c.Name] | r.rowUsage
		switch {
		case f == 0:
		case f&usageSimilarity != 0, f&(usageFilter|usageOutput) != 0 &&
			(w.isEmbedding(c.TypeOID) || object != nil && slices.Contains(object.EmbeddingColumns, c.Name)):
			return policy.SourceVector
		case object == nil || !slices.Contains(object.MetadataColumns, c.Name):
			source = policy.SourceStructured
		}
	}
	for name, f := range r.columnUsage { // columnUsage also has system columns, and names that are no columns
		if r.relation.Column(name) == nil && f&usageSimilarity != 0 {
			return policy.SourceVector
		}
	}
	return source
}

// addRelation notes a mention of a relation.
func (r *usageAnalysis) addRelation(name catalog.Name, alias string, relation *catalog.Relation) *relationUse {
	use := &relationUse{name: name, relation: relation, alias: alias, throughObject: r.viewName,
		columnUsage:   map[string]usage{},
		unusedColumns: map[string]bool{}, constantColumns: map[string]bool{}, writtenColumns: map[string]bool{}}
	r.uses = append(r.uses, use)
	return use
}
