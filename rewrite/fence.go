package rewrite

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/sqltext"
)

// A search that is not the statement itself has no exact twin (see nearest.go): an index that gives up, or whose graph hidden rows
// have torn, would tell of them by how many rows come back. So where a distance is asked for in any other form, what an approximate
// index might put in order is read behind OFFSET 0, which no index can.

// fences finds the relations to be fenced in. search is the table of a search with a twin, or nil.
func (w *walker) fences(tree *sqltext.ParseResult, search *sqltext.RangeVar) {
	if !slices.ContainsFunc(w.references, func(ref *reference) bool { return w.approximates(ref) }) {
		return
	}
	w.fenced = sqltext.Ordered(tree, distances)
	delete(w.fenced, search)
}

// approximates tells whether an approximate index may lie under a relation: its own, that of a part, or of what a view reads.
func (w *walker) approximates(ref *reference) bool {
	if ref.fragment == nil || ref.relation == nil {
		return false
	}
	over := func(r *catalog.Relation) bool {
		return r.Approximate || r.HasChildren && slices.ContainsFunc(w.snap.Relations(), func(c *catalog.Relation) bool { return c.Approximate && len(c.Parents) > 0 })
	}
	return over(ref.relation) || slices.ContainsFunc(ref.fragment.tables, func(name catalog.Name) bool {
		r, ok := w.snap.Relation(name)
		return ok && over(r)
	})
}

// isFenced tells whether a reference is to be fenced in, and refuses where that cannot be written.
func (w *walker) isFenced(ref *reference) bool {
	if !w.fenced[ref.rangeVar] || ref.copyStmt != nil || !w.approximates(ref) {
		return false
	}
	switch ref.kept {
	case "GROUP BY the primary key": // what is grouped by a key, and by no distance, is not sorted by one
		return false
	case "ONLY", "t *", "tableoid":
		w.refuseAt(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "relation %q cannot be searched by distance here (%s)", ref.name.String(), ref.kept).
			WithHint("Write the search as the statement: SELECT ... FROM %s ORDER BY a distance LIMIT a number.", ref.name.SQL()), ref.start)
		return false
	}
	return true
}

// fence puts a subselect in the place of a name that a subselect which is read behind OFFSET 0 stands for: of a relation, or one with a predicate.
func (w *walker) fence(ref *reference, inner string) {
	if !strings.HasPrefix(inner, "(") {
		inner = "(SELECT * FROM " + inner + ")"
	}
	text := strings.TrimSuffix(inner, ")") + " OFFSET 0)"
	tree, refused := sqltext.Parse("SELECT FROM " + text + " AS x")
	if refused != nil || len(tree.Stmts) != 1 {
		w.refuse(sqlstate.From(errFragment))
		return
	}
	from := tree.Stmts[0].GetStmt().GetSelectStmt().GetFromClause()
	if len(from) != 1 || from[0].GetRangeSubselect().GetSubquery() == nil {
		w.refuse(sqlstate.From(errFragment))
		return
	}
	for _, c := range ref.qualified {
		w.unqualify(c)
	}
	w.injectSubquery(ref, text, func() *sqltext.Node { return proto.Clone(from[0].GetRangeSubselect().GetSubquery()).(*sqltext.Node) })
}
