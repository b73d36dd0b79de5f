package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// keyFunction is a function of pgconsent that the rewriter calls with a key instead of naming the table, if the
// statement fixes the key. The statement keeps its own condition. So a mistake here could remove rows from the result
// and never add one, because the call takes only constants.
type keyFunction struct {
	table    *policy.Table
	function catalog.Name
	visible  *catalog.Relation
}

func newKeyFunction(t *policy.Table, mode Mode) *keyFunction {
	if t.Columns == nil || t.Columns.ByKey == nil {
		return nil
	}
	return &keyFunction{table: t, function: predicate.KeyedView(t.Relation.Name, mode == InjectedMode ||
		mode == AlwaysInjectedMode),
		visible: t.VisibleRelationByKey()}
}

// callText writes the call that fetches the rows with these values of the key.
func (k *keyFunction) callText(values map[string][]string) string {
	byKey := k.table.Columns.ByKey
	args := []string{predicate.CurrentCatalog}
	for _, name := range byKey.Key {
		if byKey.MaxKeys > 1 {
			args = append(args, "ARRAY["+strings.Join(values[name], ", ")+"]")
		} else {
			args = append(args, values[name][0])
		}
	}
	return k.function.SQL() + "(" + strings.Join(args, ", ") + ")"
}

// keyLookup is a mention of a table for whose key the statement gives constants.
type keyLookup struct {
	function *keyFunction
	call     string
	keyCount int // the largest number of keys that the statement may name
}

// keyCandidate is an item of FROM for whose key a condition may give constants.
type keyCandidate struct {
	name        string
	noAlias     bool // the table has no alias
	rangeVar    *sqltext.RangeVar
	keyFunction *keyFunction
	relation    *catalog.Relation // nil: the columns of the item are not known, as for a sub-select
	values      map[string][]string
}

// findKeys notes for which tables of a SELECT the conditions give constants for the key. It reads the WHERE clause, and
// the ON of a join that drops rows which do not meet it. It runs before the tables are visited, since a table whose key
// is fixed has more columns.
func (w *walker) findKeys(s *sqltext.SelectStmt) {
	if !w.hasKeyOnlyColumns || len(s.FromClause) == 0 || len(s.LockingClause) > 0 {
		return
	}
	f := &keyFinder{walker: w}
	var items []*keyCandidate
	for _, n := range s.FromClause {
		items = append(items, f.candidatesOf(n)...)
	}
	f.applyCondition(s.WhereClause, items, items)
	for _, c := range f.candidates {
		if call, n := c.callForKeys(); n > 0 {
			if w.keyLookups == nil {
				w.keyLookups = map[*sqltext.RangeVar]*keyLookup{}
			}
			w.keyLookups[c.rangeVar] = &keyLookup{function: c.keyFunction, call: call, keyCount: n}
		}
	}
}

// callForKeys returns the call that fetches a candidate's rows, and the number of keys in the call. The number is 0 if
// the statement does not fix the key.
func (c *keyCandidate) callForKeys() (string, int) {
	n := 1
	for _, name := range c.keyFunction.table.Columns.ByKey.Key {
		if len(c.values[name]) == 0 {
			return "", 0
		}
		n = max(n, len(c.values[name]))
	}
	return c.keyFunction.callText(c.values), n
}

// keyFinder searches the conditions of one SELECT for those that fix keys.
type keyFinder struct {
	*walker
	candidates []*keyCandidate
}

// candidatesOf returns the items of FROM in n that later conditions can name, and searches the conditions of joins for
// keys.
func (f *keyFinder) candidatesOf(n *sqltext.Node) []*keyCandidate {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return []*keyCandidate{f.candidateOf(kind.RangeVar)}
	case *sqltext.Node_JoinExpr:
		j := kind.JoinExpr
		left, right := f.candidatesOf(j.Larg), f.candidatesOf(j.Rarg)
		all := slices.Concat(left, right)
		switch j.Jointype {
		case sqltext.JOIN_INNER:
			f.applyCondition(j.Quals, all, all)
		// a LEFT JOIN drops rows of its right side that do not meet the condition, and keeps all rows of its left side
		case sqltext.JOIN_LEFT:
			f.applyCondition(j.Quals, all, right)
		case sqltext.JOIN_RIGHT:
			f.applyCondition(j.Quals, all, left)
		}
		if j.Alias != nil { // the alias hides the items inside
			return []*keyCandidate{{name: j.Alias.Aliasname}}
		}
		if len(j.UsingClause) > 0 || j.IsNatural { // a column without qualifier may be a merged column of the join
			for _, c := range all {
				c.relation = nil
			}
		}
		return all
	case *sqltext.Node_RangeSubselect:
		return []*keyCandidate{{name: kind.RangeSubselect.GetAlias().GetAliasname()}}
	case *sqltext.Node_RangeFunction:
		return []*keyCandidate{{name: kind.RangeFunction.GetAlias().GetAliasname()}}
	default:
		return []*keyCandidate{{}}
	}
}

func (f *keyFinder) candidateOf(rv *sqltext.RangeVar) *keyCandidate {
	c := &keyCandidate{name: rv.GetRelname(), noAlias: rv.Alias == nil}
	if !c.noAlias {
		c.name = rv.Alias.Aliasname
	}
	if len(rv.GetAlias().GetColnames()) > 0 || !rv.GetInh() || rv.GetCatalogname() != "" {
		return c
	}
	if _, _, cte := f.ctes.findCTE(rv.GetRelname()); cte && rv.GetSchemaname() == "" {
		return c
	}
	name, ok := f.snap.ResolveRelation(rv.GetSchemaname(), rv.GetRelname())
	if !ok {
		return c
	}
	if c.relation, _ = f.snap.Relation(name); f.fragments[name] == nil || f.fragments[name].keyFunction == nil {
		return c
	}
	c.rangeVar, c.keyFunction, c.values = rv, f.fragments[name].keyFunction, map[string][]string{}
	c.relation = c.keyFunction.visible
	f.candidates = append(f.candidates, c)
	return c
}

// applyCondition searches a condition for keys. The condition can name the items in visible, and drops rows of the
// items in notJoined.
func (f *keyFinder) applyCondition(condition *sqltext.Node, visible, notJoined []*keyCandidate) {
	if len(f.candidates) == 0 {
		return
	}
	for _, n := range splitConjuncts(condition) {
		x := n.GetAExpr()
		if x == nil || len(x.Name) != 1 || x.Name[0].GetString_().GetSval() != "=" {
			continue
		}
		column, value := x.Lexpr, x.Rexpr
		if x.Kind == sqltext.AEXPR_OP && column.GetColumnRef() == nil {
			column, value = value, column
		}
		c, name := f.itemOf(column.GetColumnRef(), visible)
		if c == nil || c.keyFunction == nil || c.values[name] != nil || !slices.Contains(notJoined, c) {
			continue
		}
		byKey := c.keyFunction.table.Columns.ByKey
		if !slices.Contains(byKey.Key, name) {
			continue
		}
		targetType := predicate.KeyType(c.keyFunction.table.Relation.Column(name))
		var values []string
		switch x.Kind {
		case sqltext.AEXPR_OP:
			values = f.keyValues([]*sqltext.Node{value}, targetType)
		case sqltext.AEXPR_IN:
			values = f.keyValues(value.GetList().GetItems(), targetType)
		case sqltext.AEXPR_OP_ANY:
			values = f.arrayValues(value, targetType)
		}
		if len(values) <= byKey.MaxKeys {
			c.values[name] = values
		}
	}
}

// itemOf returns the item to which a column belongs without doubt, among the items that a condition can name.
func (f *keyFinder) itemOf(ref *sqltext.ColumnRef, visible []*keyCandidate) (*keyCandidate, string) {
	fields := make([]string, len(ref.GetFields()))
	for i, n := range ref.GetFields() {
		if fields[i] = n.GetString_().GetSval(); fields[i] == "" {
			return nil, ""
		}
	}
	var found []*keyCandidate
	switch len(fields) {
	case 1:
		for _, c := range visible {
			if c.relation == nil || c.relation.Column(fields[0]) != nil {
				found = append(found, c)
			}
		}
	case 2:
		for _, c := range visible {
			if c.name == fields[0] || c.name == "" {
				found = append(found, c)
			}
		}
	case 3:
		name, ok := f.snap.ResolveRelation(fields[0], fields[1])
		for _, c := range visible {
			if ok && c.noAlias && c.keyFunction != nil && c.keyFunction.table.Relation.Name == name {
				found = append(found, c)
			}
		}
	}
	if len(found) != 1 {
		return nil, ""
	}
	return found[0], fields[len(fields)-1]
}

// arrayValues returns the values of = ANY (list), where the list is ARRAY[...] or an array literal in quotes.
func (f *keyFinder) arrayValues(n *sqltext.Node, targetType string) []string {
	if c := n.GetTypeCast(); c != nil {
		if t := c.TypeName; len(t.GetArrayBounds()) != 1 || !f.castsTo(t, targetType) {
			return nil
		}
		n = c.Arg
	}
	if a := n.GetAArrayExpr(); a != nil {
		return f.keyValues(a.Elements, targetType)
	}
	text := n.GetAConst().GetSval()
	if text == nil {
		return nil
	}
	inner, opened := strings.CutPrefix(text.GetSval(), "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !opened || !closed || inner == "" {
		return nil
	}
	var out []string
	for item := range strings.SplitSeq(inner, ",") {
		isPlain := item != "" && !strings.EqualFold(item, "null") && !strings.ContainsFunc(item, func(r rune) bool {
			return !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		})
		if !isPlain {
			return nil
		}
		out = append(out, catalog.QuoteLiteral(item)+"::"+targetType)
	}
	return out
}

// keyValues writes constants and parameters with a cast to the key's type; nil if one of the nodes is neither.
func (f *keyFinder) keyValues(nodes []*sqltext.Node, targetType string) []string {
	var out []string
	for _, n := range nodes {
		if c := n.GetTypeCast(); c != nil {
			if len(c.TypeName.GetArrayBounds()) > 0 || !f.castsTo(c.TypeName, targetType) {
				return nil
			}
			n = c.Arg
		}
		var text string
		switch c := n.GetAConst(); {
		case n.GetParamRef() != nil && n.GetParamRef().Number > 0:
			text = "$" + strconv.Itoa(int(n.GetParamRef().Number))
		case c == nil || c.Isnull:
			return nil
		case c.GetSval() != nil:
			text = catalog.QuoteLiteral(c.GetSval().GetSval())
		case c.GetIval() != nil && strings.HasPrefix(targetType, "pg_catalog.int"):
			text = catalog.QuoteLiteral(strconv.Itoa(int(c.GetIval().GetIval())))
		case c.GetFval() != nil && strings.HasPrefix(targetType, "pg_catalog.int") && isDigits(c.GetFval().GetFval()):
			text = catalog.QuoteLiteral(c.GetFval().GetFval())
		default:
			return nil
		}
		out = append(out, text+"::"+targetType)
	}
	return out
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(strings.TrimPrefix(s, "-"), "0123456789") == ""
}

// castsTo tells whether a cast names the key's own type, because a cast to another type could change the constant.
func (f *keyFinder) castsTo(t *sqltext.TypeName, targetType string) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok || schema != "" && schema != "pg_catalog" || len(t.Typmods) > 0 || t.Setof || t.PctType {
		return false
	}
	types := f.snap.TypesNamed("", name)
	if schema != "" {
		types = f.snap.TypesNamed(schema, name)
	}
	return len(types) == 1 && (types[0].Name.SQL() == targetType ||
		targetType == "pg_catalog.text" && types[0].Name == catalog.Name{Schema: "pg_catalog", Name: "varchar"})
}

// readsKeyOnlyColumn tells whether a statement may read a column of the mentioned table that exists by key only. If
// not, the statement reads the table like a list, and no key function is called.
func (w *walker) readsKeyOnlyColumn(ref *reference) bool {
	return ref.keyLookup != nil && (ref.allColumns ||
		slices.ContainsFunc(ref.keyLookup.function.table.Columns.ByKey.Columns,
			func(c policy.VisibleColumn) bool { return w.columnNames[c.Name] }))
}

// keyCounts returns, for each statement of the text, the number of keys by which it fetches rows.
func (w *walker) keyCounts() []int {
	if len(w.keyLookups) == 0 {
		return nil
	}
	out := make([]int, len(w.firstReferences))
	for i, first := range w.firstReferences {
		end := len(w.references)
		if i+1 < len(w.firstReferences) {
			end = w.firstReferences[i+1]
		}
		for _, ref := range w.references[first:end] {
			if w.readsKeyOnlyColumn(ref) {
				out[i] += ref.keyLookup.keyCount
			}
		}
	}
	return out
}

// fetchByKey replaces a table's name with the call that fetches its rows by key.
func (w *walker) fetchByKey(ref *reference) {
	rv := ref.rangeVar
	tree, refusal := sqltext.Parse("SELECT FROM " + ref.keyLookup.call + " AS x")
	if refusal != nil || len(tree.Stmts) != 1 || ref.tableToken >= 0 {
		w.refuse(sqlstate.AsError(errPolicyExpression))
		return
	}
	from := tree.Stmts[0].GetStmt().GetSelectStmt().GetFromClause()
	if len(from) != 1 || from[0].GetRangeFunction() == nil {
		w.refuse(sqlstate.AsError(errPolicyExpression))
		return
	}
	w.relationOfView[ref.keyLookup.function.function] = ref.name
	text, alias := ref.keyLookup.call, rv.GetAlias()
	if alias == nil {
		alias = &sqltext.Alias{Aliasname: rv.GetRelname()}
		text += " AS " + catalog.QuoteIdent(alias.Aliasname)
	}
	w.replace(ref.start, ref.starEnd, text, func() {
		function := from[0].GetRangeFunction()
		function.Alias = alias
		ref.node.Node = &sqltext.Node_RangeFunction{RangeFunction: function}
	})
}

// ListsOnly returns a rewriter for agents that may not fetch rows by key. Columns that exist by key only do not exist
// for them at all.
func (r *Rewriter) ListsOnly() *Rewriter {
	changed := *r
	changed.hasKeyOnlyColumns, changed.listsOnly = false, true
	return &changed
}

// keyOnlyRefusal returns the refusal of a column that exists by key only, for a statement that fixes no key.
func (w *walker) keyOnlyRefusal(item string, ref *reference, column string) *sqlstate.Error {
	byKey := ref.fragment.keyFunction.table.Columns.ByKey
	name := `"` + column + `"`
	if item != "" {
		name = item + "." + column
	}
	if w.listsOnly {
		return sqlstate.New(sqlstate.UndefinedColumn, sqlstate.ReasonColumn, "column %s does not exist", name).
			WithHint("Over this face it is never shown, by a row's key neither: the agent's own connection to the " +
				"proxy shows it by key.")
	}
	conditions := make([]string, len(byKey.Key))
	for i, key := range byKey.Key {
		conditions[i] = catalog.QuoteIdent(key) + " = ..."
	}
	return sqlstate.New(sqlstate.UndefinedColumn, sqlstate.ReasonColumn, "column %s does not exist", name).
		WithHint("It exists where the statement names the row by its key: WHERE %s, with a constant or a "+
			"parameter, for %s itself.", strings.Join(conditions, " AND "), catalog.QuoteIdent(ref.name.Name))
}

// checkKeyOnlyColumn refuses a column that exists by key only, if the statement does not fix a key of the table. If the
// name can mean something else, PostgreSQL decides.
func (w *walker) checkKeyOnlyColumn(item, column string, location int32) {
	var found *reference
	for s := w.scope; s != nil; s = s.parent {
		if s.hasUnknownName {
			return
		}
		for _, i := range s.items {
			switch {
			case item != "" && i.name != item:
			case i.columns == nil || i.columns[column] || i.name == column:
				return
			case i.ref != nil && i.ref.fragment != nil && i.ref.fragment.keyFunction != nil && i.ref.keyLookup == nil &&
				i.ref.fragment.keyFunction.table.Columns.ByKey.Has(column):
				found = i.ref
			}
		}
	}
	// the name may be a function in attribute notation
	function := w.snap.HasCatalogFunction(column) || len(w.snap.FunctionsNamed("", column)) > 0
	if found != nil && (item != "" && !function || item == "" && !w.scope.namesResultColumn(column)) {
		w.refuseAt(w.keyOnlyRefusal(item, found, column), location)
	}
}
