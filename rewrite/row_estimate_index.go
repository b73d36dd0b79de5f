package rewrite

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

const (
	// if the statement's own index finds more rows than this, reading the rule's index as well adds little
	maxOwnIndexRows = 5000
	// a share of the rows that the rule's index finds. If the statement's own index finds fewer rows, reading the rule's
	// index as well is not worthwhile.
	ruleIndexShare = 1.0 / 8
	searchShare    = 1.0 / 1000 // the guess for the share of a table's rows that a search finds
)

// wantsIndexHint tells whether the conditions of a text with a single statement find few rows by indexes. They must do
// so in every table for whose rule PostgreSQL might also read an index. The hint then keeps PostgreSQL from reading the
// rule's index (see predicate.UseIndexHint). The answer affects only speed.
func (w *walker) wantsIndexHint(tree *sqltext.ParseResult, signedPath bool) bool {
	if w.sizes == nil || len(tree.Stmts) != 1 {
		return false
	}
	spared := false
	var estimator *rowEstimator
	for _, ref := range w.references {
		if ref.fragment == nil || ref.relation == nil || len(ref.fragment.attributeColumns) == 0 {
			continue
		}
		rowsByRule := w.rowsByRule(ref)
		if rowsByRule == 0 {
			continue
		}
		if estimator == nil {
			estimator = w.runEstimator(tree, &rowEstimator{ignoreLimit: true, ignoreRuleColumns: true,
				indexSearches: signedPath})
		}
		rows := estimator.rows[ref]
		if rows > maxOwnIndexRows || rows > rowsByRule*ruleIndexShare && !estimator.lookedUpReferences[ref] {
			return false
		}
		spared = spared || rows > 1 // if the index finds a single row, PostgreSQL needs no hint
	}
	return spared
}

// maxRowHints is the largest number of tables that a text names in this hint, because PostgreSQL searches the text for
// the hint each time it plans.
const maxRowHints = 8

// rowHintTables returns the tables in which index searches find few rows on the signed path (see
// predicate.EstimateRowsCondition). They affect only speed.
func (w *walker) rowHintTables(tree *sqltext.ParseResult, signedPath bool) []catalog.Name {
	if w.sizes == nil || !signedPath && len(w.keySearches) == 0 {
		return nil
	}
	estimator := w.runEstimator(tree, &rowEstimator{ignoreLimit: true, ignoreRuleColumns: true, indexSearches: true})
	var out []catalog.Name
	for _, ref := range w.references {
		if (w.isFoundByKey(ref) || signedPath && estimator.foundBySearch[ref]) && !slices.Contains(out, ref.name) &&
			len(out) < maxRowHints {
			out = append(out, ref.name)
		}
	}
	slices.SortFunc(out, func(a, b catalog.Name) int { return strings.Compare(a.SQL(), b.SQL()) })
	return out
}

// rowsByRule estimates how many rows PostgreSQL finds by an index for the rule of a table alone; 0: no index can be
// used for the rule.
func (w *walker) rowsByRule(ref *reference) float64 {
	rows := 0.0
	level := &queryEstimate{rowEstimator: &rowEstimator{walker: w}}
	for _, index := range ref.relation.BTrees {
		if column := index.Columns[0]; slices.Contains(ref.fragment.attributeColumns, column) {
			if rowsFound := level.rowsPerValue(ref, column); rows == 0 || rowsFound < rows {
				rows = rowsFound
			}
		}
	}
	return rows
}

// rowsBySearch estimates how many rows the conditions leave that are searches by a GIN index.
func (l *queryEstimate) rowsBySearch(item *tableEstimate, conditions []*sqltext.Node) float64 {
	if l.indexSearches && slices.ContainsFunc(conditions, func(n *sqltext.Node) bool { return l.isGINSearch(item, n) }) {
		return max(1, l.size(item.ref)*searchShare)
	}
	return l.size(item.ref)
}

// isGINSearch tells whether a condition is a search for which PostgreSQL can use a GIN index of a table.
func (l *queryEstimate) isGINSearch(item *tableEstimate, n *sqltext.Node) bool {
	x := n.GetAExpr()
	if x == nil {
		return false
	}
	switch x.Kind {
	case sqltext.AEXPR_LIKE, sqltext.AEXPR_ILIKE:
	case sqltext.AEXPR_OP:
		name := lastNamePart(x.Name)
		// similarity operators do not count: many values may share some trigrams
		if strings.Contains(name, "%") || !slices.Contains(indexSearchOperators, name) && name != "~" && name != "~*" {
			return false
		}
	default:
		return false
	}
	for _, operand := range searchOperands(x) {
		if l.isGINColumn(item, operand) {
			return !hasNoTrigram(x)
		}
	}
	return len(l.items) == 1 && len(item.ref.relation.IndexedVectors) > 0 &&
		slices.ContainsFunc(searchOperands(x), func(n *sqltext.Node) bool {
			return n.GetFuncCall() != nil && !strings.HasSuffix(lastNamePart(n.GetFuncCall().Funcname), "to_tsquery")
		}) // the leak check allows only such functions as the other operand
}

// isGINColumn tells whether an operand is a column of a table that has a GIN index.
func (l *queryEstimate) isGINColumn(item *tableEstimate, n *sqltext.Node) bool {
	of, column := l.tableOf(n)
	return of == item && slices.Contains(item.ref.relation.GINColumns, column)
}

// searchOperands returns the operands that may be the indexed column: the left operand, and also the right one if the
// operator can search by either.
func searchOperands(x *sqltext.A_Expr) []*sqltext.Node {
	if x.Kind == sqltext.AEXPR_OP && slices.Contains([]string{"@@", "&&", "<@"}, lastNamePart(x.Name)) {
		return []*sqltext.Node{x.Lexpr, x.Rexpr}
	}
	return []*sqltext.Node{x.Lexpr}
}

// hasNoTrigram tells whether a pattern has no three letters or digits in a row. Without them, a trigram index cannot
// find few rows.
func hasNoTrigram(x *sqltext.A_Expr) bool {
	constant := x.Rexpr.GetAConst()
	if name := lastNamePart(x.Name); constant == nil || x.Kind == sqltext.AEXPR_OP && name != "~" && name != "~*" {
		return false
	}
	parts := strings.FieldsFunc(constant.GetSval().GetSval(),
		func(r rune) bool { return r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ' ' })
	return !slices.ContainsFunc(parts, func(part string) bool { return utf8.RuneCountInString(part) >= 3 })
}

// ruleIndexIsBetter tells whether an index on columns that the statement compares (equal) and columns of the rule finds
// fewer rows than item.rows.
func (l *queryEstimate) ruleIndexIsBetter(item *tableEstimate, equal []string) bool {
	if item.ref.fragment == nil || len(equal) == 0 {
		return false
	}
	equal = append(slices.Clone(equal), item.ref.fragment.attributeColumns...)
	return slices.ContainsFunc(item.ref.relation.BTrees,
		func(i catalog.BTree) bool { return l.indexRows(item, i, equal, nil) < item.rows })
}

// ruleIndexMaySort tells whether an index that begins with a column of the rule may also return rows in the order of
// ORDER BY.
func (l *queryEstimate) ruleIndexMaySort(item *tableEstimate, column string) bool {
	return slices.ContainsFunc(item.ref.relation.BTrees, func(i catalog.BTree) bool {
		return slices.Contains(item.ref.fragment.singleValueColumns, i.Columns[0]) && slices.Contains(i.Columns, column)
	})
}
