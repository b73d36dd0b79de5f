package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// These constants say how strongly PostgreSQL names a result column. A cast or a CASE around an expression may replace
// a weak name, but not a strong one.
const (
	nameNone = iota
	nameWeak
	nameStrong
)

// columnName returns the name that PostgreSQL gives to a result column (FigureColname of parse_target.c); "" if the
// text does not show it.
func columnName(t *sqltext.ResTarget) string {
	if t.Name != "" {
		return t.Name
	}
	name, _ := columnNameOf(t.GetVal())
	return name
}

func columnNameOf(n *sqltext.Node) (name string, survives int) {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		if fields := x.ColumnRef.Fields; len(fields) > 0 {
			return fields[len(fields)-1].GetString_().GetSval(), nameStrong
		}
	case *sqltext.Node_A_Indirection:
		parts := x.AIndirection.Indirection
		for i := len(parts) - 1; i >= 0; i-- {
			if parts[i].GetAStar() != nil {
				return "", nameStrong
			}
			if s := parts[i].GetString_(); s != nil {
				return s.GetSval(), nameStrong
			}
		}
		return columnNameOf(x.AIndirection.Arg)
	case *sqltext.Node_FuncCall:
		return lastNamePart(x.FuncCall.Funcname), nameStrong
	case *sqltext.Node_A_Expr:
		if x.AExpr.Kind == sqltext.AEXPR_NULLIF {
			return "nullif", nameStrong
		}
		return "?column?", nameNone
	case *sqltext.Node_TypeCast:
		if name, survives := columnNameOf(x.TypeCast.Arg); survives == nameStrong {
			return name, survives
		}
		return lastNamePart(x.TypeCast.TypeName.GetNames()), nameWeak
	case *sqltext.Node_CaseExpr:
		if x.CaseExpr.Defresult != nil {
			if name, survives := columnNameOf(x.CaseExpr.Defresult); survives == nameStrong {
				return name, survives
			}
		}
		return "case", nameWeak
	case *sqltext.Node_CollateClause:
		return columnNameOf(x.CollateClause.Arg)
	case *sqltext.Node_SubLink:
		return columnNameOfSubLink(x.SubLink)
	case *sqltext.Node_A_ArrayExpr:
		return "array", nameStrong
	case *sqltext.Node_CoalesceExpr:
		return "coalesce", nameStrong
	case *sqltext.Node_MinMaxExpr:
		if x.MinMaxExpr.Op == sqltext.IS_GREATEST {
			return "greatest", nameStrong
		}
		return "least", nameStrong
	case *sqltext.Node_A_Const, *sqltext.Node_ParamRef, *sqltext.Node_BoolExpr, *sqltext.Node_NullTest,
		*sqltext.Node_BooleanTest:
		return "?column?", nameNone
	}
	return "", nameStrong // the text does not show the name
}

// columnNameOfSubLink returns the name that PostgreSQL gives to the value of a sub-select: for a scalar sub-select, the
// name of its only column.
func columnNameOfSubLink(s *sqltext.SubLink) (name string, survives int) {
	switch s.SubLinkType {
	case sqltext.EXISTS_SUBLINK:
		return "exists", nameStrong
	case sqltext.ANY_SUBLINK, sqltext.ALL_SUBLINK:
		return "?column?", nameNone
	case sqltext.EXPR_SUBLINK:
		query := s.GetSubselect().GetSelectStmt()
		for query.GetLarg() != nil {
			query = query.Larg
		}
		if targets := query.GetTargetList(); len(targets) == 1 {
			return columnName(targets[0].GetResTarget()), nameStrong
		}
	}
	return "", nameStrong
}
