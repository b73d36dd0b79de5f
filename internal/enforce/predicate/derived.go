package predicate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Derived shows a row that was made from other rows if it was made from at least one, and each of these exists and
// shows by Rows. It has the probe form only, and no signed view.
type Derived struct {
	Origin
	Rows Node // the condition on each source

	// Again says how sources were made from other rows of their own table, for which the same condition applies. A row
	// whose sources go more than [MaxDepth] deep, or in a circle, is hidden.
	Again []Origin
}

// Origin says from which rows a row was made: the rows that the steps lead to, or the rows whose keys are in a list of
// the row.
type Origin struct {
	Steps  []Step
	List   List              // without Steps: the column of keys
	Source *catalog.Relation // the table whose keys the list holds
	Key    string            // its primary key
	// a condition on the row's own columns; if true, the row needs no source; nil: every row needs one
	Unless Node
}

// MaxDepth is how long a chain of rows may be that were made from each other in one table.
const MaxDepth = 100

func (Derived) node() {}

// Table is the table of the sources.
func (o Origin) Table() *catalog.Relation {
	if len(o.Steps) > 0 {
		return o.Steps[len(o.Steps)-1].Relation
	}
	return o.Source
}

// OfSource is the condition on a source, and on the sources that it was made from itself.
func (n Derived) OfSource() Node {
	out := All{n.Rows}
	for _, o := range n.Again {
		out = append(out, Derived{Origin: o, Rows: n.Rows, Again: n.Again})
	}
	return out
}

// fromColumns are the columns of the row that lead to its sources, without the columns of Unless.
func (o Origin) fromColumns() []string {
	if len(o.Steps) > 0 {
		return o.Steps[0].fromColumns()
	}
	return []string{o.List.Column}
}

// reads are the columns that lead on from the rows of the i-th step.
func (o Origin) reads(i int) []string {
	if i+1 < len(o.Steps) {
		return o.Steps[i+1].fromColumns()
	}
	return nil
}

func (o Origin) valid() bool { return len(o.Steps) > 0 || o.Source != nil && o.Key != "" }

// valid tells whether the node can be written at all.
func (n Derived) valid() bool {
	for _, o := range n.Again {
		if !o.valid() || o.Table() != n.Table() || len(n.Table().PrimaryKey) == 0 {
			return false
		}
	}
	return n.Origin.valid() && n.Rows != nil
}

func (w *writer) derivedSQL(n Derived, row string) string {
	if w.negated || !n.valid() {
		return w.nothing()
	}
	outer := w.form
	w.form = probe
	defer func() { w.form = outer }()
	holds := ""
	switch {
	case len(n.Again) > 0:
		holds = w.recursiveSources(n, row)
	case len(n.Steps) > 0:
		holds = w.linkedSources(n, row)
	default:
		holds = w.listedSources(n, row)
	}
	if n.Unless != nil {
		return "(" + w.write(n.Unless, row) + " OR " + holds + ")"
	}
	return holds
}

// linkedSources follows the steps. A step that leads to no row gives NULL, which is not true.
func (w *writer) linkedSources(n Derived, row string) string {
	first, last := n.Steps[0], w.alias()
	if len(n.Steps) == 1 && isUnique(first) {
		return "EXISTS (SELECT 1 FROM " + w.helper(first.Relation) + " AS " + last + " WHERE " + first.onSQL(last, row) +
			" AND " + w.write(n.Rows, last) + fence
	}
	some := "EXISTS (SELECT 1 FROM " + w.helper(first.Relation) + " AS " + last + " WHERE " + first.onSQL(last, row) + fence
	begin := w.alias()
	last = begin
	var b strings.Builder
	b.WriteString("NOT EXISTS (SELECT 1 FROM " + w.helper(first.Relation) + " AS " + begin)
	for i, step := range n.Steps[1:] {
		next := w.alias()
		if i+2 < len(n.Steps) {
			b.WriteString(w.linkSQL(step, last, next, n.reads(i+1)))
		} else {
			b.WriteString(" LEFT JOIN LATERAL (SELECT " + w.write(n.Rows, next) + " AS shows FROM " +
				w.helper(step.Relation) + " AS " + next +
				" WHERE " + step.onSQL(next, last) + " OFFSET 0) AS " + next + " ON true")
		}
		last = next
	}
	shows := last + ".shows"
	if len(n.Steps) == 1 {
		shows = "(" + w.write(n.Rows, last) + ")"
	}
	b.WriteString(" WHERE " + first.onSQL(begin, row) + " AND " + shows + " IS NOT TRUE" + fence)
	return "(" + some + " AND " + b.String() + ")"
}

// listedSources looks up each key of the list.
func (w *writer) listedSources(n Derived, row string) string {
	some, each, source := w.alias(), w.alias(), w.alias()
	return "(EXISTS (SELECT 1 FROM " + n.List.elementsSQL(row, some) + fence +
		" AND NOT EXISTS (SELECT 1 FROM " + n.List.elementsSQL(row, each) + " WHERE NOT EXISTS (SELECT 1 FROM " +
		w.helper(n.Source) + " AS " + source +
		" WHERE " + equal(column(source, n.Key), n.elementSQL(each+".id")) + " AND " + w.write(n.Rows, source) + fence + fence + ")"
}

// recursiveSources also follows the sources of sources, each key once for each depth: a circle is followed until it is
// too deep.
func (w *writer) recursiveSources(n Derived, row string) string {
	all, source, sources, shown := w.alias(), w.alias(), w.alias(), w.alias()
	t := n.Table()
	var names, keys, on, begin []string
	for i, name := range t.PrimaryKey {
		key := "p" + strconv.Itoa(i+1)
		names, keys = append(names, key), append(keys, sources+"."+key)
		on = append(on, equal(column(source, name), all+"."+key))
		begin = append(begin, equal(column(shown, name), all+"."+key))
	}
	var again []string
	reads := []string{}
	for _, o := range n.Again {
		reads = append(reads, o.fromColumns()...)
		if o.Unless != nil {
			columns, _ := RowColumns(o.Unless)
			reads = append(reads, columns...)
		}
		again = append(again, w.sourcesSQL(o, source))
	}
	key := strings.Join(names, ", ")
	return "NOT EXISTS (WITH RECURSIVE " + all + " (" + key + ", depth) AS (" +
		"SELECT " + strings.Join(keys, ", ") + ", 1 FROM (" + w.sourcesSQL(n.Origin.withoutUnless(), row) + ") AS " + sources +
		" (" + key + ")" +
		" UNION SELECT " + strings.Join(keys, ", ") + ", " + all + ".depth OPERATOR(pg_catalog.+) 1 FROM " + all +
		" CROSS JOIN LATERAL (SELECT " + columns(source, reads...) + " FROM " + w.helper(t) + " AS " + source +
		" WHERE " + strings.Join(on, " AND ") + " OFFSET 0) AS " + source +
		" CROSS JOIN LATERAL (" + strings.Join(again, " UNION ALL ") + ") AS " + sources + " (" + key + ")" +
		" WHERE " + all + ".depth OPERATOR(pg_catalog.<=) " + strconv.Itoa(MaxDepth) + ")" +
		" SELECT 1 FROM " + all + " LEFT JOIN LATERAL (SELECT " + w.write(n.Rows, shown) + " AS shows FROM " +
		w.helper(t) + " AS " + shown +
		" WHERE " + strings.Join(begin, " AND ") + " OFFSET 0) AS " + shown + " ON true" +
		" WHERE " + all + ".depth OPERATOR(pg_catalog.>) " + strconv.Itoa(MaxDepth) + " OR " + shown +
		".shows IS NOT TRUE" + fence
}

// withoutUnless is the origin for a row for which Unless was already found not to be true.
func (o Origin) withoutUnless() Origin {
	o.Unless = nil
	return o
}

// sourcesSQL is a query of the keys of a row's sources: with a row of NULLs for a source that does not exist, and if
// there is none at all.
func (w *writer) sourcesSQL(o Origin, row string) string {
	one := w.alias()
	from, last := "(SELECT 1) AS "+one, ""
	key := func(alias string) string {
		var out []string
		for i, name := range o.Table().PrimaryKey {
			out = append(out, column(alias, name)+"::"+KeyType(o.Table().Column(name))+" AS p"+strconv.Itoa(i+1))
		}
		return strings.Join(out, ", ")
	}
	if len(o.Steps) == 0 {
		each := w.alias()
		last = w.alias()
		from += " LEFT JOIN " + o.List.elementsSQL(row, each) + " ON true LEFT JOIN LATERAL (SELECT " + key(last) +
			" FROM " + w.helper(o.Source) + " AS " + last +
			" WHERE " + equal(column(last, o.Key), o.elementSQL(each+".id")) + " OFFSET 0) AS " + last + " ON true"
	}
	before := row
	for i, step := range o.Steps {
		last = w.alias()
		selected := key
		if i+1 < len(o.Steps) {
			selected = func(alias string) string { return columns(alias, o.reads(i)...) }
		}
		from += " LEFT JOIN LATERAL (SELECT " + selected(last) + " FROM " + w.helper(step.Relation) + " AS " +
			last + " WHERE " + step.onSQL(last, before) + " OFFSET 0) AS " + last + " ON true"
		before = last
	}
	var keys []string
	for i := range o.Table().PrimaryKey {
		keys = append(keys, last+".p"+strconv.Itoa(i+1))
	}
	query := "SELECT " + strings.Join(keys, ", ") + " FROM " + from
	if o.Unless != nil {
		query += " WHERE (" + w.write(o.Unless, row) + ") IS NOT TRUE"
	}
	return query
}

// The forms of keys in a JSON list for a table whose key is no text; other elements match no row.
const (
	uuidElement    = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
	integerElement = "^(0|-?[1-9][0-9]{0,17})$"
)

var uuidKey, integerKey = regexp.MustCompile(uuidElement), regexp.MustCompile(integerElement)

// castType is the type to which an element of JSON is cast; "" if it is compared as it is.
func (o Origin) castType() string {
	if o.List.Form != GrantJSONB && o.List.Form != GrantJSON {
		return ""
	}
	switch of := KeyType(o.Source.Column(o.Key)); of {
	case "pg_catalog.uuid":
		return of
	case "pg_catalog.int2", "pg_catalog.int4", "pg_catalog.int8":
		return "pg_catalog.int8"
	}
	return ""
}

// elementSQL is an SQL expression for an element of the list as a key of the sources.
func (o Origin) elementSQL(value string) string {
	form := uuidElement
	switch o.castType() {
	case "":
		return value
	case "pg_catalog.int8":
		form = integerElement
	}
	return "CASE WHEN " + value + " OPERATOR(pg_catalog.~) '" + form + "' THEN " + value + "::" + o.castType() + " END"
}

// Products are the items of a FROM and the condition that find the rows of a table, called row, that were made from the
// row of the sources' table called source. They read the tables themselves, for roles to which row security does not
// apply. A row may be found more than once. Erasures use it.
func (o Origin) Products(table *catalog.Relation, row, source string) (from []string, where string) {
	w := writer{direct: true, prefix: prefixFor(row + source)}
	for strings.HasPrefix(source, w.prefix) || strings.HasPrefix(row, w.prefix) {
		w.prefix += "_"
	}
	row, source = catalog.QuoteIdent(row), catalog.QuoteIdent(source)
	from = []string{table.Name.SQL() + " AS " + row}
	if !o.valid() {
		return from, "false"
	}
	var conditions []string
	if len(o.Steps) == 0 {
		each := w.alias()
		from = append(from, o.List.elementsSQL(row, each))
		conditions = append(conditions, equal(column(source, o.Key), o.elementSQL(each+".id")))
	}
	last := row
	for i, step := range o.Steps {
		next := source
		if i+1 < len(o.Steps) {
			next = w.alias()
			from = append(from, w.helper(step.Relation)+" AS "+next)
		}
		conditions = append(conditions, step.onSQL(next, last))
		last = next
	}
	if o.Unless != nil {
		conditions = append(conditions, "("+w.write(o.Unless, row)+") IS NOT TRUE")
	}
	return from, strings.Join(conditions, " AND ")
}

// MadeFromCondition is the condition that the row called row was made from the row of the source's table called source.
// It reads the tables themselves, for roles to which row security does not apply, and is never NULL. Tools that explain
// one row use it.
func (o Origin) MadeFromCondition(row, source string) string {
	w := writer{direct: true, prefix: prefixFor(row + source)}
	for strings.HasPrefix(source, w.prefix) || strings.HasPrefix(row, w.prefix) {
		w.prefix += "_"
	}
	row, source = catalog.QuoteIdent(row), catalog.QuoteIdent(source)
	var made string
	switch {
	case !o.valid():
		return "false"
	case len(o.Steps) == 0:
		each := w.alias()
		made = "EXISTS (SELECT 1 FROM " + o.List.elementsSQL(row, each) + " WHERE " +
			equal(column(source, o.Key), o.elementSQL(each+".id")) + ")"
	case len(o.Steps) == 1:
		made = o.Steps[0].onSQL(source, row)
	default:
		first := w.alias()
		last, from := first, w.helper(o.Steps[0].Relation)+" AS "+first
		for _, step := range o.Steps[1 : len(o.Steps)-1] {
			next := w.alias()
			from += " JOIN " + w.helper(step.Relation) + " AS " + next + " ON " + step.onSQL(next, last)
			last = next
		}
		made = "EXISTS (SELECT 1 FROM " + from + " WHERE " + o.Steps[0].onSQL(first, row) + " AND " +
			o.Steps[len(o.Steps)-1].onSQL(source, last) + ")"
	}
	return "(" + made + ") IS TRUE"
}

// sourcesShow evaluates the node in memory; see Eval.
func sourcesShow(n Derived, row Row, w World) bool {
	if !n.valid() {
		return false
	}
	if n.Unless != nil && judge(n.Unless, row, w) == yes {
		return true
	}
	sources, whole := n.from(row, w)
	known := map[string]bool{}
	var hold func(rows []Row, depth int) bool
	hold = func(rows []Row, depth int) bool {
		for _, source := range rows {
			id := fmt.Sprint(depth)
			for _, name := range n.Table().PrimaryKey {
				id += fmt.Sprintf(" %q", source[name])
			}
			ok, done := known[id]
			if !done || len(n.Table().PrimaryKey) == 0 {
				ok = depth <= MaxDepth && judge(n.Rows, source, w) == yes
				for _, o := range n.Again {
					if ok && (o.Unless == nil || judge(o.Unless, source, w) != yes) {
						next, all := o.from(source, w)
						ok = all && hold(next, depth+1)
					}
				}
				known[id] = ok
			}
			if !ok {
				return false
			}
		}
		return true
	}
	return whole && hold(sources, 1)
}

// from are a row's sources; false if there is none, or one does not exist.
func (o Origin) from(row Row, w World) (out []Row, whole bool) {
	if len(o.Steps) == 0 {
		ids, ok := o.List.ids(row)
		for _, id := range ids {
			if id == nil {
				return nil, false
			}
			found := false
			for _, source := range w.Tables[o.Source.Name] {
				if key, there := source[o.Key]; there && key == o.idSQL(*id) {
					out, found = append(out, source), true
				}
			}
			if !found {
				return nil, false
			}
		}
		return out, ok && len(out) > 0
	}
	out = []Row{row}
	for _, step := range o.Steps {
		var next []Row
		for _, at := range out {
			to := follow(step, at, w)
			if len(to) == 0 {
				return nil, false
			}
			next = append(next, to...)
		}
		out = next
	}
	return out, true
}

// idSQL is an element of the list as the text of a key.
func (o Origin) idSQL(element string) string {
	switch o.castType() {
	case "pg_catalog.uuid":
		if uuidKey.MatchString(element) {
			return strings.ToLower(element)
		}
		return ""
	case "pg_catalog.int8":
		if !integerKey.MatchString(element) {
			return ""
		}
	}
	return element
}
