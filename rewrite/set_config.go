package rewrite

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// isPlainSetConfig tells whether a call of set_config means the same as a SET. Its arguments are literals, or
// parameters whose values are checked when they are bound. Its SELECT reads nothing, as Django's for the time zone, or
// one setting by its name, as pgAdmin's for bytea_output. Only the session heeds the setting.
//
// In a query over rows the call would tell for which rows it ran.
func (w *walker) isPlainSetConfig(f *sqltext.FuncCall) (bool, *sqlstate.Error) {
	if len(f.Args) != 3 || f.AggFilter != nil || f.Over != nil || f.AggStar || f.AggDistinct || len(f.AggOrder) > 0 ||
		f.FuncVariadic {
		return false, nil
	}
	name, hasName := w.settingArgument(f.Args[0])
	value, isKnown := w.settingArgument(f.Args[1])
	local := f.Args[2].GetAConst()
	if !hasName || !isKnown || (local == nil || local.GetBoolval() == nil) && w.boundParameter(f.Args[2]) == 0 ||
		w.scope == nil ||
		w.scope.query == nil || w.scope.parent != nil ||
		len(w.scope.items) > 0 && !setsExistingSetting(w.scope.query) {
		return false, nil
	}
	if name.parameter == 0 && w.isRepresentedUserSetting(name.text) {
		return w.setConfigRepresentedUser(f, value)
	}
	if name.parameter == 0 {
		if ok, refusal := w.clientSetConfig(f, name.text, value); ok || refusal != nil {
			return ok, refusal
		}
	}
	if name.parameter != 0 || value.parameter != 0 {
		w.checkSettingValues(name, value)
		return name.parameter != 0 || isPlainSetting(name.text, w.claims, w.pol.Timeout()), nil
	}
	if !isPlainSetting(name.text, w.claims, w.pol.Timeout()) {
		return false, nil
	}
	_, _, refusal := CheckSetting(name.text, value.text, "set", w.snap.SearchPath(), w.claims)
	return refusal == nil, refusal
}

// isPlainSetting tells whether set_config may set a setting. A setting that claims an attribute or makes statements
// share a snapshot needs SET, which the proxy follows. So does plan_cache_mode: the proxy sets it before a hardened
// statement, and a call could change it for what that statement runs.
func isPlainSetting(name string, claims map[string]string, timeout time.Duration) bool {
	name = strings.ToLower(name)
	_, mapped := claims[name]
	return !mapped && !strings.Contains(name, "transaction") && name != "plan_cache_mode" &&
		(name != "statement_timeout" || timeout == 0)
}

// settingArgument is an argument of set_config: a text, or the number of a parameter.
type settingArgument struct {
	text      string
	parameter int32 // the number of the parameter; 0: the argument is the text
}

func (w *walker) settingArgument(n *sqltext.Node) (settingArgument, bool) {
	if text, ok := constantString(n); ok {
		return settingArgument{text: text}, true
	}
	number := w.boundParameter(n)
	if number != 0 {
		w.checkedParams[number]++
	}
	return settingArgument{parameter: number}, number != 0
}

// checkParamUses refuses a parameter that is checked when it is bound and also stands at another place. PostgreSQL
// could give it another type there, such as name, and so give the setting another text than the checked one.
func (w *walker) checkParamUses(tree *sqltext.ParseResult) {
	if len(w.checkedParams) == 0 {
		return
	}
	uses := map[int32]int{}
	sqltext.Walk(tree, func(m proto.Message) bool {
		if p, ok := m.(*sqltext.ParamRef); ok {
			uses[p.Number]++
		}
		return true
	})
	for number, n := range w.checkedParams {
		if uses[number] != n {
			w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting,
				"parameter $%d of set_config or pg_notify must stand nowhere else", number).
				WithHint("Send the value twice, as two parameters."))
			return
		}
	}
}

// boundParameter returns the number of a parameter whose value the proxy sees when it is bound, or 0. The proxy does
// not see the values that SQL gives to a prepared statement.
func (w *walker) boundParameter(n *sqltext.Node) int32 {
	if cast := n.GetTypeCast(); cast != nil {
		if _, name, ok := qualifiedName(cast.GetTypeName().GetNames()); !ok || name != "text" && name != "bool" ||
			len(cast.GetTypeName().GetArrayBounds()) > 0 {
			return 0
		}
		n = cast.Arg
	}
	if !w.extended || w.runsLater {
		return 0
	}
	return n.GetParamRef().GetNumber()
}

// CheckValues refuses values of parameters that settings and channels must not get. The values begin with $1; nil is
// NULL. isOwnRole tells whether a name is that of the session's own role.
func (r *Result) CheckValues(values [][]byte, isOwnRole func(name string) bool) *sqlstate.Error {
	if r.checkValues == nil {
		return nil
	}
	return r.checkValues(values, isOwnRole)
}

// valueCheck checks values of parameters, for a session whose own role has the names for which isOwnRole is true.
type valueCheck func(values [][]byte, isOwnRole func(name string) bool) *sqlstate.Error

// valueCheck returns the check of the parameter values that settings and channels get at Bind; nil if they get none.
func (w *walker) valueCheck() valueCheck {
	checks := w.valueChecks
	if len(checks) == 0 {
		return nil
	}
	return func(values [][]byte, isOwnRole func(name string) bool) *sqlstate.Error {
		for _, check := range checks {
			if refusal := check(values, isOwnRole); refusal != nil {
				return refusal
			}
		}
		return nil
	}
}

// checkSettingValues notes the check of the values that a call of set_config gets at Bind.
func (w *walker) checkSettingValues(nameOf, valueOf settingArgument) {
	claims, path, timeout := w.claims, w.snap.SearchPath(), w.pol.Timeout()
	w.valueChecks = append(w.valueChecks, func(values [][]byte, _ func(name string) bool) *sqlstate.Error {
		name, hasName := nameOf.textWith(values)
		value, isKnown := valueOf.textWith(values)
		switch {
		case !hasName || !isPlainSetting(name, claims, timeout):
			return notSettableError(name)
		case !isKnown:
			return badValueError(name)
		}
		_, _, refusal := CheckSetting(name, value, "set", path, claims)
		return refusal
	})
}

// textWith returns the text of the argument for these values of parameters; ok is false if it is NULL.
func (a settingArgument) textWith(values [][]byte) (text string, ok bool) {
	switch i := int(a.parameter) - 1; {
	case a.parameter == 0:
		return a.text, true
	case i < len(values) && values[i] != nil:
		return string(values[i]), true
	}
	return "", false
}

// settingTypes are the types that the parameters of set_config may have. They are types whose binary format is the
// text, bool, and 0, by which the server infers the type.
var settingTypes = []uint32{0, pgtype.BoolOID, pgtype.TextOID, pgtype.VarcharOID, pgtype.UnknownOID}

// setsExistingSetting tells whether a SELECT does nothing but call set_config for a setting with a given name, if that
// setting exists. PostgreSQL's own settings are the same for everybody.
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

// showAllSettingsCall returns the call of pg_show_all_settings that is the whole FROM of a SELECT, or nil.
func showAllSettingsCall(s *sqltext.SelectStmt) *sqltext.FuncCall {
	if len(s.GetFromClause()) != 1 {
		return nil
	}
	function := s.FromClause[0].GetRangeFunction()
	if function == nil || function.Alias != nil || function.Lateral || function.Ordinality || function.IsRowsfrom ||
		len(function.Coldeflist) > 0 || len(function.Functions) != 1 {
		return nil
	}
	parts := function.Functions[0].GetList().GetItems()
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

// isCatalogRelation tells whether an item of FROM is the named relation of pg_catalog, without an alias.
func isCatalogRelation(v *sqltext.RangeVar, name string) bool {
	return v != nil && v.Relname == name && (v.Schemaname == "" || v.Schemaname == "pg_catalog") &&
		v.Catalogname == "" && v.Alias == nil && v.Inh
}
