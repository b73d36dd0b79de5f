package rewrite

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// fieldsWithoutColumns are fields of the grammar below which no column is read: names, types, constants, and what ON
// CONFLICT infers an index from.
var fieldsWithoutColumns = setOf(`A_Const.boolval A_Const.bsval A_Const.fval A_Const.ival A_Const.sval A_Expr.name Alias.colnames
BoolExpr.xpr BooleanTest.xpr CaseExpr.xpr
	CaseWhen.xpr CoalesceExpr.xpr CollateClause.collname CommonTableExpr.aliascolnames CommonTableExpr.ctecolcollations
	CommonTableExpr.ctecolnames CommonTableExpr.ctecoltypes CommonTableExpr.ctecoltypmods CommonTableExpr.cycle_clause
	CommonTableExpr.search_clause CTECycleClause.cycle_col_list CTECycleClause.cycle_mark_default CTECycleClause.cycle_mark_value
	CTESearchClause.search_col_list DeleteStmt.relation FuncCall.funcname GroupingFunc.refs GroupingFunc.xpr IndexElem.collation IndexElem.expr
	IndexElem.opclass IndexElem.opclassopts InferClause.index_elems InferClause.where_clause InsertStmt.cols InsertStmt.relation JoinExpr.alias
	JoinExpr.join_using_alias JoinExpr.using_clause JsonAggConstructor.output JsonArrayConstructor.output JsonArrayQueryConstructor.format
	JsonArrayQueryConstructor.output JsonIsPredicate.format JsonObjectConstructor.output JsonValueExpr.format JsonValueExpr.formatted_expr
	MergeStmt.relation MinMaxExpr.xpr NamedArgExpr.xpr NullTest.xpr OnConflictClause.infer RangeFunction.alias RangeFunction.coldeflist
	RangeSubselect.alias RangeVar.alias ResTarget.indirection RowExpr.colnames RowExpr.xpr SelectStmt.into_clause SelectStmt.locking_clause
	SortBy.use_op SubLink.oper_name SubLink.xpr TypeCast.type_name TypeName.array_bounds TypeName.names TypeName.typmods UpdateStmt.relation
	XmlExpr.arg_names XmlExpr.xpr XmlSerialize.type_name`)

// The rewriter reports a column as read wherever an expression names it. Each statement names title once. The last
// check fails for a field of the grammar in which no statement put the column.
func TestColumnsAreReadInEveryPosition(t *testing.T) {
	r := underContract(t)
	fieldsWithTitle := map[string]bool{} // the fields, as Message.field, that held the column title
	fields := map[string]bool{}          // the fields that could have held it
	for _, sql := range []string{
		"SELECT upper(title) FROM event",
		"SELECT title || 'x' FROM event",
		"SELECT 'x' || title FROM event",
		"SELECT NOT (title) FROM event",
		"SELECT title IS NULL FROM event",
		"SELECT (title) IS TRUE FROM event",
		"SELECT title::integer FROM event",
		"SELECT title COLLATE \"C\" FROM event",
		"SELECT make_interval(days => title) FROM event",
		"SELECT CASE title WHEN 'x' THEN 1 ELSE 2 END FROM event",
		"SELECT CASE WHEN title THEN 1 ELSE 2 END FROM event",
		"SELECT CASE WHEN true THEN title ELSE 2 END FROM event",
		"SELECT CASE WHEN true THEN 1 ELSE title END FROM event",
		"SELECT coalesce(title, 'x') FROM event",
		"SELECT greatest(title, 'x') FROM event",
		"SELECT grouping(title), 1 FROM event GROUP BY ROLLUP (n)",
		"SELECT 1 FROM event GROUP BY ROLLUP (title)",
		"SELECT 1 FROM event GROUP BY ROLLUP ((title, n))",
		"SELECT title = ANY (SELECT 'x') FROM event",
		"SELECT ROW(title, 1) FROM event",
		"SELECT ARRAY[title, 'x'] FROM event",
		"SELECT (title)[1] FROM event",
		"SELECT ('{1}'::integer[])[title] FROM event",
		"SELECT ('{1}'::integer[])[title:2] FROM event",
		"SELECT ('{1}'::integer[])[2:title] FROM event",
		"SELECT 1 FROM event ORDER BY title",
		"SELECT 1 FROM event GROUP BY title",
		"SELECT 1 FROM event HAVING title",
		"SELECT 1 FROM event WHERE title",
		"SELECT DISTINCT ON (title) 1 FROM event",
		"SELECT title FROM event",
		"SELECT (SELECT 1 LIMIT e.title) FROM event e",
		"SELECT (SELECT 1 OFFSET e.title) FROM event e",
		"SELECT count(*) FILTER (WHERE title) FROM event",
		"SELECT string_agg('x', 'y' ORDER BY title) FROM event",
		"SELECT count(*) OVER (PARTITION BY title) FROM event",
		"SELECT count(*) OVER (ORDER BY title) FROM event",
		"SELECT (SELECT count(*) OVER (ROWS BETWEEN e.title PRECEDING AND CURRENT ROW)) FROM event e",
		"SELECT (SELECT count(*) OVER (ROWS BETWEEN CURRENT ROW AND e.title FOLLOWING)) FROM event e",
		"SELECT count(*) OVER w FROM event WINDOW w AS (PARTITION BY title)",
		"SELECT (SELECT sum(x) FROM (VALUES (e.title)) v(x)) FROM event e",
		"SELECT 1 FROM event e, LATERAL generate_series(1, e.title) g",
		"SELECT 1 FROM event e JOIN need n ON e.title",
		"SELECT xmlelement(NAME x, title) FROM event",
		"SELECT xmlforest(title AS x) FROM event",
		"SELECT xmlserialize(CONTENT title AS text) FROM event",
		"SELECT json_object('x': title) FROM event",
		"SELECT json_object(title: 'x') FROM event",
		"SELECT json_array(title) FROM event",
		"SELECT json_array(SELECT e.title) FROM event e",
		"SELECT json_objectagg('x': title) FROM event",
		"SELECT json_objectagg(title: 'x') FROM event",
		"SELECT json_arrayagg(title) FROM event",
		"SELECT json_arrayagg(n ORDER BY title) FROM event",
		"SELECT json_arrayagg(n) FILTER (WHERE title) FROM event",
		"SELECT json_arrayagg(n) OVER (PARTITION BY title) FROM event",
		"SELECT title IS JSON FROM event",
		"SELECT json_objectagg('x': n) FILTER (WHERE title) FROM event",
		"SELECT 1 FROM (SELECT 1 FROM event WHERE title) x JOIN need ON true",
		"SELECT 1 FROM need JOIN (SELECT 1 FROM event WHERE title) x ON true",
		"SELECT 1 FROM event WHERE title UNION ALL SELECT 1 FROM need",
		"SELECT 1 FROM need UNION ALL SELECT 1 FROM event WHERE title",
		"WITH x AS (SELECT 1 FROM event WHERE title) SELECT 1 FROM x",
		"WITH RECURSIVE c(k) AS (SELECT title FROM event UNION ALL SELECT 'x' FROM c) SEARCH DEPTH FIRST BY k SET o SELECT o FROM c",
		"WITH RECURSIVE c(k) AS (SELECT title FROM event UNION ALL SELECT 'x' FROM c) CYCLE k SET found USING path SELECT path FROM c",
		// the query ends by this column, so it decides how many rows there are
		"WITH RECURSIVE c(k) AS (SELECT title FROM event UNION ALL SELECT 'x' FROM c) CYCLE k SET found USING path SELECT count(*) FROM c",
		"UPDATE event SET embedding = title",
		"UPDATE event SET (embedding) = ROW(title)",
		"UPDATE event SET (embedding) = (SELECT title FROM library)",
		"UPDATE event SET embedding = NULL WHERE title",
		"UPDATE event SET embedding = NULL FROM (SELECT 1 FROM library WHERE title) l",
		"UPDATE event SET embedding = NULL RETURNING title",
		"WITH x AS (SELECT 1 FROM event WHERE title) UPDATE event SET embedding = NULL",
		"DELETE FROM event WHERE title",
		"DELETE FROM event USING (SELECT 1 FROM library WHERE title) l",
		"DELETE FROM event RETURNING title",
		"WITH x AS (SELECT 1 FROM event WHERE title) DELETE FROM event",
		"INSERT INTO event (embedding) SELECT title FROM library",
		"INSERT INTO event (embedding) VALUES (NULL) RETURNING title",
		"INSERT INTO event AS e (embedding) VALUES (NULL) ON CONFLICT (id) DO UPDATE SET embedding = e.title",
		"INSERT INTO event AS e (embedding) VALUES (NULL) ON CONFLICT (id) DO UPDATE SET embedding = NULL WHERE e.title",
		"WITH x AS (SELECT 1 FROM event WHERE title) INSERT INTO event (embedding) VALUES (NULL)",
		"MERGE INTO event e USING need n ON e.title WHEN MATCHED THEN DELETE",
		"MERGE INTO event e USING (SELECT 1 FROM library WHERE title) l ON true WHEN MATCHED THEN DELETE",
		"MERGE INTO event e USING need n ON true WHEN MATCHED AND e.title THEN DELETE",
		"MERGE INTO event e USING need n ON true WHEN MATCHED THEN UPDATE SET embedding = e.title",
		"MERGE INTO event e USING library l ON true WHEN NOT MATCHED THEN INSERT (embedding) VALUES (l.title)",
		"WITH x AS (SELECT 1 FROM event WHERE title) MERGE INTO event e USING need n ON true WHEN MATCHED THEN DELETE",
	} {
		if n := strings.Count(sql, "title"); n != 1 {
			t.Fatalf("%s: title stands there %d times", sql, n)
		}
		tree, err := sqltext.Parse(sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		collectFields(tree.ProtoReflect(), fieldsWithTitle, fields)
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v (%s)", sql, refusal, refusal.Hint)
			continue
		}
		if !slices.ContainsFunc(result.Accesses, func(a policy.Access) bool {
			return a.Source != "write" && (a.Columns == nil || slices.Contains(a.Columns, "title"))
		}) {
			t.Errorf("%s: title is read, and accesses are %s", sql, oneLine(result.Accesses))
		}
	}
	for f := range fields {
		if !fieldsWithTitle[f] && !fieldsWithoutColumns[f] {
			t.Errorf("no statement has a column below %s", f)
		}
	}
}

// collectFields records in fields each field that can hold a column, and in seen each that has title below it. It
// returns whether m has title below it.
func collectFields(m protoreflect.Message, fieldsWithTitle, fields map[string]bool) (hasTitle bool) {
	if c, ok := m.Interface().(*sqltext.ColumnRef); ok {
		return c.Fields[len(c.Fields)-1].GetString_().GetSval() == "title"
	}
	list := m.Descriptor().Fields()
	for i := range list.Len() {
		f := list.Get(i)
		if f.Message() == nil {
			continue
		}
		name := string(m.Descriptor().Name()) + "." + string(f.Name())
		if m.Descriptor().Name() != "Node" {
			fields[name] = true
		}
		var children []protoreflect.Message
		if f.IsList() {
			for i := range m.Get(f).List().Len() {
				children = append(children, m.Get(f).List().Get(i).Message())
			}
		} else if m.Has(f) {
			children = append(children, m.Get(f).Message())
		}
		for _, child := range children {
			if collectFields(child, fieldsWithTitle, fields) {
				fieldsWithTitle[name], hasTitle = true, true
			}
		}
	}
	return hasTitle
}
