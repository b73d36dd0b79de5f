package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// attributeDecl is an entry of the section attributes.
type attributeDecl struct {
	place
	Attribute
	setting *place // the place of the key setting
	audit   *place // the place of the key audit; nil: there is no such key
	within  *withinDecl
	lookup  *lookupDecl
	sql     *sqlBlock
}

func (d *attributeDecoder) decodeAttribute(position place, name string, n *node) {
	decl := attributeDecl{place: position, Attribute: Attribute{Name: name}}
	label := "attribute " + name
	if n.Kind == yamlfile.ScalarNode {
		d.fail(n.Place, "write "+name+": { type: …, source: … }", "%s must be a mapping, not a single value", label)
		return
	}
	if !attributeName.MatchString(name) {
		d.fail(position, "", "the name of an attribute is of a-z, 0-9 and _, at most 32 long")
	}
	d.decodeFields(n, label, map[string]func(*node){
		"type": func(v *node) {
			d.decodeWord(&decl.Type, "type")(v)
			if _, ok := attributeTypes[decl.Type]; !ok && decl.Type != "" {
				suggestion := closestOrAll(decl.Type, sortedKeys(attributeTypes))
				if correction := typeSlips[strings.ToLower(decl.Type)]; correction != "" {
					suggestion = "write " + correction
				}
				d.fail(v.Place, suggestion, "%s has the unknown type %q", label, decl.Type)
			}
		},
		"source": func(v *node) {
			d.decodeWord(&decl.Source, "source")(v)
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
		"optional": d.decodeFlag(&decl.Optional, "optional"),
		"audit":    d.decodeAttributeAudit(&decl),
		"setting":  func(v *node) { decl.setting = &v.Place; d.decodeSetting(v, &decl) },
		"within":   func(v *node) { decl.within = d.decodeWithin(v) },
		"query":    func(v *node) { decl.lookup = d.decodeQuery(v) },
		"sql": func(v *node) {
			b := d.blocks.decodeSQL(v.Place, v).(sqlBlock)
			decl.sql = &b
		},
	})
	d.requireFields(n, label, "type", "source")
	d.checkSource(n, &decl)
	d.doc.attributes = append(d.doc.attributes, decl)
}

// The sources of an attribute's value.
const (
	sourceCredential = "credential" // the configuration or a token provides the value
	sourceSet        = "set"        // the session sets the value; it must be one of the values that the policy permits
	sourceQuery      = "query"      // the database reads the value from a table
	sourceExpression = "expression" // the database computes the value from other attributes
)

var attributeSources = []string{sourceCredential, sourceSet, sourceQuery, sourceExpression}

// withinDecl lists the values that a session may claim for an attribute.
type withinDecl struct {
	place
	attributes []attributeRef
	values     []*node
	source     *lookupDecl // a table with a column that holds the permitted values
}

// lookupDecl says from which table an attribute's value is read: `{ table: …, column: …, match: { column: attribute },
// rows: … }`.
type lookupDecl struct {
	place
	table             string
	tableAt           place
	column            string
	matchedAttributes []ownBlock
	rows              block
}

func (d *attributeDecoder) decodeSetting(n *node, decl *attributeDecl) {
	var writtenName string
	d.decodeWord(&writtenName, "setting")(n)
	if writtenName == "" {
		return
	}
	decl.Setting = strings.ToLower(writtenName)
	prefix, _, _ := strings.Cut(decl.Setting, ".")
	switch {
	case !settingName.MatchString(decl.Setting):
		d.fail(n.Place, "write it like app.current_user", "the setting %q is not of two plain names with a dot between",
			writtenName)
	case slices.Contains(serverPrefixes, prefix):
		d.fail(n.Place, "choose a name of the application's own", "settings of %s mean something to the server", prefix)
	}
}

// settingName matches the name of a setting that agents may set. PostgreSQL requires that names of custom settings
// contain a dot.
var settingName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}\.[a-z_][a-z0-9_]{0,40}$`)

// pgconsentSettings are the settings that pgconsent itself uses. The policy must not name one of them as a setting that
// agents set.
var pgconsentSettings = []string{"pgconsent.seal", "pgconsent.acting", "pgconsent.token", "pgconsent.changed", "pgconsent.catalog_changed",
	"pgconsent.discard_consent", "pgconsent.discard_audit", "pgconsent.materialized_due", "pgconsent.reason", "pgconsent.sweep"}

// serverPrefixes are the prefixes of settings that belong to PostgreSQL and to its extensions.
var serverPrefixes = []string{"pg_catalog", "plpgsql", "auto_explain", "pg_stat_statements", "pg_trgm", "hnsw",
	"ivfflat", "postgres_fdw", "pg_prewarm", "sepgsql", "basebackup_to_shell"}

func (d *attributeDecoder) decodeWithin(n *node) *withinDecl {
	out := &withinDecl{place: n.Place}
	if n.Kind == yamlfile.MappingNode && slices.Contains(n.Keys, "table") {
		out.source = d.decodeLookup(n, "within")
		return out
	}
	d.decodeFields(n, "within", map[string]func(*node){
		"attribute": func(v *node) {
			items := v.Items
			if v.Kind == yamlfile.ScalarNode {
				items = []*node{v}
			} else if !d.requireKind(v, yamlfile.ListNode, "attribute") {
				return
			}
			for _, item := range items {
				g := attributeRef{place: item.Place}
				d.decodeWord(&g.attribute, "attribute")(item)
				out.attributes = append(out.attributes, g)
			}
		},
		"values": func(v *node) {
			if d.requireKind(v, yamlfile.ListNode, "values") {
				for _, item := range v.Items {
					var value string
					d.decodeWord(&value, "a value")(item)
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

// decodeLookup reads from which table an attribute's value is read.
func (d *attributeDecoder) decodeLookup(n *node, label string) *lookupDecl {
	out := &lookupDecl{place: n.Place, tableAt: n.Place}
	fields := map[string]func(*node){
		"table":  func(v *node) { out.tableAt = v.Place; d.decodeWord(&out.table, "table")(v) },
		"column": d.decodeWord(&out.column, "column"),
		"rows":   func(v *node) { out.rows = d.blocks.decodeRows(v) },
		"match": func(v *node) {
			if !d.requireKind(v, yamlfile.MappingNode, "match") {
				return
			}
			for i, column := range v.Keys {
				b := ownBlock{place: v.KeyPlaces[i], column: column, attributeAt: v.Values[i].Place}
				d.decodeWord(&b.attribute, "an attribute")(v.Values[i])
				out.matchedAttributes = append(out.matchedAttributes, b)
			}
		},
	}
	d.decodeFields(n, label, fields)
	d.requireFields(n, label, "table", "column")
	if n.Kind == yamlfile.MappingNode && out.rows == nil && len(out.matchedAttributes) == 0 {
		suggestion := "write match: { its column: an attribute }"
		if label == "within" {
			suggestion = `write rows: open if every row's value counts`
		}
		d.fail(n.Place, suggestion, "%s says nothing of which rows count", label)
	}
	return out
}

// checkSource reports keys of an attribute that its source does not use.
func (d *attributeDecoder) checkSource(n *node, decl *attributeDecl) {
	label := "attribute " + decl.Name
	keysOfSource := map[string][]string{sourceSet: {"setting", "within"}, sourceQuery: {"query"},
		sourceExpression: {"sql"}}
	if n.Kind != yamlfile.MappingNode || !slices.Contains(attributeSources, decl.Source) {
		return
	}
	for i, key := range n.Keys {
		for _, source := range attributeSources {
			if slices.Contains(keysOfSource[source], key) && source != decl.Source {
				d.fail(n.KeyPlaces[i], "write source: "+source, "%s has %q, and its source is %s", label, key, decl.Source)
			}
		}
	}
	switch decl.Source {
	case sourceSet:
		d.requireFields(n, label, "within")
		if decl.Setting == "" && decl.setting == nil {
			decl.Setting = predicate.OwnSchema + "." + decl.Name
			decl.setting = &decl.place
		}
		if slices.Contains(pgconsentSettings, decl.Setting) ||
			decl.Setting != predicate.OwnSchema+"."+decl.Name && strings.HasPrefix(decl.Setting, predicate.OwnSchema+".") {
			d.fail(*decl.setting, "write setting: app."+decl.Name, "the setting %s is pgconsent's own", decl.Setting)
		}
	case sourceQuery:
		d.requireFields(n, label, "query")
	case sourceExpression:
		d.requireFields(n, label, "sql")
	}
	if decl.Source != sourceCredential && strings.HasSuffix(decl.Type, "[]") {
		d.fail(decl.place, "declare "+strings.TrimSuffix(decl.Type, "[]"), "%s is a list, which only a credential gives",
			label)
	}
}
