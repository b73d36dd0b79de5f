package rewrite

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// RepresentedUser describes how a session says for which user it acts: it sets Setting. The rewriter replaces that
// setting in the text by [verdict.RepresentedUserSetting], with a signed value. So PostgreSQL treats the value like the
// client's own SET: the value ends with the transaction, or with a savepoint that is rolled back.
type RepresentedUser struct {
	Setting string // the setting by which clients name the user, in lower case

	// Initial returns the value that [verdict.RepresentedUserSetting] had when the session began; "": the session acted
	// for nobody. The rewriter calls it for RESET.
	Initial func() string

	// Replace returns the value of [verdict.RepresentedUserSetting] for a value of Setting, or a refusal. The rewriter
	// calls it for values that stand in the text.
	Replace func(value string) (string, *sqlstate.Error)
}

// RepresentedUserParameter is a parameter of a text whose value names the user for whom the session acts.
type RepresentedUserParameter struct {
	Number int32 // the number of the parameter; 0: there is none
	Local  bool  // the value applies until the transaction ends
}

// WithRepresentedUser returns a rewriter for one session that may act for users. The signed values in its texts are for
// that session alone.
func (r *Rewriter) WithRepresentedUser(a *RepresentedUser) *Rewriter {
	changed := *r
	changed.representedUser = a
	return &changed
}

// isRepresentedUserSetting tells whether a setting is the one that names the user for whom the session acts.
func (w *walker) isRepresentedUserSetting(name string) bool {
	return w.representedUser != nil && strings.EqualFold(name, w.representedUser.Setting)
}

// setRepresentedUser rewrites SET and RESET of the setting that names the user for whom the session acts.
func (w *walker) setRepresentedUser(v *sqltext.VariableSetStmt, raw *sqltext.RawStmt) verdict.Effect {
	effect := verdict.Effect{Kind: verdict.EffectSet, Name: w.representedUser.Setting}
	signedUser := ""
	switch v.Kind {
	case sqltext.VAR_SET_VALUE:
		value, ok := w.settingValue(v.Args, false)
		if !ok {
			w.refuse(badValueError(w.representedUser.Setting))
			return effect
		}
		var refusal *sqlstate.Error
		if signedUser, refusal = w.representedUser.Replace(value); refusal != nil {
			w.refuse(refusal)
			return effect
		}
		effect.Claim = &verdict.Claim{Value: signedUser, IsLocal: v.IsLocal, NamesRepresentedUser: true}
	case sqltext.VAR_SET_DEFAULT, sqltext.VAR_RESET:
		if v.Kind == sqltext.VAR_RESET {
			effect.CommandTag = "RESET"
		}
		signedUser = w.representedUser.Initial()
		effect.Claim = &verdict.Claim{IsReset: true, IsLocal: v.IsLocal, NamesRepresentedUser: true}
	default:
		w.refuse(refusalOf("VariableSetStmt"))
		return effect
	}
	scope := "SESSION"
	if v.IsLocal {
		scope = "LOCAL"
	}
	text := "SET " + scope + " " + verdict.RepresentedUserSetting + " = " + catalog.QuoteLiteral(signedUser)
	first, last := w.firstToken(raw), w.lastToken(raw)
	w.replace(first, last.End, text, func() { raw.Stmt = parseStatement(text) })
	return effect
}

// setConfigRepresentedUser rewrites a call of set_config that names the user for whom the session acts. The SELECT must
// consist of calls only, and the value must be a literal or a parameter. The result of the call is empty, since the
// client must not see the signed value. ok is false if the call is refused.
func (w *walker) setConfigRepresentedUser(f *sqltext.FuncCall, value settingArgument) (ok bool,
	refusal *sqlstate.Error) {
	local := f.Args[2].GetAConst()
	query := w.scope.query
	if local.GetBoolval() == nil || w.runsLater || w.plainSelect == nil || query != w.plainSelect ||
		!isSelectOfCalls(query, f) ||
		w.userClaimOfSelect != nil {
		return false, representedUserCallError(w.representedUser.Setting)
	}
	w.userClaimOfSelect = &verdict.Claim{IsLocal: local.GetBoolval().GetBoolval(), NamesRepresentedUser: true}
	if value.parameter != 0 {
		w.representedUserParameter = RepresentedUserParameter{Number: value.parameter, Local: w.userClaimOfSelect.IsLocal}
		return true, nil
	}
	signedUser, refusal := w.representedUser.Replace(value.text)
	if refusal != nil {
		return false, refusal
	}
	w.userClaimOfSelect.Value = signedUser
	constant := f.Args[1]
	if cast := constant.GetTypeCast(); cast != nil {
		constant = cast.Arg
	}
	tokenIndex := w.source.TokenAt(constant.GetAConst().GetLocation())
	if tokenIndex < 0 {
		return false, badValueError(w.representedUser.Setting)
	}
	token := w.source.Tokens[tokenIndex]
	w.replace(token.Start, token.End, catalog.QuoteLiteral(signedUser), func() {
		constant.GetAConst().Val = &sqltext.A_Const_Sval{Sval: &sqltext.String{Sval: signedUser}}
	})
	return true, nil
}

// representedUserFunction is the function that the rewriter calls instead of set_config, if the call names the user for
// whom the session acts. Its result column has the same name.
var representedUserFunction = catalog.Name{Schema: "pgconsent_signed", Name: "set_config"}

// isSelectOfCalls tells whether a SELECT consists of function calls only, and one of them is the given call. The SELECT
// has no FROM, no conditions and no other clauses.
func isSelectOfCalls(s *sqltext.SelectStmt, call *sqltext.FuncCall) (found bool) {
	if s.WithClause != nil || s.Op != sqltext.SETOP_NONE || s.IntoClause != nil || len(s.ValuesLists) > 0 ||
		len(s.FromClause)+len(s.DistinctClause)+len(s.GroupClause)+len(s.WindowClause)+len(s.SortClause)+len(s.LockingClause) > 0 ||
		s.WhereClause != nil || s.HavingClause != nil || s.LimitCount != nil || s.LimitOffset != nil {
		return false
	}
	for _, n := range s.TargetList {
		if n.GetResTarget().GetVal().GetFuncCall() == nil || len(n.GetResTarget().GetIndirection()) > 0 {
			return false
		}
		found = found || n.GetResTarget().GetVal().GetFuncCall() == call
	}
	return found
}

func representedUserCallError(setting string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting,
		"set_config of %q must stand alone in a SELECT", setting).
		WithHint("Write SELECT set_config('%s', $1, true), once in a statement, with true or false as the third argument; or SET LOCAL.",
			setting)
}
