package rewrite

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// isPlainSetConfig tells whether a call of set_config is a SET in other words. Its arguments are literals. Its SELECT
// reads nothing, as Django's for the time zone, or one setting by its name, as pgAdmin's for bytea_output. Only the
// session heeds the setting.
//
// Beside rows the call would tell for which rows it ran. A setting that claims an attribute or holds a snapshot needs
// SET, which the proxy follows. So does plan_cache_mode: the proxy sets it before a hardened statement, and a call
// could change it for what the statement runs.
func (w *walker) isPlainSetConfig(f *sqltext.FuncCall) (bool, *sqlstate.Error) {
	if len(f.Args) != 3 || f.AggFilter != nil || f.Over != nil || f.AggStar || f.AggDistinct || len(f.AggOrder) > 0 ||
		f.FuncVariadic {
		return false, nil
	}
	name, named := constantString(f.Args[0])
	value, given := constantString(f.Args[1])
	local := f.Args[2].GetAConst()
	if !named || !given || local == nil || local.GetBoolval() == nil || w.scope == nil || w.scope.query == nil ||
		w.scope.parent != nil ||
		len(w.scope.items) > 0 && !setsExistingSetting(w.scope.query) {
		return false, nil
	}
	name = strings.ToLower(name)
	if _, mapped := w.claims[name]; mapped || strings.Contains(name, "transaction") || name == "plan_cache_mode" ||
		name == "statement_timeout" && w.pol.Timeout() > 0 {
		return false, nil
	}
	if _, _, refused := CheckSetting(name, value, "set", w.snap.SearchPath(), w.claims); refused != nil {
		return false, refused
	}
	return true, nil
}

// setsExistingSetting tells whether a SELECT only calls set_config, and does so if a setting of a given name exists.
// PostgreSQL's own settings are the same for everybody.
func setsExistingSetting(s *sqltext.SelectStmt) bool {
	if s.WithClause != nil || s.Op != sqltext.SETOP_NONE || len(s.FromClause) != 1 ||
		len(s.DistinctClause)+len(s.GroupClause)+len(s.WindowClause)+len(s.SortClause)+len(s.LockingClause) > 0 ||
		s.HavingClause != nil || s.LimitCount != nil || s.LimitOffset != nil {
		return false
	}
	for _, n := range s.TargetList {
		if schema, name, ok := qualifiedName(n.GetResTarget().GetVal().GetFuncCall().GetFuncname()); !ok ||
			name != "set_config" || schema != "" && schema != "pg_catalog" {
			return false
		}
	}
	if showAllSettingsCall(s) == nil && !isCatalogRelation(s.FromClause[0].GetRangeVar(), "pg_settings") {
		return false
	}
	where := s.WhereClause.GetAExpr()
	if where == nil || where.Kind != sqltext.AEXPR_OP || len(where.Name) != 1 ||
		where.Name[0].GetString_().GetSval() != "=" {
		return false
	}
	column := where.Lexpr.GetColumnRef().GetFields()
	name, ok := constantString(where.Rexpr)
	return ok && !strings.Contains(name, ".") && len(column) == 1 && column[0].GetString_().GetSval() == "name"
}

// showAllSettingsCall is a call of pg_show_all_settings that is the whole FROM of a SELECT, else nil.
func showAllSettingsCall(s *sqltext.SelectStmt) *sqltext.FuncCall {
	if len(s.GetFromClause()) != 1 {
		return nil
	}
	from := s.FromClause[0].GetRangeFunction()
	if from == nil || from.Alias != nil || from.Lateral || from.Ordinality || from.IsRowsfrom ||
		len(from.Coldeflist) > 0 || len(from.Functions) != 1 {
		return nil
	}
	parts := from.Functions[0].GetList().GetItems()
	if len(parts) == 0 || len(parts) == 2 && parts[1].GetNode() != nil {
		return nil
	}
	call := parts[0].GetFuncCall()
	if schema, name, ok := qualifiedName(call.GetFuncname()); !ok || name != "pg_show_all_settings" ||
		schema != "" && schema != "pg_catalog" || len(call.Args) > 0 {
		return nil
	}
	return call
}

// isCatalogRelation tells whether FROM names this relation of pg_catalog, without an alias.
func isCatalogRelation(v *sqltext.RangeVar, name string) bool {
	return v != nil && v.Relname == name && (v.Schemaname == "" || v.Schemaname == "pg_catalog") &&
		v.Catalogname == "" && v.Alias == nil && v.Inh
}
