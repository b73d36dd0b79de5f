package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// functionDecl is an entry of the section functions.
type functionDecl struct {
	place
	name string
	pins []pinDecl

	reads    []allowDecl
	hasReads bool
	tool     *toolDecl
}

// pinDecl is a value that the policy gives to an argument of a function in every call.
type pinDecl struct {
	place
	arg, value string
	literal    yamlfile.ScalarType
}

// decodeFunction reads a function that agents may call.
func (d *functionDecoder) decodeFunction(position place, name string, n *node) {
	decl := functionDecl{place: position, name: name}
	label := "function " + name
	if n.Kind == yamlfile.NullNode || (n.Kind == yamlfile.MappingNode && len(n.Keys) == 0) {
		d.doc.functions = append(d.doc.functions, decl)
		return
	}
	d.decodeFields(n, label, map[string]func(*node){
		"pin": func(v *node) {
			if !d.requireKind(v, yamlfile.MappingNode, "pin") {
				return
			}
			for i, arg := range v.Keys {
				if d.requireKind(v.Values[i], yamlfile.ScalarNode, "the value of a pinned argument") {
					decl.pins = append(decl.pins, pinDecl{v.KeyPlaces[i], arg, v.Values[i].Value, v.Values[i].ScalarType})
				}
			}
		},
		"reads": func(v *node) { d.decodeReads(&decl, v) },
		"tool":  func(v *node) { d.decodeTool(&decl, v) },
	}, "limit")
	d.doc.functions = append(d.doc.functions, decl)
}

// decodeReads reads the key reads: the tables that a function reads, with the sources of these reads.
func (d *functionDecoder) decodeReads(decl *functionDecl, n *node) {
	decl.hasReads = true
	if n.Kind == yamlfile.ScalarNode && n.Value == "nothing" {
		return
	}
	if !d.requireKind(n, yamlfile.MappingNode, "reads") {
		return
	}
	for i, key := range n.Keys {
		a := allowDecl{object: wordDecl{n.KeyPlaces[i], key}, sources: d.decodeDifferentWords(n.Values[i],
			"the sources of "+key)}
		for _, s := range a.sources {
			if s.text == SourceWrite || !slices.Contains(sourceWords, s.text) {
				d.fail(s.place, closestOrAll(s.text, sourceWords[:3]), "unknown source %q", s.text)
			}
		}
		decl.reads = append(decl.reads, a)
	}
}

// functionCompiler compiles the functions that agents may call, and the tools of MCP that publish them.
type functionCompiler struct{ *resolver }

// compile checks every overload that a call of the function may mean. The result is nil after an error.
func (c *functionCompiler) compile(decl functionDecl) *Function {
	schema, name := splitName(decl.name)
	overloads := c.snap.FunctionsNamed(schema, name)
	if schema == "" && c.snap.HasCatalogFunction(name) {
		c.fail(decl.place, "name it with its schema", "%q is a function of pg_catalog", name)
		return nil
	}
	if len(overloads) == 0 || isSystemSchema(overloads[0].Name.Schema) {
		suggestion := c.suggestFunction(schema, decl.name)
		if baseType, _, arguments := strings.Cut(decl.name, "("); arguments {
			suggestion = "write the name alone, which stands for all of its overloads: " + strings.TrimSpace(baseType)
		}
		c.fail(decl.place, suggestion, "the database has no function %q%s", decl.name, c.searchPathNote(schema))
		return nil
	}
	out := &Function{Name: overloads[0].Name}
	errorsBefore := len(c.errs)
	for _, o := range overloads {
		if o.Name != out.Name {
			c.fail(decl.place, "name it with its schema",
				"%q is in more than one schema of the search path: %s and %s", name, out.Name, o.Name)
			return nil
		}
		switch {
		case o.Kind != 'f' && o.Kind != 'a':
			c.fail(decl.place, "list a function or an aggregate, which SELECT calls", "%s is a %s", functionSignature(o),
				map[byte]string{'p': "procedure", 'w': "window function"}[o.Kind])
		case o.Kind == 'a' && o.SecurityDefiner:
			c.fail(decl.place, "make that SECURITY INVOKER",
				"the aggregate %s is made of a function that is SECURITY DEFINER: it runs past row security", functionSignature(o))
		case o.Kind == 'a' && len(decl.pins) > 0:
			c.fail(decl.place, "", "%s is an aggregate: its arguments cannot be pinned", functionSignature(o))
		case o.SecurityDefiner:
			c.fail(decl.place, "make it SECURITY INVOKER", "%s is SECURITY DEFINER: it runs past row security", functionSignature(o))
		case o.DefinerDefault != "":
			c.fail(decl.place, "make that SECURITY INVOKER, or the argument one that is always given",
				"a default of %s calls %s, which is SECURITY DEFINER: it runs past row security", functionSignature(o), o.DefinerDefault)
		case o.Variadic && len(decl.pins) > 0:
			c.fail(decl.place, "", "%s is variadic: its arguments cannot be pinned", functionSignature(o))
		}
		out.Overloads = append(out.Overloads, o)
	}
	for _, pin := range decl.pins {
		if p, ok := c.compilePin(pin, out); ok {
			out.Pins = append(out.Pins, p)
		}
	}
	if len(c.errs) > errorsBefore {
		return nil
	}
	slices.SortFunc(out.Overloads, func(a, b *catalog.Function) int { return slices.Compare(a.ArgTypes, b.ArgTypes) })
	slices.SortFunc(out.Pins, func(a, b Pin) int { return strings.Compare(a.Arg, b.Arg) })
	return out
}

// compilePin finds the pinned argument in every overload, and writes its value as SQL.
func (c *functionCompiler) compilePin(decl pinDecl, f *Function) (Pin, bool) {
	argType := ""
	for _, o := range f.Overloads {
		i := slices.Index(o.ArgNames, decl.arg)
		if i < 0 || i >= len(o.ArgTypes) {
			c.fail(decl.place, closestOrFew(decl.arg, o.ArgNames), "%s has no argument %q", functionSignature(o), decl.arg)
			return Pin{}, false
		}
		if argType != "" && argType != o.ArgTypes[i] {
			c.fail(decl.place, "", "%q is a %s in one overload of %s and a %s in another", decl.arg, argType, f.Name, o.ArgTypes[i])
			return Pin{}, false
		}
		argType = o.ArgTypes[i]
	}
	cast, literal := "", yamlfile.StringScalar
	switch {
	case argType == "boolean":
		cast, literal = "bool", yamlfile.BoolScalar
	case argType == "smallint" || argType == "integer" || argType == "bigint":
		cast, literal = map[string]string{"smallint": "int2", "integer": "int4",
			"bigint": "int8"}[argType], yamlfile.IntegerScalar
		bits := map[string]int{"smallint": 16, "integer": 32, "bigint": 64}[argType]
		if _, err := strconv.ParseInt(decl.value, 10, bits); decl.literal == yamlfile.IntegerScalar && err != nil {
			c.fail(decl.place, "", "%q must be a decimal %s", decl.arg, argType)
			return Pin{}, false
		}
	case typeFamily(argType) == "text":
		cast = "text"
	case argType == "uuid" && uuidPattern.MatchString(decl.value):
		cast = "uuid"
	default:
		c.fail(decl.place, "boolean, integer, text and uuid arguments can be pinned", "%q is a %s", decl.arg, argType)
		return Pin{}, false
	}
	if decl.literal != literal {
		suggestion := map[yamlfile.ScalarType]string{yamlfile.BoolScalar: "write true or false",
			yamlfile.IntegerScalar: "write a whole number, without quotes", yamlfile.StringScalar: "write it in quotes"}[literal]
		c.fail(decl.place, suggestion, "%q is a %s, and the value is not", decl.arg, argType)
		return Pin{}, false
	}
	return Pin{Arg: decl.arg, Value: catalog.QuoteLiteral(decl.value) + "::pg_catalog." + cast}, true
}

// compileReads compiles the declaration of the tables that a function reads.
func (c *functionCompiler) compileReads(decl functionDecl, f *Function) {
	if !decl.hasReads {
		return
	}
	f.Reads = []FunctionReads{}
	for _, d := range decl.reads {
		r := c.findTable(d.object.place, d.object.text)
		if r == nil {
			continue
		}
		reads := FunctionReads{Relation: r.Name}
		for _, s := range d.sources {
			reads.Sources = append(reads.Sources, s.text)
		}
		f.Reads = append(f.Reads, reads)
	}
}

func functionSignature(f *catalog.Function) string {
	return f.Name.String() + "(" + strings.Join(f.ArgTypes, ", ") + ")"
}
