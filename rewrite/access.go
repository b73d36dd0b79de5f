package rewrite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// What a statement reads is found out by a walk of its own, which follows columns through aliases, sub-selects, WITH
// queries, views and joins to the tables they come from, and tells what becomes of them. It runs over the client's own
// tree, before anything is put in, and after the walker has judged every construct. Where it cannot tell which column
// is meant, it takes all that could be; a kind of node that it does not know makes everything count as everything.

// flow is what becomes of a column's value.
type flow uint8

const (
	tested   flow = 1 << iota // it is asked whether there is one: IS NULL, count(x)
	filters                   // a condition depends on it
	shows                     // the result depends on it: values, order, groups
	compared                  // it is measured against something: distance, similarity
)

// read is one mention of a relation.
type read struct {
	name     catalog.Name
	relation *catalog.Relation // nil for a catalog that the snapshot does not describe
	alias    string
	through  string // the view or the function that mentions it
	source   string // where a policy says it; else by its columns

	columns map[string]flow
	whole   flow            // all columns, as those of a row
	idle    map[string]bool // columns that a sub-select names and nothing uses
	idleAll bool
	keyed   map[string]bool // columns that equal a constant or a parameter wherever a row is read
	joined  bool            // a column of a key equals a column of another table
	written bool
	reads   bool            // of a written one: something of its rows is read
	set     map[string]bool // columns that are written
}

func (r *read) mark(column string, f flow) {
	r.reads = true
	if column == "" {
		r.whole |= f
		return
	}
	r.columns[column] |= f
	if r.relation == nil {
		return
	}
	// where what it is computed from does not do, the error says what it is
	if c := r.relation.Column(column); c != nil && c.Virtual {
		for _, from := range c.ComputedFrom {
			r.columns[from] |= f | shows
		}
	}
}

// output is a column as an item of FROM or a query offers it.
type output struct {
	name  string
	named bool // the name is the statement's own: AS name, or that of a column
	used  flow

	read   *read // the column of a table; name "" for the whole row
	column string
	from   []*output     // or what it passes on
	expr   *sqltext.Node // or what it is computed of, all of whose columns are marked already
	scope  *names
}

// reader follows columns.
type reader struct {
	*walker
	reads   []*read
	visited map[*sqltext.RangeVar]bool
	queries map[*sqltext.SelectStmt]*rows // of expressions, which may be visited twice
	with_   *queriesInSight               // those that the expression at hand sees
	asked   flow                          // what a condition's columns count as: of a sub-select that is shown, as shown
	view    string                        // through which tables are reached
	views   int
	copies  int
	lost    bool // something was not understood
}

// rows are what a query returns.
type rows struct {
	outputs []*output
	rest    *output // further columns whose names are not known
	named   map[string]*sameName
}

// sameName are the outputs of one name. A list of thousands of names is looked up in a list of thousands of columns, so
// each name is used once.
type sameName struct {
	given []*output // by AS, or as the name of a column
	all   []*output
	used  [2]bool // given, all
}

// useNamed uses the outputs of a name, and tells whether there are any.
func (r *reader) useNamed(q *rows, name string, givenOnly bool) bool {
	if q.named == nil {
		q.named = make(map[string]*sameName, len(q.outputs))
		for _, o := range q.outputs {
			same := q.named[o.name]
			if same == nil {
				same = &sameName{}
				q.named[o.name] = same
			}
			if same.all = append(same.all, o); o.named {
				same.given = append(same.given, o)
			}
		}
	}
	same := q.named[name]
	if same == nil {
		return false
	}
	which, outputs := 1, same.all
	if givenOnly {
		which, outputs = 0, same.given
	}
	if !same.used[which] {
		same.used[which] = true
		for _, o := range outputs {
			r.use(o, shows)
		}
	}
	return len(outputs) > 0
}

// item is something that FROM names.
type item struct {
	rows
	name     string
	relation catalog.Name // of a table without alias
	row      *output      // the whole row
	read     *read
	inside   []*read // of a join with an alias
}

// names are the items of one level, and those around it.
type names struct {
	items  []*item
	parent *names
}

// queriesInSight are the WITH queries of one level.
type queriesInSight struct {
	parent *queriesInSight
	names  map[string]*rows
}

// use marks what the output comes from.
func (r *reader) use(o *output, f flow) {
	if o == nil {
		return
	}
	f &^= o.used
	if f == 0 {
		return
	}
	o.used |= f
	if o.read != nil {
		o.read.mark(o.column, f)
	}
	for _, inner := range o.from {
		r.use(inner, f)
	}
	if o.expr != nil && f&compared != 0 {
		r.expr(o.expr, o.scope, f)
	}
}

// pass lets an output come from another one, too.
func (r *reader) pass(o, inner *output) {
	o.from = append(o.from, inner)
	if o.used != 0 {
		r.use(inner, o.used)
	}
}

func (r *reader) useRows(q *rows, f flow) {
	if q == nil {
		return
	}
	for _, o := range q.outputs {
		r.use(o, f)
	}
	r.use(q.rest, f)
}

// base follows an output to the table's column that it is, and tells whether it is named there directly; nil if it is
// none, or may be several.
func (o *output) base() (found *output, direct bool) {
	found = o.origin()
	if found == nil || found.read == nil {
		return nil, false
	}
	return found, found == o
}

// origin follows an output to where it does not come from another one alone; nil if nothing is known of that, or if it
// comes from itself alone, as in WITH RECURSIVE x (n) AS (SELECT n FROM x), which PostgreSQL refuses.
func (o *output) origin() *output {
	mark, steps, next := o, 0, 1 // the mark moves on after 1, 2, 4, … steps, so that a walk in a circle comes upon it
	for o != nil && o.read == nil && len(o.from) == 1 && o.expr == nil {
		if o = o.from[0]; o == mark {
			return nil
		}
		if steps++; steps == next {
			mark, steps, next = o, 0, 2*next
		}
	}
	return o
}

// idle notes columns that are named and go nowhere so far.
func (o *output) idle() {
	if b, _ := o.base(); b != nil && b.read != nil {
		if b.column == "" {
			b.read.idleAll = true
		} else {
			b.read.idle[b.column] = true
		}
	}
}

// typed finds out what each statement of the text reads, and what all of them do. The relations that the walker has met
// must be among them.
func (w *walker) typed(tree *sqltext.ParseResult) (statements []policy.Statement, all []policy.Access) {
	readers := make([]*reader, 0, len(tree.Stmts))
	visited := map[*sqltext.RangeVar]bool{}
	known := map[catalog.Name]bool{}
	for _, raw := range tree.Stmts {
		r := &reader{walker: w, visited: visited, queries: map[*sqltext.SelectStmt]*rows{}, asked: filters}
		r.statement(raw.GetStmt())
		for _, one := range r.reads {
			known[one.name] = true
			if r.lost {
				one.mark("", shows|compared)
			}
		}
		readers = append(readers, r)
	}
	// What the walker has met and the reader has not counts as read in every way, by each of the statements.
	for _, ref := range w.references {
		names := []catalog.Name{ref.name}
		if ref.fragment != nil {
			names = append(names, ref.fragment.tables...)
		}
		for _, name := range names {
			if known[name] && (ref.rangeVar == nil || visited[ref.rangeVar]) {
				continue
			}
			known[name] = true
			for _, r := range readers {
				r.mention(name, name.Name, ref.relation).mark("", shows|compared)
			}
		}
	}
	var every []*read
	for i, r := range readers {
		stmt := tree.Stmts[i].GetStmt()
		s := policy.Statement{Tag: tagOfStatement(stmt), Accesses: w.accesses(r.reads)}
		if w.pol.RecordsKeys() {
			s.SingleTable = singleRead(stmt)
		}
		if w.pol.HasContracts() {
			s.Limit, s.PlainSelect = plainRead(stmt)
			if len(tree.Stmts) == 1 {
				s.NamedStatements = w.templatesOf(stmt)
			}
		}
		statements, every = append(statements, s), append(every, r.reads...)
	}
	w.mentions = every
	return statements, w.accesses(every)
}

// accesses makes one access of all mentions of a relation that read it in one way.
func (w *walker) accesses(reads []*read) []policy.Access {
	type key struct {
		relation catalog.Name
		source   string
		byKey    bool
		written  bool
	}
	order, found := []key{}, map[key]*policy.Access{}
	add := func(r *read, k key, columns map[string]bool, whole bool) {
		a := found[k]
		if a == nil {
			a = &policy.Access{Relation: r.name, Source: k.source, ByKey: k.byKey, Written: k.written, Joined: true,
				Columns: []string{}}
			found[k], order = a, append(order, k)
		}
		a.Joined = a.Joined && r.joined
		if r.alias != r.name.Name && r.alias != "" && !slices.Contains(a.Aliases, r.alias) {
			a.Aliases = append(a.Aliases, r.alias)
		}
		if r.through != "" && !slices.Contains(a.Through, r.through) {
			a.Through = append(a.Through, r.through)
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
		if r.written {
			add(r, key{r.name, policy.Writes, false, true}, r.set, false)
			if !r.reads {
				continue
			}
		}
		used := map[string]bool{}
		flows := r.whole
		for name, f := range r.columns {
			used[name] = f != 0
			flows |= f
		}
		source := r.source
		if source == "" {
			source = w.sourceOf(r)
		}
		k := key{r.name, source, r.byKey(), false}
		add(r, k, used, r.whole != 0)
		if flows&(shows|compared) != 0 {
			found[k].Output = true
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

// byKey tells whether the mention reads the row of one key only.
func (r *read) byKey() bool {
	if r.relation == nil || len(r.relation.PrimaryKey) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.relation.PrimaryKey, func(c string) bool { return !r.keyed[c] })
}

// sourceOf tells from what the rows of a mention are got: by a measure of likeness, from columns, or as facts about
// them.
func (w *walker) sourceOf(r *read) string {
	if r.relation == nil {
		return policy.Structured
	}
	object := w.pol.Object(r.name)
	source := policy.Metadata
	for _, c := range r.relation.Columns {
		f := r.columns[c.Name] | r.whole
		switch {
		case f == 0:
		case f&compared != 0, f&(filters|shows) != 0 &&
			(w.isEmbedding(c.TypeOID) || object != nil && slices.Contains(object.Embeddings, c.Name)):
			return policy.Vector
		case object == nil || !slices.Contains(object.Metadata, c.Name):
			source = policy.Structured
		}
	}
	for name, f := range r.columns { // what is no column: a system column, or nothing
		if r.relation.Column(name) == nil && f&compared != 0 {
			return policy.Vector
		}
	}
	return source
}

// mention notes a relation.
func (r *reader) mention(name catalog.Name, alias string, relation *catalog.Relation) *read {
	out := &read{name: name, relation: relation, alias: alias, through: r.view, columns: map[string]flow{},
		idle: map[string]bool{}, keyed: map[string]bool{}, set: map[string]bool{}}
	r.reads = append(r.reads, out)
	return out
}
