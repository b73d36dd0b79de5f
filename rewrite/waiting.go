package rewrite

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A column that a table got since pgconsent migrate does not exist for agents, but the table has it. A statement that
// names its columns, and none by that name, stays as it is. Another reads a sub-select of the columns that are known,
// or has them in the place of its *. Views of ours have no such column. See docs/decisions/0088-new-columns-wait.md.

// star is a * in a list of targets.
type targetStar struct {
	targets  *[]*sqltext.Node
	column   *sqltext.ColumnRef
	item     *fromItem // nil: it stands for more than one, or for what is not plain to see
	repeated bool
}

// addStar notes a * that stands in a list of targets.
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

// meetsWaiting tells whether a statement may come upon columns of a table that wait for pgconsent migrate.
func (w *walker) readsWaitingColumn(ref *reference) bool {
	return !w.isView && ref.relation != nil && len(ref.relation.Waiting) > 0 && !ref.fragment.isView() &&
		(ref.allColumns || slices.ContainsFunc(ref.relation.Waiting, func(name string) bool { return w.columnNames[name] }))
}

// leaveOut keeps a statement from the columns of a table that wait. inner is what stands for the table.
func (w *walker) hideWaiting(ref *reference, inner string) {
	switch {
	case ref.copyStmt != nil && len(ref.copyStmt.Attlist) == 0 && inner == ref.name.SQL():
		w.listColumns(ref)
	case ref.copyStmt != nil && len(ref.copyStmt.Attlist) == 0:
		w.injectCopy(ref)
	case ref.copyStmt == nil && !ref.isTarget && slices.Contains(columnReasons, ref.notInjectedBecause):
		w.replaceBySubselect(ref, w.knownColumns(ref, inner), w.isFenced(ref))
	case !w.expandStars(ref):
		w.refuseAt(waitingRefusal(ref.name), ref.start)
	default:
		w.qualifyRelation(ref)
	}
}

// besideColumns are the reasons for which a relation stays as it is that speak for no more than its columns.
var columnReasons = []notInjectedReason{mayInject, writesOrLocks, columnAliases, wholeRowReference,
	schemaQualifiedColumn, unsignedText}

func waitingRefusal(name catalog.Name) *sqlstate.Error {
	return sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonStale,
		"%s has columns since the last pgconsent migrate, which this statement would reach", name).
		WithHint("Name the columns in place of *, or in place of the row. Or the owner of the database runs pgconsent migrate.")
}

// knownOf is the sub-select of the columns that are known. Where inner is one already, it is that with these columns.
func (w *walker) knownColumns(ref *reference, inner string) string {
	columns := make([]string, len(ref.relation.Columns))
	for i, c := range ref.relation.Columns {
		columns[i] = catalog.QuoteIdent(c.Name)
	}
	list := strings.Join(columns, ", ")
	if of, is := strings.CutPrefix(inner, everyColumn); is {
		return "(SELECT " + list + " FROM " + of
	}
	return "(SELECT " + list + " FROM " + inner + ")"
}

// everyColumn is how the sub-select of a table's visible rows begins.
const everyColumn = "(SELECT * FROM "

// subselect puts a sub-select in the place of a name; a fence is one behind which no index puts rows in order.
func (w *walker) replaceBySubselect(ref *reference, text string, fence bool) {
	if fence {
		text = strings.TrimSuffix(text, ")") + " OFFSET 0)"
	}
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
	for _, c := range ref.qualifiedColumns {
		w.unqualify(c)
	}
	w.injectSubquery(ref, text, func() *sqltext.Node {
		return proto.Clone(from[0].GetRangeSubselect().GetSubquery()).(*sqltext.Node)
	})
}

// expandStars writes the known columns of a table in the place of each * that reads it. It is false where it is read as
// a whole in another way, or the statement names a column that waits.
func (w *walker) expandStars(ref *reference) bool {
	if ref.rowType || ref.copyStmt != nil || ref.repeated || len(ref.relation.Columns) == 0 ||
		slices.ContainsFunc(ref.relation.Waiting, func(name string) bool { return w.columnNames[name] }) {
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
	first := w.source.At(s.column.Location)
	last := first + 2*(len(s.column.Fields)-1) // name . *
	if first < 0 || w.source.Kind(last) != sqltext.Star {
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
		at := slices.IndexFunc(*s.targets, func(n *sqltext.Node) bool {
			return n.GetResTarget().GetVal().GetColumnRef() == s.column
		})
		*s.targets = slices.Replace(slices.Clone(*s.targets), at, at+1, nodes...)
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
