package rewrite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// Which visible rows an approximate index (of pgvector) finds depends on the hidden rows in its graph or lists. So in a
// statement that searches the nearest k rows, the table and its WHERE stand behind OFFSET 0. There the planner cannot
// sort the rows by an index.
//
// If the policy accepts that dependence, or no row is hidden, the search uses the index first. The index gives up after
// some rows, whether or not the rows it has found are visible. So the search may return fewer than k rows although more
// are visible. The rewriter therefore adds the exact twin: the same search without the index, which runs only if the
// first search has found fewer than k rows.

// distanceOperators are the operators of pgvector in whose order an index can return rows.
var distanceOperators = []string{"<->", "<#>", "<=>", "<+>", "<~>", "<%>"}

// isNearestSearch tells whether the text is a single SELECT that only searches the nearest rows of a table with an
// approximate index.
func (w *walker) isNearestSearch(tree *sqltext.ParseResult) bool {
	if len(tree.Stmts) != 1 {
		return false
	}
	s := tree.Stmts[0].GetStmt().GetSelectStmt()
	if s == nil || s.Op != sqltext.SETOP_NONE || s.WithClause != nil || len(s.FromClause) != 1 ||
		s.FromClause[0].GetRangeVar() == nil ||
		len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.DistinctClause) > 0 || len(s.WindowClause) > 0 ||
		len(s.LockingClause) > 0 ||
		len(s.SortClause) == 0 || limitOf(s) == "" || s.LimitOption != sqltext.LIMIT_OPTION_COUNT {
		return false
	}
	tokenIndex := slices.IndexFunc(w.references,
		func(ref *reference) bool { return ref.rangeVar == s.FromClause[0].GetRangeVar() })
	if tokenIndex < 0 {
		return false
	}
	if ref := w.references[tokenIndex]; ref.relation == nil || !ref.relation.HasApproximateIndex ||
		ref.notInjectedBecause == wholeRowReference || w.namesTableOID {
		return false
	}
	if alias := s.FromClause[0].GetRangeVar().GetAlias(); alias != nil && len(alias.Colnames) > 0 {
		return false
	}
	// A window or an aggregate reads all rows that the index finds, and returns its result in each row. The search would
	// return the right number of rows with the wrong content.
	if kindCounts, _ := sqltext.CountNodeKinds(s); kindCounts["WindowDef"] > 0 || w.isGrouped(s) {
		return false
	}
	return isDistance(s.SortClause[0].GetSortBy().GetNode(), s.TargetList)
}

// isDistance tells whether a sort key is a distance. The key may be an expression, or the name or number of a result
// column.
func isDistance(key *sqltext.Node, targets []*sqltext.Node) bool {
	return distanceOf(key, targets) != nil
}

// distanceOf returns the distance expression that a sort key stands for, or nil.
func distanceOf(key *sqltext.Node, targets []*sqltext.Node) *sqltext.Node {
	if x := key.GetAExpr(); x != nil {
		if _, name, ok := qualifiedName(x.Name); ok && x.Kind == sqltext.AEXPR_OP &&
			slices.Contains(distanceOperators, name) {
			return key
		}
		return nil
	}
	var targetValue *sqltext.Node
	if c := key.GetColumnRef(); c != nil && len(c.Fields) == 1 {
		for _, t := range targets {
			if name := t.GetResTarget().GetName(); name != "" && name == c.Fields[0].GetString_().GetSval() {
				targetValue = t.GetResTarget().GetVal()
				break
			}
		}
	}
	if n := key.GetAConst().GetIval().GetIval(); n > 0 && int(n) <= len(targets) {
		targetValue = targets[n-1].GetResTarget().GetVal()
	}
	if targetValue.GetAExpr() == nil {
		return nil
	}
	return distanceOf(targetValue, nil)
}

// limitOf returns the text of a query's LIMIT if it is a number or a parameter, else "".
func limitOf(s *sqltext.SelectStmt) string {
	if p := s.LimitCount.GetParamRef(); p != nil {
		return "$" + strconv.Itoa(int(p.Number))
	}
	if c := s.LimitCount.GetAConst(); c.GetIval() != nil && !c.GetIsnull() {
		return strconv.Itoa(int(c.GetIval().GetIval()))
	}
	return ""
}

const (
	nearHead  = "WITH pgconsent_near AS MATERIALIZED (SELECT * FROM ("
	nearGuard = ") AS pgconsent_search WHERE EXISTS (SELECT 1 "
	nearTail  = ")) SELECT * FROM pgconsent_near WHERE (SELECT pg_catalog.count(*) FROM pgconsent_near) " +
		"OPERATOR(pg_catalog.>=) COALESCE(%[1]s, 0) UNION ALL SELECT * FROM ("
	exactTail = ") AS pgconsent_exact WHERE (SELECT pg_catalog.count(*) FROM pgconsent_near) " +
		"OPERATOR(pg_catalog.<) COALESCE(%[1]s, 0)"
)

// An index that contains rows fails for a vector of other dimensions, whether or not its rows are visible. So the
// search runs only if there is a visible row that it can find. In such a row no column of the distance is NULL, since
// these indexes contain no NULLs.

// withExactTwin adds the exact twin to a rewritten search. If the twin cannot be written, ok is false and out is the
// unchanged text.
func withExactTwin(text string) (out string, position func(int) int, ok bool, refusal *sqlstate.Error) {
	unchanged := func() (string, func(int) int, bool, *sqlstate.Error) {
		return text, func(p int) int { return p }, false, nil
	}
	source, refusal := sqltext.Scan(text)
	if refusal != nil {
		return "", nil, false, refusal
	}
	tokens := source.Tokens
	for len(tokens) > 0 && tokens[len(tokens)-1].Kind == sqltext.Semicolon {
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 || len(tokens) < len(source.Tokens)-1 {
		return unchanged()
	}
	comment, nearText := text[:tokens[0].Start], text[tokens[0].Start:tokens[len(tokens)-1].End]
	exact, ok := fencedSearch(nearText)
	if !ok {
		return unchanged()
	}
	nearTree, refusal := sqltext.Parse(nearText)
	if refusal != nil {
		return "", nil, false, refusal
	}
	search := nearTree.Stmts[0].GetStmt().GetSelectStmt()
	limit := limitOf(search)
	columns, isKnown := distanceColumns(search)
	from, where, found := fromAndWhere(nearText)
	if limit == "" || !isKnown || !found {
		return unchanged()
	}
	present := notNullTests(columns)
	conditions := present.tests
	if where != "" {
		where = "(" + where + ")"
		conditions = append(conditions, search.WhereClause)
	}
	rows := from
	if texts := slices.DeleteFunc([]string{present.text, where}, func(s string) bool { return s == "" }); len(texts) > 0 {
		rows += " WHERE " + strings.Join(texts, " AND ")
	}
	head, middle, tail := comment+nearHead, nearGuard+rows+fmt.Sprintf(nearTail, limit), fmt.Sprintf(exactTail, limit)
	out = head + nearText + middle + exact.text + tail

	// The intended tree is that of the frame, with the known trees of the search and the twin put into it.
	frame, refusal := sqltext.Parse(nearHead + "SELECT 1" + nearGuard + fmt.Sprintf(nearTail, limit) + "SELECT 1" + tail)
	if refusal != nil {
		return "", nil, false, refusal
	}
	union := frame.Stmts[0].GetStmt().GetSelectStmt()
	guarded := union.GetWithClause().GetCtes()[0].GetCommonTableExpr().Ctequery.GetSelectStmt()
	guarded.FromClause[0].GetRangeSubselect().Subquery = nearTree.Stmts[0].Stmt
	exists := guarded.WhereClause.GetSubLink().GetSubselect().GetSelectStmt()
	exists.FromClause, exists.WhereClause = search.FromClause, conjunction(conditions)
	twin, cloned := proto.Clone(nearTree.Stmts[0].Stmt).(*sqltext.Node)
	if !cloned || !exact.apply(twin.GetSelectStmt()) {
		return unchanged()
	}
	union.GetRarg().GetFromClause()[0].GetRangeSubselect().Subquery = twin
	if refusal := sqltext.ProveSameTree(frame, out); refusal != nil {
		return "", nil, false, refusal
	}
	return out, func(p int) int {
		countBefore := utf8.RuneCountInString(head)
		skippedChars, length := utf8.RuneCountInString(comment), utf8.RuneCountInString(nearText)
		switch {
		case p <= 0:
			return p
		case p <= countBefore+length:
			return max(p-countBefore, 1) + skippedChars
		default: // the error is in the twin; the same part of the client's search has the same error
			return skippedChars + 1
		}
	}, true, nil
}

// mayUseApproximateIndex tells whether a search may use an approximate index of its table. It may if the policy accepts
// that the result depends on hidden rows, or if no row is hidden.
func (w *walker) mayUseApproximateIndex(search *sqltext.RangeVar) bool {
	tokenIndex := slices.IndexFunc(w.references, func(ref *reference) bool { return ref.rangeVar == search })
	if tokenIndex < 0 || w.references[tokenIndex].fragment == nil {
		return false
	}
	f := w.references[tokenIndex].fragment
	table, isListed := w.pol.Table(w.references[tokenIndex].name)
	return isListed && (table.Approximate || f.showsAllRows && f.aggregate == nil)
}

// fenceSearch puts the table of a rewritten search behind OFFSET 0. If that cannot be written, ok is false and out is
// the unchanged text.
func fenceSearch(text string) (out string, position func(int) int, ok bool, refusal *sqlstate.Error) {
	exact, ok := fencedSearch(text)
	if !ok {
		return text, nil, false, nil
	}
	tree, refusal := sqltext.Parse(text)
	if refusal != nil {
		return "", nil, false, refusal
	}
	if !exact.apply(tree.Stmts[0].GetStmt().GetSelectStmt()) {
		return text, nil, false, nil
	}
	if refusal := sqltext.ProveSameTree(tree, exact.text); refusal != nil {
		return "", nil, false, refusal
	}
	return exact.text, exact.position, true, nil
}

// distanceColumns returns the columns in the distance by which a search sorts. It is false if the distance contains a
// sub-select.
func distanceColumns(s *sqltext.SelectStmt) ([]*sqltext.ColumnRef, bool) {
	key := distanceOf(s.SortClause[0].GetSortBy().GetNode(), s.TargetList)
	if key == nil {
		return nil, false
	}
	if kindCounts, _ := sqltext.CountNodeKinds(key); kindCounts["SubLink"] > 0 {
		return nil, false
	}
	return sqltext.ColumnRefs(key), true
}

// notNullTests returns the conditions that these columns are not NULL, as a text and as trees.
func notNullTests(columns []*sqltext.ColumnRef) (out struct {
	text  string
	tests []*sqltext.Node
}) {
	var texts []string
	for _, c := range columns {
		names := make([]string, len(c.Fields))
		for i, f := range c.Fields {
			names[i] = catalog.QuoteIdent(f.GetString_().GetSval())
		}
		text := strings.Join(names, ".") + " IS NOT NULL"
		if slices.Contains(texts, text) {
			continue
		}
		texts = append(texts, text)
		out.tests = append(out.tests, &sqltext.Node{Node: &sqltext.Node_NullTest{NullTest: &sqltext.NullTest{
			Arg:          &sqltext.Node{Node: &sqltext.Node_ColumnRef{ColumnRef: c}},
			Nulltesttype: sqltext.IS_NOT_NULL,
		}}})
	}
	out.text = strings.Join(texts, " AND ")
	return out
}

// conjunction joins conditions by AND.
func conjunction(conditions []*sqltext.Node) *sqltext.Node {
	switch len(conditions) {
	case 0:
		return nil
	case 1:
		return conditions[0]
	}
	return &sqltext.Node{Node: &sqltext.Node_BoolExpr{BoolExpr: &sqltext.BoolExpr{Boolop: sqltext.AND_EXPR,
		Args: conditions}}}
}

// fromAndWhere returns two parts of a search's text: the FROM clause, and the condition between WHERE and ORDER BY.
func fromAndWhere(text string) (items, condition string, ok bool) {
	source, refusal := sqltext.Scan(text)
	if refusal != nil {
		return "", "", false
	}
	depth, fromToken, whereToken := 0, -1, -1
	for i, t := range source.Tokens {
		switch t.Kind {
		case sqltext.OpenParen:
			depth++
		case sqltext.CloseParen:
			depth--
		}
		switch {
		case depth != 0:
		case fromToken < 0 && isFrom(source, i):
			fromToken = i
		case fromToken >= 0 && whereToken < 0 && strings.EqualFold(source.TokenText(t), "where"):
			whereToken = i
		case fromToken >= 0 && isOrderBy(source, i):
			// Each part ends with its last token, so that it contains no comment before WHERE or ORDER BY.
			start, last := source.Tokens[fromToken].Start, source.Tokens[i-1].End
			if whereToken < 0 {
				return text[start:last], "", true
			}
			return text[start:source.Tokens[whereToken-1].End], text[source.Tokens[whereToken+1].Start:last], true
		}
	}
	return "", "", false
}

// isFrom tells whether a token begins a FROM clause, and is not the last word of IS DISTINCT FROM.
func isFrom(source *sqltext.Source, i int) bool {
	return strings.EqualFold(source.TokenText(source.Tokens[i]), "from") &&
		(i == 0 || !strings.EqualFold(source.TokenText(source.Tokens[i-1]), "distinct"))
}

// fencedText is the text of a search that no index can sort. apply makes the same change in the tree of the search.
type fencedText struct {
	text     string
	position func(int) int
	apply    func(*sqltext.SelectStmt) bool
}

// fencedSearch puts the table of a search behind OFFSET 0: FROM t WHERE c becomes FROM (SELECT * FROM t WHERE c OFFSET
// 0) AS t. The condition moves inside, so that PostgreSQL can use other indexes for it.
func fencedSearch(text string) (fencedText, bool) {
	source, refusal := sqltext.Scan(text)
	if refusal != nil {
		return fencedText{}, false
	}
	tree, refusal := source.Parse()
	if refusal != nil || len(tree.Stmts) != 1 {
		return fencedText{}, false
	}
	s := tree.Stmts[0].GetStmt().GetSelectStmt()
	if len(s.GetFromClause()) != 1 {
		return fencedText{}, false
	}
	var name string
	table := s.FromClause[0].GetRangeVar()
	switch item := s.FromClause[0]; {
	case table != nil && table.Schemaname != "":
		if name = table.GetAlias().GetAliasname(); name == "" {
			name = table.Relname
		}
	case item.GetRangeSubselect() != nil:
		name = item.GetRangeSubselect().GetAlias().GetAliasname()
	}
	start, end, found := searchSpan(source)
	if name == "" || !found {
		return fencedText{}, false
	}
	edits, ok := withoutSchema(source, tree, table, start, end)
	if !ok {
		return fencedText{}, false
	}
	edits = append(edits, sqltext.Edit{Start: start, End: start, Text: "(SELECT * FROM "},
		sqltext.Edit{Start: end, End: end, Text: " OFFSET 0) AS " + catalog.QuoteIdent(name)})
	spliced, refusal := sqltext.ApplyEdits(source.Text, edits)
	if refusal != nil {
		return fencedText{}, false
	}
	return fencedText{
		text:     spliced.Text,
		position: spliced.Position,
		apply: func(s *sqltext.SelectStmt) bool {
			item, refusal := offsetZeroItem(name, s.FromClause, s.WhereClause)
			if refusal != nil {
				return false
			}
			s.FromClause, s.WhereClause = nil, nil
			for _, c := range sqltext.ColumnRefs(s) {
				if table != nil && isQualifiedBy(c, table) {
					c.Fields = c.Fields[1:]
				}
			}
			s.FromClause = []*sqltext.Node{item}
			return true
		},
	}, true
}

// offsetZeroItem returns the tree of a FROM item (SELECT * FROM from WHERE where OFFSET 0) AS name. Because of the
// OFFSET 0, the planner moves nothing into the sub-select.
func offsetZeroItem(name string, from []*sqltext.Node, where *sqltext.Node) (*sqltext.Node, *sqlstate.Error) {
	frame, refusal := sqltext.Parse("SELECT FROM (SELECT * FROM b OFFSET 0) AS c")
	if refusal != nil {
		return nil, refusal
	}
	item := frame.Stmts[0].GetStmt().GetSelectStmt().FromClause[0]
	item.GetRangeSubselect().Alias.Aliasname = name
	inner := item.GetRangeSubselect().GetSubquery().GetSelectStmt()
	inner.FromClause, inner.WhereClause = from, where
	return item, nil
}

// isOrderBy tells whether the tokens ORDER BY begin at a token. In t.order the word order is a column.
func isOrderBy(source *sqltext.Source, i int) bool {
	return strings.EqualFold(source.TokenText(source.Tokens[i]), "order") && i+1 < len(source.Tokens) &&
		strings.EqualFold(source.TokenText(source.Tokens[i+1]), "by")
}

// searchSpan returns the part of a search's text from its only FROM item to the token before ORDER BY. The part
// includes WHERE and its condition. A comment before ORDER BY does not belong to it.
func searchSpan(source *sqltext.Source) (start, end int32, found bool) {
	depth := 0
	for i, t := range source.Tokens {
		switch t.Kind {
		case sqltext.OpenParen:
			depth++
		case sqltext.CloseParen:
			depth--
		}
		switch {
		case depth != 0 || i+1 >= len(source.Tokens):
		case !found && isFrom(source, i):
			start, found = source.Tokens[i+1].Start, true
		case found && isOrderBy(source, i):
			return start, source.Tokens[i-1].End, true
		}
	}
	return 0, 0, false
}

// isQualifiedBy tells whether a column reference has the form schema.table.column and names this table. The sub-select
// in the table's place has no schema.
func isQualifiedBy(c *sqltext.ColumnRef, r *sqltext.RangeVar) bool {
	return len(c.Fields) > 2 && c.Fields[0].GetString_().GetSval() == r.Schemaname &&
		c.Fields[1].GetString_().GetSval() == r.Relname
}

// withoutSchema returns the edits that remove the schema from such column references outside of the span from start to
// end. The result is false if the statement has further sub-selects, in which the table's name alone might mean another
// table.
func withoutSchema(source *sqltext.Source, tree *sqltext.ParseResult, r *sqltext.RangeVar, start,
	end int32) ([]sqltext.Edit, bool) {
	var edits []sqltext.Edit
	for _, c := range sqltext.ColumnRefs(tree) {
		if r == nil || !isQualifiedBy(c, r) {
			continue
		}
		tokenIndex := source.TokenAt(c.Location)
		if tokenIndex < 0 || tokenIndex+2 >= len(source.Tokens) || source.KindAt(tokenIndex+1) != sqltext.Dot {
			return nil, false
		}
		if first := source.Tokens[tokenIndex].Start; first < start || first >= end {
			edits = append(edits, sqltext.Edit{Start: first, End: source.Tokens[tokenIndex+1].End})
		}
	}
	if kindCounts, _ := sqltext.CountNodeKinds(tree); len(edits) > 0 && kindCounts["SelectStmt"] > 1 {
		return nil, false
	}
	return edits, true
}
