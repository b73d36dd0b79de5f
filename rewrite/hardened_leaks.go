package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// PostgreSQL computes an expression only after row security has accepted the row, unless it considers the expression's
// functions leak-proof. To find out, PostgreSQL searches the arguments of functions that are not leak-proof for columns
// (contain_leaked_vars of clauses.c). It finds no column where a placeholder stands for a value: in the conversion of
// an array's elements, and in a CASE that compares one value with several. In addition, some operators are marked
// leak-proof although they can fail.

// checkFalseLeakproof hardens the plan if PostgreSQL considers an expression leak-proof although it can fail.
func (c *hardenedAnalysis) checkFalseLeakproof(n *sqltext.Node, context exprContext) {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_TypeCast:
		if c.isArrayTypeName(x.TypeCast.TypeName) && !isConstantCast(x.TypeCast) && !c.declaresParamType(x.TypeCast) &&
			!c.isPlainArray(x.TypeCast.Arg, context) {
			c.harden("it converts an array")
		}
	case *sqltext.Node_CaseExpr:
		var results []*sqltext.Node
		for _, whenClause := range x.CaseExpr.Args {
			results = append(results, whenClause.GetCaseWhen().GetResult())
			if arg := x.CaseExpr.Arg; arg != nil &&
				(c.typeOf(arg, context.queryLevel) == 0 ||
					!c.becomeOneType([]*sqltext.Node{arg, whenClause.GetCaseWhen().GetExpr()}, context)) {
				c.harden("CASE compares what may not be compared, or must be converted first")
			}
		}
		c.checkArrayChoice(append(results, x.CaseExpr.Defresult), context)
	case *sqltext.Node_A_Indirection: // types of a fixed length cannot be sliced, which is an error
		if slices.ContainsFunc(x.AIndirection.Indirection, func(n *sqltext.Node) bool { return n.GetAIndices() != nil }) {
			fields := slices.ContainsFunc(x.AIndirection.Indirection,
				func(n *sqltext.Node) bool { return n.GetAIndices() == nil })
			typ := c.snap.TypeByOID(c.resolveColumn(x.AIndirection.GetArg().GetColumnRef(), context.queryLevel).rawOID)
			if typ == nil || fields || !(typ.OID == 3802 || typ.Element != 0) {
				c.harden("it subscripts what may be no array")
			}
		}
	// comparisons of rows cost nothing in the planner's estimate, so that it evaluates them first; the size of a row is
	// bounded
	case *sqltext.Node_A_ArrayExpr, *sqltext.Node_RowExpr:
		columns := 0
		c.walkNodes(n, func(n *sqltext.Node) bool {
			if ref := n.GetColumnRef(); ref != nil {
				columns += c.countLargeValues(ref, context.queryLevel)
			}
			return true
		})
		if columns > maxLargeColumns {
			c.harden("it makes an array or a row of many columns")
		}
	case *sqltext.Node_CoalesceExpr:
		c.checkArrayChoice(x.CoalesceExpr.Args, context)
	case *sqltext.Node_MinMaxExpr:
		c.checkArrayChoice(x.MinMaxExpr.Args, context)
	}
}

// checkSubscripts checks the subscripts of an array. PostgreSQL converts them to integers by assignment casts, and
// considers fetching an element leak-proof.
func (c *hardenedAnalysis) checkSubscripts(i *sqltext.A_Indices, context exprContext) {
	for _, n := range []*sqltext.Node{i.Lidx, i.Uidx} {
		switch t := c.typeOf(n, context.queryLevel); {
		case n.GetNode() == nil, isFoldedConstant(n), t == 21, t == 23:
		case n.GetParamRef() != nil:
			c.castsParams = true
		case context.shownRowsOnly && !context.inSubquery:
		case context.inSubquery || !c.hasLocalColumn(n, context):
			c.harden("a subscript may have to be converted first")
		default:
			c.fromOutputMayFail = c.fromOutputMayFail || context.subqueryOutput
		}
	}
}

// maxLargeColumns bounds how many columns with possibly large values a condition may join into one value, because
// PostgreSQL fails to make a value of 1 GB. (Texts of more than 256 MB are not covered.)
const maxLargeColumns = 3

// countLargeValues returns how many large values one column may contain.
func (c *hardenedAnalysis) countLargeValues(ref *sqltext.ColumnRef, level *queryLevel) int {
	switch m := c.resolveColumn(ref, level); {
	case m.ofTable && m.known && !m.computed && m.rawOID == 0, m.rawOID == scalarType:
		return 1
	case m.rawOID == 0: // the column is a row, or an output of a query in FROM
		return maxLargeColumns + 1
	case slices.Contains(smallTypes, m.rawOID):
		return 0
	}
	return 1
}

// smallTypes are the types whose values are always small.
var smallTypes = []uint32{16, 18, 19, 20, 21, 23, 26, 700, 701, 790, 829, 869, 650, 1082, 1083, 1114, 1184, 1186,
	1266, 1700, 2950}

// isStrict tells whether an expression is NULL if one of its operands is NULL. Constant folding (eval_const_expressions
// of clauses.c) then either leaves a column in the expression or replaces it by NULL, and PostgreSQL computes nothing
// for a NULL. The result is true for certain kinds of expressions only. CASE, COALESCE, AND, IN, BETWEEN and the like
// may fold to a part of themselves, or to a value, and lose the column. As of PostgreSQL 17, so may a test whether a
// value is in a constant range.
func (c *hardenedAnalysis) isStrict(n *sqltext.Node, level *queryLevel) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Expr:
		_, name, ok := qualifiedName(x.AExpr.Name)
		// the excluded operators work on arrays, and an array that contains NULL is not NULL itself
		return ok && (x.AExpr.Kind == sqltext.AEXPR_OP || x.AExpr.Kind == sqltext.AEXPR_LIKE ||
			x.AExpr.Kind == sqltext.AEXPR_ILIKE || x.AExpr.Kind == sqltext.AEXPR_SIMILAR) && name != "<@" &&
			name != "@>" && name != "#=" && (name != "||" || c.isScalar(x.AExpr.Lexpr, level) &&
			c.isScalar(x.AExpr.Rexpr, level))
	case *sqltext.Node_TypeCast, *sqltext.Node_CollateClause:
		return true
	case *sqltext.Node_A_Indirection:
		return x.AIndirection.GetArg().GetColumnRef() != nil
	case *sqltext.Node_FuncCall:
		return slices.Contains(strictFunctions, lastNamePart(x.FuncCall.Funcname)) && c.isCatalogCall(x.FuncCall)
	case *sqltext.Node_List, *sqltext.Node_CaseWhen: // these nodes only hold the operands of other nodes
		return true
	}
	return false
}

// survivesFolding tells whether an expression, of which a part names a column, still contains a column after constant
// folding.
func (c *hardenedAnalysis) survivesFolding(n *sqltext.Node, context exprContext) bool {
	all := func(values []*sqltext.Node) bool { // PostgreSQL may convert each value separately
		return !slices.ContainsFunc(values, func(n *sqltext.Node) bool {
			return n.GetNode() != nil && n.GetAConst() == nil && !c.hasLocalColumn(n, context)
		})
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_CaseExpr:
		results := []*sqltext.Node{x.CaseExpr.Defresult}
		for _, whenClause := range x.CaseExpr.Args {
			results = append(results, whenClause.GetCaseWhen().GetResult())
		}
		return all(results)
	case *sqltext.Node_CoalesceExpr:
		return all(x.CoalesceExpr.Args)
	case *sqltext.Node_MinMaxExpr:
		return all(x.MinMaxExpr.Args)
	case *sqltext.Node_FuncCall:
		if c.isStrict(n, context.queryLevel) {
			return true
		}
		return c.hasNotFoldableOperand(n, context)
	case *sqltext.Node_A_Expr: // these expressions may have a value although an operand is NULL
		switch x.AExpr.Kind {
		case sqltext.AEXPR_DISTINCT, sqltext.AEXPR_NOT_DISTINCT, sqltext.AEXPR_NULLIF:
			return c.isNotFoldable(x.AExpr.Lexpr, context) || c.isNotFoldable(x.AExpr.Rexpr, context)
		}
	case *sqltext.Node_XmlExpr, *sqltext.Node_XmlSerialize:
		survives := false
		sqltext.EachChild(n, func(child *sqltext.Node) { survives = survives || c.isNotFoldable(child, context) })
		return survives
	}
	return true
}

// strictFunctions are common functions of PostgreSQL all of whose overloads are STRICT.
var strictFunctions = []string{
	"lower", "upper", "initcap", "length", "char_length", "character_length", "octet_length", "bit_length", "substr",
	"substring", "left", "right", "btrim", "ltrim", "rtrim", "replace", "split_part", "strpos", "position", "repeat",
	"reverse", "lpad", "rpad",
	"translate", "ascii", "chr", "md5", "sha256", "encode", "decode", "regexp_replace", "regexp_match",
	"regexp_matches", "regexp_substr", "regexp_count", "regexp_like", "regexp_instr", "starts_with", "round",
	"trunc", "floor", "ceil", "ceiling", "abs", "sign", "mod", "div", "power", "sqrt", "cbrt", "ln", "log", "exp",
	"width_bucket", "gcd", "lcm", "date_trunc", "date_part", "extract", "date_bin", "age", "isfinite", "to_char",
	"to_date", "to_timestamp", "to_number", "make_date", "make_time", "make_timestamp", "timezone", "to_tsvector",
	"to_tsquery", "plainto_tsquery", "phraseto_tsquery",
	"websearch_to_tsquery", "ts_rank", "ts_rank_cd", "ts_headline", "jsonb_array_length", "json_array_length",
	"jsonb_typeof", "json_typeof", "jsonb_extract_path_text", "jsonb_extract_path", "array_length", "array_upper",
	"array_lower", "cardinality", "similarity", "word_similarity", "strict_word_similarity", "get_byte", "hashtext",
}

// isNotFoldable tells whether an operand names a column of a table of this query, and constant folding cannot remove
// it. That is so if no other operand beside the column can be NULL.
func (c *hardenedAnalysis) isNotFoldable(n *sqltext.Node, context exprContext) bool {
	if ref := n.GetColumnRef(); ref != nil {
		m := c.resolveColumn(ref, context.queryLevel)
		return m.localColumn && m.notFoldable
	}
	return c.someOperandSurvives(n, context.queryLevel, func(n *sqltext.Node) (isOperand, survives bool) {
		isOperand = c.isNotFoldable(n, context)
		return isOperand, isOperand
	})
}

// someOperandSurvives tells whether a strict expression has an operand of the wanted kind (isOperand), and constant
// folding can make no operand NULL (all survive).
func (c *hardenedAnalysis) someOperandSurvives(n *sqltext.Node, level *queryLevel,
	operand func(*sqltext.Node) (isOperand, survives bool)) bool {
	if !c.isStrict(n, level) {
		return false
	}
	found, all := false, true
	sqltext.EachChild(n, func(child *sqltext.Node) {
		// a child that is a name, a type or a constant other than NULL cannot make the expression NULL
		if child.GetString_() != nil || child.GetTypeName() != nil || child.GetAConst() != nil && !child.GetAConst().Isnull {
			return
		}
		isOperand, survives := operand(child)
		found, all = found || isOperand, all && survives
	})
	return found && all
}

// hasNotFoldableOperand tells whether a call has an operand for which isNotFoldable is true. For CASE and COALESCE the
// first operand must be one.
func (c *hardenedAnalysis) hasNotFoldableOperand(n *sqltext.Node, context exprContext) bool {
	return c.hasOperand(n, func(n *sqltext.Node) bool { return c.isNotFoldable(n, context) })
}

// hasOperand tells whether a call has an operand for which survives is true. For CASE and COALESCE the first operand
// must be one.
func (c *hardenedAnalysis) hasOperand(n *sqltext.Node, survives func(*sqltext.Node) bool) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		switch lastNamePart(x.FuncCall.Funcname) {
		// as of version 17, PostgreSQL folds these functions if the range is constant
		case "elem_contained_by_range", "range_contains_elem":
			return false
		}
		return c.isCatalogCall(x.FuncCall) && slices.ContainsFunc(x.FuncCall.Args, survives)
	case *sqltext.Node_MinMaxExpr:
		return slices.ContainsFunc(x.MinMaxExpr.Args, survives)
	case *sqltext.Node_CoalesceExpr:
		return survives(x.CoalesceExpr.Args[0])
	case *sqltext.Node_CaseExpr:
		whenClause := x.CaseExpr.Args[0].GetCaseWhen().GetExpr()
		if x.CaseExpr.Arg == nil {
			return survives(whenClause)
		}
		// constant folding removes branches with WHEN NULL, and with the last branch also the value that CASE compares
		return survives(x.CaseExpr.Arg) && (survives(whenClause) || whenClause.GetAConst() != nil &&
			!whenClause.GetAConst().Isnull)
	}
	return false
}

// overflowingTypes are the types circle and lseg. Their comparison operators compute lengths, which may overflow, and
// are marked leak-proof.
var overflowingTypes = []uint32{718, 601}

// isArrayTypeName tells whether a type is an array type, or a domain over one.
func (c *hardenedAnalysis) isArrayTypeName(t *sqltext.TypeName) bool {
	if len(t.GetArrayBounds()) > 0 {
		return true
	}
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok {
		return true
	}
	types := c.snap.TypesNamed(schema, name)
	if schema == "" {
		types = slices.Concat(types, c.snap.TypesNamed("pg_catalog", name))
	}
	for _, candidate := range types {
		if typ := c.snap.TypeByOID(c.snap.BaseType(candidate.OID)); typ == nil || typ.Element != 0 {
			return true
		}
	}
	return len(types) == 0
}

// isPlainArray tells whether an expression is ARRAY[...] and no element is an array, so that PostgreSQL converts each
// element separately.
func (c *hardenedAnalysis) isPlainArray(n *sqltext.Node, context exprContext) bool {
	return n.GetAArrayExpr() != nil && !slices.ContainsFunc(n.GetAArrayExpr().Elements, func(n *sqltext.Node) bool {
		return !isUntypedConstant(n) && n.GetParamRef() == nil &&
			(c.typeOf(n, context.queryLevel) == 0 || slices.Contains(comparableArrayTypes, c.typeOf(n, context.queryLevel)))
	})
}

// checkArrayChoice hardens the plan if an expression chooses one of several values which are arrays and may not have
// the same type.
func (c *hardenedAnalysis) checkArrayChoice(values []*sqltext.Node, context exprContext) {
	n, array, hasSameVersion := 0, false, true
	var of uint32
	for _, value := range values {
		if value.GetNode() == nil || value.GetAConst() != nil || value.GetParamRef() != nil {
			continue
		}
		t := c.typeOf(value, context.queryLevel)
		array, hasSameVersion = array || t == 0 || slices.Contains(comparableArrayTypes, t), hasSameVersion &&
			(n == 0 || t == of) && t != 0
		n, of = n+1, t
	}
	if n > 1 && array && !hasSameVersion {
		c.harden("it chooses among arrays that may have to be converted")
	}
}

// scalarType stands for a type of which only one thing is certain: it is not an array type.
const scalarType = ^uint32(0)

// rawTypeOf returns the type of an expression, also if its values cannot be compared. The result is scalarType if only
// that is certain, and 0 if nothing is.
func (c *hardenedAnalysis) rawTypeOf(n *sqltext.Node, level *queryLevel) uint32 {
	if ref := n.GetColumnRef(); ref != nil {
		return c.resolveColumn(ref, level).rawOID
	}
	if t := c.typeOf(n, level); t != 0 {
		return t
	}
	if c.isScalar(n, level) {
		return scalarType
	}
	return 0
}

// isScalar tells whether an expression is certainly not an array.
func (c *hardenedAnalysis) isScalar(n *sqltext.Node, level *queryLevel) bool {
	all := func(list []*sqltext.Node) bool {
		return !slices.ContainsFunc(list, func(n *sqltext.Node) bool { return n.GetNode() != nil && !c.isScalar(n, level) })
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Const, *sqltext.Node_SQLValueFunction, *sqltext.Node_BoolExpr, *sqltext.Node_NullTest,
		*sqltext.Node_BooleanTest, *sqltext.Node_GroupingFunc:
		return true
	case *sqltext.Node_ColumnRef:
		raw := c.resolveColumn(x.ColumnRef, level).rawOID
		return raw == scalarType || raw != 0 && !c.isArrayType(raw)
	case *sqltext.Node_TypeCast:
		return !c.isArrayTypeName(x.TypeCast.TypeName)
	case *sqltext.Node_A_Expr:
		_, name, ok := qualifiedName(x.AExpr.Name)
		return ok && (slices.Contains(comparisonOperators, name) ||
			x.AExpr.Kind != sqltext.AEXPR_OP && x.AExpr.Kind != sqltext.AEXPR_NULLIF ||
			slices.Contains([]string{"->>", "#>", "#>>"}, name) ||
			name == "->" && slices.Contains([]uint32{114, 3802}, c.rawTypeOf(x.AExpr.Lexpr, level)) ||
			slices.Contains([]string{"+", "-", "*", "/", "%", "||"}, name) &&
				(x.AExpr.Lexpr == nil || c.isScalar(x.AExpr.Lexpr, level)) && c.isScalar(x.AExpr.Rexpr, level))
	case *sqltext.Node_CoalesceExpr:
		return all(x.CoalesceExpr.Args)
	case *sqltext.Node_MinMaxExpr:
		return all(x.MinMaxExpr.Args)
	case *sqltext.Node_CaseExpr:
		results := []*sqltext.Node{x.CaseExpr.Defresult}
		for _, whenClause := range x.CaseExpr.Args {
			results = append(results, whenClause.GetCaseWhen().GetResult())
		}
		return all(results)
	case *sqltext.Node_SubLink:
		return x.SubLink.SubLinkType == sqltext.EXISTS_SUBLINK || x.SubLink.SubLinkType == sqltext.ANY_SUBLINK
	case *sqltext.Node_FuncCall:
		name := lastNamePart(x.FuncCall.Funcname)
		if !c.isCatalogCall(x.FuncCall) {
			return false
		}
		if slices.Contains(scalarFunctions, name) {
			return true
		}
		if (name == "lower" || name == "upper") && len(x.FuncCall.Args) == 1 {
			return c.isNoRange(x.FuncCall.Args[0], level)
		}
		return slices.Contains(firstArgTypeFunctions, name) && len(x.FuncCall.Args) > 0 &&
			c.isScalar(x.FuncCall.Args[0], level)
	}
	return false
}

// scalarFunctions are common functions whose results are never arrays. Other functions may return arrays.
var scalarFunctions = []string{"count", "sum", "avg", "date_trunc", "date_part", "extract", "to_char", "length",
	"round",
	"floor", "ceil", "abs", "concat", "concat_ws", "left", "right", "substring", "substr", "replace", "trim",
	"btrim", "ltrim", "rtrim",
	"split_part", "string_agg", "now", "age", "row_number", "rank", "dense_rank", "ntile", "percent_rank",
	"cume_dist", "bool_and", "bool_or", "every", "json_agg", "jsonb_agg", "jsonb_build_object", "json_build_object",
	"to_jsonb", "to_json", "format", "md5", "cardinality", "array_length",
	"array_to_string", "jsonb_array_length", "power", "sqrt", "random", "stddev", "variance", "corr", "ts_rank",
	"similarity", "make_date", "greatest", "least", "initcap", "to_date", "to_timestamp", "regexp_replace",
	"jsonb_object_agg", "json_object_agg"}

// isNoRange tells whether the argument of lower or upper is certainly not a range, whose bounds may be arrays.
func (c *hardenedAnalysis) isNoRange(n *sqltext.Node, level *queryLevel) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		name := lastNamePart(x.FuncCall.Funcname)
		return c.isCatalogCall(x.FuncCall) &&
			slices.Contains(append([]string{"lower", "upper"}, scalarFunctions...), name) && c.isScalar(n, level)
	case *sqltext.Node_A_Expr:
		if lastNamePart(x.AExpr.Name) == "||" {
			return true
		}
	}
	return slices.Contains([]uint32{25, 1042, 1043}, c.rawTypeOf(n, level))
}

// firstArgTypeFunctions are the functions whose result has the type of their first argument.
var firstArgTypeFunctions = []string{"max", "min", "lag", "lead", "first_value", "last_value", "nth_value", "nullif"}

// isArrayType tells whether a type is an array type; unknown types count as array types.
func (c *hardenedAnalysis) isArrayType(oid uint32) bool {
	t := c.snap.TypeByOID(oid)
	return t == nil || t.Element != 0
}

// mayConvertArrays tells whether merging columns of the types a and b may convert an array to another array type.
func (c *hardenedAnalysis) mayConvertArrays(a, b uint32) bool {
	return (a != b || a == 0) && (a != scalarType && c.isArrayType(a) || b != scalarType && c.isArrayType(b))
}

// checkSetOperation hardens the plan if UNION, INTERSECT or EXCEPT, in FROM or in a WITH query, has unknown columns or
// may have to convert arrays.
func (c *hardenedAnalysis) checkSetOperation(s *sqltext.SelectStmt, parent *queryLevel) {
	left, right := c.outputsOf(s.Larg, parent, ""), c.outputsOf(s.Rarg, parent, "")
	if left == nil || len(left) != len(right) {
		c.harden("it unites what may have to be converted")
		return
	}
	for i := range left {
		if c.mayConvertArrays(left[i].rawOID, right[i].rawOID) {
			c.harden("it unites what may be arrays that have to be converted")
		}
	}
}

// isUntypedConstant tells whether an expression is a constant whose type PostgreSQL takes from the context: a string
// literal or NULL.
func isUntypedConstant(n *sqltext.Node) bool {
	c := n.GetAConst()
	return c != nil && (c.Isnull || c.GetSval() != nil)
}

// typeOfCurrentTime returns the type of the current time or date; 0 for other expressions.
func typeOfCurrentTime(n *sqltext.Node) uint32 {
	if !isCurrentTime(n) {
		return 0
	}
	switch n.GetSqlvalueFunction().GetOp() {
	case sqltext.SVFOP_CURRENT_DATE:
		return 1082
	case sqltext.SVFOP_LOCALTIMESTAMP:
		return 1114
	}
	return 1184
}

// becomeOneType tells whether PostgreSQL can give values one type without a conversion that may fail at run time.
// PostgreSQL makes an array of the values, or compares one with the others. Integers can become any number. Constants
// are converted at planning, except times, which depend on the time zone. A parameter gets the type of the other
// values, unless the client declares its type.
func (c *hardenedAnalysis) becomeOneType(values []*sqltext.Node, context exprContext) bool {
	var of uint32
	var numbers []*sqltext.A_Const
	n, params := 0, false
	for _, value := range values {
		switch k := value.GetAConst(); {
		case isUntypedConstant(value):
			continue
		case value.GetParamRef() != nil:
			params = true
			continue
		case k != nil:
			numbers = append(numbers, k)
			continue
		}
		t := typeOfCurrentTime(value)
		if t == 0 {
			t = c.typeOf(value, context.queryLevel)
		}
		switch {
		case n == 0:
			of = t
		case t == of && t != 0:
		case t == 0 || of == 0:
			return false
		case isIntegerType(t) && (isIntegerType(of) || of == 1700 || isFloatType(of)), isFloatType(t) && isFloatType(of),
			(t == 25 || t == 1043) &&
				(of == 25 || of == 1043):
		case isIntegerType(of) && (t == 1700 || isFloatType(t)):
			of = t
		default:
			return false
		}
		n++
	}
	for _, k := range numbers {
		if n > 0 && !(k.GetBoolval() != nil && of == 16 ||
			k.GetBoolval() == nil && (isIntegerType(of) || of == 1700 || isFloatType(of)) ||
			k.GetIval() != nil && conversionTargets[of] == 2) {
			return false
		}
	}
	// between these types and some of the types that IsPlainParameterType accepts, PostgreSQL has to convert values
	if params && n > 0 && (of == 1184 && c.readsWithoutRowSecurity() || of == 0 || of == 1082 || of == 1114 ||
		conversionTargets[of] == 2) {
		c.castsParams = true
	}
	return true
}

// readsWithoutRowSecurity tells whether the statement reads a relation without row security. For such a relation, a
// hardened plan alone does not make PostgreSQL check the rule first (see findFences).
func (c *hardenedAnalysis) readsWithoutRowSecurity() bool {
	return slices.ContainsFunc(c.references,
		func(ref *reference) bool { return ref.fragment != nil && ref.fragment.lacksRowSecurity })
}

func isFloatType(t uint32) bool { return t == 700 || t == 701 }

func isIntegerType(t uint32) bool { return t == 20 || t == 21 || t == 23 }

// arrayComparesSafely tells whether PostgreSQL can compare a value with the elements of an array without a conversion
// that may fail.
func (c *hardenedAnalysis) arrayComparesSafely(x *sqltext.A_Expr, context exprContext) bool {
	if array := x.Rexpr.GetAArrayExpr(); array != nil {
		return c.becomeOneType(append(slices.Clone(array.Elements), x.Lexpr), context) &&
			!c.becomesFloatArray(array, x.Lexpr, context)
	}
	leftType := c.typeOf(x.Lexpr, context.queryLevel)
	if currentTimeType := typeOfCurrentTime(x.Lexpr); currentTimeType != 0 {
		leftType = currentTimeType
	}
	switch {
	case x.Rexpr.GetParamRef() != nil:
		// between arrays of these types and some that IsPlainParameterType accepts, PostgreSQL has to convert values
		c.castsParams = c.castsParams || conversionTargets[leftType] == 2 || leftType == 0 &&
			c.certainTypeOf(x.Lexpr, context) == 0
		return true
	case isUntypedConstant(x.Rexpr):
		return true
	// PostgreSQL never converts an array to compare its elements with a value of such a type
	case leftType != 0 && conversionTargets[leftType] == 0 && leftType != 1082:
		return true
	}
	element := c.elementTypeOf(x.Rexpr, context)
	return element != 0 && element == leftType
}

// becomesFloatArray tells whether ARRAY[...] may become an array of numeric that PostgreSQL converts to floating point
// for the comparison. That can happen if one of its constants has decimals. PostgreSQL gives the elements one type
// before it considers the other operand.
func (c *hardenedAnalysis) becomesFloatArray(array *sqltext.A_ArrayExpr, left *sqltext.Node, context exprContext) bool {
	numeric, float, other := false, false, false
	for _, n := range array.Elements {
		k := n.GetAConst()
		numeric, float, other = numeric || k.GetFval() != nil, float ||
			k == nil && isFloatType(c.typeOf(n, context.queryLevel)), other || k == nil
	}
	if !numeric || !other || float {
		return false
	}
	if left.GetParamRef() != nil {
		c.castsParams = true
		return false
	}
	t := c.typeOf(left, context.queryLevel)
	return !isUntypedConstant(left) && left.GetAConst() == nil && (t == 0 || isFloatType(t))
}

// elementTypeOf returns the type of an array's elements; 0 if it is not certain.
func (c *hardenedAnalysis) elementTypeOf(n *sqltext.Node, context exprContext) uint32 {
	var oid uint32
	switch x := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		oid = c.resolveColumn(x.ColumnRef, context.queryLevel).rawOID
	case *sqltext.Node_TypeCast:
		schema, name, ok := qualifiedName(x.TypeCast.GetTypeName().GetNames())
		if types := c.snap.TypesNamed("pg_catalog", name); ok && (schema == "" || schema == "pg_catalog") &&
			len(types) == 1 && len(x.TypeCast.TypeName.ArrayBounds) > 0 {
			return types[0].OID
		}
	}
	if t := c.snap.TypeByOID(oid); t != nil {
		return t.Element
	}
	return 0
}

// namesLocalColumn tells whether an operand names a column of this query, at any depth outside of sub-selects.
// PostgreSQL's parser searches for a column in the same way.
func (c *hardenedAnalysis) namesLocalColumn(n *sqltext.Node, context exprContext) (found bool) {
	c.walkNodes(n, func(n *sqltext.Node) bool {
		if ref := n.GetColumnRef(); ref != nil {
			m := c.resolveColumn(ref, context.queryLevel)
			found = found || m.known && !m.outer
		}
		return !found && n.GetSubLink() == nil
	})
	return found
}
