package rewrite

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// If the owner adds a column to a table after pgconsent migrate, the column waits: it does not exist for agents until
// the next migrate. A statement that names all its columns, and no waiting one, stays as it is. Other statements read a
// sub-select of the known columns, or the rewriter writes the known columns in place of *. The views of pgconsent
// contain no waiting column. See docs/decisions/0088-new-columns-wait.md.

// targetStar is a * or x.* in a target list.
type targetStar struct {
	targets  *[]*sqltext.Node
	column   *sqltext.ColumnRef
	item     *fromItem // the FROM item for which the star stands; nil: several items, or an unknown one
	repeated bool
}

// addStar notes a * in a target list.
func (w *walker) addStar(targets *[]*sqltext.Node, c *sqltext.ColumnRef) {
	s := targetStar{targets: targets, column: c, repeated: w.repeated}
	items := w.scope.items
	if len(c.Fields) == 2 {
		items = w.scope.itemsNamed(c.Fields[0].GetString_().GetSval())
	}
	if len(c.Fields) <= 2 && len(items) == 1 {
		s.item = items[0]
	}
	w.stars = append(w.stars, s)
}

// readsWaitingColumn tells whether a statement may read columns that wait for pgconsent migrate.
func (w *walker) readsWaitingColumn(ref *reference) bool {
	return !w.isView && ref.relation != nil && len(ref.relation.WaitingColumns) > 0 && !ref.fragment.isView() &&
		(ref.allColumns || slices.ContainsFunc(ref.relation.WaitingColumns,
			func(name string) bool { return w.columnNames[name] }))
}

// hideWaiting keeps a statement from reading the waiting columns of a table. inner is the text that stands in the
// table's place: its name, or a subquery with the predicate.
func (w *walker) hideWaiting(ref *reference, inner string) {
	switch {
	case ref.copyStmt != nil && len(ref.copyStmt.Attlist) == 0 && inner == ref.name.SQL():
		w.listedColumns(ref)
	case ref.copyStmt != nil && len(ref.copyStmt.Attlist) == 0:
		w.injectCopy(ref)
	case ref.copyStmt == nil && !ref.isTarget && slices.Contains(columnReasons, ref.notInjectedBecause):
		w.replaceBySubselect(ref, w.knownColumns(ref, inner), w.mustFence(ref))
	case !w.expandStars(ref):
		w.refuseAt(waitingRefusal(ref.name), ref.start)
	default:
		w.qualifyRelation(ref)
	}
}

// columnReasons are reasons against a subquery with a predicate that do not rule out a sub-select of the known columns.
var columnReasons = []notInjectedReason{mayInject, inWritingStatement, columnAliases, wholeRowReference,
	schemaQualifiedColumn, unsignedText}

func waitingRefusal(name catalog.Name) *sqlstate.Error {
	return sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonStale,
		"%s has columns since the last pgconsent migrate, which this statement would reach", name).
		WithHint("Name the columns in place of *, or in place of the row. Or the owner of the database runs pgconsent migrate.")
}

// knownColumns returns the text of a sub-select of the known columns. If inner is a sub-select already, the result is
// inner with these columns in place of its *.
func (w *walker) knownColumns(ref *reference, inner string) string {
	columns := make([]string, len(ref.relation.Columns))
	for i, c := range ref.relation.Columns {
		columns[i] = catalog.QuoteIdent(c.Name)
	}
	list := strings.Join(columns, ", ")
	if of, isOfKind := strings.CutPrefix(inner, everyColumn); isOfKind {
		return "(SELECT " + list + " FROM " + of
	}
	return "(SELECT " + list + " FROM " + inner + ")"
}

// everyColumn begins the text of each sub-select in a table's place.
const everyColumn = "(SELECT * FROM "

// replaceBySubselect puts a sub-select in the place of a relation's name. With addOffset it ends in OFFSET 0, so that
// PostgreSQL cannot sort its rows by an index of the table.
func (w *walker) replaceBySubselect(ref *reference, text string, addOffset bool) {
	if addOffset {
		text = strings.TrimSuffix(text, ")") + " OFFSET 0)"
	}
	tree, refusal := sqltext.Parse("SELECT FROM " + text + " AS x")
	if refusal != nil || len(tree.Stmts) != 1 {
		w.refuse(sqlstate.AsError(errPolicyExpression))
		return
	}
	from := tree.Stmts[0].GetStmt().GetSelectStmt().GetFromClause()
	if len(from) != 1 || from[0].GetRangeSubselect().GetSubquery() == nil {
		w.refuse(sqlstate.AsError(errPolicyExpression))
		return
	}
	for _, c := range ref.qualifiedColumns {
		w.unqualify(c)
	}
	w.injectSubquery(ref, text, func() *sqltext.Node {
		return proto.Clone(from[0].GetRangeSubselect().GetSubquery()).(*sqltext.Node)
	})
}

// expandStars replaces each * that includes a table's columns by the table's known columns. The result is false if the
// statement reads the whole row in another way, or names a waiting column.
func (w *walker) expandStars(ref *reference) bool {
	if ref.rowType || ref.copyStmt != nil || ref.repeated || len(ref.relation.Columns) == 0 ||
		slices.ContainsFunc(ref.relation.WaitingColumns, func(name string) bool { return w.columnNames[name] }) {
		return false
	}
	found := 0
	for _, s := range w.stars {
		if s.item == nil || s.item.ref != ref {
			continue
		}
		if s.repeated || !w.expandStar(s, ref) {
			return false
		}
		found++
	}
	return found == ref.starCount
}

func (w *walker) expandStar(s targetStar, ref *reference) bool {
	first := w.source.TokenAt(s.column.Location)
	last := first + 2*(len(s.column.Fields)-1) // the star is written as * or as name . *
	if first < 0 || w.source.KindAt(last) != sqltext.Star {
		return false
	}
	texts := make([]string, len(ref.relation.Columns))
	nodes := make([]*sqltext.Node, len(texts))
	for i, c := range ref.relation.Columns {
		texts[i] = catalog.QuoteIdent(s.item.name) + "." + catalog.QuoteIdent(c.Name)
		nodes[i] = &sqltext.Node{Node: &sqltext.Node_ResTarget{
			ResTarget: &sqltext.ResTarget{Val: columnNode(s.item.name, c.Name)}}}
	}
	w.replace(w.source.Tokens[first].Start, w.source.Tokens[last].End, strings.Join(texts, ", "), func() {
		tokenIndex := slices.IndexFunc(*s.targets, func(n *sqltext.Node) bool {
			return n.GetResTarget().GetVal().GetColumnRef() == s.column
		})
		*s.targets = slices.Replace(slices.Clone(*s.targets), tokenIndex, tokenIndex+1, nodes...)
	})
	return true
}

func columnNode(names ...string) *sqltext.Node {
	c := &sqltext.ColumnRef{}
	for _, name := range names {
		c.Fields = append(c.Fields, stringNode(name))
	}
	return &sqltext.Node{Node: &sqltext.Node_ColumnRef{ColumnRef: c}}
}
