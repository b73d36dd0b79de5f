package predicate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Derived shows a row that was made from other rows, its sources, if there is at least one source and every source
// exists and meets Rows. Its SQL always has the probe form, and a table with such a rule has no signed view.
type Derived struct {
	Origin
	Rows Node // the condition that every source must meet

	// SourceOrigins says from which rows of their own table the sources were made. Those rows must meet the same
	// condition. A row is hidden if its sources form a chain longer than [MaxDepth], or a cycle.
	SourceOrigins []Origin
}

// Origin says from which rows a row was made: the rows to which Steps lead, or the rows whose keys are in List.
type Origin struct {
	Steps  []Step
	List   List              // without Steps: the column that lists the keys of the sources
	Source *catalog.Relation // without Steps: the table whose keys List holds
	Key    string            // the primary key of Source
	// ExceptIf is a condition on the row's own columns under which the row needs no source; nil: every row needs one.
	ExceptIf Node
}

// MaxDepth is the greatest length of a chain of rows in one table of which each was made from the next.
const MaxDepth = 100

func (Derived) node() {}

// SourceTable returns the table in which the sources are.
func (o Origin) SourceTable() *catalog.Relation {
	if len(o.Steps) > 0 {
		return o.Steps[len(o.Steps)-1].Relation
	}
	return o.Source
}

// SourceCondition returns the condition that a source, and the sources of that source, must meet.
func (n Derived) SourceCondition() Node {
	out := All{n.Rows}
	for _, o := range n.SourceOrigins {
		out = append(out, Derived{Origin: o, Rows: n.Rows, SourceOrigins: n.SourceOrigins})
	}
	return out
}

// fromColumns returns the row's columns that lead to its sources, without the columns of ExceptIf.
func (o Origin) fromColumns() []string {
	if len(o.Steps) > 0 {
		return o.Steps[0].fromColumns()
	}
	return []string{o.List.Column}
}

// stepColumns returns the columns that step i+1 needs of the rows to which step i leads.
func (o Origin) stepColumns(i int) []string {
	if i+1 < len(o.Steps) {
		return o.Steps[i+1].fromColumns()
	}
	return nil
}

func (o Origin) isValid() bool { return len(o.Steps) > 0 || o.Source != nil && o.Key != "" }

// isValid reports whether SQL can be written for the node.
func (n Derived) isValid() bool {
	for _, o := range n.SourceOrigins {
		if !o.isValid() || o.SourceTable() != n.SourceTable() || len(n.SourceTable().PrimaryKey) == 0 {
			return false
		}
	}
	return n.Origin.isValid() && n.Rows != nil
}

func (w *predicateWriter) derivedSQL(n Derived, row string) string {
	if w.negated || !n.isValid() {
		return w.hidesAllSQL()
	}
	outer := w.sublinks
	w.sublinks = probeForm
	defer func() { w.sublinks = outer }()
	condition := ""
	switch {
	case len(n.SourceOrigins) > 0:
		condition = w.recursiveSourcesSQL(n, row)
	case len(n.Steps) > 0:
		condition = w.linkedSourcesSQL(n, row)
	default:
		condition = w.listedSourcesSQL(n, row)
	}
	if n.ExceptIf != nil {
		return "(" + w.nodeSQL(n.ExceptIf, row) + " OR " + condition + ")"
	}
	return condition
}

// linkedSourcesSQL writes the condition for sources to which steps lead. If a step leads to no row, a LEFT JOIN gives
// NULL for that source, which does not count as true.
func (w *predicateWriter) linkedSourcesSQL(n Derived, row string) string {
	first, last := n.Steps[0], w.newAlias()
	if len(n.Steps) == 1 && isUnique(first) {
		return "EXISTS (SELECT 1 FROM " + w.lookupName(first.Relation) + " AS " + last + " WHERE " + first.onSQL(last, row) +
			" AND " + w.nodeSQL(n.Rows, last) + offsetZeroEnd
	}
	existsSQL := "EXISTS (SELECT 1 FROM " + w.lookupName(first.Relation) + " AS " + last + " WHERE " + first.onSQL(last,
		row) + offsetZeroEnd
	begin := w.newAlias()
	last = begin
	var b strings.Builder
	b.WriteString("NOT EXISTS (SELECT 1 FROM " + w.lookupName(first.Relation) + " AS " + begin)
	for i, step := range n.Steps[1:] {
		next := w.newAlias()
		if i+2 < len(n.Steps) {
			b.WriteString(w.linkSQL(step, last, next, n.stepColumns(i+1)))
		} else {
			b.WriteString(" LEFT JOIN LATERAL (SELECT " + w.nodeSQL(n.Rows, next) + " AS shows FROM " +
				w.lookupName(step.Relation) + " AS " + next +
				" WHERE " + step.onSQL(next, last) + " OFFSET 0) AS " + next + " ON true")
		}
		last = next
	}
	shows := last + ".shows"
	if len(n.Steps) == 1 {
		shows = "(" + w.nodeSQL(n.Rows, last) + ")"
	}
	b.WriteString(" WHERE " + first.onSQL(begin, row) + " AND " + shows + " IS NOT TRUE" + offsetZeroEnd)
	return "(" + existsSQL + " AND " + b.String() + ")"
}

// listedSourcesSQL writes the condition for sources whose keys are in a list: a look-up of each key.
func (w *predicateWriter) listedSourcesSQL(n Derived, row string) string {
	listAlias, elementAlias, source := w.newAlias(), w.newAlias(), w.newAlias()
	return "(EXISTS (SELECT 1 FROM " + n.List.elementsSQL(row, listAlias) + offsetZeroEnd +
		" AND NOT EXISTS (SELECT 1 FROM " + n.List.elementsSQL(row, elementAlias) + " WHERE NOT EXISTS (SELECT 1 FROM " +
		w.lookupName(n.Source) + " AS " + source +
		" WHERE " + equalSQL(columnSQL(source, n.Key), n.elementSQL(elementAlias+".id")) + " AND " + w.nodeSQL(n.Rows,
		source) + offsetZeroEnd + offsetZeroEnd + ")"
}

// recursiveSourcesSQL writes the condition for sources that have sources themselves, as a recursive query. The query
// follows each key once at each depth, so a cycle is followed until the depth exceeds MaxDepth.
func (w *predicateWriter) recursiveSourcesSQL(n Derived, row string) string {
	all, source, sources, visibleAlias := w.newAlias(), w.newAlias(), w.newAlias(), w.newAlias()
	t := n.SourceTable()
	var names, keys, joinConditions, begin []string
	for i, name := range t.PrimaryKey {
		key := "p" + strconv.Itoa(i+1)
		names, keys = append(names, key), append(keys, sources+"."+key)
		joinConditions = append(joinConditions, equalSQL(columnSQL(source, name), all+"."+key))
		begin = append(begin, equalSQL(columnSQL(visibleAlias, name), all+"."+key))
	}
	var recursiveTerms []string
	readColumns := []string{}
	for _, o := range n.SourceOrigins {
		readColumns = append(readColumns, o.fromColumns()...)
		if o.ExceptIf != nil {
			columns, _ := RowColumns(o.ExceptIf)
			readColumns = append(readColumns, columns...)
		}
		recursiveTerms = append(recursiveTerms, w.sourcesSQL(o, source))
	}
	key := strings.Join(names, ", ")
	return "NOT EXISTS (WITH RECURSIVE " + all + " (" + key + ", depth) AS (" +
		"SELECT " + strings.Join(keys, ", ") + ", 1 FROM (" + w.sourcesSQL(n.Origin.withoutException(), row) + ") AS " +
		sources +
		" (" + key + ")" +
		" UNION SELECT " + strings.Join(keys, ", ") + ", " + all + ".depth OPERATOR(pg_catalog.+) 1 FROM " + all +
		" CROSS JOIN LATERAL (SELECT " + columnListSQL(source, readColumns...) + " FROM " + w.lookupName(t) + " AS " +
		source +
		" WHERE " + strings.Join(joinConditions, " AND ") + " OFFSET 0) AS " + source +
		" CROSS JOIN LATERAL (" + strings.Join(recursiveTerms, " UNION ALL ") + ") AS " + sources + " (" + key + ")" +
		" WHERE " + all + ".depth OPERATOR(pg_catalog.<=) " + strconv.Itoa(MaxDepth) + ")" +
		" SELECT 1 FROM " + all + " LEFT JOIN LATERAL (SELECT " + w.nodeSQL(n.Rows, visibleAlias) + " AS shows FROM " +
		w.lookupName(t) + " AS " + visibleAlias +
		" WHERE " + strings.Join(begin, " AND ") + " OFFSET 0) AS " + visibleAlias + " ON true" +
		" WHERE " + all + ".depth OPERATOR(pg_catalog.>) " + strconv.Itoa(MaxDepth) + " OR " + visibleAlias +
		".shows IS NOT TRUE" + offsetZeroEnd
}

// withoutException returns the origin without ExceptIf, for rows for which ExceptIf is known not to be true.
func (o Origin) withoutException() Origin {
	o.ExceptIf = nil
	return o
}

// sourcesSQL returns a query of the keys of a row's sources. It returns a row of NULLs for a source that does not
// exist, and also one if the row has no source.
func (w *predicateWriter) sourcesSQL(o Origin, row string) string {
	one := w.newAlias()
	from, last := "(SELECT 1) AS "+one, ""
	key := func(alias string) string {
		var out []string
		for i, name := range o.SourceTable().PrimaryKey {
			out = append(out, columnSQL(alias, name)+"::"+KeyType(o.SourceTable().Column(name))+" AS p"+strconv.Itoa(i+1))
		}
		return strings.Join(out, ", ")
	}
	if len(o.Steps) == 0 {
		elementAlias := w.newAlias()
		last = w.newAlias()
		from += " LEFT JOIN " + o.List.elementsSQL(row, elementAlias) + " ON true LEFT JOIN LATERAL (SELECT " + key(last) +
			" FROM " + w.lookupName(o.Source) + " AS " + last +
			" WHERE " + equalSQL(columnSQL(last, o.Key), o.elementSQL(elementAlias+".id")) + " OFFSET 0) AS " + last + " ON true"
	}
	before := row
	for i, step := range o.Steps {
		last = w.newAlias()
		selected := key
		if i+1 < len(o.Steps) {
			selected = func(alias string) string { return columnListSQL(alias, o.stepColumns(i)...) }
		}
		from += " LEFT JOIN LATERAL (SELECT " + selected(last) + " FROM " + w.lookupName(step.Relation) + " AS " +
			last + " WHERE " + step.onSQL(last, before) + " OFFSET 0) AS " + last + " ON true"
		before = last
	}
	var keys []string
	for i := range o.SourceTable().PrimaryKey {
		keys = append(keys, last+".p"+strconv.Itoa(i+1))
	}
	query := "SELECT " + strings.Join(keys, ", ") + " FROM " + from
	if o.ExceptIf != nil {
		query += " WHERE (" + w.nodeSQL(o.ExceptIf, row) + ") IS NOT TRUE"
	}
	return query
}

// The forms of keys in a JSON list, for a table whose key is a uuid or an integer. Elements of other forms match no
// row.
const (
	uuidElement    = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
	integerElement = "^(0|-?[1-9][0-9]{0,17})$"
)

var uuidKey, integerKey = regexp.MustCompile(uuidElement), regexp.MustCompile(integerElement)

// castType returns the type to which SQL casts an element of a JSON list; "": no cast is needed.
func (o Origin) castType() string {
	if o.List.Form != GrantJSONB && o.List.Form != GrantJSON {
		return ""
	}
	switch keyType := KeyType(o.Source.Column(o.Key)); keyType {
	case "pg_catalog.uuid":
		return keyType
	case "pg_catalog.int2", "pg_catalog.int4", "pg_catalog.int8":
		return "pg_catalog.int8"
	}
	return ""
}

// elementSQL returns the SQL expression that converts an element of the list into a key of the sources.
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

// DerivedRowsSQL returns FROM items and a condition that find the rows of a table, under the alias row, that were made
// from one row of the sources' table, called source. They read the tables themselves, for roles to which row security
// does not apply. They may find a row more than once. Erasures use them.
func (o Origin) DerivedRowsSQL(table *catalog.Relation, row, source string) (from []string, where string) {
	w := predicateWriter{readsTables: true, prefix: aliasPrefixFor(row + source)}
	for strings.HasPrefix(source, w.prefix) || strings.HasPrefix(row, w.prefix) {
		w.prefix += "_"
	}
	row, source = catalog.QuoteIdent(row), catalog.QuoteIdent(source)
	from = []string{table.Name.SQL() + " AS " + row}
	if !o.isValid() {
		return from, "false"
	}
	var conditions []string
	if len(o.Steps) == 0 {
		elementAlias := w.newAlias()
		from = append(from, o.List.elementsSQL(row, elementAlias))
		conditions = append(conditions, equalSQL(columnSQL(source, o.Key), o.elementSQL(elementAlias+".id")))
	}
	last := row
	for i, step := range o.Steps {
		next := source
		if i+1 < len(o.Steps) {
			next = w.newAlias()
			from = append(from, w.lookupName(step.Relation)+" AS "+next)
		}
		conditions = append(conditions, step.onSQL(next, last))
		last = next
	}
	if o.ExceptIf != nil {
		conditions = append(conditions, "("+w.nodeSQL(o.ExceptIf, row)+") IS NOT TRUE")
	}
	return from, strings.Join(conditions, " AND ")
}

// DerivedFromCondition returns the SQL condition that the row called row was made from the row called source. The
// condition reads the tables themselves, for roles to which row security does not apply, and is never NULL. Tools that
// explain one row use it.
func (o Origin) DerivedFromCondition(row, source string) string {
	w := predicateWriter{readsTables: true, prefix: aliasPrefixFor(row + source)}
	for strings.HasPrefix(source, w.prefix) || strings.HasPrefix(row, w.prefix) {
		w.prefix += "_"
	}
	row, source = catalog.QuoteIdent(row), catalog.QuoteIdent(source)
	var condition string
	switch {
	case !o.isValid():
		return "false"
	case len(o.Steps) == 0:
		elementAlias := w.newAlias()
		condition = "EXISTS (SELECT 1 FROM " + o.List.elementsSQL(row, elementAlias) + " WHERE " +
			equalSQL(columnSQL(source, o.Key), o.elementSQL(elementAlias+".id")) + ")"
	case len(o.Steps) == 1:
		condition = o.Steps[0].onSQL(source, row)
	default:
		first := w.newAlias()
		last, from := first, w.lookupName(o.Steps[0].Relation)+" AS "+first
		for _, step := range o.Steps[1 : len(o.Steps)-1] {
			next := w.newAlias()
			from += " JOIN " + w.lookupName(step.Relation) + " AS " + next + " ON " + step.onSQL(next, last)
			last = next
		}
		condition = "EXISTS (SELECT 1 FROM " + from + " WHERE " + o.Steps[0].onSQL(first, row) + " AND " +
			o.Steps[len(o.Steps)-1].onSQL(source, last) + ")"
	}
	return "(" + condition + ") IS TRUE"
}

// areSourcesVisible evaluates a Derived node over rows in memory; see [Eval].
func areSourcesVisible(n Derived, row Row, w World) bool {
	if !n.isValid() {
		return false
	}
	if n.ExceptIf != nil && evalNode(n.ExceptIf, row, w) == truthYes {
		return true
	}
	sources, complete := n.sourcesOf(row, w)
	visibleByID := map[string]bool{}
	var allHold func(rows []Row, depth int) bool
	allHold = func(rows []Row, depth int) bool {
		for _, source := range rows {
			id := fmt.Sprint(depth)
			for _, name := range n.SourceTable().PrimaryKey {
				id += fmt.Sprintf(" %q", source[name])
			}
			ok, isKnown := visibleByID[id]
			if !isKnown || len(n.SourceTable().PrimaryKey) == 0 {
				ok = depth <= MaxDepth && evalNode(n.Rows, source, w) == truthYes
				for _, o := range n.SourceOrigins {
					if ok && (o.ExceptIf == nil || evalNode(o.ExceptIf, source, w) != truthYes) {
						next, all := o.sourcesOf(source, w)
						ok = all && allHold(next, depth+1)
					}
				}
				visibleByID[id] = ok
			}
			if !ok {
				return false
			}
		}
		return true
	}
	return complete && allHold(sources, 1)
}

// sourcesOf returns the sources of a row in memory. complete is false if there are none, or if one does not exist.
func (o Origin) sourcesOf(row Row, w World) (out []Row, complete bool) {
	if len(o.Steps) == 0 {
		ids, ok := o.List.idsOf(row)
		for _, id := range ids {
			if id == nil {
				return nil, false
			}
			found := false
			for _, source := range w.Tables[o.Source.Name] {
				if key, exists := source[o.Key]; exists && key == o.keyText(*id) {
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
			to := followStep(step, at, w)
			if len(to) == 0 {
				return nil, false
			}
			next = append(next, to...)
		}
		out = next
	}
	return out, true
}

// keyText converts an element of the list into the text of a key; "" matches no key.
func (o Origin) keyText(element string) string {
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
