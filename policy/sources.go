package policy

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Sources says at which path of the HTTP API callers fetch the full text of a row, and which JSON members the answer
// has.
type Sources struct {
	Path   string // the path without the id, such as /api/v1/brain/sources/
	Table  *Table
	Key    string // the column with the id
	Fields []SourceField
	Body   string // the column with the text; its first line is the title
}

// SourceField is a JSON member of the answer, and the column from which its value comes.
type SourceField struct {
	Name, Column string
	JSON         string // a key in a JSON column; "": the whole column is the value
}

// Sources returns the section sources of the policy; nil: it has none.
func (p *Policy) Sources() *Sources { return p.sources }

// sourcesDecl is the section sources.
type sourcesDecl struct {
	place
	path, table, key, body         string
	pathAt, tableAt, keyAt, bodyAt place
	fields                         []wordDecl
	names                          []string
}

func (d *privacyDecoder) decodeSources(n *node) {
	decl := sourcesDecl{place: n.Place, pathAt: n.Place, tableAt: n.Place, keyAt: n.Place, bodyAt: n.Place}
	d.decodeFields(n, "sources", map[string]func(*node){
		"path":  d.decodeWordAt(&decl.path, &decl.pathAt, "path"),
		"table": d.decodeWordAt(&decl.table, &decl.tableAt, "table"),
		"key":   d.decodeWordAt(&decl.key, &decl.keyAt, "key"),
		"body":  d.decodeWordAt(&decl.body, &decl.bodyAt, "body"),
		"fields": func(v *node) {
			if !d.requireKind(v, yamlfile.MappingNode, "fields") {
				return
			}
			for i, name := range v.Keys {
				w := wordDecl{place: v.Values[i].Place}
				d.decodeWord(&w.text, name)(v.Values[i])
				if !attributeName.MatchString(name) || name == "body" {
					d.fail(v.KeyPlaces[i], "body has a key of its own", "a field of sources is of a-z, 0-9 and _, and not body")
				}
				decl.names, decl.fields = append(decl.names, name), append(decl.fields, w)
			}
		},
	})
	d.requireFields(n, "sources", "path", "table", "key", "fields", "body")
	if existing := d.doc.sources; existing != nil {
		d.fail(n.Place, "write it once", "sources is there already, at %s:%d:%d", existing.File, existing.Line,
			existing.Column)
		return
	}
	d.doc.sources = &decl
}

// sourcesPath matches a path whose last part stands for the id.
var sourcesPath = regexp.MustCompile(`^((?:/[A-Za-z0-9._~-]+)+/)\{[a-z_][a-z0-9_]*\}$`)

// reservedPaths are the paths that the server itself uses.
var reservedPaths = []string{"/v1/", "/mcp/", "/console/", "/metrics/", "/healthz/", "/readyz/"}

// compileSources compiles the section sources, after all tables.
func (c *compiler) compileSources(p *Policy) *Sources {
	decl := c.doc.sources
	if decl == nil {
		return nil
	}
	out := &Sources{Key: decl.key, Body: decl.body}
	m := sourcesPath.FindStringSubmatch(decl.path)
	switch {
	case m == nil:
		c.fail(decl.pathAt, "write it like /api/v1/sources/{id}", "path is a path whose last part is {a name}")
	case m[1] != "/v1/sources/" && slices.ContainsFunc(reservedPaths, func(t string) bool { return strings.HasPrefix(m[1], t) }):
		c.fail(decl.pathAt, "write it like /api/v1/sources/{id}", "something else is under this path already")
	default:
		out.Path = m[1]
	}
	r := c.findTable(decl.tableAt, decl.table)
	if r == nil {
		return nil
	}
	if out.Table = p.tableIndex[r.Name]; out.Table == nil {
		c.fail(decl.tableAt, "list it under tables", "%s is not in the policy: nobody could read it", r.Name)
		return nil
	}
	if key := c.findRuleColumn(decl.keyAt, r, decl.key); key != nil {
		if f := typeFamily(key.Type); f != "uuid" && f != "integer" && f != "text" {
			c.fail(decl.keyAt, "name a column of type uuid, integer or text", "%s.%s is a %s, which is no id",
				r.Name, key.Name, key.Type)
		}
		if len(r.PrimaryKey) != 1 || r.PrimaryKey[0] != key.Name {
			c.fail(decl.keyAt, "name the primary key", "%s.%s does not tell one row from all others", r.Name, key.Name)
		}
	}
	if column := c.findColumn(decl.bodyAt, r, decl.body); column != nil && typeFamily(column.Type) != "text" {
		c.fail(decl.bodyAt, "name a text column", "%s.%s is a %s", r.Name, column.Name, column.Type)
	}
	for i, w := range decl.fields {
		name, key, inJSON := strings.Cut(w.text, ".")
		column := c.findColumn(w.place, r, name)
		if column == nil {
			continue
		}
		if inJSON && column.Type != "jsonb" && column.Type != "json" {
			c.fail(w.place, "write the column alone", "%s.%s is a %s and has no keys", r.Name, name, column.Type)
		}
		if inJSON && !out.Table.isKeyVisible(name, key) {
			c.fail(w.place, "list it under keys of the column", "agents do not see the key %q of %s.%s", key, r.Name, name)
		}
		out.Fields = append(out.Fields, SourceField{Name: decl.names[i], Column: name, JSON: key})
	}
	for _, f := range append(slices.Clone(out.Fields), SourceField{Column: out.Key}, SourceField{Column: out.Body}) {
		if n := out.Table.Columns; n != nil && !n.ByKey.Has(f.Column) &&
			!slices.ContainsFunc(n.Columns, func(s VisibleColumn) bool { return s.Name == f.Column }) {
			c.fail(decl.place, "allow it under columns", "agents do not see %s.%s", r.Name, f.Column)
		}
	}
	return out
}

// isKeyVisible tells whether agents see a key of a JSON column.
func (t *Table) isKeyVisible(column, key string) bool {
	if t.Columns == nil {
		return true
	}
	for _, s := range t.Columns.Columns {
		if s.Name == column {
			return s.Mask != Keys || slices.ContainsFunc(s.Keys, func(k Key) bool { return k.Name == key })
		}
	}
	return false
}

func (s *Sources) describe(h io.Writer) {
	if s != nil {
		fmt.Fprintf(h, "sources %q %q %q %q %q\n", s.Path, s.Table.Relation.Name.String(), s.Key, s.Fields, s.Body)
	}
}
