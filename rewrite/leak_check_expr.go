package rewrite

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// checkCondition checks that an expression is leak-safe and a boolean.
func (v *leakChecker) checkCondition(n *sqltext.Node, context checkContext) {
	if n == nil || v.reason != "" {
		return
	}
	v.requireBoolean(v.checkExpr(n, context))
}

func (v *leakChecker) requireBoolean(e value) value {
	switch {
	case v.reason != "" || e.kind == kindBool:
	case e.kind == kindParam:
		v.useParam(e.param, kindBool)
	case e.kind != kindString:
		v.reject("a condition that is not plainly boolean")
	}
	return value{kind: kindBool}
}

// requireForm notes that a parameter is a text, and which form its value must have.
func (v *leakChecker) requireForm(number int32, form verdict.ValueForm) {
	v.useParam(number, kindText)
	v.paramForms[number] |= form
}

// useParam notes the kind of type that the text needs for a parameter. The client may declare a type of that kind, or
// none.
func (v *leakChecker) useParam(number int32, k kind) {
	v.paramNeighbours[number] = append(v.paramNeighbours[number], 0)
	v.setParamKind(number, k)
}

// setParamKind notes the kind of a parameter's type. It rejects a text that uses the parameter with two kinds.
func (v *leakChecker) setParamKind(number int32, k kind) {
	if knownKind, ok := v.paramKinds[number]; ok && knownKind != k {
		v.reject("parameter $%d is used with two types", number)
	}
	v.paramKinds[number] = k
}

// checkExpr checks whether an expression is leak-safe, and returns what is known about its value.
func (v *leakChecker) checkExpr(n *sqltext.Node, context checkContext) value {
	if v.reason != "" || n == nil {
		v.reject("an expression that is missing")
		return value{}
	}
	if v.isIndexedVector(n, context.scope) {
		return value{kind: kindTSVector}
	}
	switch n := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		return v.checkColumnRef(n.ColumnRef, context)
	case *sqltext.Node_ParamRef:
		return value{kind: kindParam, param: n.ParamRef.Number}
	case *sqltext.Node_A_Const:
		return v.constantValue(n.AConst)
	case *sqltext.Node_TypeCast:
		return v.checkCast(n.TypeCast, context)
	case *sqltext.Node_A_Expr:
		return v.checkOperation(n.AExpr, context)
	case *sqltext.Node_BoolExpr:
		for _, arg := range n.BoolExpr.Args {
			v.checkCondition(arg, context)
		}
		return value{kind: kindBool}
	case *sqltext.Node_NullTest:
		v.checkExpr(n.NullTest.Arg, context)
		return value{kind: kindBool}
	case *sqltext.Node_BooleanTest:
		v.checkCondition(n.BooleanTest.Arg, context)
		return value{kind: kindBool}
	case *sqltext.Node_FuncCall:
		return v.checkCall(n.FuncCall, context)
	case *sqltext.Node_CoalesceExpr:
		return v.checkSameKind("COALESCE", n.CoalesceExpr.Args, context)
	case *sqltext.Node_MinMaxExpr:
		return v.checkSameKind("GREATEST or LEAST", n.MinMaxExpr.Args, context)
	case *sqltext.Node_CaseExpr:
		return v.checkCase(n.CaseExpr, context)
	case *sqltext.Node_A_ArrayExpr:
		return v.checkArray(n.AArrayExpr)
	case *sqltext.Node_SubLink:
		return v.checkSubLink(n.SubLink, context)
	case *sqltext.Node_SQLValueFunction:
		switch n.SqlvalueFunction.Op {
		case sqltext.SVFOP_CURRENT_TIMESTAMP:
			return value{kind: kindCurrentTime}
		case sqltext.SVFOP_CURRENT_DATE:
			return value{kind: kindToday}
		}
		v.reject("CURRENT_USER and its like")
	default:
		v.reject("%s is not leak-safe", sqltext.NodeKind(&sqltext.Node{Node: n}))
	}
	return value{}
}

func (v *leakChecker) checkColumnRef(c *sqltext.ColumnRef, context checkContext) value {
	switch len(c.Fields) {
	case 1:
		if s := c.Fields[0].GetString_(); s != nil {
			c := v.findColumn(context.scope, s.GetSval())
			return value{kind: c.kind, oid: c.oid}
		}
	case 2:
		item, column := c.Fields[0].GetString_(), c.Fields[1].GetString_()
		if item != nil && column != nil {
			c := v.findColumnOf(context.scope, item.GetSval(), column.GetSval())
			return value{kind: c.kind, oid: c.oid}
		}
	}
	v.reject("a row as a value")
	return value{}
}

func (v *leakChecker) constantValue(c *sqltext.A_Const) value {
	switch {
	case c.Isnull:
		return value{kind: kindString, constant: true, isNull: true}
	case c.GetSval() != nil:
		return value{kind: kindString, constant: true, text: c.GetSval().GetSval()}
	case c.GetIval() != nil:
		return value{kind: kindInt, constant: true, number: c.GetIval().GetIval()}
	case c.GetFval() != nil:
		return value{kind: kindNumeric, constant: true}
	case c.GetBoolval() != nil:
		return value{kind: kindBool, constant: true}
	}
	v.reject("a constant that is not leak-safe")
	return value{}
}

// intervalPattern matches intervals that are so short that adding one to the current time cannot leave PostgreSQL's
// range of dates.
var intervalPattern = regexp.MustCompile(`^([0-9]{1,3} (second|minute|hour|day|week|mon|month|year)s?|[0-9]{2}:[0-9]{2}:[0-9]{2})$`)

// checkCast checks x::type. PostgreSQL converts a string literal when it parses the statement, so whether that fails
// does not depend on rows.
func (v *leakChecker) checkCast(c *sqltext.TypeCast, context checkContext) value {
	arg := value{kind: kindOpaque}
	if !isConstantArray(c.Arg.GetAArrayExpr()) {
		arg = v.checkExpr(c.Arg, context)
	}
	t := c.TypeName
	schema, name, ok := qualifiedName(t.GetNames())
	if enum := v.findEnum(schema, name); ok && enum != nil && len(t.ArrayBounds) == 0 && !t.Setof && !t.PctType &&
		v.reason == "" {
		switch {
		case arg.kind != kindParam && (arg.kind != kindString || arg.isNull):
		case !v.qualifyType(t):
			v.reject("a type whose name is not plain to see")
			return value{}
		case arg.kind == kindParam:
			v.noteParamCast(arg.param, kindEnum, enum.OID)
			return value{kind: kindEnum, constant: true}
		default:
			return value{kind: kindEnum, constant: true}
		}
	}
	// the cast is ARRAY[…]::type[], for which PostgreSQL casts each element. A length of varchar only shortens texts.
	isArrayLiteral := c.Arg.GetAArrayExpr() != nil && len(t.ArrayBounds) == 1
	if v.reason != "" || !ok || len(t.Typmods) > 0 && !(isArrayLiteral && name == "varchar") || t.Setof || t.PctType ||
		len(t.ArrayBounds) > 1 || schema != "" && schema != "pg_catalog" {
		v.reject("a type that is not leak-safe")
		return value{}
	}
	types := v.snap.TypesNamed("pg_catalog", name)
	if len(types) != 1 {
		v.reject("type %s is not leak-safe", name)
		return value{}
	}
	if !v.qualifyType(t) {
		v.reject("a type whose name is not plain to see")
		return value{}
	}
	targetKind := kindOfOID(types[0].OID)
	if len(t.ArrayBounds) == 1 {
		if targetKind = targetKind + "[]"; targetKind != "text[]" && targetKind != "uuid[]" && targetKind != kindInts {
			targetKind = kindOpaque
		}
	}
	switch {
	case arg.kind == kindString && types[0].Name.Name == "interval" && intervalPattern.MatchString(arg.text):
		return value{kind: kindInterval}
	case arg.kind == kindString && types[0].Name.Name == "regconfig" && len(t.ArrayBounds) == 0:
		return value{kind: kindConfiguration, constant: true}
	case targetKind == kindOpaque:
		v.reject("type %s is not leak-safe", name)
	case arg.kind == kindString && targetKind == kindText:
		return value{kind: targetKind, constant: true, text: arg.text, isNull: arg.isNull}
	case arg.kind == kindString && targetKind == "jsonb":
		return value{kind: targetKind, constant: true, text: arg.text, isNull: arg.isNull}
	case arg.kind == kindString && targetKind == kindTSQuery && len(arg.text) > maxShortText:
		v.reject("a long constant for a text search")
	case arg.kind == kindString:
		return value{kind: targetKind}
	case arg.kind == kindParam && targetKind == kindInts:
		v.reject("a parameter as an array of whole numbers: larger ones may have been declared")
	case arg.kind == kindParam && targetKind == kindTSQuery:
		v.reject("a parameter as a text search: matching goes as deep as its value says")
	// only one array type has this kind, so that the cast determines the parameter's type
	case arg.kind == kindParam && len(t.ArrayBounds) > 0:
		v.setParamKind(arg.param, targetKind)
		return value{kind: targetKind}
	case arg.kind == kindParam:
		v.noteParamCast(arg.param, targetKind, types[0].OID)
		return value{kind: targetKind}
	case isArrayLiteral && (isConstantArray(c.Arg.GetAArrayExpr()) || targetKind == "text[]" && arg.kind == targetKind):
		// PostgreSQL converts constants when it parses or plans, and texts need no conversion that may fail
		return value{kind: targetKind}
	case len(t.ArrayBounds) > 0:
		v.reject("a cast to an array")
	default:
		target := map[uint32]string{20: "bigint", 25: "text", 1043: "text", 1082: "date", 1700: "numeric"}[types[0].OID]
		if target == "" {
			v.reject("a cast to %s", name)
		}
		v.leaky = v.leaky || namesColumn(c.Arg)
		result, _ := v.lookUpLeakSafe("cast", target, []value{arg})
		return value{kind: result}
	}
	return value{}
}

// namesColumn tells whether an expression contains a column reference.
func namesColumn(n *sqltext.Node) bool {
	found := false
	var visit func(*sqltext.Node)
	visit = func(n *sqltext.Node) {
		if found = found || n.GetColumnRef() != nil; !found && n != nil {
			sqltext.EachChild(n, visit)
		}
	}
	visit(n)
	return found
}

// qualifyType notes that the rewriter must write a type's schema, unless the text has it. The result is false if the
// text does not spell the type's name as one word.
func (v *leakChecker) qualifyType(t *sqltext.TypeName) bool {
	if len(t.Names) > 1 {
		return true
	}
	if i := v.source.TokenAt(t.Location); i < 0 || !v.source.Tokens[i].IsName() || v.source.KindAt(i+1) == sqltext.Dot {
		return false
	}
	v.typesToQualify = append(v.typesToQualify, t)
	return true
}

// noteParamCast notes that the text casts a parameter to a type. The client may declare that type for the parameter, or
// none.
func (v *leakChecker) noteParamCast(number int32, k kind, oid uint32) {
	v.setParamKind(number, k)
	if knownOID, ok := v.paramCasts[number]; ok && knownOID != oid {
		v.reject("parameter $%d is cast to two types", number)
	}
	v.paramCasts[number] = oid
}

// findEnum returns the enum type that a name means. For a string that is no label of the enum, PostgreSQL fails when it
// parses the statement. The result is nil if the name means another type or none, or may mean one of several. A name
// that is also a table's could mean the table's row type.
func (v *leakChecker) findEnum(schema, name string) *catalog.Type {
	if rows, _ := v.snap.ResolveRelation(schema, name); rows.Name != "" {
		return nil
	}
	if types := v.snap.TypesNamed(schema, name); len(types) == 1 && types[0].Kind == 'e' {
		return types[0]
	}
	return nil
}

// lookUpLeakSafe searches leakSafeList for an operator, function or aggregate (what) with these operands, and returns
// the kind of its result.
func (v *leakChecker) lookUpLeakSafe(what, name string, operands []value) (kind, bool) {
	if v.reason != "" {
		return kindOpaque, false
	}
	// PostgreSQL takes both operands for texts if neither has a type
	if what == "operator" && len(operands) == 2 && operands[0].isUntyped() && operands[1].isUntyped() {
		operands = []value{v.asText(operands[0]), v.asText(operands[1])}
	}
	if what == "operator" && !isLeakproof(name, operands) {
		v.leaky = true
		v.indexSearch = v.indexSearch || !slices.ContainsFunc(operands, func(o value) bool { return o.kind == kindEnum })
	}
	for _, e := range leakSafeList[what+" "+name] {
		for _, wanted := range e.operands {
			if len(wanted) != len(operands) {
				continue
			}
			fit := true
			for i := range wanted {
				fit = fit && operands[i].fits(wanted[i])
			}
			if !fit {
				continue
			}
			for i := range wanted {
				if operands[i].kind != kindParam {
					continue
				}
				if form, isOfKind := map[kind]verdict.ValueForm{
					"pattern": verdict.Pattern, "short": verdict.SearchWords, "expression": verdict.RegularExpression,
					"query": verdict.TextQuery}[wanted[i]]; isOfKind {
					v.requireForm(operands[i].param, form)
				} else if wanted[i] == "shallow" {
					v.useParam(operands[i].param, "jsonb")
					v.paramForms[operands[i].param] |= verdict.ShallowJSON
				} else if v.setParamKind(operands[i].param, wanted[i]); what == "operator" && len(operands) == 2 {
					// an operand without a type gets the type of the other operand
					v.paramNeighbours[operands[i].param] = append(v.paramNeighbours[operands[i].param], operands[1-i].oid)
				} else {
					v.paramNeighbours[operands[i].param] = append(v.paramNeighbours[operands[i].param], 0)
				}
			}
			if e.result != "same" {
				return e.result, true
			}
			return v.resultKind(operands[0]), true
		}
	}
	v.reject("%s %s is not on the leak-safe list for these operands", what, name)
	return kindOpaque, false
}

// isLeakproof tells whether PostgreSQL certainly considers an operator leak-proof.
func isLeakproof(name string, operands []value) bool {
	// PostgreSQL computes now() plus or minus an interval only once for the whole statement
	if name == "+" || name == "-" {
		return true
	}
	if !slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, name) {
		return false
	}
	var of kind
	for _, o := range operands {
		o.kind = o.kind.columnKind()
		switch {
		case o.isUntyped():
		case of == "":
			of = o.kind
		case of != o.kind:
			return false
		}
	}
	return slices.Contains([]kind{kindInt, kindText, kindBool, "uuid", "float", "date", "timestamp", "timestamptz"}, of)
}

func (v *leakChecker) asText(e value) value {
	if e.kind == kindParam {
		v.useParam(e.param, kindText)
		return value{kind: kindText}
	}
	return e
}

// checkOperation checks an expression with an operator.
func (v *leakChecker) checkOperation(x *sqltext.A_Expr, context checkContext) value {
	schema, name, ok := qualifiedName(x.Name)
	if !ok || schema != "" && schema != "pg_catalog" {
		v.reject("an operator of another schema")
		return value{}
	}
	if others := v.snap.OperatorsNamed("", name); schema == "" &&
		slices.ContainsFunc(others, func(o *catalog.Operator) bool { return !isKnownExtension(o.Extension) }) {
		v.reject("operator %s has overloads of others", name)
		return value{}
	}
	if x.Lexpr == nil || x.Rexpr == nil {
		v.reject("operator %s in front of its operand", name)
		return value{}
	}
	left := v.checkExpr(x.Lexpr, context)
	// for % and <-> PostgreSQL does not take two operands without a type for texts
	if right := x.Rexpr; (name == "%" || name == "<->") &&
		(left.isUntyped() && (right.GetAConst() != nil || right.GetParamRef() != nil)) {
		v.reject("operator %s of operands without a type", name)
	}
	compare := func(operator string, right value) { v.lookUpLeakSafe("operator", operator, []value{left, right}) }
	switch x.Kind {
	case sqltext.AEXPR_OP, sqltext.AEXPR_LIKE, sqltext.AEXPR_ILIKE:
		right, made := value{}, false
		if slices.Contains([]string{"~~", "!~~", "~~*", "!~~*"}, name) {
			right, made = v.checkJoinedPattern(x.Rexpr, context)
		}
		if !made {
			right = v.checkExpr(x.Rexpr, context)
		}
		result, _ := v.lookUpLeakSafe("operator", name, []value{left, right})
		return value{kind: result}
	case sqltext.AEXPR_SIMILAR:
		compare(name, v.similarToRegexp(x.Rexpr))
	case sqltext.AEXPR_DISTINCT, sqltext.AEXPR_NOT_DISTINCT:
		compare("=", v.checkExpr(x.Rexpr, context))
	case sqltext.AEXPR_NULLIF: // the result of NULLIF is its left operand, to which the comparison has given a type
		right := v.checkExpr(x.Rexpr, context)
		compare("=", right)
		if v.reason == "" && (left.isUntyped() && right.kind != kindText ||
			!left.isUntyped() && left.kind != right.kind && !right.isUntyped()) {
			v.reject("NULLIF of different types")
		}
		return value{kind: v.resultKind(left)}
	case sqltext.AEXPR_IN:
		if x.Rexpr.GetList() == nil {
			v.reject("IN")
		}
		left.oid = 0 // PostgreSQL gives all values of a list one common type
		values := []value{left}
		for _, item := range x.Rexpr.GetList().GetItems() {
			e := v.checkExpr(item, context)
			e.oid = 0
			values = append(values, e)
			compare(name, e)
		}
		v.checkConversions(values)
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN:
		bounds := x.Rexpr.GetList().GetItems()
		if len(bounds) != 2 {
			v.reject("BETWEEN")
			return value{}
		}
		compare(">=", v.checkExpr(bounds[0], context))
		compare("<=", v.checkExpr(bounds[1], context))
	case sqltext.AEXPR_OP_ANY:
		v.checkAnyArray(name, left, x.Rexpr, context)
	default:
		v.reject("this form of operator %s", name)
	}
	return value{kind: kindBool}
}

// checkAnyArray checks x = ANY (array), and other operators with ANY.
func (v *leakChecker) checkAnyArray(name string, left value, n *sqltext.Node, context checkContext) {
	if elements := n.GetAArrayExpr(); elements != nil {
		left.oid = 0
		values := []value{left}
		for _, n := range elements.Elements {
			e := v.checkExpr(n, context)
			e.oid = 0
			values = append(values, e)
			v.lookUpLeakSafe("operator", name, []value{left, e})
		}
		v.checkConversions(values)
		v.checkArrayConversion(left, values[1:])
		return
	}
	switch array := v.checkExpr(n, context); {
	case v.reason != "":
	case (array.kind == "text[]" || array.kind == "uuid[]" || array.kind == kindInts) && name == "=":
		v.lookUpLeakSafe("operator", name, []value{left, {kind: kind(strings.TrimSuffix(string(array.kind), "[]"))}})
	case array.kind == kindParam && name == "=" && (left.kind == kindInt || left.kind == kindText || left.kind == "uuid"):
		v.useParam(array.param, left.kind+"[]")
	case array.kind == kindString && name == "=" && isSortable(left.kind) && !left.isUntyped():
	default:
		v.reject("ANY over what is not plainly an array of texts")
	}
}

// checkConversions rejects a list if giving its values and their left operand one type may fail. The largest dates are
// out of range as timestamps. PostgreSQL applies the time zone to a timestamp only when the statement runs. The largest
// numeric values are out of range as floating point.
func (v *leakChecker) checkConversions(values []value) {
	var of kind
	numeric, float := false, false
	for _, e := range values {
		numeric, float = numeric || e.kind == kindNumeric && !e.constant, float || e.kind == "float"
		if e.kind = v.timeKind(e); e.kind == "" {
			continue
		}
		if of != "" && of != e.kind {
			v.reject("a list of different times")
		}
		of = e.kind
	}
	if numeric && float {
		v.reject("a list of numeric and floating point")
	}
}

// checkArrayConversion rejects ARRAY[...] if PostgreSQL makes an array of numeric and converts it to floating point
// when it compares a row. PostgreSQL chooses the array's type before it considers the left operand. Constants with
// decimals beside integers give an array of numeric.
func (v *leakChecker) checkArrayConversion(left value, elements []value) {
	numeric, float, other := false, false, false
	for _, e := range elements {
		numeric, float, other = numeric || e.kind == kindNumeric, float || e.kind == "float", other || !e.constant
	}
	if numeric && other && !float && left.kind == "float" {
		v.reject("an array of numeric that is compared with floating points")
	}
}

// timeKind returns the kind of a date or timestamp; "": the value is neither.
func (v *leakChecker) timeKind(e value) kind {
	switch k := e.kind.columnKind(); k {
	case "date", "timestamp", "timestamptz":
		return k
	}
	return ""
}

// checkSameKind checks that expressions are leak-safe and that their values have the same kind.
func (v *leakChecker) checkSameKind(what string, nodes []*sqltext.Node, context checkContext) value {
	var result kind
	for _, n := range nodes {
		e := v.checkExpr(n, context)
		switch {
		case v.reason != "" || e.kind == kindString:
		case !isSortable(e.kind), e.kind == kindParam:
			v.reject("%s over a type that is not leak-safe", what)
		case result == kindInt && (e.kind == kindNumeric || e.kind == "float"), result == "":
			result = v.resultKind(e)
		case result != v.resultKind(e) && !(e.kind == kindInt && (result == kindNumeric || result == "float")):
			// converting integers to numeric or floating point cannot fail
			v.reject("%s over different types", what)
		}
	}
	if result == "" {
		result = kindText
	}
	return value{kind: result}
}

// checkArray checks an ARRAY[...] of string literals, which PostgreSQL takes for texts, of parameters, or of integers.
func (v *leakChecker) checkArray(a *sqltext.A_ArrayExpr) value {
	var of kind
	for _, n := range a.Elements {
		k := kindText
		switch c := n.GetAConst(); {
		case n.GetParamRef() != nil:
			v.useParam(n.GetParamRef().Number, kindText)
		case c.GetIval() != nil:
			k = kindInt
		case c.GetSval() == nil:
			k = kindOpaque
		}
		if k == kindOpaque || of != "" && of != k {
			v.reject("an array that is not of constants")
			return value{}
		}
		of = k
	}
	if of == "" {
		v.reject("an array that is not of constants")
	}
	return value{kind: of + "[]"}
}

// isConstantArray tells whether an ARRAY[...] contains only constants.
func isConstantArray(a *sqltext.A_ArrayExpr) bool {
	return a != nil && !slices.ContainsFunc(a.Elements, func(n *sqltext.Node) bool { return n.GetAConst() == nil })
}

func (v *leakChecker) checkCase(c *sqltext.CaseExpr, context checkContext) value {
	var results []*sqltext.Node
	var arg value
	if c.Arg != nil { // the value after CASE is checked only once, because it may contain another CASE
		arg = v.checkExpr(c.Arg, context)
	}
	for _, n := range c.Args {
		whenClause := n.GetCaseWhen()
		if c.Arg != nil {
			v.lookUpLeakSafe("operator", "=", []value{arg, v.checkExpr(whenClause.GetExpr(), context)})
		} else {
			v.checkCondition(whenClause.GetExpr(), context)
		}
		results = append(results, whenClause.GetResult())
	}
	if c.Defresult != nil {
		results = append(results, c.Defresult)
	}
	return v.checkSameKind("CASE", results, context)
}

// checkCall checks that a function call is leak-safe.
func (v *leakChecker) checkCall(f *sqltext.FuncCall, context checkContext) value {
	schema, name, ok := qualifiedName(f.Funcname)
	switch {
	case !ok || schema != "" && schema != "pg_catalog":
		v.reject("function %s is not leak-safe", name)
		return value{}
	case schema == "" && !v.isCatalogFunction(name) && !v.isTrigramFunction(name):
		v.reject("function %s has overloads outside pg_catalog", name)
		return value{}
	case f.Over != nil, f.AggWithinGroup, f.FuncVariadic, len(f.AggOrder) > 0:
		v.reject("%s with OVER, WITHIN GROUP, VARIADIC or ORDER BY", name)
		return value{}
	}
	if _, ok := leakSafeList["aggregate "+name]; ok {
		return v.checkAggregateCall(name, f, context)
	}
	if f.AggStar || f.AggDistinct || f.AggFilter != nil {
		v.reject("function %s is not leak-safe", name)
		return value{}
	}
	var args []value
	for _, n := range f.Args {
		args = append(args, v.checkExpr(n, context))
	}
	v.leaky = v.leaky || slices.ContainsFunc(f.Args, namesColumn)
	if name == "extract" && f.Funcformat != sqltext.COERCE_SQL_SYNTAX {
		v.reject("function extract is not leak-safe")
	}
	result, _ := v.lookUpLeakSafe("function", name, args)
	return value{kind: result}
}

// isCatalogFunction tells whether a called name can only mean a function of pg_catalog. No other function may have the
// name, except aggregates of extensions, which take only the extension's own types.
func (v *leakChecker) isCatalogFunction(name string) bool {
	return !slices.ContainsFunc(v.snap.FunctionsNamed("", name),
		func(f *catalog.Function) bool { return f.Kind != 'a' || !isKnownExtension(f.Extension) })
}

// isTrigramFunction tells whether a name can only mean a function of pg_trgm.
func (v *leakChecker) isTrigramFunction(name string) bool {
	return !v.snap.HasCatalogFunction(name) &&
		!slices.ContainsFunc(v.snap.FunctionsNamed("", name),
			func(f *catalog.Function) bool { return f.Extension != "pg_trgm" })
}

func (v *leakChecker) checkAggregateCall(name string, f *sqltext.FuncCall, context checkContext) value {
	// The aggregate's arguments may not name outer columns: an aggregate of outer columns alone would belong to the outer
	// query.
	inner := checkContext{scope: &leakScope{items: context.scope.items}, mayNotRun: context.mayNotRun}
	if !context.aggregateAllowed {
		v.reject("aggregate %s here", name)
		return value{}
	}
	if f.AggFilter != nil {
		v.checkCondition(f.AggFilter, inner)
	}
	if f.AggStar {
		if name != "count" || len(f.Args) > 0 {
			v.reject("aggregate %s(*)", name)
		}
		return value{kind: kindInt}
	}
	var args []value
	for _, n := range f.Args {
		e := v.checkExpr(n, inner)
		if f.AggDistinct && !isSortable(v.resultKind(e)) {
			v.reject("%s(DISTINCT ...) over a type that is not leak-safe", name)
		}
		args = append(args, e)
	}
	if len(args) != 1 {
		v.reject("aggregate %s with %d arguments", name, len(args))
		return value{}
	}
	if args[0].isUntyped() {
		if len(v.snap.FunctionsNamed("", name)) > 0 {
			v.reject("aggregate %s of an extension's type, or not", name)
		}
		args[0] = value{kind: v.resultKind(args[0])}
	}
	result, _ := v.lookUpLeakSafe("aggregate", name, args)
	if (name == "sum" || name == "avg") && args[0].kind != kindInt && !v.hasFewDigits(f.Args[0], inner.scope) {
		v.noteOverflow(name, context)
	}
	return value{kind: result}
}

// noteOverflow notes that a sum may overflow. The sum is rejected if hidden rows may decide whether PostgreSQL computes
// it, or whether it overflows.
func (v *leakChecker) noteOverflow(what string, context checkContext) {
	if v.sumMayOverflow = true; context.mayNotRun {
		v.reject("%s, which may overflow, beside another table or in an expression", what)
	}
}

// hasFewDigits tells whether all values of a numeric expression have few digits. That is so for columns with a declared
// precision, and for values that an expression chooses from them or adds up.
func (v *leakChecker) hasFewDigits(n *sqltext.Node, scope *leakScope) bool {
	all := func(list []*sqltext.Node) bool {
		return !slices.ContainsFunc(list, func(n *sqltext.Node) bool { return !v.hasFewDigits(n, scope) })
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Const:
		return x.AConst.Isnull || x.AConst.GetIval() != nil
	case *sqltext.Node_ColumnRef:
		return v.columnHasFewDigits(x.ColumnRef, scope)
	case *sqltext.Node_CoalesceExpr:
		return all(x.CoalesceExpr.Args)
	case *sqltext.Node_MinMaxExpr:
		return all(x.MinMaxExpr.Args)
	case *sqltext.Node_CaseExpr:
		results := []*sqltext.Node{}
		if x.CaseExpr.Defresult != nil {
			results = append(results, x.CaseExpr.Defresult)
		}
		for _, whenClause := range x.CaseExpr.Args {
			results = append(results, whenClause.GetCaseWhen().GetResult())
		}
		return all(results)
	case *sqltext.Node_FuncCall:
		_, name, _ := qualifiedName(x.FuncCall.Funcname)
		return slices.Contains([]string{"sum", "avg", "min", "max"}, name) && all(x.FuncCall.Args)
	}
	return false
}

// columnHasFewDigits tells whether all columns that a name may mean have few digits.
func (v *leakChecker) columnHasFewDigits(c *sqltext.ColumnRef, s *leakScope) bool {
	name := c.Fields[len(c.Fields)-1].GetString_().GetSval()
	for ; s != nil; s = s.parent {
		found := false
		for _, item := range s.items {
			if len(c.Fields) > 1 && item.name != c.Fields[len(c.Fields)-2].GetString_().GetSval() {
				continue
			}
			for _, column := range item.columns {
				if column.name == name {
					if found = true; !column.fewDigits && column.kind != kindInt {
						return false
					}
				}
			}
		}
		if found {
			return true
		}
	}
	return false
}

// hasSubLink tells whether the conditions of a SELECT contain sub-selects, which PostgreSQL may convert to joins.
func hasSubLink(s *sqltext.SelectStmt) bool {
	found := false
	var visit func(*sqltext.Node)
	visit = func(n *sqltext.Node) {
		if found = found || n.GetSubLink() != nil; !found && n != nil {
			sqltext.EachChild(n, visit)
		}
	}
	visit(s.WhereClause)
	visit(s.HavingClause)
	return found
}

// checkSubLink checks EXISTS, IN (SELECT ...), and a scalar sub-select that always returns one row.
func (v *leakChecker) checkSubLink(s *sqltext.SubLink, context checkContext) value {
	query := s.GetSubselect().GetSelectStmt()
	inner := checkContext{scope: context.scope, mayNotRun: true}
	switch s.SubLinkType {
	case sqltext.EXISTS_SUBLINK:
		v.checkQuery(query, inner, false)
		return value{kind: kindBool}
	case sqltext.ANY_SUBLINK:
		left := v.checkExpr(s.Testexpr, context)
		columns := v.checkQuery(query, inner, false)
		if v.reason == "" && (len(columns) != 1 || len(s.OperName) > 0) {
			v.reject("ANY (SELECT ...) in this form")
			return value{}
		}
		if v.reason == "" {
			v.lookUpLeakSafe("operator", "=", []value{left, {kind: columns[0].kind}})
		}
		return value{kind: kindBool}
	case sqltext.EXPR_SUBLINK:
		columns := v.checkQuery(query, inner, false)
		if v.reason != "" {
			return value{}
		}
		if len(columns) != 1 || !returnsOneRow(query) {
			v.reject("a SELECT as a value, which may have several rows")
			return value{}
		}
		return value{kind: columns[0].kind}
	}
	v.reject("this form of sub-select")
	return value{}
}

// returnsOneRow tells whether a SELECT always returns exactly one row, because it aggregates without GROUP BY.
func returnsOneRow(s *sqltext.SelectStmt) bool {
	if s.Op != sqltext.SETOP_NONE || len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.TargetList) != 1 ||
		len(s.DistinctClause) > 0 {
		return false
	}
	_, name, _ := qualifiedName(s.TargetList[0].GetResTarget().GetVal().GetFuncCall().GetFuncname())
	return leakSafeList["aggregate "+name] != nil
}
