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

// callee is what a function name means.
type callee struct {
	name         catalog.Name     // how the call is written; zero: as it stands
	recorded     string           // for the audit record
	alsoRecorded string           // for the audit record: what else the name may mean
	listed       *policy.Function // if the policy lists it
}

// funcCall visits a call.
func (w *walker) funcCall(n *sqltext.Node, f *sqltext.FuncCall) {
	if w.refused != nil {
		return
	}
	w.saw("FuncCall")
	for _, arg := range f.Args {
		if !w.bareXmin(arg, nil) {
			w.expr(arg)
		}
	}
	w.exprs(f.AggOrder)
	w.expr(f.AggFilter)
	w.windowDef(f.Over)

	schema, name, ok := qualifiedName(f.Funcname)
	if !ok {
		w.refuseAt(refusal("RangeVar.catalogname"), f.Location)
		return
	}
	switch spelling := w.spelling(f); spelling {
	case spelledByGrammar:
		// EXTRACT(... FROM ...), AT TIME ZONE, LIKE ... ESCAPE: the grammar names the function, qualified.
		called, refused := w.catalogFunction(name)
		if refused != nil {
			w.refuseAt(refused, f.Location)
			return
		}
		w.functions[called.recorded] = true
	case spelledTreat:
		w.refuseAt(refusal("FuncCall(TREAT)"), f.Location)
	case spelledByName:
		called, refused := w.callee(schema, name, f)
		if refused != nil && name == "set_config" &&
			(schema == "pg_catalog" || len(w.snap.FunctionsNamed(schema, name)) == 0) {
			if plain, why := w.isPlainSetConfig(f); plain || why != nil {
				called, refused = callee{name: catalog.Name{Schema: "pg_catalog", Name: name}, recorded: "pg_catalog." + name}, why
			}
		}
		if refused != nil && name == "pg_notify" && len(w.snap.FunctionsNamed(schema, name)) == 0 && w.isPlainNotify(f) {
			called, refused = callee{name: catalog.Name{Schema: "pg_catalog", Name: name}, recorded: "pg_catalog." + name}, nil
		}
		if refused != nil && w.scope != nil && w.scope.parent == nil && w.scope.query != nil &&
			showAllSettingsCall(w.scope.query) == f && setsExistingSetting(w.scope.query) &&
			len(w.snap.FunctionsNamed(schema, name)) == 0 {
			called, refused = callee{name: catalog.Name{Schema: "pg_catalog", Name: name}, recorded: "pg_catalog." + name}, nil
		}
		if refused != nil && w.standbyFallback(n, f, schema, name) {
			return
		}
		if refused != nil {
			w.refuseAt(refused, f.Location)
			return
		}
		w.functions[called.recorded] = true
		if called.alsoRecorded != "" {
			w.functions[called.alsoRecorded] = true
		}
		w.checkNameArguments(name, f.Args)
		if standIn, ok := w.checkArguments(schema, name, f); ok {
			called.name = standIn
		}
		if called.listed != nil && len(called.listed.Pins) > 0 {
			w.pinArguments(f, called.listed)
		}
		if schema == "" && name == "unnest" && len(f.Args) > 1 {
			break // in FROM PostgreSQL takes several arrays only by the bare name, and means its own function
		}
		w.qualify(f, called.name)
	default:
		w.refuseAt(refusal("FuncCall.location"), f.Location)
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

type spelling int

const (
	spelledOddly spelling = iota
	spelledByName
	spelledByGrammar
	spelledTreat
)

// spelling tells how a call is written: only a name can be replaced by another.
func (w *walker) spelling(f *sqltext.FuncCall) spelling {
	schema, name, _ := qualifiedName(f.Funcname)
	i := w.source.At(f.Location)
	if f.Funcformat == sqltext.COERCE_SQL_SYNTAX {
		if schema != "pg_catalog" {
			return spelledOddly
		}
		return spelledByGrammar
	}
	if i < 0 {
		return spelledOddly
	}
	written := 1
	if w.source.Kind(i+1) == sqltext.Dot {
		written = 3
	}
	named := w.source.Tokens[i].IsName() && w.source.Kind(i+written) == sqltext.OpenParen
	switch {
	case schema == "pg_catalog" && written == 1 && (name == "like_escape" || name == "similar_to_escape") &&
		!isIdentifier(w.source.Tokens[i]):
		return spelledByGrammar
	case named && schema == "pg_catalog" && written == 1 && name == "json_object":
		// a word of the grammar that calls the function
		return spelledByGrammar
	case named && w.source.Kind(i) == sqltext.Treat && schema == "pg_catalog":
		return spelledTreat
	case named && (schema != "") == (written == 3):
		return spelledByName
	}
	return spelledOddly
}

func isIdentifier(t sqltext.Token) bool { return t.Kind == sqltext.Ident }

// callee decides what a called name means. Which function it means depends on types, so every function that the call
// can reach must be allowed. It cannot reach functions that take another number of arguments.
func (w *walker) callee(schema, name string, f *sqltext.FuncCall) (callee, *sqlstate.Error) {
	if schema == "pg_catalog" {
		if !w.snap.HasCatalogFunction(name) {
			return w.castNotation(schema, name, f.Location)
		}
		return w.catalogFunction(name)
	}
	if schema == "information_schema" {
		if n, ok := catalog.InformationFunction(name); ok {
			return callee{name: n, recorded: schema + "." + name}, nil
		}
		return callee{}, undefinedFunction(name)
	}
	named := w.snap.FunctionsNamed(schema, name)
	others := slices.DeleteFunc(slices.Clone(named),
		func(other *catalog.Function) bool { return !takesArguments(other, f) })
	inCatalog := schema == "" && w.snap.HasCatalogFunction(name)
	if len(others) == 0 && (inCatalog || len(named) == 0) {
		if inCatalog {
			return w.catalogFunction(name)
		}
		return w.castNotation(schema, name, f.Location)
	}
	if len(others) == 0 {
		others = named // PostgreSQL says which arguments it takes
	}
	first := others[0].Name
	listed, _ := w.pol.Function(first)
	for _, f := range others {
		_, isListed := w.pol.Function(f.Name)
		switch {
		case f.Kind == 'p':
			return callee{}, undefinedFunction(name)
		case isListed:
		case w.isRangeFunction(f):
		case extensionFunctions.allows(f.Extension, name):
		case extensionFunctions[f.Extension][name].class == classRefuse:
			return callee{}, unavailableFunction(name, "It "+extensionFunctions[f.Extension][name].why+".")
		case inCatalog:
			return callee{}, overloadedFunction(name)
		default:
			return callee{}, undefinedFunction(name)
		}
		if f.Name != first && (isListed || listed != nil) {
			return callee{}, ambiguousFunction(name, first.Schema, f.Name.Schema)
		}
	}
	if inCatalog {
		c, refused := w.catalogFunction(name)
		if refused != nil {
			return callee{}, refused
		}
		if listed != nil && len(listed.Pins) > 0 || c.name.Schema != "pg_catalog" {
			return callee{}, ambiguousFunction(name, "pg_catalog", first.Schema)
		}
		both := callee{recorded: c.recorded} // by its arguments: avg of numbers, or avg of vectors
		if listed != nil {
			both.alsoRecorded = first.String()
		}
		return both, nil
	}
	for _, f := range others {
		if f.Name != first {
			return callee{recorded: first.String()}, nil
		}
	}
	return callee{name: first, recorded: first.String(), listed: listed}, nil
}

// catalogFunction decides about a function of pg_catalog.
func (w *walker) catalogFunction(name string) (callee, *sqlstate.Error) {
	original := catalog.Name{Schema: "pg_catalog", Name: name}
	refused := func(hint string) (callee, *sqlstate.Error) { return callee{}, unavailableFunction(name, hint) }
	c, known := catalogFunctions[name]
	if !known {
		return refused("This version of pgconsent does not know it, and allows no function that it does not know.")
	}
	if standIn, ok := catalog.ShadowFunction(name); ok && (c.class == classAllow || c.class == classShadow) {
		return callee{name: standIn, recorded: original.String()}, nil
	}
	switch c.class {
	case classAllow:
		return callee{name: original, recorded: original.String()}, nil
	case classRefuse:
		return refused("It " + c.why + ".")
	case classShadow:
		return refused("It tells more than agents may see.")
	}
	return refused("It is for the server's own use: " + c.why + ".")
}

// castNotation decides about a name that no function has: uuid('...') is a cast.
func (w *walker) castNotation(schema, name string, at int32) (callee, *sqlstate.Error) {
	found := w.snap.TypesNamed(schema, name)
	if len(found) == 0 {
		if refused := newerFunction(name, w.snap.ServerVersion()); refused != nil && schema == "" {
			return callee{}, refused
		}
		return callee{}, undefinedFunction(name)
	}
	for _, t := range found {
		w.noteValueType(t.OID)
		if refused := w.castRefusal(t, at); refused != nil {
			return callee{}, refused
		}
	}
	return callee{name: found[0].Name, recorded: found[0].Name.String()}, nil
}

func unavailableFunction(name, hint string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction,
		"function %s is not available to agents", name).WithHint("%s", hint)
}

// undefinedFunction is PostgreSQL's answer for a function that does not exist, and ours for one that agents must not
// know of.
func undefinedFunction(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.UndefinedFunction, sqlstate.ReasonFunction, "function %s(...) does not exist", name).
		WithHint("No function of that name is available to agents. A function of yours must be listed under " +
			"functions: in the policy.")
}

func ambiguousFunction(name string, schemas ...string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction, "function name %s is ambiguous here",
		name).
		WithHint("Functions of several schemas have that name, under different rules. Call it with its schema: "+
			"%s(...) or %s(...).",
			catalog.Name{Schema: schemas[0], Name: name}.SQL(), catalog.Name{Schema: schemas[1], Name: name}.SQL())
}

// overloadedFunction is for a name of PostgreSQL's that a function of others has as well.
func overloadedFunction(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.UndefinedFunction, sqlstate.ReasonFunction,
		"function %s(...) may be one that is not available to agents", name).
		WithHint("Others have given that name to a function of theirs, which must be listed under functions: in "+
			"the policy. For PostgreSQL's call %s(...).",
			catalog.Name{Schema: "pg_catalog", Name: name}.SQL())
}

// takesArguments tells whether a call may be one of the function, by the number of its arguments.
func takesArguments(f *catalog.Function, call *sqltext.FuncCall) bool {
	n := len(call.Args)
	return f.Variadic || call.FuncVariadic || call.AggWithinGroup ||
		n <= len(f.ArgTypes) && n >= len(f.ArgTypes)-f.Defaults
}

// isRangeFunction tells whether PostgreSQL made a function for a range type that agents may use.
func (w *walker) isRangeFunction(f *catalog.Function) bool {
	if f.RangeType == 0 {
		return false
	}
	t := w.snap.TypeByOID(f.RangeType)
	return t != nil && w.castRefusal(t, -1) == nil
}

// qualify writes the call's name with its schema.
func (w *walker) qualify(f *sqltext.FuncCall, name catalog.Name) {
	if w.refused != nil || name == (catalog.Name{}) {
		return
	}
	i := w.source.At(f.Location)
	last := i
	if w.source.Kind(i+1) == sqltext.Dot {
		last = i + 2
	}
	w.replace(w.source.Tokens[i].Start, w.source.Tokens[last].End, name.SQL(), func() {
		f.Funcname = []*sqltext.Node{stringNode(name.Schema), stringNode(name.Name)}
	})
}

func stringNode(s string) *sqltext.Node {
	return &sqltext.Node{Node: &sqltext.Node_String{String_: &sqltext.String{Sval: s}}}
}

// stringConstant is a string constant.
func stringConstant(s string) *sqltext.Node {
	return &sqltext.Node{Node: &sqltext.Node_A_Const{AConst: &sqltext.A_Const{
		Val: &sqltext.A_Const_Sval{Sval: &sqltext.String{Sval: s}},
	}}}
}

// checkArguments checks the few functions that are allowed with certain arguments only. It returns the stand-in that
// answers for other arguments.
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
		refused := checkShow(setting, w.claims)
		switch {
		case refused == nil:
			return catalog.Name{}, false
		case len(f.Args) == 2 && f.Args[1].GetAConst().GetBoolval().GetBoolval() &&
			!strings.HasPrefix(strings.ToLower(setting), "pgconsent") &&
			!slices.Contains(verdict.HardenedPlanSettings, strings.ToLower(setting)):
			// The setting of a client tool: for an agent it is not set, and the stand-in returns NULL. Of the server's own it
			// returns what pg_settings shows.
		default:
			w.refuseAt(refused, f.Location)
			return catalog.Name{}, false
		}
	}
	return catalog.Name{Schema: catalog.ShadowSchema, Name: name}, true
}

// constantString returns a string constant, with or without a cast to text.
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

// samplingMethods is the group of functions.txt whose functions only take a type that no value in a statement has. So
// (value).system is a field, as every coding of FHIR has one, or an error.
const samplingMethods = "sampling methods"

// attributeNotation checks the last part of a.b. If a has no column b, PostgreSQL reads it as the function b applied to
// a, or as a cast of a to the type b. It tells whether that may be a function of the policy's.
func (w *walker) attributeNotation(name string, location int32) (listed bool) {
	if w.refused != nil {
		return false
	}
	if slices.Contains(nameFunctions, name) {
		w.collations["C"] = true
	}
	w.hasPrefixOperator = w.hasPrefixOperator || name == "starts_with"
	others := w.snap.FunctionsNamed("", name)
	allowed := true
	for _, f := range others {
		switch of, isListed := w.pol.Function(f.Name); {
		case extensionFunctions.allows(f.Extension, name):
		case isListed && f.Kind == 'f' && len(of.Pins) == 0:
			w.functions[f.Name.String()], listed = true, true
		default:
			allowed = false
		}
	}
	if w.snap.HasCatalogFunction(name) {
		_, shadowed := catalog.ShadowFunction(name)
		c := catalogFunctions[name]
		allowed = allowed && (c.class == classAllow && !shadowed && name != "current_setting" || c.why == samplingMethods)
	}
	for _, t := range w.snap.TypesNamed("", name) {
		w.noteValueType(t.OID)
		allowed = allowed && w.castRefusal(t, location) == nil
	}
	if !allowed {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction,
			"%q may be a function call in attribute notation here", name).
			WithHint("A function or type of that name exists and may not be used like that. Give the column "+
				"another alias, or call the function as %s(...).", name), location)
	}
	return listed
}
