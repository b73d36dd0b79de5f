package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// level is what the columns of one SELECT may be of.
type level struct {
	parent *level
	items  []*source
	merged bool // USING or NATURAL: columns of one name may be one
	opaque bool // something in FROM has columns of which not even the names are known
	hidden bool // something in FROM goes by a name that is not known
}

// source is something in FROM.
type source struct {
	alias string                   // the name that it goes by there
	name  catalog.Name             // of a table without an alias, which may be named with its schema
	table *catalog.Relation        // a table, or a row view over one: its columns are columns
	plain func(column string) bool // of a row view: whether a column comes out as it is stored; nil: all do

	columns []typed // of others, as far as they are known
	rows    bool    // it is run for its rows, whose columns are computed before anything compares them
	apart   bool    // it is a query that stays one: the same, but conditions on its columns may be put into it
	view    bool    // a view, of whose rows there may be functions that are called like columns
}

// typed is a column that something in FROM has.
type typed struct {
	name string
	oid  uint32 // its type, where that is certain and every two of its values can be compared; else 0

	computed bool // what it is may be computed where it is named, and fail there
	// it is a column of a table that the query reads itself, and stays one where the query becomes a part of the one
	// around it, or is NULL
	own  bool
	firm bool // it is no NULL that is folded with what stands beside it
	// a sub-select is in it, or a virtual column, which may fail for a row that is hidden though PostgreSQL takes it
	// for leak-proof
	asks bool

	raw uint32 // its type, where that is certain, whatever it is
}

// meaning is what is known of a column that a statement names.
type meaning struct {
	known    bool   // which column it is
	oid      uint32 // as of typed; of a domain the type under it
	raw      uint32 // the type of a table's column, whatever it is; of a domain the type under it
	own      bool   // it is of the query that names it, and what is computed of it is put off until the row shows
	firm     bool   // as of typed
	asks     bool   // as of typed
	vague    bool   // it is of something whose columns are not known
	outer    bool   // it is of a query outside
	computed bool   // as of typed
	stored   bool   // it is of a table
	calls    bool   // it may be a function that is called like a column
}

// add adds something to FROM.
func (l *level) add(i *source) {
	l.items = append(l.items, i)
	l.opaque = l.opaque || i.table == nil && i.columns == nil
	l.hidden = l.hidden || i.alias == ""
}

// allTables tells whether FROM is made of tables alone.
func (l *level) allTables() bool {
	return !l.opaque && !slices.ContainsFunc(l.items, func(i *source) bool { return i.table == nil })
}

// column finds the column that a name means, in this query or in one outside.
func (c *cautious) column(ref *sqltext.ColumnRef, l *level) meaning {
	if ref == nil {
		return meaning{}
	}
	var names []string
	for _, n := range ref.Fields {
		names = append(names, n.GetString_().GetSval()) // "" for a star
	}
	if len(names) == 1 && names[0] == "" {
		return meaning{known: true, computed: true, asks: l == nil || slices.ContainsFunc(l.items, (*source).asks)}
	}
	for at := l; at != nil; at = at.parent {
		var found []meaning
		named := false // something here goes by the name
		for _, i := range at.items {
			switch {
			case len(names) == 1:
				named = named || i.alias == names[0]
			case len(names) == 2 && i.alias == names[0], len(names) == 3 && i.name == catalog.Name{Schema: names[0], Name: names[1]}:
				named = true
			default:
				continue
			}
			switch o, is := c.columnOf(i, names[len(names)-1]); {
			case is:
				found = append(found, o)
			case len(names) > 1:
				found = append(found, meaning{known: true, own: i.rows, firm: i.rows, computed: true, asks: i.asks(),
					vague: i.table == nil && i.columns == nil, calls: (i.table != nil || i.view ||
						i.rows && i.columns != nil) && names[len(names)-1] != ""})
			}
		}
		switch {
		case len(found) > 0 && len(names) == 1 && at.merged && at.opaque: // it may be one that is converted
			return meaning{outer: at != l, computed: true, stored: true, asks: true}
		case len(found) > 1 && !(len(names) == 1 && at.merged):
			return meaning{}
		case len(found) > 0:
			m := merged(found)
			m.own, m.firm, m.outer = m.own && at == l, m.firm && at == l, at != l
			return m
		case named && len(names) == 1: // the whole row
			return meaning{known: true, outer: at != l, computed: true,
				asks: slices.ContainsFunc(at.items, (*source).asks), stored: slices.ContainsFunc(at.items,
					func(i *source) bool { return i.alias == names[0] && c.computesColumns(i) })}
		case named, at.hidden, at.opaque && len(names) != 2, slices.Contains(systemColumns, names[0]):
			return meaning{}
		}
	}
	return meaning{}
}

// merged is one column of several, which USING has made one.
func merged(found []meaning) meaning {
	m := found[0]
	for _, other := range found[1:] {
		if m.oid != other.oid || m.oid == 0 { // one of them may be converted
			m.oid, m.computed = 0, true
		}
		if m.raw != other.raw {
			m.raw = 0
		}
		m.asks = m.asks || other.asks
		m.known, m.own, m.firm, m.computed, m.stored = m.known && other.known, m.own && other.own, m.firm &&
			other.firm, m.computed || other.computed, m.stored || other.stored
	}
	return m
}

var systemColumns = []string{"tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"}

// columnOf is the column of something in FROM, and whether it has one of that name.
func (c *cautious) columnOf(i *source, name string) (meaning, bool) {
	if i.table == nil {
		n := 0
		o := meaning{known: true, own: i.rows, firm: i.rows}
		for _, column := range i.columns {
			if column.name == name {
				o.asks = o.asks || column.asks
				n, o.oid, o.computed, o.own, o.firm, o.raw = n+1, column.oid, column.computed, i.rows ||
					column.own, i.rows || column.firm, column.raw
			}
		}
		if n > 1 {
			o.oid, o.own, o.firm, o.raw = 0, i.rows, i.rows, 0
		}
		return o, n > 0
	}
	column := i.table.Column(name)
	switch {
	case column == nil:
		return meaning{known: true, stored: true}, slices.Contains(systemColumns, name)
	case column.Virtual, i.plain != nil && !i.plain(name):
		return meaning{known: true, stored: true, computed: true, asks: column.Virtual}, true
	}
	o := meaning{known: true, stored: true, own: true, firm: true, raw: c.snap.BaseType(column.TypeOID)}
	if oid := c.snap.BaseType(column.TypeOID); column.Collation == "" && c.compares(oid) {
		o.oid = oid
	}
	return o, true
}

// computesColumns tells whether a row of something has columns that are computed as it is read.
func (c *cautious) computesColumns(i *source) bool {
	return i.table == nil || slices.ContainsFunc(i.table.Columns, func(column catalog.Column) bool {
		return column.Virtual || i.plain != nil && !i.plain(column.Name)
	})
}

// compares tells whether every two values of a type can be compared. OIDs and names can, to which others are converted.
func (c *cautious) compares(oid uint32) bool {
	if t := c.snap.TypeByOID(oid); t != nil && t.Kind == 'e' {
		return true
	}
	return sortable(kindOfOID(oid)) || converted[oid] > 0
}

// frame is a WITH query in sight.
type frame struct {
	outer  *frame
	query  *sqltext.CommonTableExpr
	parent *level // of its query
	inside *frame // what its query sees

	recursive bool
}

// with brings WITH queries into sight, and calls each for them where their own is not yet in sight; the answer takes
// them away again.
func (c *cautious) with(s *sqltext.SelectStmt, parent *level, each func(*sqltext.CommonTableExpr)) (restore func()) {
	before := c.frame
	var added []*frame
	for _, n := range s.GetWithClause().GetCtes() {
		query := n.GetCommonTableExpr()
		f := &frame{query: query, parent: parent, inside: c.frame, recursive: s.WithClause.Recursive}
		if !f.recursive {
			each(query)
		}
		f.outer, c.frame = c.frame, f
		added = append(added, f)
	}
	if s.GetWithClause().GetRecursive() {
		for _, f := range added {
			f.inside = c.frame
		}
		for _, f := range added {
			each(f.query)
		}
	}
	return func() { c.frame = before }
}

// withItem is a WITH query as FROM has it.
func (c *cautious) withItem(name, alias string, renamed []*sqltext.Node) *source {
	i := &source{alias: alias}
	for f := c.frame; f != nil; f = f.outer {
		if f.query.Ctename != name {
			continue
		}
		if f.query.SearchClause != nil || f.query.CycleClause != nil {
			return i
		}
		before := c.frame
		c.frame = f.inside
		within := ""
		if f.recursive {
			within = name
		}
		columns := c.outputsOf(f.query.GetCtequery().GetSelectStmt(), f.parent, within)
		c.frame = before
		i.columns = rename(rename(columns, f.query.Aliascolnames), renamed)
		body := f.query.GetCtequery().GetSelectStmt()
		i.rows = f.recursive && body != nil && body.Op != sqltext.SETOP_NONE && c.reads(body.Rarg, name)
		i.apart = c.apart(body, f.parent)
		i.settle()
		return i
	}
	return i
}

// rename gives columns the names of an alias; nil where it is not certain which gets which.
func rename(columns []typed, names []*sqltext.Node) []typed {
	if len(names) == 0 {
		return columns
	}
	if len(names) > len(columns) {
		return nil
	}
	columns = slices.Clone(columns)
	for i, n := range names {
		columns[i].name = n.GetString_().GetSval()
	}
	return columns
}

// levelOf is what the columns of a SELECT may be of.
func (c *cautious) levelOf(s *sqltext.SelectStmt, parent *level) *level {
	if l := c.levels[s]; l != nil && l.parent == parent {
		return l
	}
	c.levels[s] = &level{parent: parent, opaque: true, hidden: true} // to what asks for itself
	l := &level{parent: parent}
	for _, n := range s.FromClause {
		c.names(n, l)
	}
	c.levels[s] = l
	return l
}

// outputsOf are the columns that a query gives; nil where not all of them are known. within is the WITH RECURSIVE query
// that it is, if it is one.
func (c *cautious) outputsOf(s *sqltext.SelectStmt, parent *level, within string) []typed {
	if s == nil {
		return nil
	}
	if known, is := c.given[s]; is {
		return known
	}
	c.given[s] = nil // to what asks for itself
	defer c.with(s, parent, func(*sqltext.CommonTableExpr) {})()
	var out []typed
	switch {
	case s.Op != sqltext.SETOP_NONE:
		out = c.outputsOf(s.Larg, parent, "")
		if within != "" && c.reads(s.Rarg, within) {
			break // PostgreSQL wants the types of what it begins with
		}
		right := c.outputsOf(s.Rarg, parent, "")
		if len(right) != len(out) {
			return nil
		}
		out = slices.Clone(out)
		for i := range out {
			if out[i].oid != right[i].oid {
				out[i].oid = 0
			}
			if l, r := out[i].raw, right[i].raw; l != r {
				if out[i].raw = 0; l != 0 && r != 0 && !c.convertsArrays(l, r) {
					out[i].raw = scalar
				}
			}
			out[i].asks = out[i].asks || right[i].asks
			out[i].computed = out[i].computed || right[i].computed || out[i].oid == 0 // one half may be converted
			out[i].own = out[i].own && right[i].own || limited(s)
			out[i].firm = out[i].firm && right[i].firm || limited(s)
		}
	case len(s.ValuesLists) > 0:
		out = c.values(s.ValuesLists, parent)
	default:
		at := c.levelOf(s, parent)
		out = []typed{}
		for _, n := range s.TargetList {
			t := n.GetResTarget()
			if !isStar(t.GetVal()) {
				firm := limited(s) || c.firm(t.GetVal(), stand{level: at}) || c.gathers(t.GetVal(), at)
				own := firm || c.hasOwn(t.GetVal(), stand{level: at}) || c.collects(t.GetVal(), at)
				out = append(out, typed{outputName(t), c.typeOf(t.GetVal(), at), c.computes(t.GetVal(), at),
					own, firm, c.asks(t.GetVal(), at), c.rawOf(t.GetVal(), at)})
				continue
			}
			all := c.star(t.GetVal().GetColumnRef(), at)
			if c.starred += len(all); all == nil || c.starred > maxStars {
				return nil
			}
			out = append(out, all...)
		}
	}
	c.given[s] = out
	return out
}

// asks tells whether a sub-select is in an expression, or in a column that it names, or a virtual column.
func (c *cautious) asks(n *sqltext.Node, at *level) (found bool) {
	c.inside(n, func(n *sqltext.Node) bool {
		found = found || n.GetSubLink() != nil || n.GetColumnRef() != nil && c.column(n.GetColumnRef(), at).asks
		return !found
	})
	return found
}

func (s *source) asks() bool {
	return s.table != nil && hasVirtual(s.table) || slices.ContainsFunc(s.columns, func(t typed) bool { return t.asks })
}

// hasVirtual tells whether a table has columns that are computed as they are read. Their expressions are the owner's:
// an array that is converted, CASE, a subscript in one is leak-proof to PostgreSQL, and the statement has a column's
// name.
func hasVirtual(r *catalog.Relation) bool {
	return slices.ContainsFunc(r.Columns, func(column catalog.Column) bool { return column.Virtual })
}

// limited tells whether what a query in FROM gives is computed before anything compares it. Otherwise PostgreSQL puts
// the query's own expression in the place of a column, also where the query stays one, and conditions on it go into
// that: what is computed of it is put off until the row shows where the expression names a column that stays. An
// aggregate is made before.
func limited(s *sqltext.SelectStmt) bool { return s.LimitCount != nil || s.LimitOffset != nil }

// computes tells whether something that a query in FROM gives may be computed where it is named.
func (c *cautious) computes(n *sqltext.Node, at *level) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Const, *sqltext.Node_ParamRef:
		return false
	case *sqltext.Node_ColumnRef:
		m := c.column(x.ColumnRef, at)
		return !m.known || m.computed
	case *sqltext.Node_FuncCall: // an aggregate has been computed before
		return !(slices.Contains([]string{"count", "min", "max"}, lastName(x.FuncCall.Funcname)) &&
			c.callType(x.FuncCall, at) != 0)
	}
	return true
}

// settle notes that columns of what makes rows are not computed where they are named.
func (s *source) settle() {
	if s.rows || s.apart {
		s.columns = slices.Clone(s.columns)
		for i := range s.columns {
			s.columns[i].computed = false
			if s.columns[i].raw == 0 {
				s.columns[i].raw = s.columns[i].oid
			}
		}
	}
}

// apart tells whether a query in FROM is certain not to become a part of the query around it (is_simple_subquery of
// PostgreSQL's prepjointree.c).
func (c *cautious) apart(s *sqltext.SelectStmt, parent *level) bool {
	switch {
	case s == nil:
		return false
	case s.Op != sqltext.SETOP_NONE:
		return !s.All
	case len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.DistinctClause) > 0 || len(s.SortClause) > 0 ||
		s.LimitCount != nil || s.LimitOffset != nil:
		return true
	}
	at := c.levelOf(s, parent)
	return slices.ContainsFunc(s.TargetList, func(n *sqltext.Node) (found bool) {
		c.inside(n, func(n *sqltext.Node) bool {
			found = found || c.aggregates(n.GetFuncCall(), at)
			return !found && n.GetSubLink() == nil
		})
		return found
	})
}

// aggregates tells whether a call is of an aggregate or a window function of its own query.
func (c *cautious) aggregates(f *sqltext.FuncCall, at *level) bool {
	switch {
	case f == nil:
		return false
	case f.Over != nil || f.AggStar && f.AggFilter == nil:
		return true
	case !(f.AggStar || slices.Contains(aggregates, lastName(f.Funcname)) && c.plain(f)):
		return false
	}
	// one of columns outside alone is of a query outside
	return slices.ContainsFunc(append(slices.Clone(f.Args), f.AggFilter), func(n *sqltext.Node) (own bool) {
		c.inside(n, func(n *sqltext.Node) bool {
			if ref := n.GetColumnRef(); ref != nil {
				m := c.column(ref, at)
				own = own || m.known && !m.outer
			}
			return !own && n.GetSubLink() == nil
		})
		return own
	})
}

// collects tells whether an expression has an aggregate or a window function of its own query, or is NULL, whatever is
// folded, so that no condition on it can come before.
func (c *cautious) collects(n *sqltext.Node, at *level) (found bool) {
	c.inside(n, func(n *sqltext.Node) bool {
		found = found || c.aggregates(n.GetFuncCall(), at) || c.holds(n, func(n *sqltext.Node) bool { return c.gathers(n, at) })
		return !found && c.strict(n, at)
	})
	return found
}

// gathers tells whether it has one, and is no NULL that is folded.
func (c *cautious) gathers(n *sqltext.Node, at *level) bool {
	return c.aggregates(n.GetFuncCall(), at) || c.unfolded(n, at, func(n *sqltext.Node) (counts, stays bool) {
		counts = c.gathers(n, at)
		return counts, counts || c.firm(n, stand{level: at})
	})
}

// aggregates of PostgreSQL's own that everybody uses.
var aggregates = []string{"count", "sum", "avg", "min", "max", "array_agg", "string_agg", "json_agg", "jsonb_agg",
	"json_object_agg", "jsonb_object_agg", "bool_and", "bool_or", "every"}

// reads tells whether the second half of a query reads a WITH query, and has none of its own which that name could mean.
func (c *cautious) reads(s *sqltext.SelectStmt, name string) bool {
	found, others := false, s.GetWithClause() != nil
	sqltext.Children(s, func(n *sqltext.Node) {
		c.inside(n, func(n *sqltext.Node) bool {
			found = found || n.GetRangeVar() != nil && n.GetRangeVar().Relname == name && c.of[n.GetRangeVar()] == nil
			others = others || n.GetSelectStmt().GetWithClause() != nil
			return true
		})
	})
	return found && !others
}

// values are the columns of VALUES.
func (c *cautious) values(lists []*sqltext.Node, parent *level) []typed {
	names := []string{"column1", "column2", "column3", "column4", "column5", "column6", "column7", "column8", "column9"}
	var out []typed
	for row, n := range lists {
		for i, value := range n.GetList().GetItems() {
			switch oid := c.typeOf(value, parent); {
			case i >= len(names) || row > 0 && i >= len(out):
				return nil
			case row == 0:
				out = append(out, typed{name: names[i], oid: oid, computed: true, raw: c.rawOf(value, parent)})
				continue
			case out[i].oid != oid:
				out[i].oid = 0
			}
			if out[i].raw != c.rawOf(value, parent) {
				out[i].raw = 0
			}
		}
	}
	return out
}

// star is what * or item.* stands for, or nil where that is not known.
func (c *cautious) star(ref *sqltext.ColumnRef, at *level) []typed {
	if at.opaque || at.merged || len(ref.Fields) > 2 {
		return nil
	}
	var out []typed
	for _, i := range at.items {
		if len(ref.Fields) == 2 && i.alias != ref.Fields[0].GetString_().GetSval() {
			continue
		}
		if i.table == nil {
			for _, column := range i.columns {
				column.own, column.firm = column.own || i.rows, column.firm || i.rows
				out = append(out, column)
			}
			continue
		}
		for _, column := range i.table.Columns {
			o, _ := c.columnOf(i, column.Name)
			out = append(out, typed{column.Name, o.oid, o.computed, o.own, o.firm, o.asks, o.raw})
		}
	}
	return out
}

// names collects what FROM has.
func (c *cautious) names(n *sqltext.Node, own *level) {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		own.add(c.tableItem(n.RangeVar))
	case *sqltext.Node_RangeSubselect:
		query, parent := n.RangeSubselect.GetSubquery().GetSelectStmt(), own.parent
		if n.RangeSubselect.Lateral {
			parent = own
		}
		i := &source{alias: n.RangeSubselect.GetAlias().GetAliasname(),
			columns: rename(c.outputsOf(query, parent, ""), n.RangeSubselect.GetAlias().GetColnames())}
		if i.alias == "" {
			i.alias = unnamed
		}
		i.apart = c.apart(query, parent)
		i.settle()
		own.add(i)
	case *sqltext.Node_JoinExpr:
		own.merged = own.merged || n.JoinExpr.IsNatural || len(n.JoinExpr.UsingClause) > 0
		if n.JoinExpr.Alias != nil { // it hides the names inside, which then are those of a query outside
			own.add(&source{alias: n.JoinExpr.Alias.Aliasname})
			return
		}
		if a := n.JoinExpr.JoinUsingAlias; a != nil {
			own.add(&source{alias: a.Aliasname})
		}
		c.names(n.JoinExpr.Larg, own)
		c.names(n.JoinExpr.Rarg, own)
	case *sqltext.Node_RangeFunction:
		own.add(c.functionItem(n.RangeFunction, own))
	case *sqltext.Node_RangeTableFunc:
		own.add(&source{alias: n.RangeTableFunc.GetAlias().GetAliasname()})
	default:
		own.add(&source{}) // TABLESAMPLE
	}
}

// unnamed is how sub-selects go by that have no alias, and cannot be named.
const unnamed = "\x00"

func (c *cautious) tableItem(v *sqltext.RangeVar) *source {
	ref, alias := c.of[v], v.GetAlias()
	i := &source{alias: v.Relname}
	if alias != nil {
		i.alias = alias.Aliasname
	}
	switch {
	case ref == nil:
		return c.withItem(v.Relname, i.alias, alias.GetColnames())
	case ref.fragment != nil && ref.relation != nil && ref.relation.Kind == catalog.View:
		return c.viewItem(ref, i.alias, alias.GetColnames())
	case ref.fragment == nil || len(alias.GetColnames()) > 0 || !asTables[ref.relation.Kind]:
		return i
	case ref.fragment.stands():
		if c.wanted(ref) { // a function stands for it
			return i
		}
		i.table, i.plain = ref.fragment.visible, ref.fragment.plain
	default:
		i.table = ref.relation
	}
	if alias == nil {
		i.name = ref.name
	}
	return i
}

// rowFunctions are functions that are run for their rows, with the names of their columns where they have names of
// their own.
var rowFunctions = map[string][]typed{
	"unnest": {{}}, "generate_series": {{}}, "generate_subscripts": {{oid: 23}},
	"jsonb_array_elements": {{name: "value", oid: 3802}}, "jsonb_array_elements_text": {
		{name: "value", oid: 25}}, "json_array_elements": {{name: "value", oid: 0}},
	"json_array_elements_text": {{name: "value", oid: 25}},
	"jsonb_each":               {{name: "key", oid: 25}, {name: "value", oid: 3802}}, "jsonb_each_text": {
		{name: "key", oid: 25}, {name: "value", oid: 25}},
	"json_each": {{name: "key", oid: 25}, {name: "value", oid: 0}}, "json_each_text": {
		{name: "key", oid: 25}, {name: "value", oid: 25}},
	"jsonb_object_keys": {{oid: 25}}, "json_object_keys": {{oid: 25}}, "jsonb_path_query": {{oid: 3802}},
	"regexp_split_to_table": {{oid: 25}}, "string_to_table": {{oid: 25}}, "regexp_matches": {{oid: 1009}},
}

// functionItem is a function in FROM, if it is run for its rows: others may be folded into the statement.
func (c *cautious) functionItem(f *sqltext.RangeFunction, at *level) *source {
	i := &source{alias: f.GetAlias().GetAliasname()}
	if f.IsRowsfrom || len(f.Functions) != 1 {
		return i
	}
	call := f.Functions[0].GetList().GetItems()[0].GetFuncCall()
	name := lastName(call.GetFuncname())
	if i.alias == "" {
		i.alias = name
	}
	columns := slices.Clone(rowFunctions[name])
	if columns == nil || len(f.Coldeflist) > 0 || len(call.Args) == 0 || !c.plain(call) {
		return i
	}
	if columns[0].name == "" { // PostgreSQL names it as the item
		columns[0].name = i.alias
	}
	switch name {
	case "unnest":
		if len(call.Args) > 1 {
			return i
		}
		columns[0].oid = map[uint32]uint32{1009: 25, 2951: 2950, 1005: 21, 1007: 23, 1016: 20}[c.typeOf(call.Args[0], at)]
	case "generate_series":
		first := c.typeOf(call.Args[0], at)
		if (first == 20 || first == 23) && !slices.ContainsFunc(call.Args,
			func(n *sqltext.Node) bool { return c.typeOf(n, at) != first }) {
			columns[0].oid = first
		}
	}
	if f.Ordinality {
		columns = append(columns, typed{name: "ordinality", oid: 20})
	}
	i.rows, i.columns = true, rename(columns, f.GetAlias().GetColnames())
	return i
}

// typeOf is the type of an expression where it is certain and every two of its values can be compared; else 0.
func (c *cautious) typeOf(n *sqltext.Node, at *level) uint32 {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		return c.column(x.ColumnRef, at).oid
	case *sqltext.Node_A_Const:
		switch {
		case x.AConst.GetIval() != nil:
			return 23
		case x.AConst.GetSval() != nil:
			return 25
		}
	case *sqltext.Node_TypeCast:
		name := x.TypeCast.GetTypeName()
		if found := c.snap.TypesNamed("pg_catalog", lastName(name.GetNames())); len(found) == 1 &&
			len(name.GetArrayBounds()) == 0 && c.compares(found[0].OID) {
			if schema, _, ok := qualifiedName(name.GetNames()); ok &&
				(schema != "" && schema != "pg_catalog" || schema == "" && len(c.snap.TypesNamed("", found[0].Name.Name)) != 1) {
				return 0
			}
			return found[0].OID
		}
	case *sqltext.Node_BoolExpr, *sqltext.Node_NullTest, *sqltext.Node_BooleanTest:
		return 16
	case *sqltext.Node_A_Expr:
		switch _, name, ok := qualifiedName(x.AExpr.Name); {
		case !ok || x.AExpr.Kind != sqltext.AEXPR_OP:
		case slices.Contains(comparisons, name):
			return 16
		case name == "->>", name == "#>>":
			return 25
		}
	case *sqltext.Node_CoalesceExpr:
		var oid uint32
		for i, arg := range x.CoalesceExpr.Args {
			switch t := c.typeOf(arg, at); {
			case i == 0:
				oid = t
			case t != oid:
				return 0
			}
		}
		return oid
	case *sqltext.Node_SubLink:
		switch x.SubLink.SubLinkType {
		case sqltext.EXISTS_SUBLINK, sqltext.ANY_SUBLINK:
			return 16
		case sqltext.EXPR_SUBLINK:
			return c.gives(x.SubLink, at)
		}
	case *sqltext.Node_FuncCall:
		return c.callType(x.FuncCall, at)
	}
	return 0
}

// gives is the type of what a sub-select gives that gives one column.
func (c *cautious) gives(s *sqltext.SubLink, at *level) uint32 {
	if columns := c.outputsOf(s.GetSubselect().GetSelectStmt(), at, ""); len(columns) == 1 {
		return columns[0].oid
	}
	return 0
}

func (c *cautious) callType(f *sqltext.FuncCall, at *level) uint32 {
	if !c.plain(f) || f.AggWithinGroup {
		return 0
	}
	switch name := lastName(f.Funcname); name {
	case "count", "row_number", "rank", "dense_rank":
		return 20
	case "ntile":
		return 23
	case "lower", "upper", "length":
		switch {
		case len(f.Args) != 1 || !slices.Contains([]uint32{25, 1043}, c.typeOf(f.Args[0], at)):
		case name == "length":
			return 23
		default:
			return 25
		}
	case "min", "max":
		if len(f.Args) == 1 {
			return c.typeOf(f.Args[0], at)
		}
	case "sum", "avg":
		if len(f.Args) != 1 {
			return 0
		}
		switch t := c.typeOf(f.Args[0], at); {
		case name == "sum" && (t == 21 || t == 23):
			return 20
		case t == 20 || t == 21 || t == 23 || t == 1700:
			return 1700
		}
	}
	return 0
}
