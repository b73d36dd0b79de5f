package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// PostgREST sets some settings in each transaction, which describe the request and which functions of the application
// may read. If an agent sets one of them, the rewriter sets another name instead. The agent reads back what it has set,
// and no rule, function or trigger of the owner sees it. See docs/decisions/0114.

// clientSettings are the settings that the rewriter replaces by settings of another name, which only the agent itself
// reads.
var clientSettings = []string{"request.jwt.claims", "request.method", "request.path", "request.headers",
	"request.cookies"}

const (
	clientPrefix   = "pgconsent.client." // begins the names of the settings that the rewriter sets instead
	roleSetting    = "role"
	noRole         = "none"
	maxClientValue = 64 << 10 // the largest value of such a setting, in bytes
)

// clientSetting returns the name that the rewriter writes instead of the name of a setting that only clients read.
func (w *walker) clientSetting(name string) (agentSetting string, ok bool) {
	name = strings.ToLower(name)
	if _, mapped := w.claims[name]; mapped || w.isRepresentedUserSetting(name) || !slices.Contains(clientSettings, name) {
		return "", false
	}
	return clientPrefix + name, true
}

// checkClientSetting checks the value of a setting that only clients read.
func checkClientSetting(name, value string) *sqlstate.Error {
	if len(value) > maxClientValue {
		return badValueError(name).WithHint("It may have 64 KiB.")
	}
	return nil
}

// checkRole checks the name in SET ROLE: only none and the session's own role are accepted.
func checkRole(name string, isOwnRole func(name string) bool) *sqlstate.Error {
	if name == noRole || isOwnRole != nil && isOwnRole(name) {
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
		"permission denied to set role %q", name).
		WithHint("A session of an agent has one role. It may be set to none, or to the agent's own name, " +
			"which changes nothing.")
}

// WithOwnRole returns a rewriter for the sessions of one agent. isOwnRole tells whether a name is a name of the agent's
// own role, and is called only with names that stand in the text.
func (r *Rewriter) WithOwnRole(isOwnRole func(name string) bool) *Rewriter {
	changed := *r
	changed.isOwnRole = isOwnRole
	return &changed
}

// clientSetConfig rewrites a call of set_config for a setting that only clients read, or for the session's own role.
// The call then sets another setting, which nobody else reads. ok is false for other settings.
func (w *walker) clientSetConfig(f *sqltext.FuncCall, name string, value settingArgument) (ok bool,
	refusal *sqlstate.Error) {
	own, isClient := w.clientSetting(name)
	switch {
	case isClient:
	case strings.EqualFold(name, roleSetting):
		own = clientPrefix + roleSetting
	default:
		return false, nil
	}
	check := func(text string, isOwnRole func(name string) bool) *sqlstate.Error {
		if !isClient {
			return checkRole(text, isOwnRole)
		}
		return checkClientSetting(name, text)
	}
	if value.parameter == 0 {
		if refusal := check(value.text, w.isOwnRole); refusal != nil {
			return false, refusal
		}
	} else {
		w.valueChecks = append(w.valueChecks, func(values [][]byte, isOwnRole func(name string) bool) *sqlstate.Error {
			text, isKnown := value.textWith(values)
			if !isKnown {
				return badValueError(name)
			}
			return check(text, isOwnRole)
		})
	}
	if !w.replaceConstant(f.Args[0], name, own) {
		return false, notSettableError(name)
	}
	return true, nil
}

// replaceConstant replaces a string constant in the text by another. The result is false if the constant's token is not
// its plain value in quotes, with or without a cast, because the name cannot be found in the text then.
func (w *walker) replaceConstant(n *sqltext.Node, value, text string) bool {
	if cast := n.GetTypeCast(); cast != nil {
		n = cast.Arg
	}
	tokenIndex := w.source.TokenAt(n.GetAConst().GetLocation())
	if tokenIndex < 0 {
		return false
	}
	token := w.source.Tokens[tokenIndex]
	if w.source.Text[token.Start:token.End] != "'"+value+"'" {
		return false
	}
	w.replace(token.Start, token.End, catalog.QuoteLiteral(text), func() {
		n.GetAConst().Val = &sqltext.A_Const_Sval{Sval: &sqltext.String{Sval: text}}
	})
	return true
}

// clientSet rewrites SET and RESET of a setting that only clients read.
func (w *walker) clientSet(v *sqltext.VariableSetStmt, own string, raw *sqltext.RawStmt) verdict.Effect {
	effect := verdict.Effect{Kind: verdict.EffectSet, Name: own}
	first, last := w.firstToken(raw), w.lastToken(raw)
	if !strings.Contains(strings.ToLower(w.source.Text[first:last.End]), own[strings.LastIndexByte(own, '.')+1:]) {
		w.refuse(notSettableError(v.Name))
		return effect
	}
	text := "SET SESSION "
	if v.IsLocal {
		text = "SET LOCAL "
	}
	switch v.Kind {
	case sqltext.VAR_SET_VALUE:
		value, ok := w.settingValue(v.Args, false)
		if !ok {
			w.refuse(badValueError(v.Name))
			return effect
		}
		if refusal := checkClientSetting(v.Name, value); refusal != nil {
			w.refuse(refusal)
			return effect
		}
		text += own + " = " + catalog.QuoteLiteral(value)
	case sqltext.VAR_SET_DEFAULT:
		text += own + " TO DEFAULT"
	case sqltext.VAR_RESET:
		text = "RESET " + own
	default:
		w.refuse(refusalOf("VariableSetStmt"))
		return effect
	}
	w.replace(first, last.End, text, func() { raw.Stmt = parseStatement(text) })
	return effect
}
