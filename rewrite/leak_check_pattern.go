package rewrite

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// maxPatternParts bounds how many parts a joined pattern may have. Each part may have wildcards, and a parameter may
// have several.
const maxPatternParts = 10

// checkJoinedPattern checks a pattern of LIKE that an expression joins from constants and parameters, such as '%' || $1
// || '%' or lower($1). A pattern fails only if it ends in its escape character, which no constant part contains. So the
// proxy checks the values of the parameters.
func (v *leakChecker) checkJoinedPattern(n *sqltext.Node, context checkContext) (value, bool) {
	var params []int32
	parts, ok := v.patternParts(n, nil)
	// a single constant is checked elsewhere; concat() without arguments has no parts
	if !ok || len(parts) == 0 || n.GetAConst() != nil {
		return value{}, false
	}
	for _, part := range parts {
		switch e := v.checkExpr(part, context); {
		case part.GetAConst() != nil:
		case e.kind == kindParam:
			params = append(params, e.param)
			v.useParam(e.param, kindText)
		case e.kind == kindText:
			params = append(params, part.GetTypeCast().GetArg().GetParamRef().GetNumber())
		default:
			v.reject("a pattern that is made of other types")
		}
	}
	form := verdict.PatternPart
	if last := parts[len(parts)-1].GetAConst(); last.GetSval().GetSval() == "" {
		form = verdict.Pattern
	}
	for _, number := range params {
		v.requireForm(number, form)
	}
	wildcards := 0
	for _, part := range parts {
		wildcards += strings.Count(part.GetAConst().GetSval().GetSval(), "%")
	}
	if len(parts) > maxPatternParts || wildcards > maxWildcards {
		v.reject("a pattern of many parts")
	}
	return value{kind: kindText, constant: true}, true
}

// patternParts appends to parts the constants and parameters that an expression joins into one text. The result is
// false for any other expression.
func (v *leakChecker) patternParts(n *sqltext.Node, parts []*sqltext.Node) ([]*sqltext.Node, bool) {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Const:
		return append(parts, n), x.AConst.GetSval() != nil && !strings.Contains(x.AConst.GetSval().GetSval(), `\`)
	case *sqltext.Node_ParamRef:
		return append(parts, n), true
	case *sqltext.Node_TypeCast:
		return append(parts, n), x.TypeCast.GetArg().GetParamRef() != nil
	case *sqltext.Node_A_Expr:
		schema, name, ok := qualifiedName(x.AExpr.Name)
		if !ok || schema != "" && schema != "pg_catalog" || name != "||" || x.AExpr.Kind != sqltext.AEXPR_OP ||
			v.hasForeignConcat() {
			return nil, false
		}
		if parts, ok = v.patternParts(x.AExpr.Lexpr, parts); !ok {
			return nil, false
		}
		return v.patternParts(x.AExpr.Rexpr, parts)
	case *sqltext.Node_FuncCall:
		f := x.FuncCall
		schema, name, ok := qualifiedName(f.Funcname)
		if !ok || schema != "" && schema != "pg_catalog" || schema == "" && !v.isCatalogFunction(name) ||
			f.Over != nil || f.AggStar || f.AggDistinct || f.AggFilter != nil || f.AggWithinGroup || f.FuncVariadic ||
			len(f.AggOrder) > 0 {
			return nil, false
		}
		switch {
		case (name == "lower" || name == "upper") && len(f.Args) == 1:
		// ESCAPE '' means that there is no escape character
		case name == "like_escape" && len(f.Args) == 2 && isEmptyString(f.Args[1]):
			return v.patternParts(f.Args[0], parts)
		case name == "concat":
		default:
			return nil, false
		}
		for _, arg := range f.Args {
			if parts, ok = v.patternParts(arg, parts); !ok {
				return nil, false
			}
		}
		return parts, true
	}
	return nil, false
}

// isEmptyString tells whether an expression is an empty string literal.
func isEmptyString(n *sqltext.Node) bool {
	s := n.GetAConst().GetSval()
	return s != nil && s.GetSval() == ""
}

// similarToRegexp returns the regular expression to which PostgreSQL converts a constant pattern of SIMILAR TO. It
// rejects a pattern with a backslash, double quotes, brackets or braces, or with ESCAPE.
func (v *leakChecker) similarToRegexp(n *sqltext.Node) value {
	f := n.GetFuncCall()
	if f == nil || len(f.Args) != 1 || f.Args[0].GetAConst().GetSval() == nil {
		v.reject("SIMILAR TO what is no constant, or with ESCAPE")
		return value{}
	}
	pattern := f.Args[0].GetAConst().GetSval().GetSval()
	if strings.ContainsAny(pattern, `\"[]{}`) {
		v.reject("a pattern of SIMILAR TO that is not leak-safe")
	}
	regexp := strings.NewReplacer("%", ".*", "_", ".", ".", `\.`, "^", `\^`, "$", `\$`, "(", "(?:").Replace(pattern)
	return value{kind: kindText, constant: true, text: "(?:" + regexp + ")"}
}
