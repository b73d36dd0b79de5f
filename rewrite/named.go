package rewrite

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// nameArgument says which argument of a function is the name of an object, by the number of arguments, and how to check
// the name. readAsValue is set if PostgreSQL reads the constant as a value of a type such as regclass. An unknown name
// then fails when PostgreSQL parses the statement, and the error has the position of the name.
type nameArgument struct {
	positionByCount map[int]int
	check           func(w *walker, nameText string, read bool) *sqlstate.Error
	readAsValue     bool
}

var (
	onlyArgument         = map[int]int{1: 0}
	firstArgumentOfTwo   = map[int]int{2: 0}
	firstArgumentOfThree = map[int]int{3: 0}
	argumentAfterRole    = map[int]int{2: 0, 3: 1} // a role may stand before the name, as the first of three arguments
)

// nameArguments are the functions that take the name of an object: as text, regclass or regtype.
var nameArguments = map[string]nameArgument{
	"has_table_privilege":      {positionByCount: argumentAfterRole, check: (*walker).checkRelationName},
	"has_any_column_privilege": {positionByCount: argumentAfterRole, check: (*walker).checkRelationName},
	"has_sequence_privilege":   {positionByCount: argumentAfterRole, check: (*walker).checkRelationName},
	"has_column_privilege":     {positionByCount: map[int]int{3: 0, 4: 1}, check: (*walker).checkRelationName},
	"has_type_privilege":       {positionByCount: argumentAfterRole, check: (*walker).checkTypeName},
	"has_function_privilege":   {positionByCount: argumentAfterRole, check: (*walker).checkFunctionSignature},
	"has_schema_privilege":     {positionByCount: argumentAfterRole, check: (*walker).checkSchemaName},
	"row_security_active":      {positionByCount: onlyArgument, check: (*walker).checkRelationName},
	"pg_get_serial_sequence":   {positionByCount: firstArgumentOfTwo, check: (*walker).checkRelationName},
	"pg_relation_is_updatable": {positionByCount: firstArgumentOfTwo, check: (*walker).checkRelationName, readAsValue: true},
	"pg_column_is_updatable": {positionByCount: firstArgumentOfThree, check: (*walker).checkRelationName,
		readAsValue: true},
	"pg_relation_is_publishable": {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_relation_size": {positionByCount: map[int]int{1: 0, 2: 0}, check: (*walker).checkRelationName,
		readAsValue: true},
	"pg_table_size":          {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_indexes_size":        {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_total_relation_size": {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_partition_root":      {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_partition_tree":      {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_partition_ancestors": {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_index_has_property":  {positionByCount: firstArgumentOfTwo, check: (*walker).checkRelationName, readAsValue: true},
	"pg_index_column_has_property": {positionByCount: firstArgumentOfThree, check: (*walker).checkRelationName,
		readAsValue: true},
	"pg_get_replica_identity_index": {positionByCount: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_basetype":                   {positionByCount: onlyArgument, check: (*walker).checkTypeName, readAsValue: true},
}

// nameTypes are the types whose values PostgreSQL makes from names in the catalogs, with the checks of such names. The
// argument read of a check tells whether PostgreSQL reads the constant as a value of the type; otherwise it converts a
// text at run time. Names of roles, operators, collations and text search objects are not checked, because agents may
// see all of them.
var nameTypes = map[string]func(w *walker, nameText string, read bool) *sqlstate.Error{
	"regclass": (*walker).checkRelationName, "regtype": (*walker).checkTypeName, "regproc": (*walker).checkFunctionName,
	"regprocedure": (*walker).checkFunctionSignature, "regnamespace": (*walker).checkSchemaName,
}

// checkNameCast checks 'name'::regclass and similar casts, and lists of such names. For a hidden object agents get the
// error that PostgreSQL gives for an object that does not exist. The rewriter cannot check OIDs, parameters and
// computed texts.
func (w *walker) checkNameCast(c *sqltext.TypeCast) {
	schema, name, ok := qualifiedName(c.GetTypeName().GetNames())
	check := nameTypes[name]
	if !ok || check == nil || schema != "" && schema != "pg_catalog" {
		return
	}
	switch list := c.Arg.GetAArrayExpr(); {
	case len(c.GetTypeName().GetArrayBounds()) == 0:
		w.checkNameConstant(c.Arg, c.Arg.GetAConst() != nil, check)
	case list != nil:
		for _, n := range list.Elements {
			w.checkNameConstant(n, n.GetAConst() != nil, check)
		}
	default:
		if nameText, constant := constantString(c.Arg); constant && strings.ContainsAny(nameText, "{[") {
			for _, element := range arrayElements(nameText) {
				w.checkName(c.Arg, element, c.Arg.GetAConst() != nil, check)
			}
		}
	}
}

// refuseNameType refuses a type such as regclass for a column that XMLTABLE or a function reads from a JSON or XML
// document, because the result would tell which names exist.
func (w *walker) refuseNameType(t *sqltext.TypeName) {
	if schema, name, ok := qualifiedName(t.GetNames()); ok && nameTypes[name] != nil &&
		(schema == "" || schema == "pg_catalog") {
		w.refuseAt(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonFunction,
			"columns of type %s are not available to agents here", name).
			WithHint("Read the names as text."), t.Location)
	}
}

// arrayElements returns the elements in the text of an array of any dimension. For other texts the result means
// nothing.
func arrayElements(text string) []string {
	var (
		out            []string
		element        strings.Builder
		quoted, escape bool
	)
	for _, r := range text {
		switch {
		case escape:
			element.WriteRune(r)
			escape = false
		case r == '\\':
			escape = true
		case r == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune("{},", r):
			out = append(out, element.String())
			element.Reset()
		default:
			element.WriteRune(r)
		}
	}
	return append(out, element.String())
}

// checkNameArguments checks the constant argument that a function takes as a name. The function may be a cast in
// function notation, such as regclass('t').
func (w *walker) checkNameArguments(name string, args []*sqltext.Node) {
	n := nameArguments[name]
	if check := nameTypes[name]; check != nil {
		n = nameArgument{positionByCount: onlyArgument, check: check, readAsValue: true}
	}
	i, takesName := n.positionByCount[len(args)]
	if !takesName {
		return
	}
	arg := args[i]
	if namedArg := arg.GetNamedArgExpr(); namedArg != nil {
		arg = namedArg.Arg
	}
	if name == "pg_basetype" && arg.GetAConst() == nil { // PostgreSQL has no implicit cast from text to regtype
		return
	}
	w.checkNameConstant(arg, n.readAsValue && arg.GetAConst() != nil, n.check)
	// If the other arguments fit no function, PostgreSQL reports that before it reads the name. A name that does not exist
	// is refused here, so that agents get the same error for it as for a hidden name.
	if n.readAsValue && len(args) > 1 {
		w.checkNameConstant(arg, arg.GetAConst() != nil, (*walker).checkUnknownRelation)
	}
}

func (w *walker) checkNameConstant(n *sqltext.Node, placed bool,
	check func(w *walker, nameText string, read bool) *sqlstate.Error) {
	if nameText, constant := constantString(n); constant {
		w.checkName(n, nameText, placed, check)
	}
}

func (w *walker) checkName(n *sqltext.Node, nameText string, placed bool,
	check func(w *walker, nameText string, read bool) *sqlstate.Error) {
	if w.refused != nil {
		return
	}
	if w.refused = check(w, nameText, placed); w.refused != nil && placed {
		w.refused = w.refused.WithPosition(w.source.Position(n.GetAConst().GetLocation()))
	}
}

// doesNotExistError returns the error that PostgreSQL gives for a name that it does not find.
func doesNotExistError(code sqlstate.Code, kind, name string) *sqlstate.Error {
	return sqlstate.New(code, sqlstate.ReasonRelation, "%s \"%s\" does not exist", kind, name)
}

// softErrorVersion is the first PostgreSQL version whose error for an unknown name, read as a value, does not say which
// part is missing.
const softErrorVersion = 160000

// checkRelationName refuses the name of a hidden relation. If read is set, a name that does not exist is left to
// PostgreSQL, which gives the same error. Without read, PostgreSQL would find the name at run time, and send the
// description of the result before the error. No refusal of pgconsent can come at that time, so a name that does not
// exist is refused here as well.
func (w *walker) checkRelationName(nameText string, read bool) *sqlstate.Error {
	parts := splitName(nameText)
	if len(parts) == 0 {
		return nil
	}
	schema, name := schemaAndName(parts)
	switch isOwn := catalog.IsOwnSchema(schema); {
	case isOwn && (!read || w.snap.ServerVersion() < softErrorVersion):
		return doesNotExistError(sqlstate.UndefinedSchema, "schema", schema)
	case !isOwn && !w.isHiddenName(schema, name) && (read || !w.isUnknownRelation(schema, name)):
		return nil
	}
	if schema != "" {
		name = schema + "." + name
	}
	return doesNotExistError(sqlstate.UndefinedTable, "relation", name)
}

// isUnknownRelation tells whether no relation and no index has the given name. It is false if the schema has no
// relations, because PostgreSQL reports that itself.
func (w *walker) isUnknownRelation(schema, name string) bool {
	return w.snap.ResolveIndex(schema, name) == nil && w.isNoRowType(schema, name)
}

// isNoRowType tells whether no relation has the given name, so that there is no row type of that name.
func (w *walker) isNoRowType(schema, name string) bool {
	_, found := w.snap.ResolveRelation(schema, name)
	return !found && (schema == "" || w.hasRelations(schema))
}

func (w *walker) hasRelations(schema string) bool {
	return slices.ContainsFunc(w.snap.Relations(), func(r *catalog.Relation) bool { return r.Name.Schema == schema })
}

// checkUnknownRelation refuses the name of a relation that does not exist.
func (w *walker) checkUnknownRelation(nameText string, _ bool) *sqlstate.Error {
	if isOID(nameText) {
		return nil
	}
	return w.checkRelationName(nameText, false)
}

// isOID tells whether PostgreSQL reads a text as an OID, or as "-", which means no object.
func isOID(nameText string) bool {
	return nameText == "-" || strings.Trim(nameText, "0123456789") == ""
}

// isHiddenName tells whether a hidden relation or a hidden index has the given name.
func (w *walker) isHiddenName(schema, name string) bool {
	if index := w.snap.ResolveIndex(schema, name); index != nil {
		return !isIndexShown(w.snap, w.pol, index)
	}
	return w.isHiddenRelation(schema, name)
}

// isHiddenRelation tells whether a hidden relation has the given name.
func (w *walker) isHiddenRelation(schema, name string) bool {
	relation, found := w.snap.ResolveRelation(schema, name)
	return found && !isShown(w.snap, w.pol, relation)
}

// checkTypeName refuses the name of a hidden relation's row type, and of the array type over that row type.
func (w *walker) checkTypeName(nameText string, read bool) *sqlstate.Error {
	t := parseType(nameText)
	schema, name, ok := qualifiedName(t.GetNames())
	if ok && catalog.IsOwnSchema(schema) {
		return doesNotExistError(sqlstate.UndefinedSchema, "schema", schema)
	}
	if !ok || len(w.snap.TypesNamed(schema, name)) > 0 {
		return nil
	}
	of, array := strings.CutPrefix(name, "_")
	hidden := w.isHiddenRelation(schema, name) || array && w.isHiddenRelation(schema, of)
	nowhere := !read && w.isNoRowType(schema, name) && !(array && !w.isNoRowType(schema, of))
	if !hidden && !nowhere {
		return nil
	}
	if schema != "" {
		name = schema + "." + name
	}
	if len(t.GetArrayBounds()) > 0 {
		name += "[]"
	}
	return doesNotExistError(sqlstate.UndefinedObject, "type", name)
}

// checkFunctionName refuses the name of a hidden function.
func (w *walker) checkFunctionName(nameText string, read bool) *sqlstate.Error {
	return w.checkFunctionText(nameText, nameText, read)
}

// checkFunctionSignature refuses the text of a hidden function's name and argument types, such as 'f(integer)'. It
// checks the types first, as PostgreSQL does.
func (w *walker) checkFunctionSignature(nameText string, read bool) *sqlstate.Error {
	name, args, _ := strings.Cut(nameText, "(")
	args, signature := strings.CutSuffix(strings.TrimSpace(args), ")")
	if !signature { // PostgreSQL reports the missing parenthesis before it searches for the function
		return nil
	}
	for _, arg := range strings.Split(args, ",") {
		t := parseType(arg)
		if t == nil {
			continue
		}
		if refusal := w.checkTypeName(arg, read); refusal != nil {
			return refusal
		}
		// PostgreSQL reports the first type that does not exist
		if schema, name, ok := qualifiedName(t.GetNames()); ok && len(w.snap.TypesNamed(schema, name)) == 0 {
			return nil
		}
	}
	return w.checkFunctionText(name, nameText, read)
}

func (w *walker) checkFunctionText(written, whole string, read bool) *sqlstate.Error {
	parts := splitName(written)
	if len(parts) == 0 || isOID(whole) {
		return nil
	}
	schema, name := schemaAndName(parts)
	if catalog.IsOwnSchema(schema) {
		if w.snap.ServerVersion() < softErrorVersion {
			return doesNotExistError(sqlstate.UndefinedSchema, "schema", schema)
		}
		return doesNotExistError(sqlstate.UndefinedFunction, "function", whole)
	}
	functions := w.snap.FunctionsNamed(schema, name)
	switch {
	case (schema == "" || schema == "pg_catalog") && w.snap.HasCatalogFunction(name):
		return nil
	case len(functions) > 0:
	case read || schema != "" && !w.hasRelations(schema) ||
		schema == "information_schema" && w.snap.HasInfoSchemaFunction(name):
		return nil
	}
	// if no function has the name, the loop finds none, and the name is refused as PostgreSQL would
	for _, f := range functions {
		if w.isKnownFunction(f) || f.Name.Schema == "information_schema" {
			return nil
		}
	}
	return doesNotExistError(sqlstate.UndefinedFunction, "function", whole)
}

// checkSchemaName refuses the names of pgconsent's own schemas.
func (w *walker) checkSchemaName(nameText string, _ bool) *sqlstate.Error {
	parts := splitName(nameText)
	if len(parts) != 1 || !catalog.IsOwnSchema(parts[0]) {
		return nil
	}
	return doesNotExistError(sqlstate.UndefinedSchema, "schema", parts[0])
}

// schemaAndName returns the last two parts of a name. PostgreSQL checks the name of a database before them.
func schemaAndName(parts []string) (schema, name string) {
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	return schema, parts[len(parts)-1]
}

// isShown tells whether the catalogs show agents a relation. They show a sequence if they show the table to which it
// belongs.
func isShown(snap *catalog.Snapshot, p *policy.Policy, n catalog.Name) bool {
	if n.Schema == "pg_catalog" || n.Schema == "information_schema" {
		return true
	}
	if r, ok := snap.Relation(n); ok && r.Kind == catalog.Sequence {
		return slices.ContainsFunc(p.Tables(), func(t *policy.Table) bool {
			return slices.ContainsFunc(t.Relation.Columns, func(c catalog.Column) bool { return c.Sequence == n })
		})
	}
	if _, isListed := p.Table(n); isListed {
		return true
	}
	if v, ok := p.View(n); ok && v.Listed {
		return true
	}
	return slices.ContainsFunc(p.Children(), func(c *policy.Child) bool { return c.Relation.Name == n })
}

// isIndexShown tells whether the catalogs show agents an index. They do so if they show the table and every column of
// the index.
func isIndexShown(snap *catalog.Snapshot, p *policy.Policy, i *catalog.NamedIndex) bool {
	if !i.IsPlain || !isShown(snap, p, i.Table) ||
		slices.ContainsFunc(p.Children(),
			func(c *policy.Child) bool { return c.Relation.Name == i.Table && !c.ReadableByName }) {
		return false
	}
	t, _ := p.Table(i.Table)
	return t == nil || t.Columns == nil || !slices.ContainsFunc(i.Columns, func(name string) bool {
		return !slices.ContainsFunc(t.Columns.Columns, func(c policy.VisibleColumn) bool { return c.Name == name })
	})
}

// lowerASCII converts the letters A to Z to lower case, as PostgreSQL does for unquoted names in UTF-8.
func lowerASCII(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}

// splitName splits the name of an object in a text, such as 'schema."Table"', as PostgreSQL does. The result is nil if
// the text is no such name.
func splitName(text string) []string {
	const blanks = " \t\n\r\f\v"
	var parts []string
	for rest := strings.Trim(text, blanks); ; {
		var part string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			closed := false
			for {
				i := strings.IndexByte(quoted, '"')
				if i < 0 {
					break
				}
				part += quoted[:i]
				if quoted = quoted[i+1:]; !strings.HasPrefix(quoted, `"`) {
					closed = true
					break
				}
				part, quoted = part+`"`, quoted[1:]
			}
			if !closed {
				return nil
			}
			rest = quoted
		} else {
			i := strings.IndexAny(rest, "."+blanks)
			if i < 0 {
				i = len(rest)
			}
			part, rest = lowerASCII(rest[:i]), rest[i:]
		}
		if part == "" {
			return nil
		}
		for len(part) > 63 { // PostgreSQL truncates longer names
			_, size := utf8.DecodeLastRuneInString(part)
			part = part[:len(part)-size]
		}
		parts = append(parts, part)
		rest = strings.TrimLeft(rest, blanks)
		if rest == "" {
			return parts
		}
		var ok bool
		if rest, ok = strings.CutPrefix(rest, "."); !ok {
			return nil
		}
		rest = strings.TrimLeft(rest, blanks)
	}
}
