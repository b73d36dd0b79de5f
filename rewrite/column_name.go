package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// How strongly PostgreSQL names a column: a weak name gives way to that of a cast or a CASE around it.
const (
	nameNone = iota
	nameWeak
	nameFirm
)

// columnName is the name that PostgreSQL gives a result column (FigureColname of parse_target.c); "" where the text
// does not show it.
func columnName(t *sqltext.ResTarget) string {
	if t.Name != "" {
		return t.Name
	}
	name, _ := figureColumnName(t.GetVal())
	return name
}

func figureColumnName(n *sqltext.Node) (name string, survives int) {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		if fields := x.ColumnRef.Fields; len(fields) > 0 {
			return fields[len(fields)-1].GetString_().GetSval(), nameFirm
		}
	case *sqltext.Node_A_Indirection:
		parts := x.AIndirection.Indirection
		for i := len(parts) - 1; i >= 0; i-- {
			if parts[i].GetAStar() != nil {
				return "", nameFirm
			}
			if s := parts[i].GetString_(); s != nil {
				return s.GetSval(), nameFirm
			}
		}
		return figureColumnName(x.AIndirection.Arg)
	case *sqltext.Node_FuncCall:
		return lastName(x.FuncCall.Funcname), nameFirm
	case *sqltext.Node_A_Expr:
		if x.AExpr.Kind == sqltext.AEXPR_NULLIF {
			return "nullif", nameFirm
		}
		return "?column?", nameNone
	case *sqltext.Node_TypeCast:
		if name, survives := figureColumnName(x.TypeCast.Arg); survives == nameFirm {
			return name, survives
		}
		return lastName(x.TypeCast.TypeName.GetNames()), nameWeak
	case *sqltext.Node_CaseExpr:
		if x.CaseExpr.Defresult != nil {
			if name, survives := figureColumnName(x.CaseExpr.Defresult); survives == nameFirm {
				return name, survives
			}
		}
		return "case", nameWeak
	case *sqltext.Node_CollateClause:
		return figureColumnName(x.CollateClause.Arg)
	case *sqltext.Node_SubLink:
		return figureSubLinkName(x.SubLink)
	case *sqltext.Node_A_ArrayExpr:
		return "array", nameFirm
	case *sqltext.Node_CoalesceExpr:
		return "coalesce", nameFirm
	case *sqltext.Node_MinMaxExpr:
		if x.MinMaxExpr.Op == sqltext.IS_GREATEST {
			return "greatest", nameFirm
		}
		return "least", nameFirm
	case *sqltext.Node_A_Const, *sqltext.Node_ParamRef, *sqltext.Node_BoolExpr, *sqltext.Node_NullTest,
		*sqltext.Node_BooleanTest:
		return "?column?", nameNone
	}
	return "", nameFirm // the name is not known
}

// figureSubLinkName is the name of a sub-select's value: that of its one column.
func figureSubLinkName(s *sqltext.SubLink) (name string, survives int) {
	switch s.SubLinkType {
	case sqltext.EXISTS_SUBLINK:
		return "exists", nameFirm
	case sqltext.ANY_SUBLINK, sqltext.ALL_SUBLINK:
		return "?column?", nameNone
	case sqltext.EXPR_SUBLINK:
		query := s.GetSubselect().GetSelectStmt()
		for query.GetLarg() != nil {
			query = query.Larg
		}
		if targets := query.GetTargetList(); len(targets) == 1 {
			return columnName(targets[0].GetResTarget()), nameFirm
		}
	}
	return "", nameFirm
}
