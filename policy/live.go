package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// The attributeSources of an attribute.
const (
	credential = "credential" // the configuration says it
	set        = "set"        // the session claims it in a setting, within what the policy lets through
	query      = "query"      // the database looks it up
	computed   = "expression" // it follows from others
)

var attributeSources = []string{credential, set, query, computed}

// withinDecl says which claims count.
type withinDecl struct {
	place
	attributes []grantee
	values     []*node
	source     *queryDecl // a table, whose column holds them
}

// queryDecl is `{ table: …, column: …, match: { column: attribute }, rows: … }`.
type queryDecl struct {
	place
	table   string
	tableAt place
	column  string
	match   []ownBlock
	rows    block
}

func (d *decoder) flag(into *bool, what string) func(*node) {
	return func(n *node) {
		if n.Kind != yamlfile.Scalar || n.Literal != yamlfile.Bool {
			d.fail(n.Place, "write true or false", "%s is true or false", what)
			return
		}
		*into = n.Value == "true"
	}
}

// settingName is what a setting may be called that agents may set: two plain names, as PostgreSQL asks of settings that
// are not its own.
var settingName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}\.[a-z_][a-z0-9_]{0,40}$`)

// ownSettings are those that pgconsent keeps for itself. None of them may be an agent's to set.
var ownSettings = []string{"pgconsent.seal", "pgconsent.changed", "pgconsent.catalog_changed",
	"pgconsent.discard_consent", "pgconsent.discard_audit", "pgconsent.kept_due", "pgconsent.reason", "pgconsent.sweep"}

// takenPrefixes are those of settings that mean something to the server's own modules.
var takenPrefixes = []string{"pg_catalog", "plpgsql", "auto_explain", "pg_stat_statements", "pg_trgm", "hnsw",
	"ivfflat", "postgres_fdw", "pg_prewarm", "sepgsql", "basebackup_to_shell"}

func (d *decoder) setting(n *node, decl *attributeDecl) {
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
	case slices.Contains(takenPrefixes, prefix):
		d.fail(n.Place, "choose a name of the application's own", "settings of %s mean something to the server", prefix)
	}
}

func (d *decoder) claimed(n *node) *withinDecl {
	out := &withinDecl{place: n.Place}
	if n.Kind == yamlfile.Mapping && slices.Contains(n.Keys, "table") {
		out.source = d.looked(n, "within")
		return out
	}
	d.fields(n, "within", map[string]func(*node){
		"attribute": func(v *node) {
			items := v.Items
			if v.Kind == yamlfile.Scalar {
				items = []*node{v}
			} else if !d.want(v, yamlfile.List, "attribute") {
				return
			}
			for _, item := range items {
				g := grantee{place: item.Place}
				d.word(&g.attribute, "attribute")(item)
				out.attributes = append(out.attributes, g)
			}
		},
		"values": func(v *node) {
			if d.want(v, yamlfile.List, "values") {
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

func (d *decoder) query(n *node) *queryDecl { return d.looked(n, "query") }

// looked reads where a value is looked up.
func (d *decoder) looked(n *node, what string) *queryDecl {
	out := &queryDecl{place: n.Place, tableAt: n.Place}
	fields := map[string]func(*node){
		"table":  func(v *node) { out.tableAt = v.Place; d.word(&out.table, "table")(v) },
		"column": d.word(&out.column, "column"),
		"rows":   func(v *node) { out.rows = d.rows(v) },
		"match": func(v *node) {
			if !d.want(v, yamlfile.Mapping, "match") {
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

// sourced reports what an attribute says that does not fit its source.
func (d *decoder) sourced(n *node, decl *attributeDecl) {
	what := "attribute " + decl.Name
	fits := map[string][]string{set: {"setting", "within"}, query: {"query"}, computed: {"sql"}}
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
	case set:
		d.need(n, what, "within")
		if decl.Setting == "" && decl.setting == nil {
			decl.Setting = predicate.Schema + "." + decl.Name
			decl.setting = &decl.place
		}
		if slices.Contains(ownSettings, decl.Setting) ||
			decl.Setting != predicate.Schema+"."+decl.Name && strings.HasPrefix(decl.Setting, predicate.Schema+".") {
			d.fail(*decl.setting, "write setting: app."+decl.Name, "the setting %s is pgconsent's own", decl.Setting)
		}
	case query:
		d.need(n, what, "query")
	case computed:
		d.need(n, what, "sql")
	}
	if decl.Source != credential && strings.HasSuffix(decl.Type, "[]") {
		d.fail(decl.place, "declare "+strings.TrimSuffix(decl.Type, "[]"), "%s is a list, which only a credential gives", what)
	}
}

// live compiles the attributes that the database works out, and puts them into an order in which none needs a later one.
func (c *compiler) live() []predicate.Live {
	bySetting := map[string]string{}
	var all []predicate.Live
	at := map[string]place{}
	for i := range c.doc.attributes {
		decl := &c.doc.attributes[i]
		at[decl.Name] = decl.place
		if decl.Source == credential {
			continue
		}
		if decl.Setting != "" {
			if first, taken := bySetting[decl.Setting]; taken {
				c.fail(*decl.setting, "write a setting for each",
					"the setting %s is that of the attribute %s already", decl.Setting, first)
			}
			bySetting[decl.Setting] = decl.Name
		}
		out := predicate.Live{Name: decl.Name, Type: decl.SQLType(), Optional: decl.Optional, Setting: decl.Setting}
		c.works(decl, &out)
		all = append(all, out)
	}
	slices.SortFunc(all, func(a, b predicate.Live) int { return strings.Compare(a.Name, b.Name) })
	return c.ordered(all, at)
}

// works compiles what an attribute is worked out from.
func (c *compiler) works(decl *attributeDecl, out *predicate.Live) {
	switch {
	case decl.within != nil && decl.within.source != nil:
		c.looked(decl, decl.within.source, out)
	case decl.within != nil:
		for _, g := range decl.within.attributes {
			a := c.attribute(g.place, g.attribute)
			if a == nil {
				continue
			}
			if family(a.element()) != family(decl.Type) {
				c.fail(g.place, "declare both with one type", "the attribute %s is a %s and %s a %s", decl.Name,
					decl.Type, a.Name, a.Type)
			}
			out.Equals = append(out.Equals, predicate.Attr{Name: a.Name, Type: a.SQLType(), Optional: a.Optional})
		}
		for _, v := range decl.within.values {
			if err := decl.Attribute.Check(v.Value); err != nil {
				c.fail(v.Place, "write it as PostgreSQL does", "%s", err)
			}
			out.Values = append(out.Values, v.Value)
		}
	case decl.query != nil:
		c.looked(decl, decl.query, out)
	case decl.sql != nil:
		c.computed(decl, out)
	}
}

// looked compiles a table in which a value, or what confirms a claim, is looked up.
func (c *compiler) looked(decl *attributeDecl, q *queryDecl, out *predicate.Live) {
	table := c.relation(q.tableAt, q.table)
	if table == nil {
		return
	}
	column := c.column(q.place, table, q.column)
	if column == nil {
		return
	}
	c.valued(decl, q, table, column)
	var rows predicate.All
	if decl.Setting != "" {
		claim := predicate.Own{Column: q.column, Attribute: predicate.Claim, Type: decl.SQLType(), AsText: c.enum(column)}
		if blankPadded(column.Type) {
			claim.Type = "pg_catalog.bpchar"
		}
		rows = append(rows, claim)
	}
	for _, m := range q.match {
		if own := c.compared(m, table); own != nil {
			rows = append(rows, *own)
		}
	}
	if q.rows != nil {
		outer := c.rule
		c.rule = nil
		if n := c.block(q.rows, table); n != nil {
			if _, open := n.(predicate.Open); !open {
				rows = append(rows, n)
			}
		}
		c.rule = outer
	}
	out.Table, out.Column, out.Rows = table, q.column, rows
}

// valued checks that every value of a column is one of the attribute's type: a cast that raised would tell that a row
// is there.
func (c *compiler) valued(decl *attributeDecl, q *queryDecl, table *catalog.Relation, column *catalog.Column) {
	fits := false
	switch decl.Type {
	case "text":
		fits = family(column.Type) == "text" || blankPadded(column.Type) || c.enum(column) ||
			decl.Setting == "" && column.Type == "boolean"
	case "uuid":
		fits = column.Type == "uuid"
	case "bigint":
		fits = family(column.Type) == "integer"
	case "integer":
		fits = family(column.Type) == "integer" && (column.Type != "bigint" || decl.Setting != "")
	}
	if !fits {
		c.fail(q.place, "declare the attribute with the column's type", "%s.%s is a %s and the attribute %s a %s",
			table.Name, column.Name, column.Type, decl.Name, decl.Type)
	}
}

// computed compiles an expression over other attributes.
func (c *compiler) computed(decl *attributeDecl, out *predicate.Live) {
	x, n := c.parsed(*decl.sql, nil, "write the expression alone, as it would stand after SELECT")
	if n == nil {
		return
	}
	o, ok := x.expr(n)
	if !ok {
		return
	}
	want := map[string]predicate.Kind{"text": predicate.Text, "uuid": predicate.UUID, "integer": predicate.Number,
		"bigint": predicate.Number}[decl.Type]
	if o.kind == predicate.Bool && decl.Type == "text" {
		want = predicate.Bool
	}
	if o.kind == predicate.Float && want == predicate.Number || want == "" {
		c.fail(decl.sql.where(0), "", "the expression is a %s and the attribute %s a %s", o.kind, decl.Name, decl.Type)
		return
	}
	if o, ok = x.adopt(o, want); !ok {
		return
	}
	if !x.bound {
		c.fail(decl.sql.where(0), "speak of another attribute: attribute('name')", "the expression is the same for everybody")
	}
	out.Expr, out.Kind = o.Expr, want
}

// ordered sorts attributes so that none needs a later one, and reports circles.
func (c *compiler) ordered(all []predicate.Live, at map[string]place) []predicate.Live {
	byName := map[string]predicate.Live{}
	for _, l := range all {
		byName[l.Name] = l
	}
	var out []predicate.Live
	done, path := map[string]bool{}, []string(nil)
	var visit func(l predicate.Live)
	visit = func(l predicate.Live) {
		if i := slices.Index(path, l.Name); i >= 0 {
			c.fail(at[l.Name], "let one of them come from the credential", "attributes go round in a circle: %s",
				strings.Join(append(slices.Clone(path[i:]), l.Name), " → "))
			return
		}
		if done[l.Name] {
			return
		}
		path = append(path, l.Name)
		for _, need := range l.Needs() {
			if other, live := byName[need]; live {
				visit(other)
			}
		}
		path = path[:len(path)-1]
		if !done[l.Name] {
			done[l.Name] = true
			out = append(out, l)
		}
	}
	for _, l := range all {
		visit(l)
	}
	return out
}
