package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

type attributeDecl struct {
	place
	Attribute
	setting *place // the place of setting
	audit   *place // the place of audit; nil: it is not there
	within  *withinDecl
	lookup  *lookupDecl
	sql     *sqlBlock
}

func (d *attributeDecoder) decodeAttribute(at place, name string, n *node) {
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
		"audit":    d.decodeAttributeAudit(&decl),
		"setting":  func(v *node) { decl.setting = &v.Place; d.decodeSetting(v, &decl) },
		"within":   func(v *node) { decl.within = d.decodeWithin(v) },
		"query":    func(v *node) { decl.lookup = d.decodeQuery(v) },
		"sql": func(v *node) {
			b := d.blocks.decodeSQL(v.Place, v).(sqlBlock)
			decl.sql = &b
		},
	})
	d.need(n, what, "type", "source")
	d.checkSource(n, &decl)
	d.doc.attributes = append(d.doc.attributes, decl)
}

// The sources of an attribute.
const (
	sourceCredential = "credential" // the configuration, or a token
	sourceSet        = "set"        // a setting of the session, among the values that the policy permits
	sourceQuery      = "query"      // a look-up in the database
	sourceExpression = "expression" // an expression over other attributes
)

var attributeSources = []string{sourceCredential, sourceSet, sourceQuery, sourceExpression}

// withinDecl lists the values that a session may claim.
type withinDecl struct {
	place
	attributes []attributeRef
	values     []*node
	source     *lookupDecl // a table with a column of these values
}

// lookupDecl is `{ table: …, column: …, match: { column: attribute }, rows: … }`.
type lookupDecl struct {
	place
	table   string
	tableAt place
	column  string
	match   []ownBlock
	rows    block
}

func (d *attributeDecoder) decodeSetting(n *node, decl *attributeDecl) {
	var written string
	d.word(&written, "setting")(n)
	if written == "" {
		return
	}
	decl.Setting = strings.ToLower(written)
	prefix, _, _ := strings.Cut(decl.Setting, ".")
	switch {
	case !settingName.MatchString(decl.Setting):
		d.fail(n.Place, "write it like app.current_user", "the setting %q is not of two plain names with a dot between", written)
	case slices.Contains(serverPrefixes, prefix):
		d.fail(n.Place, "choose a name of the application's own", "settings of %s mean something to the server", prefix)
	}
}

// settingName is the form of a setting that agents may set: two plain names, as PostgreSQL requires of settings that
// are not its own.
var settingName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}\.[a-z_][a-z0-9_]{0,40}$`)

// ownSettings are the settings that pgconsent uses itself. No agent may set one of them.
var ownSettings = []string{"pgconsent.seal", "pgconsent.changed", "pgconsent.catalog_changed",
	"pgconsent.discard_consent", "pgconsent.discard_audit", "pgconsent.materialized_due", "pgconsent.reason", "pgconsent.sweep"}

// serverPrefixes are the prefixes of settings that mean something to the server's own modules.
var serverPrefixes = []string{"pg_catalog", "plpgsql", "auto_explain", "pg_stat_statements", "pg_trgm", "hnsw",
	"ivfflat", "postgres_fdw", "pg_prewarm", "sepgsql", "basebackup_to_shell"}

func (d *attributeDecoder) decodeWithin(n *node) *withinDecl {
	out := &withinDecl{place: n.Place}
	if n.Kind == yamlfile.Mapping && slices.Contains(n.Keys, "table") {
		out.source = d.decodeLookup(n, "within")
		return out
	}
	d.fields(n, "within", map[string]func(*node){
		"attribute": func(v *node) {
			items := v.Items
			if v.Kind == yamlfile.Scalar {
				items = []*node{v}
			} else if !d.expect(v, yamlfile.List, "attribute") {
				return
			}
			for _, item := range items {
				g := attributeRef{place: item.Place}
				d.word(&g.attribute, "attribute")(item)
				out.attributes = append(out.attributes, g)
			}
		},
		"values": func(v *node) {
			if d.expect(v, yamlfile.List, "values") {
				for _, item := range v.Items {
					var value string
					d.word(&value, "a value")(item)
				}
				out.values = v.Items
			}
		},
	})
	if len(out.attributes) == 0 && len(out.values) == 0 || len(out.attributes) > 0 && len(out.values) > 0 {
		d.fail(n.Place, "write { attribute: name }, { values: [a, b] } or { table: …, column: …, rows: … }",
			"within needs one thing that says which values count")
	}
	return out
}

func (d *attributeDecoder) decodeQuery(n *node) *lookupDecl { return d.decodeLookup(n, "query") }

// decodeLookup reads the table in which a value is looked up.
func (d *attributeDecoder) decodeLookup(n *node, what string) *lookupDecl {
	out := &lookupDecl{place: n.Place, tableAt: n.Place}
	fields := map[string]func(*node){
		"table":  func(v *node) { out.tableAt = v.Place; d.word(&out.table, "table")(v) },
		"column": d.word(&out.column, "column"),
		"rows":   func(v *node) { out.rows = d.blocks.decodeRows(v) },
		"match": func(v *node) {
			if !d.expect(v, yamlfile.Mapping, "match") {
				return
			}
			for i, column := range v.Keys {
				b := ownBlock{place: v.KeyAt[i], column: column, attributeAt: v.Values[i].Place}
				d.word(&b.attribute, "an attribute")(v.Values[i])
				out.match = append(out.match, b)
			}
		},
	}
	d.fields(n, what, fields)
	d.need(n, what, "table", "column")
	if n.Kind == yamlfile.Mapping && out.rows == nil && len(out.match) == 0 {
		suggestion := "write match: { its column: an attribute }"
		if what == "within" {
			suggestion = `write rows: open if every row's value counts`
		}
		d.fail(n.Place, suggestion, "%s says nothing of which rows count", what)
	}
	return out
}

// checkSource reports keys of an attribute that do not fit its source.
func (d *attributeDecoder) checkSource(n *node, decl *attributeDecl) {
	what := "attribute " + decl.Name
	fits := map[string][]string{sourceSet: {"setting", "within"}, sourceQuery: {"query"}, sourceExpression: {"sql"}}
	if n.Kind != yamlfile.Mapping || !slices.Contains(attributeSources, decl.Source) {
		return
	}
	for i, key := range n.Keys {
		for _, source := range attributeSources {
			if slices.Contains(fits[source], key) && source != decl.Source {
				d.fail(n.KeyAt[i], "write source: "+source, "%s has %q, and its source is %s", what, key, decl.Source)
			}
		}
	}
	switch decl.Source {
	case sourceSet:
		d.need(n, what, "within")
		if decl.Setting == "" && decl.setting == nil {
			decl.Setting = predicate.Schema + "." + decl.Name
			decl.setting = &decl.place
		}
		if slices.Contains(ownSettings, decl.Setting) ||
			decl.Setting != predicate.Schema+"."+decl.Name && strings.HasPrefix(decl.Setting, predicate.Schema+".") {
			d.fail(*decl.setting, "write setting: app."+decl.Name, "the setting %s is pgconsent's own", decl.Setting)
		}
	case sourceQuery:
		d.need(n, what, "query")
	case sourceExpression:
		d.need(n, what, "sql")
	}
	if decl.Source != sourceCredential && strings.HasSuffix(decl.Type, "[]") {
		d.fail(decl.place, "declare "+strings.TrimSuffix(decl.Type, "[]"), "%s is a list, which only a credential gives", what)
	}
}
