package rewrite

import (
	"errors"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

var errPolicyExpression = errors.New("rewrite: a predicate or a pin of the policy does not parse")

// callee is the function that a call means by its name.
type callee struct {
	name              catalog.Name     // the qualified name to write in the call; zero: the call stays as it is
	recordedName      string           // the name for the audit record
	otherRecordedName string           // a second name for the audit record, if the call may mean another function as well
	listed            *policy.Function // the policy's entry for the function; nil: the policy does not list it
}

// visitFuncCall visits a function call.
func (w *walker) visitFuncCall(n *sqltext.Node, f *sqltext.FuncCall) {
	if w.refused != nil {
		return
	}
	w.countNode("FuncCall")
	for _, arg := range f.Args {
		if !w.bareXmin(arg, nil) {
			w.visitExpr(arg)
		}
	}
	w.exprs(f.AggOrder)
	w.visitExpr(f.AggFilter)
	w.windowDef(f.Over)

	schema, name, ok := qualifiedName(f.Funcname)
	if !ok {
		w.refuseAt(refusalOf("RangeVar.catalogname"), f.Location)
		return
	}
	switch spelling := w.spellingOf(f); spelling {
	case spelledByGrammar:
		// in EXTRACT(... FROM ...), AT TIME ZONE and LIKE ... ESCAPE the parser adds the function's name and schema
		callee, refusal := w.resolveCatalogFunction(name)
		if refusal != nil {
			w.refuseAt(refusal, f.Location)
			return
		}
		w.functions[callee.recordedName] = true
	case spelledTreat:
		w.refuseAt(refusalOf("FuncCall(TREAT)"), f.Location)
	case spelledByName:
		called, refusal := w.resolveCallee(schema, name, f)
		if refusal != nil && name == "set_config" &&
			(schema == "pg_catalog" || len(w.snap.FunctionsNamed(schema, name)) == 0) {
			if isPlain, why := w.isPlainSetConfig(f); isPlain || why != nil {
				called, refusal = callee{name: catalog.Name{Schema: "pg_catalog", Name: name}, recordedName: "pg_catalog." + name},
					why
				if setting, ok := constantString(f.Args[0]); ok && w.isRepresentedUserSetting(setting) {
					called.name = representedUserFunction
				}
			}
		}
		if refusal != nil && name == "pg_notify" && len(w.snap.FunctionsNamed(schema, name)) == 0 && w.isPlainNotify(f) {
			called, refusal = callee{name: catalog.Name{Schema: "pg_catalog", Name: name}, recordedName: "pg_catalog." + name},
				nil
		}
		if refusal != nil && w.scope != nil && w.scope.parent == nil && w.scope.query != nil &&
			showAllSettingsCall(w.scope.query) == f && setsExistingSetting(w.scope.query) &&
			len(w.snap.FunctionsNamed(schema, name)) == 0 {
			called, refusal = callee{name: catalog.Name{Schema: "pg_catalog", Name: name}, recordedName: "pg_catalog." + name},
				nil
		}
		if refusal != nil && w.standbyFallback(n, f, schema, name) {
			return
		}
		if refusal != nil {
			w.refuseAt(refusal, f.Location)
			return
		}
		w.functions[called.recordedName] = true
		if called.otherRecordedName != "" {
			w.functions[called.otherRecordedName] = true
		}
		w.checkNameArguments(name, f.Args)
		if standIn, ok := w.checkArguments(schema, name, f); ok {
			called.name = standIn
		}
		if called.listed != nil && len(called.listed.Pins) > 0 {
			w.pinArguments(f, called.listed)
		}
		if schema == "" && name == "unnest" && len(f.Args) > 1 {
			// in FROM, PostgreSQL accepts several arrays only for an unnest without schema, which always means its own function
			break
		}
		w.qualifyCall(f, called.name)
	default:
		w.refuseAt(refusalOf("FuncCall.location"), f.Location)
	}
}

// qualifiedName splits a name of one or two parts.
func qualifiedName(parts []*sqltext.Node) (schema, name string, ok bool) {
	switch len(parts) {
	case 1:
		return "", parts[0].GetString_().GetSval(), true
	case 2:
		return parts[0].GetString_().GetSval(), parts[1].GetString_().GetSval(), true
	}
	return "", "", false
}

// spelling says how a function call is written.
type spelling int

const (
	spelledOtherwise spelling = iota
	spelledByName
	spelledByGrammar
	spelledTreat
)

// spellingOf tells how the text writes a call. The rewriter can put another name into a call only if the text spells
// the name.
func (w *walker) spellingOf(f *sqltext.FuncCall) spelling {
	schema, name, _ := qualifiedName(f.Funcname)
	i := w.source.TokenAt(f.Location)
	if f.Funcformat == sqltext.COERCE_SQL_SYNTAX {
		if schema != "pg_catalog" {
			return spelledOtherwise
		}
		return spelledByGrammar
	}
	if i < 0 {
		return spelledOtherwise
	}
	nameTokens := 1
	if w.source.KindAt(i+1) == sqltext.Dot {
		nameTokens = 3
	}
	hasName := w.source.Tokens[i].IsName() && w.source.KindAt(i+nameTokens) == sqltext.OpenParen
	switch {
	case schema == "pg_catalog" && nameTokens == 1 && (name == "like_escape" || name == "similar_to_escape") &&
		!isIdentifier(w.source.Tokens[i]):
		return spelledByGrammar
	case hasName && schema == "pg_catalog" && nameTokens == 1 && name == "json_object":
		// the grammar has JSON_OBJECT as a key word, and adds the schema itself
		return spelledByGrammar
	case hasName && w.source.KindAt(i) == sqltext.Treat && schema == "pg_catalog":
		return spelledTreat
	case hasName && (schema != "") == (nameTokens == 3):
		return spelledByName
	}
	return spelledOtherwise
}

func isIdentifier(t sqltext.Token) bool { return t.Kind == sqltext.Ident }

// resolveCallee decides which function a called name means. PostgreSQL chooses by the types of the arguments, so every
// function of that name with a fitting number of arguments must be allowed.
func (w *walker) resolveCallee(schema, name string, f *sqltext.FuncCall) (callee, *sqlstate.Error) {
	if schema == "pg_catalog" {
		if !w.snap.HasCatalogFunction(name) {
			return w.resolveCastNotation(schema, name, f.Location)
		}
		return w.resolveCatalogFunction(name)
	}
	if schema == "information_schema" {
		if n, ok := catalog.InformationFunction(name); ok {
			return callee{name: n, recordedName: schema + "." + name}, nil
		}
		return callee{}, undefinedFunctionError(name)
	}
	candidates := w.snap.FunctionsNamed(schema, name)
	others := slices.DeleteFunc(slices.Clone(candidates),
		func(other *catalog.Function) bool { return !takesArguments(other, f) })
	inCatalog := schema == "" && w.snap.HasCatalogFunction(name)
	if len(others) == 0 && (inCatalog || len(candidates) == 0) {
		if inCatalog {
			return w.resolveCatalogFunction(name)
		}
		return w.resolveCastNotation(schema, name, f.Location)
	}
	if len(others) == 0 {
		others = candidates // PostgreSQL reports which arguments the function takes
	}
	firstName := others[0].Name
	policyFunction, _ := w.pol.Function(firstName)
	for _, f := range others {
		_, isListed := w.pol.Function(f.Name)
		switch {
		case f.Kind == 'p':
			return callee{}, undefinedFunctionError(name)
		case isListed:
		case w.isRangeFunction(f):
		case extensionFunctions.allows(f.Extension, name):
		case extensionFunctions[f.Extension][name].class == classRefuse:
			return callee{}, unavailableFunctionError(name, "It "+extensionFunctions[f.Extension][name].why+".")
		case inCatalog:
			return callee{}, overloadedFunctionError(name)
		default:
			return callee{}, undefinedFunctionError(name)
		}
		if f.Name != firstName && (isListed || policyFunction != nil) {
			return callee{}, ambiguousFunctionError(name, firstName.Schema, f.Name.Schema)
		}
	}
	if inCatalog {
		c, refusal := w.resolveCatalogFunction(name)
		if refusal != nil {
			return callee{}, refusal
		}
		if policyFunction != nil && len(policyFunction.Pins) > 0 || c.name.Schema != "pg_catalog" {
			return callee{}, ambiguousFunctionError(name, "pg_catalog", firstName.Schema)
		}
		// the types of the arguments decide whether PostgreSQL's own or the extension's function is called, as for avg
		merged := callee{recordedName: c.recordedName}
		if policyFunction != nil {
			merged.otherRecordedName = firstName.String()
		}
		return merged, nil
	}
	for _, f := range others {
		if f.Name != firstName {
			return callee{recordedName: firstName.String()}, nil
		}
	}
	return callee{name: firstName, recordedName: firstName.String(), listed: policyFunction}, nil
}

// resolveCatalogFunction decides whether agents may call a function of pg_catalog.
func (w *walker) resolveCatalogFunction(name string) (callee, *sqlstate.Error) {
	original := catalog.Name{Schema: "pg_catalog", Name: name}
	refused := func(hint string) (callee, *sqlstate.Error) { return callee{}, unavailableFunctionError(name, hint) }
	c, isKnown := catalogFunctions[name]
	if !isKnown {
		return refused("This version of pgconsent does not know it, and allows no function that it does not know.")
	}
	if standIn, ok := catalog.ShadowFunction(name); ok && (c.class == classAllow || c.class == classShadow) {
		return callee{name: standIn, recordedName: original.String()}, nil
	}
	switch c.class {
	case classAllow:
		return callee{name: original, recordedName: original.String()}, nil
	case classRefuse:
		return refused("It " + c.why + ".")
	case classShadow:
		return refused("It tells more than agents may see.")
	}
	return refused("It is for the server's own use: " + c.why + ".")
}

// resolveCastNotation decides about a call whose name no function has. If a type has the name, as in uuid('...'), the
// call is a cast.
func (w *walker) resolveCastNotation(schema, name string, location int32) (callee, *sqlstate.Error) {
	types := w.snap.TypesNamed(schema, name)
	if len(types) == 0 {
		if refusal := newerFunctionRefusal(name, w.snap.ServerVersion()); refusal != nil && schema == "" {
			return callee{}, refusal
		}
		return callee{}, undefinedFunctionError(name)
	}
	for _, t := range types {
		w.noteValueType(t.OID)
		if refusal := w.castRefusal(t, location); refusal != nil {
			return callee{}, refusal
		}
	}
	return callee{name: types[0].Name, recordedName: types[0].Name.String()}, nil
}

func unavailableFunctionError(name, hint string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction,
		"function %s is not available to agents", name).WithHint("%s", hint)
}

// undefinedFunctionError is PostgreSQL's error for a function that does not exist. Agents also get it for a function
// whose existence pgconsent hides from them.
func undefinedFunctionError(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.UndefinedFunction, sqlstate.ReasonFunction, "function %s(...) does not exist", name).
		WithHint("No function of that name is available to agents. A function of yours must be listed under " +
			"functions: in the policy.")
}

func ambiguousFunctionError(name string, schemas ...string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction, "function name %s is ambiguous here",
		name).
		WithHint("Functions of several schemas have that name, under different rules. Call it with its schema: "+
			"%s(...) or %s(...).",
			catalog.Name{Schema: schemas[0], Name: name}.SQL(), catalog.Name{Schema: schemas[1], Name: name}.SQL())
}

// overloadedFunctionError is the error for a call that may mean a function of PostgreSQL or a function of another role
// with the same name.
func overloadedFunctionError(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.UndefinedFunction, sqlstate.ReasonFunction,
		"function %s(...) may be one that is not available to agents", name).
		WithHint("Others have given that name to a function of theirs, which must be listed under functions: in "+
			"the policy. For PostgreSQL's call %s(...).",
			catalog.Name{Schema: "pg_catalog", Name: name}.SQL())
}

// takesArguments tells whether a function can be called with as many arguments as the call has.
func takesArguments(f *catalog.Function, call *sqltext.FuncCall) bool {
	n := len(call.Args)
	return f.Variadic || call.FuncVariadic || call.AggWithinGroup ||
		n <= len(f.ArgTypes) && n >= len(f.ArgTypes)-f.Defaults
}

// isRangeFunction tells whether PostgreSQL has created a function together with a range type, and agents may use that
// type.
func (w *walker) isRangeFunction(f *catalog.Function) bool {
	if f.RangeType == 0 {
		return false
	}
	t := w.snap.TypeByOID(f.RangeType)
	return t != nil && w.castRefusal(t, -1) == nil
}

// qualifyCall writes the schema before the function's name in a call.
func (w *walker) qualifyCall(f *sqltext.FuncCall, name catalog.Name) {
	if w.refused != nil || name == (catalog.Name{}) {
		return
	}
	i := w.source.TokenAt(f.Location)
	last := i
	if w.source.KindAt(i+1) == sqltext.Dot {
		last = i + 2
	}
	w.replace(w.source.Tokens[i].Start, w.source.Tokens[last].End, name.SQL(), func() {
		f.Funcname = []*sqltext.Node{stringNode(name.Schema), stringNode(name.Name)}
	})
}

func stringNode(s string) *sqltext.Node {
	return &sqltext.Node{Node: &sqltext.Node_String{String_: &sqltext.String{Sval: s}}}
}

// stringConstant returns the node of a string constant.
func stringConstant(s string) *sqltext.Node {
	return &sqltext.Node{Node: &sqltext.Node_A_Const{AConst: &sqltext.A_Const{
		Val: &sqltext.A_Const_Sval{Sval: &sqltext.String{Sval: s}},
	}}}
}

// checkArguments checks the arguments of the few functions that agents may call with certain arguments only. For other
// arguments it returns the stand-in, a function of pgconsent to call instead.
func (w *walker) checkArguments(schema, name string, f *sqltext.FuncCall) (standIn catalog.Name, ok bool) {
	if w.refused != nil {
		return catalog.Name{}, false
	}
	if name == "pg_input_is_valid" || name == "pg_input_error_info" {
		w.checkInputType(name, f)
		return catalog.Name{}, false
	}
	if name != "current_setting" || schema != "" && schema != "pg_catalog" {
		return catalog.Name{}, false
	}
	if len(f.Args) == 0 {
		return catalog.Name{Schema: catalog.ShadowSchema, Name: name}, true
	}
	if setting, constant := constantString(f.Args[0]); constant {
		if own, ok := w.clientSetting(setting); ok && orNull(f) && w.replaceConstant(f.Args[0], setting, own) {
			return catalog.Name{}, false
		}
		refusal := checkShow(setting, w.claims)
		switch {
		case refusal == nil:
			return catalog.Name{}, false
		case orNull(f) && !strings.HasPrefix(strings.ToLower(setting), "pgconsent") &&
			!slices.Contains(verdict.HardenedPlanSettings, strings.ToLower(setting)):
			// The setting belongs to a client tool. It is not set for an agent, so the stand-in returns NULL. For a setting of
			// PostgreSQL the stand-in returns what pg_settings shows.
		default:
			w.refuseAt(refusal, f.Location)
			return catalog.Name{}, false
		}
	}
	return catalog.Name{Schema: catalog.ShadowSchema, Name: name}, true
}

// orNull tells whether a call current_setting(name, true) asks for NULL if the setting does not exist.
func orNull(f *sqltext.FuncCall) bool {
	return len(f.Args) == 2 && f.Args[1].GetAConst().GetBoolval().GetBoolval()
}

// constantString returns the value of a string literal, with or without a cast to text.
func constantString(n *sqltext.Node) (string, bool) {
	if c := n.GetTypeCast(); c != nil {
		if _, name, ok := qualifiedName(c.GetTypeName().GetNames()); !ok || name != "text" ||
			len(c.GetTypeName().GetArrayBounds()) > 0 {
			return "", false
		}
		n = c.Arg
	}
	s := n.GetAConst().GetSval()
	return s.GetSval(), s != nil
}

// samplingMethods is the group of functions in functions.txt whose only argument has a type that no value in a
// statement has. So (value).system always means the field system or an error, and never the function. FHIR codings have
// such a field.
const samplingMethods = "sampling methods"

// checkAttributeNotation checks the name b in a.b. If a has no column b, PostgreSQL calls the function b with a, or
// casts a to the type b. The result tells whether b may be a function that the policy lists.
func (w *walker) checkAttributeNotation(name string, location int32) (listed bool) {
	if w.refused != nil {
		return false
	}
	if slices.Contains(nameFunctions, name) {
		w.collations["C"] = true
	}
	w.hasPrefixOperator = w.hasPrefixOperator || name == "starts_with"
	others := w.snap.FunctionsNamed("", name)
	isAllowed := true
	for _, f := range others {
		switch policyFunction, isListed := w.pol.Function(f.Name); {
		case extensionFunctions.allows(f.Extension, name):
		case isListed && f.Kind == 'f' && len(policyFunction.Pins) == 0:
			w.functions[f.Name.String()], listed = true, true
		default:
			isAllowed = false
		}
	}
	if w.snap.HasCatalogFunction(name) {
		_, shadowed := catalog.ShadowFunction(name)
		c := catalogFunctions[name]
		isAllowed = isAllowed && (c.class == classAllow && !shadowed && name != "current_setting" || c.why == samplingMethods)
	}
	for _, t := range w.snap.TypesNamed("", name) {
		w.noteValueType(t.OID)
		isAllowed = isAllowed && w.castRefusal(t, location) == nil
	}
	if !isAllowed {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction,
			"%q may be a function call in attribute notation here", name).
			WithHint("A function or type of that name exists and may not be used like that. Give the column "+
				"another alias, or call the function as %s(...).", name), location)
	}
	return listed
}
