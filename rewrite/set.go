package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// variableSetStmt visits SET and RESET.
func (w *walker) variableSetStmt(v *sqltext.VariableSetStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("VariableSetStmt")
	if v.Kind != sqltext.VAR_RESET_ALL && v.Kind != sqltext.VAR_SET_MULTI && w.isRepresentedUserSetting(v.Name) {
		return w.setRepresentedUser(v, raw)
	}
	if v.Kind != sqltext.VAR_RESET_ALL && v.Kind != sqltext.VAR_SET_MULTI {
		if own, ok := w.clientSetting(v.Name); ok {
			return w.clientSet(v, own, raw)
		}
	}
	effect := verdict.Effect{Kind: verdict.EffectSet, Name: strings.ToLower(v.Name)}
	switch v.Kind {
	case sqltext.VAR_SET_VALUE:
		value, ok := w.settingValue(v.Args, isListSetting(v.Name))
		if !ok {
			w.refuse(badValueError(v.Name))
			break
		}
		if effect.Name == "search_path" && findsNoRelations(value) {
			w.pinSetting(v, raw, pathText(w.snap.SearchPath()))
			break
		}
		if effect.Name == clientEncoding && isSQLASCII(value) {
			w.pinSetting(v, raw, "'UTF8'")
			break
		}
		if effect.Name == roleSetting {
			if refusal := checkRole(value, w.isOwnRole); refusal != nil {
				w.refuse(refusal)
			} else if value != noRole {
				w.pinSetting(v, raw, "'"+noRole+"'")
			}
			break
		}
		_, _, refusal := CheckSetting(v.Name, value, "set", w.snap.SearchPath(), w.claims)
		if refusal == nil {
			refusal = CheckTimeout(v.Name, value, w.pol.Timeout())
		}
		if refusal != nil {
			w.refuse(refusal)
		}
		effect.SnapshotHold = snapshotHoldAfter(effect.Name, value)
		effect.Claim = w.claimOf(effect.Name, &verdict.Claim{Value: value, IsLocal: v.IsLocal})
	case sqltext.VAR_SET_DEFAULT, sqltext.VAR_RESET:
		// The setting returns to the value with which the connection began. pgconsent has chosen that value.
		if refusal := checkReset(v.Name, w.claims); refusal != nil {
			w.refuse(refusal)
		}
		effect.Claim = w.claimOf(effect.Name, &verdict.Claim{IsReset: true, IsLocal: v.IsLocal})
	case sqltext.VAR_SET_MULTI:
		switch v.Name {
		case "TRANSACTION", "SESSION CHARACTERISTICS":
			effect.Name = "transaction"
			effect.SnapshotHold = w.checkTransactionModes(v.Args)
			if effect.SnapshotHold != verdict.NoSnapshotHold && v.Name != "TRANSACTION" {
				effect.SnapshotHold = verdict.HoldForSession
			}
		default:
			w.refuse(refusalOf("VariableSetStmt(TRANSACTION SNAPSHOT)"))
		}
	case sqltext.VAR_RESET_ALL:
		effect.Kind, effect.ReadsRows, effect.CommandTag = verdict.EffectResetAll, true, "RESET"
		first, last := w.firstToken(raw), w.lastToken(raw)
		reset := verdict.ResetSettings
		if w.representedUser != nil {
			effect.Claim = &verdict.Claim{IsReset: true, NamesRepresentedUser: true}
			if userRewriter := w.representedUser.Initial(); userRewriter != "" {
				reset = verdict.ResetSettingsWithUser(userRewriter)
			}
		}
		w.replace(first, last.End, reset, func() { raw.Stmt = parseStatement(reset) })
	default:
		w.refuse(refusalOf("VariableSetStmt"))
	}
	return effect
}

// findsNoRelations tells whether a search path contains no schema with tables of the application. Clients that set such
// a path, such as postgres_fdw, write all names with their schemas, so the configured path works for them, too.
func findsNoRelations(path string) bool {
	names, ok := splitIdentifiers(path)
	return path == `""` || ok && slices.Equal(names, []string{"pg_catalog"})
}

// pinSetting replaces a SET of a pinned setting by a SET to the pinned value. The whole statement is replaced, because
// SQL has several forms, such as SET SCHEMA. text is the value as SQL writes it.
func (w *walker) pinSetting(v *sqltext.VariableSetStmt, raw *sqltext.RawStmt, text string) {
	scope := "SESSION"
	if v.IsLocal {
		scope = "LOCAL"
	}
	text = "SET " + scope + " " + strings.ToLower(v.Name) + " = " + text
	w.replace(w.firstToken(raw), w.lastToken(raw).End, text, func() { raw.Stmt = parseStatement(text) })
}

// claimOf returns the claim if the policy takes an attribute from the setting; nil for other settings.
func (w *walker) claimOf(name string, c *verdict.Claim) *verdict.Claim {
	if _, mapped := w.claims[name]; mapped {
		return c
	}
	return nil
}

// snapshotHoldAfter tells for how long statements share one snapshot after a SET: for the transaction, for the session,
// or not at all.
func snapshotHoldAfter(name, value string) verdict.SnapshotHold {
	switch {
	case !holdsSnapshot(value):
		return verdict.NoSnapshotHold
	case name == "transaction_isolation":
		return verdict.HoldForTransaction
	case name == "default_transaction_isolation":
		return verdict.HoldForSession
	}
	return verdict.NoSnapshotHold
}

// settingValue returns the value of a SET as PostgreSQL will store it. PostgreSQL joins the items of a list with
// commas.
func (w *walker) settingValue(args []*sqltext.Node, list bool) (string, bool) {
	var values []string
	for _, n := range args {
		// the value is an interval, as in SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE
		if cast := n.GetTypeCast(); cast != nil {
			w.countNode("TypeCast")
			w.countNode("TypeName")
			_, name, _ := qualifiedName(cast.GetTypeName().GetNames())
			for _, m := range cast.GetTypeName().GetTypmods() {
				if m.GetAConst() == nil {
					return "", false
				}
				w.countNode("A_Const")
			}
			if name != "interval" || len(args) > 1 {
				return "", false
			}
			n = cast.Arg
		}
		c := n.GetAConst()
		if c == nil || c.Isnull {
			return "", false
		}
		w.countNode("A_Const")
		switch val := c.Val.(type) {
		case *sqltext.A_Const_Sval:
			if list {
				values = append(values, `"`+strings.ReplaceAll(val.Sval.Sval, `"`, `""`)+`"`)
			} else {
				values = append(values, val.Sval.Sval)
			}
		case *sqltext.A_Const_Ival:
			values = append(values, strconv.Itoa(int(val.Ival.Ival)))
		case *sqltext.A_Const_Fval:
			values = append(values, val.Fval.Fval)
		default:
			return "", false
		}
	}
	return strings.Join(values, ", "), len(values) > 0
}

// variableShowStmt visits SHOW.
func (w *walker) variableShowStmt(v *sqltext.VariableShowStmt) {
	w.countNode("VariableShowStmt")
	if strings.EqualFold(v.Name, "all") {
		w.refuse(refusalOf("VariableShowStmt(all)"))
		return
	}
	if refusal := checkShow(v.Name, w.claims); refusal != nil {
		w.refuse(refusal)
	}
}

func badValueError(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonSetting, "invalid value for parameter %q",
		strings.ToLower(name)).
		WithHint("Agents may set it to plain values only.")
}
