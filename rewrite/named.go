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

// naming says how a function takes a name: which argument it is, for each number of arguments that there may be; what
// judges it; and whether PostgreSQL reads the constant as a value, so that it fails as the statement is read, and tells
// where the name stands.
type nameArgument struct {
	position    map[int]int
	check       func(w *walker, written string, read bool) *sqlstate.Error
	readAsValue bool
}

var (
	onlyArgument         = map[int]int{1: 0}
	firstArgumentOfTwo   = map[int]int{2: 0}
	firstArgumentOfThree = map[int]int{3: 0}
	argumentAfterRole    = map[int]int{2: 0, 3: 1} // where a role may come first
)

// takeNames are the functions that take a name: those that take a text, and those that take a regclass or a regtype.
var nameArguments = map[string]nameArgument{
	"has_table_privilege":           {position: argumentAfterRole, check: (*walker).checkRelationName},
	"has_any_column_privilege":      {position: argumentAfterRole, check: (*walker).checkRelationName},
	"has_sequence_privilege":        {position: argumentAfterRole, check: (*walker).checkRelationName},
	"has_column_privilege":          {position: map[int]int{3: 0, 4: 1}, check: (*walker).checkRelationName},
	"has_type_privilege":            {position: argumentAfterRole, check: (*walker).checkTypeName},
	"has_function_privilege":        {position: argumentAfterRole, check: (*walker).checkSignature},
	"has_schema_privilege":          {position: argumentAfterRole, check: (*walker).checkSchemaName},
	"row_security_active":           {position: onlyArgument, check: (*walker).checkRelationName},
	"pg_get_serial_sequence":        {position: firstArgumentOfTwo, check: (*walker).checkRelationName},
	"pg_relation_is_updatable":      {position: firstArgumentOfTwo, check: (*walker).checkRelationName, readAsValue: true},
	"pg_column_is_updatable":        {position: firstArgumentOfThree, check: (*walker).checkRelationName, readAsValue: true},
	"pg_relation_is_publishable":    {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_relation_size":              {position: map[int]int{1: 0, 2: 0}, check: (*walker).checkRelationName, readAsValue: true},
	"pg_table_size":                 {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_indexes_size":               {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_total_relation_size":        {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_partition_root":             {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_partition_tree":             {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_partition_ancestors":        {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_index_has_property":         {position: firstArgumentOfTwo, check: (*walker).checkRelationName, readAsValue: true},
	"pg_index_column_has_property":  {position: firstArgumentOfThree, check: (*walker).checkRelationName, readAsValue: true},
	"pg_get_replica_identity_index": {position: onlyArgument, check: (*walker).checkRelationName, readAsValue: true},
	"pg_basetype":                   {position: onlyArgument, check: (*walker).checkTypeName, readAsValue: true},
}

// byName are the types whose values are made from names of the catalogs, with what judges a name; read tells that the
// server reads a constant as a value of the type, and makes it of no text. Names of roles, operators, collations and of
// what full text is made of show as they are.
var nameTypes = map[string]func(w *walker, written string, read bool) *sqlstate.Error{
	"regclass": (*walker).checkRelationName, "regtype": (*walker).checkTypeName, "regproc": (*walker).checkFunctionName,
	"regprocedure": (*walker).checkSignature, "regnamespace": (*walker).checkSchemaName,
}

// namedCast judges 'name'::regclass and its kin, and lists of such names: what is not shown is answered as what is not
// there, in PostgreSQL's words. Texts that are not constants, OIDs and parameters are beyond what the text tells.
func (w *walker) checkNameCast(c *sqltext.TypeCast) {
	schema, name, ok := qualifiedName(c.GetTypeName().GetNames())
	judge := nameTypes[name]
	if !ok || judge == nil || schema != "" && schema != "pg_catalog" {
		return
	}
	switch list := c.Arg.GetAArrayExpr(); {
	case len(c.GetTypeName().GetArrayBounds()) == 0:
		w.checkNameConstant(c.Arg, c.Arg.GetAConst() != nil, judge)
	case list != nil:
		for _, n := range list.Elements {
			w.checkNameConstant(n, n.GetAConst() != nil, judge)
		}
	default:
		if written, constant := constantString(c.Arg); constant && strings.ContainsAny(written, "{[") {
			for _, element := range arrayElements(written) {
				w.checkName(c.Arg, element, c.Arg.GetAConst() != nil, judge)
			}
		}
	}
}

// readsNoName refuses a type of names for what is read from a document: it would tell what is there.
func (w *walker) refuseNameType(t *sqltext.TypeName) {
	if schema, name, ok := qualifiedName(t.GetNames()); ok && nameTypes[name] != nil && (schema == "" || schema == "pg_catalog") {
		w.refuseAt(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonFunction,
			"columns of type %s are not available to agents here", name).
			WithHint("Read the names as text."), t.Location)
	}
}

// elements are the texts that an array's text holds, of any dimension. What is no array gives anything.
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

// namedArguments judges the constant where a function takes a name, or is a type's name.
func (w *walker) checkNameArguments(name string, args []*sqltext.Node) {
	n := nameArguments[name]
	if judge := nameTypes[name]; judge != nil {
		n = nameArgument{position: onlyArgument, check: judge, readAsValue: true}
	}
	i, takes := n.position[len(args)]
	if !takes {
		return
	}
	arg := args[i]
	if named := arg.GetNamedArgExpr(); named != nil {
		arg = named.Arg
	}
	if name == "pg_basetype" && arg.GetAConst() == nil { // no text becomes a regtype by itself
		return
	}
	w.checkNameConstant(arg, n.readAsValue && arg.GetAConst() != nil, n.check)
	// another argument may be one that there is no such function for, which PostgreSQL says before
	if n.readAsValue && len(args) > 1 {
		w.checkNameConstant(arg, arg.GetAConst() != nil, (*walker).checkUnknownRelation)
	}
}

func (w *walker) checkNameConstant(n *sqltext.Node, placed bool, judge func(w *walker, written string, read bool) *sqlstate.Error) {
	if written, constant := constantString(n); constant {
		w.checkName(n, written, placed, judge)
	}
}

func (w *walker) checkName(n *sqltext.Node, written string, placed bool,
	judge func(w *walker, written string, read bool) *sqlstate.Error) {
	if w.refused != nil {
		return
	}
	if w.refused = judge(w, written, placed); w.refused != nil && placed {
		w.refused = w.refused.At(w.source.Position(n.GetAConst().GetLocation()))
	}
}

// absent is PostgreSQL's answer to a name that leads nowhere.
func doesNotExist(code sqlstate.Code, kind, name string) *sqlstate.Error {
	return sqlstate.New(code, sqlstate.ReasonRelation, "%s \"%s\" does not exist", kind, name)
}

// softErrors is the first server that does not say which part of a name there is not, where it reads the name as a value.
const softErrorVersion = 160000

// relationInText tells of the name of a relation that is not shown. Names that lead nowhere are for the server to
// complain of, as it does whatever there is; but for those that it would look for as the statement runs, behind the
// description of the result: no refusal comes there.
func (w *walker) checkRelationName(written string, read bool) *sqlstate.Error {
	parts := splitName(written)
	if len(parts) == 0 {
		return nil
	}
	schema, name := schemaAndName(parts)
	switch own := catalog.IsOwnSchema(schema); {
	case own && (!read || w.snap.ServerVersion() < softErrorVersion):
		return doesNotExist(sqlstate.UndefinedSchema, "schema", schema)
	case !own && !w.isHiddenName(schema, name) && (read || !w.isUnknownRelation(schema, name)):
		return nil
	}
	if schema != "" {
		name = schema + "." + name
	}
	return doesNotExist(sqlstate.UndefinedTable, "relation", name)
}

// leadsNowhere tells whether there is no relation and no index of that name. Of schemas without relations the server
// knows.
func (w *walker) isUnknownRelation(schema, name string) bool {
	return w.snap.ResolveIndex(schema, name) == nil && w.isNoRowType(schema, name)
}

// isNoRow tells whether there is no relation of that name, whose row would be a type.
func (w *walker) isNoRowType(schema, name string) bool {
	_, found := w.snap.ResolveRelation(schema, name)
	return !found && (schema == "" || w.hasRelations(schema))
}

func (w *walker) hasRelations(schema string) bool {
	return slices.ContainsFunc(w.snap.Relations(), func(r *catalog.Relation) bool { return r.Name.Schema == schema })
}

// nowhereInText tells of the name of a relation that there is not.
func (w *walker) checkUnknownRelation(written string, _ bool) *sqlstate.Error {
	if isOID(written) {
		return nil
	}
	return w.checkRelationName(written, false)
}

// isOID tells whether PostgreSQL reads a text as the OID of something, or of nothing.
func isOID(written string) bool { return written == "-" || strings.Trim(written, "0123456789") == "" }

// hidesName tells whether there is a relation or an index of that name that is not shown.
func (w *walker) isHiddenName(schema, name string) bool {
	if index := w.snap.ResolveIndex(schema, name); index != nil {
		return !isIndexShown(w.snap, w.pol, index)
	}
	return w.isHiddenRelation(schema, name)
}

// hidesRelation tells whether there is a relation of that name that is not shown.
func (w *walker) isHiddenRelation(schema, name string) bool {
	relation, found := w.snap.ResolveRelation(schema, name)
	return found && !isShown(w.snap, w.pol, relation)
}

// namedType tells of the row type of a relation that is not shown, and of the array of them.
func (w *walker) checkTypeName(written string, read bool) *sqlstate.Error {
	t := parseType(written)
	schema, name, ok := qualifiedName(t.GetNames())
	if ok && catalog.IsOwnSchema(schema) {
		return doesNotExist(sqlstate.UndefinedSchema, "schema", schema)
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
	return doesNotExist(sqlstate.UndefinedObject, "type", name)
}

// namedFunction tells of functions that are not shown.
func (w *walker) checkFunctionName(written string, read bool) *sqlstate.Error {
	return w.checkFunctionText(written, written, read)
}

// namedSignature does where the types of the arguments follow, and tells of these first, as PostgreSQL does.
func (w *walker) checkSignature(written string, read bool) *sqlstate.Error {
	name, args, _ := strings.Cut(written, "(")
	args, signature := strings.CutSuffix(strings.TrimSpace(args), ")")
	if !signature { // the server says what is missing, and looks for nothing
		return nil
	}
	for _, arg := range strings.Split(args, ",") {
		t := parseType(arg)
		if t == nil {
			continue
		}
		if refused := w.checkTypeName(arg, read); refused != nil {
			return refused
		}
		// PostgreSQL says of the first that is not there
		if schema, name, ok := qualifiedName(t.GetNames()); ok && len(w.snap.TypesNamed(schema, name)) == 0 {
			return nil
		}
	}
	return w.checkFunctionText(name, written, read)
}

func (w *walker) checkFunctionText(written, whole string, read bool) *sqlstate.Error {
	parts := splitName(written)
	if len(parts) == 0 || isOID(whole) {
		return nil
	}
	schema, name := schemaAndName(parts)
	if catalog.IsOwnSchema(schema) {
		if w.snap.ServerVersion() < softErrorVersion {
			return doesNotExist(sqlstate.UndefinedSchema, "schema", schema)
		}
		return doesNotExist(sqlstate.UndefinedFunction, "function", whole)
	}
	found := w.snap.FunctionsNamed(schema, name)
	switch {
	case (schema == "" || schema == "pg_catalog") && w.snap.HasCatalogFunction(name):
		return nil
	case len(found) > 0:
	case read || schema != "" && !w.hasRelations(schema) ||
		schema == "information_schema" && w.snap.HasInfoSchemaFunction(name):
		return nil
	}
	for _, f := range found { // none: the name leads nowhere
		if w.isKnownFunction(f) || f.Name.Schema == "information_schema" {
			return nil
		}
	}
	return doesNotExist(sqlstate.UndefinedFunction, "function", whole)
}

// namedSchema tells of the schemas of our own.
func (w *walker) checkSchemaName(written string, _ bool) *sqlstate.Error {
	parts := splitName(written)
	if len(parts) != 1 || !catalog.IsOwnSchema(parts[0]) {
		return nil
	}
	return doesNotExist(sqlstate.UndefinedSchema, "schema", parts[0])
}

// lastTwo are the schema and the name of a written name; a database in front is left to the server.
func schemaAndName(parts []string) (schema, name string) {
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	return schema, parts[len(parts)-1]
}

// isShown tells whether the catalogs that agents see have a relation, or it numbers rows of one.
func isShown(snap *catalog.Snapshot, p *policy.Policy, n catalog.Name) bool {
	if n.Schema == "pg_catalog" || n.Schema == "information_schema" {
		return true
	}
	if r, ok := snap.Relation(n); ok && r.Kind == catalog.Sequence {
		return slices.ContainsFunc(p.Tables(), func(t *policy.Table) bool {
			return slices.ContainsFunc(t.Relation.Columns, func(c catalog.Column) bool { return c.Sequence == n })
		})
	}
	if _, listed := p.Table(n); listed {
		return true
	}
	if v, ok := p.View(n); ok && v.Listed {
		return true
	}
	return slices.ContainsFunc(p.Children(), func(c *policy.Child) bool { return c.Relation.Name == n })
}

// isIndexShown tells whether the catalogs that agents see have an index: that of a table that they have, where it names
// no hidden column.
func isIndexShown(snap *catalog.Snapshot, p *policy.Policy, i *catalog.Indexed) bool {
	if !i.Plain || !isShown(snap, p, i.Table) ||
		slices.ContainsFunc(p.Children(), func(c *policy.Child) bool { return c.Relation.Name == i.Table && !c.ReadableByName }) {
		return false
	}
	t, _ := p.Table(i.Table)
	return t == nil || t.Columns == nil || !slices.ContainsFunc(i.Columns, func(name string) bool {
		return !slices.ContainsFunc(t.Columns.Columns, func(c policy.VisibleColumn) bool { return c.Name == name })
	})
}

// lowerASCII is how PostgreSQL writes a name that is not quoted, where text is UTF-8.
func lowerASCII(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}

// splitName reads the name of a relation as PostgreSQL reads it in a text, or returns nil.
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
		for len(part) > 63 { // PostgreSQL cuts names off
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
