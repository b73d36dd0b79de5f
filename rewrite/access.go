package rewrite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// This walk finds out what a statement reads. It follows columns through aliases, sub-selects, WITH queries, views and
// joins to their tables, and notes how they are used. It runs over the client's own tree, before any edit, and after
// the walker has checked every construct. Where it cannot tell which column a name means, it takes all that it could
// mean. A kind of node that it does not know makes everything count as used in every way.

// usage is a set of ways in which a statement uses a column's value.
type usage uint8

const (
	usageNullTest   usage = 1 << iota // IS NULL or count(x) asks whether there is a value
	usageFilter                       // a condition depends on it
	usageOutput                       // the result depends on it: values, order, groups
	usageSimilarity                   // a distance or a similarity is computed of it
)

// relationUse is one mention of a relation.
type relationUse struct {
	name           catalog.Name
	relation       *catalog.Relation // nil for a catalog that the snapshot does not describe
	alias          string
	via            string // the view or the function that mentions it
	declaredSource string // the source that the policy declares; "": it follows from the columns

	columnUsage     map[string]usage
	rowUsage        usage           // how the statement uses all columns, as parts of a row
	unusedColumns   map[string]bool // columns that a sub-select returns and nothing uses
	unusedRow       bool            // the same of a whole row
	constantColumns map[string]bool // columns that must equal a constant or a parameter for a row to be read
	joinedByKey     bool            // a column of a key equals a column of another table
	isTarget        bool            // the statement writes it
	isRead          bool            // the statement also reads columns of a table that it writes
	writtenColumns  map[string]bool // columns that the statement writes
}

func (r *relationUse) mark(column string, f usage) {
	r.isRead = true
	if column == "" {
		r.rowUsage |= f
		return
	}
	r.columnUsage[column] |= f
	if r.relation == nil {
		return
	}
	// an error of the column's expression shows the values that it is computed from
	if c := r.relation.Column(column); c != nil && c.Virtual {
		for _, from := range c.ComputedFrom {
			r.columnUsage[from] |= f | usageOutput
		}
	}
}

// outputColumn is a column that an item of FROM or a query gives.
type outputColumn struct {
	name       string
	hasOwnName bool // the statement names it: AS name, or the name of a column
	usage      usage

	relation *relationUse // the table of the column; with column "" the value is a whole row of the table
	column   string
	sources  []*outputColumn // else the columns that it passes on
	expr     *sqltext.Node   // else what it is computed of; all columns in it are marked already
	scope    *usageScope
}

// columnUsage follows the columns of one statement.
type columnUsage struct {
	*walker
	uses    []*relationUse
	visited map[*sqltext.RangeVar]bool
	// the results of subqueries in expressions, which may be visited twice
	subqueries map[*sqltext.SelectStmt]*resultColumns
	ctes       *cteLevel // the WITH queries that the current expression sees
	// what columns of conditions count as: in a sub-select whose result is output, as output
	conditionUsage usage
	viewName       string // the view through which it reaches tables
	viewCount      int
	starOutputs    int
	incomplete     bool // it did not understand something
}

// resultColumns are the columns that a query returns.
type resultColumns struct {
	outputs []*outputColumn
	unknown *outputColumn // further columns whose names are not known
	byName  map[string]*sameName
}

// sameName are the outputs of one name. A list of thousands of names may refer to thousands of columns, so each name is
// marked once.
type sameName struct {
	ownName []*outputColumn // the outputs with a name by AS, or with the name of a column
	all     []*outputColumn
	used    [2]bool // ownName, all
}

// markNamedUsed marks the outputs of a name, and tells whether there are any.
func (r *columnUsage) markNamedUsed(q *resultColumns, name string, givenOnly bool) bool {
	if q.byName == nil {
		q.byName = make(map[string]*sameName, len(q.outputs))
		for _, o := range q.outputs {
			same := q.byName[o.name]
			if same == nil {
				same = &sameName{}
				q.byName[o.name] = same
			}
			if same.all = append(same.all, o); o.hasOwnName {
				same.ownName = append(same.ownName, o)
			}
		}
	}
	same := q.byName[name]
	if same == nil {
		return false
	}
	which, outputs := 1, same.all
	if givenOnly {
		which, outputs = 0, same.ownName
	}
	if !same.used[which] {
		same.used[which] = true
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
	relation        catalog.Name  // the name of a table without alias
	wholeRow        *outputColumn // the whole row
	use             *relationUse
	joinedRelations []*relationUse // the tables in a join with an alias
}

// usageScope holds the items of one query level. parent is the level around it.
type usageScope struct {
	items  []*rangeItem
	parent *usageScope
}

// cteLevel holds the WITH queries of one level.
type cteLevel struct {
	parent  *cteLevel
	queries map[string]*resultColumns
}

// markUsed marks the columns of tables that an output comes from.
func (r *columnUsage) markUsed(o *outputColumn, f usage) {
	if o == nil {
		return
	}
	f &^= o.usage
	if f == 0 {
		return
	}
	o.usage |= f
	if o.relation != nil {
		o.relation.mark(o.column, f)
	}
	for _, inner := range o.sources {
		r.markUsed(inner, f)
	}
	if o.expr != nil && f&usageSimilarity != 0 {
		r.expr(o.expr, o.scope, f)
	}
}

// addSource notes that an output comes from another one, too.
func (r *columnUsage) addSource(o, inner *outputColumn) {
	o.sources = append(o.sources, inner)
	if o.usage != 0 {
		r.markUsed(inner, o.usage)
	}
}

func (r *columnUsage) markAllUsed(q *resultColumns, f usage) {
	if q == nil {
		return
	}
	for _, o := range q.outputs {
		r.markUsed(o, f)
	}
	r.markUsed(q.unknown, f)
}

// baseColumn follows an output to the table's column that it is. direct tells that the table itself gives it. It
// returns nil if the output is no column of a table, or may be one of several.
func (o *outputColumn) baseColumn() (found *outputColumn, direct bool) {
	found = o.origin()
	if found == nil || found.relation == nil {
		return nil, false
	}
	return found, found == o
}

// origin follows an output as long as it passes on exactly one other. It returns nil if nothing is known of that one.
// It does, too, if the output comes from itself, as in WITH RECURSIVE x (n) AS (SELECT n FROM x), which PostgreSQL
// refuses.
func (o *outputColumn) origin() *outputColumn {
	mark, steps, next := o, 0, 1 // the mark moves on after 1, 2, 4, … steps: a walk in a circle meets it
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

// noteUnused notes a column that a sub-select returns. So far nothing uses it.
func (o *outputColumn) noteUnused() {
	if b, _ := o.baseColumn(); b != nil && b.relation != nil {
		if b.column == "" {
			b.relation.unusedRow = true
		} else {
			b.relation.unusedColumns[b.column] = true
		}
	}
}

// analyzeAccesses finds out what each statement of the text reads and writes, and what all of them do. Every relation
// that the walker has met must be in its result.
func (w *walker) analyzeAccesses(tree *sqltext.ParseResult) (statements []policy.Statement, all []policy.Access) {
	analyses := make([]*columnUsage, 0, len(tree.Stmts))
	visited := map[*sqltext.RangeVar]bool{}
	known := map[catalog.Name]bool{}
	for _, raw := range tree.Stmts {
		r := &columnUsage{walker: w, visited: visited, subqueries: map[*sqltext.SelectStmt]*resultColumns{},
			conditionUsage: usageFilter}
		r.statement(raw.GetStmt())
		for _, one := range r.uses {
			known[one.name] = true
			if r.incomplete {
				one.mark("", usageOutput|usageSimilarity)
			}
		}
		analyses = append(analyses, r)
	}
	// A relation that only the walker has met counts as read in every way, by each of the statements.
	for _, ref := range w.references {
		names := []catalog.Name{ref.name}
		if ref.fragment != nil {
			names = append(names, ref.fragment.viewTables...)
		}
		for _, name := range names {
			if known[name] && (ref.rangeVar == nil || visited[ref.rangeVar]) {
				continue
			}
			known[name] = true
			for _, r := range analyses {
				r.addRelation(name, name.Name, ref.relation).mark("", usageOutput|usageSimilarity)
			}
		}
	}
	var every []*relationUse
	for i, r := range analyses {
		stmt := tree.Stmts[i].GetStmt()
		s := policy.Statement{Tag: tagOfStatement(stmt), Accesses: w.accesses(r.uses)}
		if w.pol.RecordsKeys() {
			s.SingleTable = readsOneTableOnce(stmt)
		}
		if w.pol.HasContracts() {
			s.Limit, s.PlainSelect = plainSelect(stmt)
			if len(tree.Stmts) == 1 {
				s.NamedStatements = w.templatesOf(stmt)
			}
		}
		statements, every = append(statements, s), append(every, r.uses...)
	}
	w.relationUses = every
	return statements, w.accesses(every)
}

// accesses makes one access of all mentions that read a relation in one way.
func (w *walker) accesses(reads []*relationUse) []policy.Access {
	type key struct {
		relation    catalog.Name
		levelItem   string
		byKey       bool
		writeTarget bool
	}
	order, found := []key{}, map[key]*policy.Access{}
	add := func(r *relationUse, k key, columns map[string]bool, whole bool) {
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
		if r.via != "" && !slices.Contains(a.Through, r.via) {
			a.Through = append(a.Through, r.via)
		}
		switch {
		case whole || a.Columns == nil:
			a.Columns = nil
		case r.relation != nil:
			for _, c := range r.relation.Columns { // in their order
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

// readsOneKey tells whether the mention reads the row of one key only.
func (r *relationUse) readsOneKey() bool {
	if r.relation == nil || len(r.relation.PrimaryKey) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.relation.PrimaryKey, func(c string) bool { return !r.constantColumns[c] })
}

// accessSource tells how a mention gets at its rows: by similarity, by its columns, or by metadata.
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
	for name, f := range r.columnUsage { // a name that is no column of the table: a system column, or none at all
		if r.relation.Column(name) == nil && f&usageSimilarity != 0 {
			return policy.SourceVector
		}
	}
	return source
}

// addRelation notes a mention of a relation.
func (r *columnUsage) addRelation(name catalog.Name, alias string, relation *catalog.Relation) *relationUse {
	out := &relationUse{name: name, relation: relation, alias: alias, via: r.viewName, columnUsage: map[string]usage{},
		unusedColumns: map[string]bool{}, constantColumns: map[string]bool{}, writtenColumns: map[string]bool{}}
	r.uses = append(r.uses, out)
	return out
}
