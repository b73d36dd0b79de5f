package rewrite

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// isPlainSetConfig tells whether a call of set_config means the same as a SET. Its arguments must be literals, or
// parameters whose values the proxy checks when the client binds them. Its SELECT must have no FROM, like Django's for
// the time zone, or read one setting by its name, like pgAdmin's for bytea_output.
//
// In a query over rows, the setting would tell for which rows PostgreSQL has run the call.
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

// isPlainSetting tells whether set_config may set a setting. The proxy must notice settings that claim an attribute or
// make statements share a snapshot, so these need SET. plan_cache_mode needs SET, too: the proxy sets it before a
// hardened statement, and a call could change it for statements that run inside.
func isPlainSetting(name string, claims map[string]string, timeout time.Duration) bool {
	name = strings.ToLower(name)
	_, mapped := claims[name]
	return !mapped && !strings.Contains(name, "transaction") && name != "plan_cache_mode" &&
		(name != "statement_timeout" || timeout == 0)
}

// settingArgument is an argument of set_config: a text or a parameter.
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

// checkParamUses refuses a text that uses a parameter both as an argument of set_config or pg_notify and elsewhere.
// Elsewhere PostgreSQL could give the parameter another type, such as name, and so convert the value that the proxy has
// checked to another text.
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

// boundParameter returns the number of a parameter whose value the proxy sees when the client binds it, or 0. The proxy
// does not see the values in an EXECUTE of SQL.
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

// CheckValues refuses values of parameters that settings and channels must not get. values[0] is the value of $1; nil
// means NULL. isOwnRole tells whether a name is a name of the session's own role.
func (r *Result) CheckValues(values [][]byte, isOwnRole func(name string) bool) *sqlstate.Error {
	if r.checkValues == nil {
		return nil
	}
	return r.checkValues(values, isOwnRole)
}

// valueCheck is a check of the values of parameters. isOwnRole tells whether a name is a name of the session's own
// role.
type valueCheck func(values [][]byte, isOwnRole func(name string) bool) *sqlstate.Error

// valueCheck returns the check of all parameter values that settings and channels get when the client binds them; nil
// if there are none.
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

// checkSettingValues notes that the proxy must check the parameters in a call of set_config when the client binds them.
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

// textWith returns the text of the argument, given the values of the parameters. ok is false if the argument is NULL.
func (a settingArgument) textWith(values [][]byte) (text string, ok bool) {
	switch i := int(a.parameter) - 1; {
	case a.parameter == 0:
		return a.text, true
	case i < len(values) && values[i] != nil:
		return string(values[i]), true
	}
	return "", false
}

// settingTypes are the OIDs of types that parameters of set_config may have: types whose binary format is the text
// itself, and bool. 0 means that PostgreSQL infers the type.
var settingTypes = []uint32{0, pgtype.BoolOID, pgtype.TextOID, pgtype.VarcharOID, pgtype.UnknownOID}

// setsExistingSetting tells whether a SELECT only calls set_config, for one setting of PostgreSQL that it reads by
// name. Which settings exist in PostgreSQL tells nothing about hidden rows.
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

// showAllSettingsCall returns the call of pg_show_all_settings if a SELECT has nothing else in FROM, or nil.
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

// isCatalogRelation tells whether an item of FROM is the relation of pg_catalog with this name, without an alias.
func isCatalogRelation(v *sqltext.RangeVar, name string) bool {
	return v != nil && v.Relname == name && (v.Schemaname == "" || v.Schemaname == "pg_catalog") &&
		v.Catalogname == "" && v.Alias == nil && v.Inh
}
