package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Document is a policy as it is written, read and checked for itself.
type Document struct {
	attributes []attributeDecl
	limits     []limitDecl
	tables     []tableDecl
	functions  []functionDecl
	views      []viewDecl
	objects    []objectDecl
	contracts  []contractDecl
	operators  []wordDecl // extensions
	air        *airDecl
	privacy    *privacyDecl
	sources    *sourcesDecl
	observe    bool             // every table, but for those that say observe: false
	blocks     map[place]string // what stands where: the name of a block
}

type attributeDecl struct {
	place
	Attribute
	setting *place // where it is said
	audit   *place // where it is said; nil: it is not
	within  *withinDecl
	query   *queryDecl
	sql     *sqlBlock
}

type tableDecl struct {
	place
	name    string
	rows    block
	columns []columnDecl // nil: all
	write   *writeDecl
	observe *place // it says observe: true
	enforce bool   // it says observe: false

	auditKeys bool   // it says audit: { keys: true }
	keysAt    *place // where

	approximate bool // it says approximate: accept

	aggregate *aggregateDecl
	consent   block // that columns with a category need; nil: none has one
	lifecycle *lifecycleDecl
}

type viewDecl struct {
	place
	name string
}

type functionDecl struct {
	place
	name string
	pins []pinDecl

	reads     []allowDecl
	readsSaid bool
	tool      *toolDecl
}

type pinDecl struct {
	place
	arg, value string
	literal    yamlfile.Literal
}

// Parse reads a policy from memory; file is the name that errors carry.
func Parse(file string, data []byte) (*Document, error) {
	l := newLoader()
	l.read(file, data, nil)
	return l.document()
}

// decoder turns nodes into declarations and collects every error on the way.
type decoder struct {
	doc  *Document
	errs Errors
	seen map[string]place // "table public.t" → where

	included []wordDecl // of the file that is being read

	known func(at place, keys []string) // told which keys a mapping may have; nil but in a test
}

func (d *decoder) fail(at place, suggestion, format string, args ...any) {
	d.errs = append(d.errs, at.Errorf(suggestion, format, args...))
}

// shapes are what somebody who writes a single value may have meant.
var shapes = map[string]string{
	"own": "write { column: …, is: … }", "tenant": "write { column: …, is: … }",
	"status": "write { column: …, is: … }", "granted": "write { column: …, is: … }",
	"stamp": "write { attribute: name } or { value: word }", "grant": "write { column: …, to: … }",
	"write":   "write { commands: [ … ], columns: [ … ] }",
	"columns": "left out, all columns show; else write { name: allow, … }",
}

// want reports a node of another kind.
func (d *decoder) want(n *node, kind yamlfile.Kind, what string) bool {
	if n.Kind != kind {
		suggestion := ""
		switch {
		case kind == yamlfile.Mapping && n.Kind == yamlfile.List:
			if suggestion = listSlips[what]; suggestion == "" {
				suggestion = "write name: value, without dashes and square brackets"
			}
		case kind == yamlfile.List && n.Kind == yamlfile.Mapping:
			suggestion = "begin each entry with a dash, or write [ … ]"
		case kind == yamlfile.List && n.Kind == yamlfile.Scalar:
			suggestion = "write [" + n.Value + "]"
		case kind == yamlfile.Mapping && n.Kind == yamlfile.Null:
			suggestion = "indent what belongs to it, further than its name"
		case kind == yamlfile.Mapping && n.Kind == yamlfile.Scalar:
			suggestion = shapes[what]
		case kind == yamlfile.Scalar && n.Kind == yamlfile.List && what == "is":
			suggestion = "one of several is any: [ … ], with a block for each"
		}
		d.fail(n.Place, suggestion, "%s must be %s, not %s", what, kind, n.Kind)
		return false
	}
	return true
}

// fields hands each value of a mapping to the function of its key. Keys of later are known and not built yet.
func (d *decoder) fields(n *node, what string, known map[string]func(*node), later ...string) bool {
	if !d.want(n, yamlfile.Mapping, what) {
		return false
	}
	if d.known != nil {
		d.known(n.Place, keys(known))
	}
	for i, key := range n.Keys {
		if f, ok := known[key]; ok {
			f(n.Values[i])
			continue
		}
		if slices.Contains(later, key) {
			d.fail(n.KeyAt[i], "", "%q in %s is not in this version", key, what)
			continue
		}
		suggestion := oneOf(key, slices.Sorted(maps.Keys(known)))
		switch {
		case strings.HasPrefix(what, "table ") && slices.Contains(d.blockNames(), key):
			suggestion = "a block stands beneath rows, with a dash before it"
		case what == "the policy" && n.Values[i].Kind == yamlfile.Mapping && slices.Contains(n.Values[i].Keys, "rows"):
			suggestion = "a table stands beneath tables"
		case what == "the policy" && slices.Contains(tableKeys, key):
			suggestion = key + " stands with the table that it speaks of: tables: { name: { rows: …, " + key + ": … } }"
		case comparisonSlip(n, what) != "":
			d.fail(n.KeyAt[i], comparisonSlip(n, what), "unknown key %q in %s", key, what)
			return false
		}
		d.fail(n.KeyAt[i], suggestion, "unknown key %q in %s", key, what)
	}
	return true
}

// need reports fields that are missing.
func (d *decoder) need(n *node, what string, fields ...string) {
	if comparisonSlip(n, what) != "" { // which says it all
		return
	}
	for _, f := range fields {
		if n.Kind == yamlfile.Mapping && !slices.Contains(n.Keys, f) {
			suggestion := ""
			switch {
			case f == "version":
				suggestion = `begin with "version: 1"`
			case f == "rows" && strings.HasPrefix(what, "table "):
				suggestion = "say which rows show, or rows: open if every row may"
			}
			d.fail(n.Place, suggestion, "%s needs %q", what, f)
		}
	}
}

// word reads a scalar that is a name or a value.
func (d *decoder) word(into *string, what string) func(*node) {
	return func(n *node) {
		if !d.want(n, yamlfile.Scalar, what) {
			return
		}
		if n.Value == "" {
			d.fail(n.Place, "", "%s is empty", what)
		}
		*into = n.Value
	}
}

// wordAt is word, and keeps the place.
func (d *decoder) wordAt(into *string, at *place, what string) func(*node) {
	return func(n *node) {
		*at = n.Place
		d.word(into, what)(n)
	}
}

func (d *decoder) root(n *node) {
	d.fields(n, "the policy", map[string]func(*node){
		"version": func(v *node) {
			if v.Kind != yamlfile.Scalar || v.Value != "1" {
				d.fail(v.Place, "this pgconsent reads version 1", "unknown version of the policy")
			}
		},
		"include":    d.include,
		"attributes": func(v *node) { d.each(v, "attributes", d.attribute) },
		"tables":     func(v *node) { d.each(v, "tables", d.table) },
		"mode":       d.mode,
		"functions":  func(v *node) { d.each(v, "functions", d.function) },
		"views":      func(v *node) { d.each(v, "views", d.view) },
		"objects":    func(v *node) { d.each(v, "objects", d.object) },
		"contracts":  func(v *node) { d.each(v, "contracts", d.contract) },
		"operators":  func(v *node) { d.doc.operators = append(d.doc.operators, d.words(v, "operators")...) },
		"limits":     d.limits,
		"air":        d.air,
		"privacy":    d.privacy,
		"sources":    d.sources,
	}, "registry", "tools")
	d.need(n, "the policy", "version")
}

// each hands the entries of a section to f and reports names that another file has already.
func (d *decoder) each(n *node, section string, f func(at place, name string, n *node)) {
	if !d.want(n, yamlfile.Mapping, section) {
		return
	}
	for i, name := range n.Keys {
		id := section + " " + name
		if first, ok := d.seen[id]; ok {
			d.fail(n.KeyAt[i], "", "%s has %q already, at %s:%d:%d", section, name, first.File, first.Line, first.Column)
			continue
		}
		d.seen[id] = n.KeyAt[i]
		f(n.KeyAt[i], name, n.Values[i])
	}
}

func (d *decoder) attribute(at place, name string, n *node) {
	decl := attributeDecl{place: at, Attribute: Attribute{Name: name}}
	what := "attribute " + name
	if n.Kind == yamlfile.Scalar {
		d.fail(n.Place, "write "+name+": { type: …, source: … }", "%s must be a mapping, not a single value", what)
		return
	}
	if !attributeName.MatchString(name) {
		d.fail(at, "", "the name of an attribute is of a-z, 0-9 and _, at most 32 long")
	}
	d.fields(n, what, map[string]func(*node){
		"type": func(v *node) {
			d.word(&decl.Type, "type")(v)
			if _, ok := attributeTypes[decl.Type]; !ok && decl.Type != "" {
				suggestion := among(decl.Type, keys(attributeTypes))
				if meant := typeSlips[strings.ToLower(decl.Type)]; meant != "" {
					suggestion = "write " + meant
				}
				d.fail(v.Place, suggestion, "%s has the unknown type %q", what, decl.Type)
			}
		},
		"source": func(v *node) {
			d.word(&decl.Source, "source")(v)
			if !slices.Contains(attributeSources, decl.Source) && decl.Source != "" {
				suggestion := closest(decl.Source, attributeSources)
				if slices.Contains([]string{"jwt", "token", "claim", "certificate", "login", "configuration", "config"}, decl.Source) {
					suggestion = `say "credential": what a login or a verified token is worth`
				} else if suggestion == "" {
					suggestion = "credential, set, query and expression are"
				}
				d.fail(v.Place, suggestion, "unknown source %q", decl.Source)
			}
		},
		"optional": d.flag(&decl.Optional, "optional"),
		"audit":    d.recording(&decl),
		"setting":  func(v *node) { decl.setting = &v.Place; d.setting(v, &decl) },
		"within":   func(v *node) { decl.within = d.claimed(v) },
		"query":    func(v *node) { decl.query = d.query(v) },
		"sql": func(v *node) {
			b := d.sql(v.Place, v).(sqlBlock)
			decl.sql = &b
		},
	})
	d.need(n, what, "type", "source")
	d.sourced(n, &decl)
	d.doc.attributes = append(d.doc.attributes, decl)
}

// tableKeys are keys of a table that are looked for elsewhere.
var tableKeys = []string{"rows", "columns", "write", "observe", "aggregate", "lifecycle"}

func (d *decoder) table(at place, name string, n *node) {
	decl := tableDecl{place: at, name: name}
	what := "table " + name
	if n.Kind == yamlfile.List && slices.Contains([]string{"rows", "columns", "write"}, name) {
		d.fail(n.Place, "indent it further than the table's name", "%s is not beneath a table", name)
		return
	}
	if n.Kind == yamlfile.Scalar || n.Kind == yamlfile.List { // what belongs under rows stands in the table's place
		suggestion := "write { rows: [ … ] }"
		if n.Kind == yamlfile.Scalar {
			suggestion = "write { rows: " + n.Value + " }"
			if n.Value != "open" {
				suggestion = "write { rows: … }, or { rows: open } if every row may show"
			}
		}
		d.fail(n.Place, suggestion, "%s must be %s, not %s", what, yamlfile.Mapping, n.Kind)
		return
	}
	d.fields(n, what, map[string]func(*node){
		"rows":    func(v *node) { decl.rows = d.rows(v) },
		"columns": func(v *node) { decl.columns = d.columns(v) },
		"write":   func(v *node) { decl.write = d.write(v) },
		"observe": func(v *node) { d.observe(&decl, v) },

		"aggregate": func(v *node) { decl.aggregate = d.aggregate(v.Place, v) },
		"audit":     func(v *node) { d.audited(&decl, v) },
		"approximate": func(v *node) {
			word := ""
			d.word(&word, "approximate")(v)
			if decl.approximate = word == "accept"; !decl.approximate && word != "" {
				d.fail(v.Place,
					"write approximate: accept, or leave it out: searches for the nearest rows are then exact",
					"unknown word %q in approximate", word)
			}
		},
		"consent":   func(v *node) { decl.consent = d.consent(v.Place, v) },
		"lifecycle": func(v *node) { decl.lifecycle = d.lifecycle(v.Place, v) },
	}, "source", "limit")
	d.need(n, what, "rows")
	d.doc.tables = append(d.doc.tables, decl)
}

func (d *decoder) function(at place, name string, n *node) {
	decl := functionDecl{place: at, name: name}
	what := "function " + name
	if n.Kind == yamlfile.Null || (n.Kind == yamlfile.Mapping && len(n.Keys) == 0) {
		d.doc.functions = append(d.doc.functions, decl)
		return
	}
	d.fields(n, what, map[string]func(*node){
		"pin": func(v *node) {
			if !d.want(v, yamlfile.Mapping, "pin") {
				return
			}
			for i, arg := range v.Keys {
				if d.want(v.Values[i], yamlfile.Scalar, "the value of a pinned argument") {
					decl.pins = append(decl.pins, pinDecl{v.KeyAt[i], arg, v.Values[i].Value, v.Values[i].Literal})
				}
			}
		},
		"reads": func(v *node) { d.reads(&decl, v) },
		"tool":  func(v *node) { d.tool(&decl, v) },
	}, "limit")
	d.doc.functions = append(d.doc.functions, decl)
}

func (d *decoder) view(at place, name string, n *node) {
	d.doc.views = append(d.doc.views, viewDecl{place: at, name: name})
	if n.Kind != yamlfile.Null {
		d.fields(n, "view "+name, nil, "columns", "by_key", "limit")
	}
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
