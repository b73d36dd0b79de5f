package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Option says more about a compilation.
type Option func(*compiler)

// WithViews gives the judge of views, rewrite.Definition, which this package cannot import. Without it a policy that
// lists views does not compile.
func WithViews(define ViewRewriter) Option { return func(c *compiler) { c.define = define } }

// Compile checks the document against what the database contains. An error is of type [Errors].
func Compile(doc *Document, snap *catalog.Snapshot, options ...Option) (*Policy, error) {
	_, p, err := compile(doc, snap, options)
	return p, err
}

// compile returns the compiler besides, which knows what each part of the document means.
func compile(doc *Document, snap *catalog.Snapshot, options []Option) (*compiler, *Policy, error) {
	c := &compiler{doc: doc, snap: snap, tables: map[catalog.Name]*compiling{}, owners: map[string]bool{}}
	for _, option := range options {
		option(c)
	}
	p := &Policy{tableIndex: map[catalog.Name]*Table{}, functionIndex: map[catalog.Name]*Function{}}
	for _, a := range doc.attributes {
		p.attributes = append(p.attributes, a.Attribute)
	}
	slices.SortFunc(p.attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	c.attributes = p.attributes

	p.limits = c.limits()
	p.air = c.air()
	p.operators = c.operators(doc.operators)
	c.declare()
	for _, name := range c.order {
		rows := c.rows(name)
		t := c.tables[name]
		p.tables = append(p.tables, &Table{Relation: t.relation, Rows: rows, Rule: t.rule,
			Columns: c.narrowing(t.decl, t.relation), AuditKeys: c.recordsKeys(t.decl, t.relation), Approximate: t.decl.approximate})
	}
	for _, t := range p.tables { // when every table's rule is known
		t.Write = c.write(c.tables[t.Relation.Name])
		t.Aggregate = c.aggregate(c.tables[t.Relation.Name].decl.aggregate, t)
		t.Lifecycle = c.lifecycle(c.tables[t.Relation.Name].decl.lifecycle, t)
	}
	p.decisive()
	c.origins(p.tables)
	for _, decl := range doc.functions {
		if f := c.function(decl); f != nil {
			if p.functionIndex[f.Name] != nil {
				c.fail(decl.place, "", "function %s is there twice", f.Name)
			}
			c.functionReads(decl, f)
			c.tool(p, decl, f)
			p.functions = append(p.functions, f)
			p.functionIndex[f.Name] = f
		}
	}
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	slices.SortFunc(p.tables, func(a, b *Table) int { return compareNames(a.Relation.Name, b.Relation.Name) })
	slices.SortFunc(p.functions, func(a, b *Function) int { return compareNames(a.Name, b.Name) })
	for _, t := range p.tables {
		p.tableIndex[t.Relation.Name] = t
	}
	c.recordings(p)
	c.contracts(p)
	c.observing(p)
	for _, t := range p.tables {
		p.tableIndex[t.Relation.Name] = t
	}
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	p.privacy = c.privacy(p)
	p.sources = c.sources(p)
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	p.children = c.children(p)
	p.derivations = c.derivations()
	p.taken = c.taken(p)
	p.live, p.expressions = c.live(), map[string]string{}
	for _, a := range doc.attributes {
		if a.sql != nil {
			p.expressions[a.Name] = a.sql.text
		}
	}
	for _, decl := range doc.views {
		c.view(p, decl)
	}
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	p.warnings, p.leftOut, p.tells = c.warnings, c.withheld, c.told
	p.version = p.hash()
	return c, p, nil
}

// compiler holds what Compile has found so far.
type compiler struct {
	doc        *Document
	snap       *catalog.Snapshot
	attributes []Attribute
	tables     map[catalog.Name]*compiling
	order      []catalog.Name
	owners     map[string]bool // the attributes that own compares with
	path       []catalog.Name  // the tables whose predicates are being compiled, outermost first
	rule       *Rule           // the block that is being compiled
	ruled      *Rule           // the outermost one, when it is
	errs       Errors
	warnings   []*Error
	withheld   []*Error // those of the warnings that say what is left out of what agents were to write
	told       []*Error // those that say what writes tell agents of rows that they do not see
	define     ViewRewriter
	elements   bool // what is compiled judges the elements of a list
	grouped    bool // what is compiled counts in groups, and does not show
}

// compiling is a table on its way.
type compiling struct {
	decl     tableDecl
	relation *catalog.Relation
	rows     predicate.Node
	rule     *Rule
	done     bool
}

// warn adds a warning.
func (c *compiler) warn(at place, format string, args ...any) {
	c.warnings = append(c.warnings, at.Errorf("", format, args...))
}

func (c *compiler) fail(at place, suggestion, format string, args ...any) {
	c.errs = append(c.errs, at.Errorf(suggestion, format, args...))
}

// sorted returns the errors in the order of the files, each once.
func (c *compiler) sorted() Errors {
	slices.SortStableFunc(c.errs, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(c.errs, func(a, b *Error) bool { return *a == *b })
}

// declare resolves the names of the tables, so that predicates may speak of each other's.
func (c *compiler) declare() {
	for _, decl := range c.doc.tables {
		relation := c.listed(decl.place, decl.name)
		if relation == nil {
			continue
		}
		if first, ok := c.tables[relation.Name]; ok {
			c.fail(decl.place, "", "%s is %s, which is at %s:%d:%d already",
				decl.name, relation.Name, first.decl.File, first.decl.Line, first.decl.Column)
			continue
		}
		c.tables[relation.Name] = &compiling{decl: decl, relation: relation}
		c.order = append(c.order, relation.Name)
	}
}

// listed finds what a policy may list under tables: a materialised view or foreign table besides.
func (c *compiler) listed(at place, written string) *catalog.Relation {
	schema, name := split(written)
	if resolved, ok := c.snap.ResolveRelation(schema, name); ok && !system(resolved.Schema) {
		if r, _ := c.snap.Relation(resolved); lacksRowSecurity(r) {
			return r
		}
	}
	return c.relation(at, written)
}

// relation finds an ordinary or partitioned table by its name as written; nil after an error.
func (c *compiler) relation(at place, written string) *catalog.Relation {
	schema, name := split(written)
	resolved, ok := c.snap.ResolveRelation(schema, name)
	if !ok {
		c.fail(at, c.suggestTable(written), "the database has no table %q%s", written, c.onPath(schema))
		return nil
	}
	r, _ := c.snap.Relation(resolved)
	switch {
	case system(resolved.Schema):
		c.fail(at, "", "%s belongs to the system", resolved)
	case r.Kind == catalog.View:
		c.fail(at, "list it under views, and the tables beneath it under tables",
			"%s is a view, which row security cannot protect", resolved)
	case r.Kind != catalog.Table && r.Kind != catalog.PartitionedTable:
		c.fail(at, "name the tables beneath it", "%s is a %s, which row security cannot protect", resolved, kindName(r.Kind))
	default:
		return r
	}
	return nil
}

func system(schema string) bool {
	return schema == "pg_catalog" || schema == "information_schema" || strings.HasPrefix(schema, "pg_") ||
		schema == predicate.Schema || schema == predicate.GateSchema || schema == predicate.RowsSchema ||
		schema == catalog.ShadowSchema
}

func kindName(k catalog.RelKind) string {
	switch k {
	case catalog.View:
		return "view"
	case catalog.MatView:
		return "materialised view"
	case catalog.ForeignTable:
		return "foreign table"
	case catalog.Sequence:
		return "sequence"
	case catalog.Table, catalog.PartitionedTable:
		return "table"
	case catalog.Composite:
		return "composite type"
	default:
		return "relation of another kind"
	}
}

// split reads `schema.name` or `name`. Names with dots of their own cannot be written in a policy.
func split(written string) (schema, name string) {
	if schema, name, ok := strings.Cut(written, "."); ok {
		return schema, name
	}
	return "", written
}

func (c *compiler) onPath(schema string) string {
	if schema != "" {
		return ""
	}
	return " on the search path " + strings.Join(c.snap.SearchPath(), ", ")
}

func (c *compiler) suggestTable(written string) string {
	schema, _ := split(written)
	var names []string
	for _, r := range c.snap.Relations() {
		if system(r.Name.Schema) || (r.Kind != catalog.Table && r.Kind != catalog.PartitionedTable) {
			continue
		}
		if strings.Contains(r.Name.Schema, ".") {
			if r.Name.String() == written {
				return "a schema whose name has a dot cannot be named in a policy: its tables stay out of agents' " +
					"reach until it is renamed"
			}
			continue
		}
		if schema == "" && slices.Contains(c.snap.SearchPath(), r.Name.Schema) {
			names = append(names, r.Name.Name)
		} else {
			names = append(names, r.Name.String())
		}
	}
	if schema == "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, written) }) {
		for _, n := range names { // of another schema
			if _, name := split(n); strings.EqualFold(name, written) {
				return "did you mean " + quote(n) + "?"
			}
		}
	}
	return closest(written, names)
}

// rows compiles the predicate of a table once.
func (c *compiler) rows(name catalog.Name) predicate.Node {
	t := c.tables[name]
	if t.done {
		return t.rows
	}
	c.path = append(c.path, name)
	outer := c.rule
	c.rule, c.ruled = nil, nil
	t.rows = c.block(t.decl.rows, t.relation)
	t.rule, c.rule = c.ruled, outer
	c.path = c.path[:len(c.path)-1]
	t.done = true
	return t.rows
}

func (c *compiler) block(b block, row *catalog.Relation) (node predicate.Node) {
	leave := c.enter(b)
	defer func() { leave(&node) }()
	switch b := b.(type) {
	case openBlock:
		return predicate.Open{}
	case allBlock:
		return predicate.All(c.parts(b.parts, row))
	case anyBlock:
		return predicate.Any(c.parts(b.parts, row))
	case ownBlock:
		return c.own(b, row)
	case statusBlock:
		of := c.status(b.columnAt.Or(b.place), b.isAt.Or(b.place), row, b.column, b.is)
		return predicate.Status{Column: b.column, Is: b.is, Of: of}
	case consentBlock:
		if b.recorded != nil && b.recorded.registry != nil {
			return c.registered(b, row)
		}
		if b.recorded != nil {
			return c.recorded(b, row)
		}
		return c.consent(b, row)
	case visibleBlock:
		return c.visible(b, row)
	case derivedBlock:
		return c.derived(b, row)
	case sharedBlock:
		return c.shared(b, row)
	case tenantBlock:
		return c.tenant(b, row)
	case grantBlock:
		return c.grant(b, row)
	case notBlock:
		return c.not(b, row)
	case sqlBlock:
		return c.sql(b, row)
	default:
		return predicate.Any{}
	}
}

func (c *compiler) parts(blocks []block, row *catalog.Relation) []predicate.Node {
	out := make([]predicate.Node, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, c.block(b, row))
	}
	return out
}

func (c *compiler) consent(b consentBlock, row *catalog.Relation) predicate.Node {
	out := predicate.Consent{Status: b.status, Is: b.is}
	from := row
	for i, link := range b.every {
		target := c.link(link, from)
		if target == nil {
			return predicate.Any{}
		}
		if i == 0 && link.isKey(target.PrimaryKey) {
			out.Required = true
		}
		out.Steps = append(out.Steps, predicate.Step{
			Relation: target, Column: link.pairs[0].Column, From: link.pairs[0].From, And: link.more()})
		from = target
	}
	if len(out.Steps) == 0 {
		return predicate.Any{}
	}
	out.Of = c.status(b.statusAt.Or(b.place), b.isAt.Or(b.place), from, b.status, b.is)
	c.expires(b, from, &out)
	c.keep(b, row, &out)
	return out
}

func (c *compiler) visible(b visibleBlock, row *catalog.Relation) predicate.Node {
	target := c.link(b.link, row)
	if target == nil {
		return predicate.Any{}
	}
	if _, ok := c.tables[target.Name]; !ok {
		c.fail(b.link.place, "list it under tables", "no row of %s is visible, since the policy does not list it", target.Name)
		return predicate.Any{}
	}
	first := b.link.pairs[0]
	if b.rows != nil {
		return predicate.Visible{Relation: target, Column: first.Column, From: first.From, And: b.link.more(),
			Rows: c.conditionsOf("rows", b.rows, target)}
	}
	if i := slices.Index(c.path, target.Name); i >= 0 {
		var circle []string
		for _, n := range append(slices.Clone(c.path[i:]), target.Name) {
			circle = append(circle, n.String())
		}
		c.fail(b.link.place,
			"let one of them stand on its own columns, or say under rows what the row that it points to must be "+
				"instead", "visible goes round in a circle: %s", strings.Join(circle, " → "))
		return predicate.Any{}
	}
	if !b.link.isKey(target.PrimaryKey) && len(b.where) == 0 {
		c.warn(b.link.place, "%s.%s is not its primary key: one visible row of several is enough", target.Name, first.Column)
	}
	rows := c.rows(target.Name)
	if where := c.conditions(b.where, target); where != nil {
		rows = predicate.All{where, rows}
	}
	return predicate.Visible{Relation: target, Column: first.Column, From: first.From, And: b.link.more(), Rows: rows}
}

// isKey tells whether the link names every column of a primary key and no other.
func (l linkDecl) isKey(key []string) bool {
	return len(key) == len(l.pairs) && !slices.ContainsFunc(l.pairs,
		func(p predicate.Pair) bool { return !slices.Contains(key, p.Column) })
}

// more are the pairs besides the first.
func (l linkDecl) more() []predicate.Pair {
	if len(l.pairs) == 1 {
		return nil
	}
	return l.pairs[1:]
}

// link checks one step and returns the table it leads to; nil after an error.
func (c *compiler) link(l linkDecl, row *catalog.Relation) *catalog.Relation {
	target := c.relation(l.place, l.table)
	if target == nil {
		return nil
	}
	for i, p := range l.pairs {
		if !c.pair(l.pairsAt[i], target, row, p) {
			return nil
		}
	}
	return target
}

// pair tells whether two columns compare.
func (c *compiler) pair(at place, target, row *catalog.Relation, p predicate.Pair) bool {
	if target.Column(p.Column) == nil && row.Column(p.From) == nil && target.Column(p.From) != nil &&
		row.Column(p.Column) != nil {
		c.fail(at, fmt.Sprintf("write { %s: %s }", p.From, p.Column),
			"the pair is the other way round: first the column of %s, then the one of %s that it equals", target.Name, row.Name)
		return false
	}
	to, from := c.column(at, target, p.Column), c.column(at, row, p.From)
	switch {
	case to == nil || from == nil:
	case c.linkable(to) == "" || c.linkable(to) != c.linkable(from):
		suggestion := "the two columns of a link are of one kind: uuid, integers, text and varchar, char, an " +
			"enum, date, numeric, timestamp, boolean"
		if c.linkable(to) == "" && to.Type == from.Type {
			suggestion = "links go over uuid, integer, text, char, enum, date, numeric, timestamp and boolean " +
				"columns, and domains over these but enums"
		}
		c.fail(at, suggestion, "%s.%s is a %s and %s.%s a %s: they do not link",
			target.Name, to.Name, to.Type, row.Name, from.Name, from.Type)
	case to.Collation != from.Collation:
		c.fail(at, "give both columns one collation",
			"%s.%s and %s.%s have different collations: PostgreSQL would not know by which to compare",
			target.Name, to.Name, row.Name, from.Name)
	default:
		return true
	}
	return false
}

// column finds a column that is read of every row, hidden ones too, before anybody knows whether the row shows; nil
// after an error.
func (c *compiler) column(at place, r *catalog.Relation, name string) *catalog.Column {
	column := c.named(at, r, name)
	if column != nil && column.Virtual {
		c.fail(at, "make it STORED, or write what it is computed from, under sql for example",
			"%s.%s is computed as it is read: it could raise an error on some row, and say what the row holds", r.Name, name)
		return nil
	}
	return column
}

// named finds a column; nil after an error.
func (c *compiler) named(at place, r *catalog.Relation, name string) *catalog.Column {
	if column := r.Column(name); column != nil {
		return column
	}
	names := make([]string, 0, len(r.Columns))
	for _, column := range r.Columns {
		names = append(names, column.Name)
	}
	c.fail(at, oneOf(name, names), "%s has no column %q", r.Name, name)
	return nil
}

// status checks a column that holds a word, and returns its type if it is boolean or an enum of the table's schema.
func (c *compiler) status(at, isAt place, r *catalog.Relation, name, is string) string {
	column := c.column(at, r, name)
	if column == nil {
		return ""
	}
	// A value of a domain is compared as that of the type under it.
	t, under := c.snap.TypeByOID(column.TypeOID), c.under(column)
	domain := t != nil && t.Kind == 'd'
	t = c.inmost(column.TypeOID)
	switch {
	case family(under) == "text", blankPadded(under):
		return ""
	case under == "boolean":
		if is != "true" && is != "false" {
			c.fail(isAt, "write true or false", "%s.%s is a boolean: it is never %q", r.Name, name, is)
		}
		if domain {
			return ""
		}
		return "boolean"
	}
	if t != nil && t.Kind == 'e' {
		if len(t.Labels) > 0 && !slices.Contains(t.Labels, is) {
			c.fail(isAt, oneOf(is, t.Labels), "%s.%s is a %s, which has no value %q", r.Name, name, column.Type, is)
		}
		if domain || t.Name.Schema != r.Name.Schema {
			return ""
		}
		return t.Name.SQL()
	}
	of := column.Type
	if domain {
		of += ", a domain over " + under
	}
	c.fail(at, "a status is a text, varchar, char, enum or boolean column, or a domain over one", "%s.%s is a %s",
		r.Name, name, of)
	return ""
}

// family groups the types whose equality is in pg_catalog and means the same on both sides of a comparison. "" is every
// other type: citext, for one, would compare by case here and without it in the application.
func family(sqlType string) string {
	switch sqlType {
	case "uuid", "date":
		return sqlType
	case "smallint", "integer", "bigint":
		return "integer"
	case "text", "character varying":
		return "text"
	}
	if strings.HasPrefix(sqlType, "character varying(") && strings.HasSuffix(sqlType, ")") {
		return "text"
	}
	return ""
}

// hash is over the meaning: two policies with one hash allow the same, whatever their files look like.
func (p *Policy) hash() string {
	h := sha256.New()
	for _, a := range p.attributes {
		fmt.Fprintf(h, "attribute %q %q %q %t %q %t\n", a.Name, a.Type, a.Source, a.Optional, a.Setting, a.Audit == AsIs)
		if a.Audit != "" && a.Audit != AsIs {
			fmt.Fprintf(h, " recorded %q\n", a.Audit)
		}
	}
	fmt.Fprintf(h, "live %q\n", predicate.LiveBody(p.live))
	for _, l := range p.limits {
		fmt.Fprintf(h, "limit %s\n", l.describe())
	}
	if p.air != nil {
		fmt.Fprintf(h, "air %q %q\n", p.air.User, p.air.Channel)
	}
	for _, t := range p.tables {
		t.describe(h)
		if t.Observed != nil {
			fmt.Fprintln(h, "observed")
			t.Observed.describe(h)
		}
	}
	for _, child := range p.children {
		fmt.Fprintf(h, "child %q %q %t\n", child.Relation.Name.Schema, child.Relation.Name.Name, child.ReadableByName)
	}
	for _, v := range p.views {
		fmt.Fprintf(h, "view %q %q %t %q %q %q\n", v.Relation.Name.Schema, v.Relation.Name.Name, v.Listed, v.Query,
			v.FilteredQuery, v.SignedQuery)
		if v.Write != nil {
			fmt.Fprintf(h, " write %t %t %t %q %q %q\n", v.Write.Insert, v.Write.Update, v.Write.Delete,
				v.Write.Insertable, v.Write.Updatable, v.Relation.CheckOption)
		}
	}
	for _, f := range p.functions {
		fmt.Fprintf(h, "function %q %q\n", f.Name.Schema, f.Name.Name)
		for _, o := range f.Overloads {
			fmt.Fprintf(h, " overload %q\n", o.ArgTypes)
		}
		for _, pin := range f.Pins {
			fmt.Fprintf(h, " pin %q %q\n", pin.Arg, pin.Value)
		}
		if f.Tool != nil {
			fmt.Fprintf(h, " tool %s\n", f.Tool.describe())
		}
	}
	for _, extension := range p.operators {
		fmt.Fprintf(h, "operators %q\n", extension)
	}
	for _, d := range p.derivations {
		from, where := d.Origin.Products(d.Table, "made", "source")
		fmt.Fprintf(h, "derived %q %q %q %q %t\n", d.Table.Name.String(), d.Origin.Table().Name.String(), from, where, d.DeleteWithSource)
	}
	p.describeContracts(h)
	p.privacy.describe(h)
	p.sources.describe(h)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (t *Table) describe(h io.Writer) {
	fmt.Fprintf(h, "table %q %q %q\n", t.Relation.Name.Schema, t.Relation.Name.Name, predicate.Policy(t.Rows, t.Relation))
	if t.Write != nil {
		fmt.Fprintf(h, " write %s\n", t.Write.describe(t.Relation))
	}
	if t.AuditKeys {
		fmt.Fprintln(h, " audit keys")
	}
	if t.Approximate {
		fmt.Fprintln(h, " approximate")
	}
	if t.Aggregate != nil {
		fmt.Fprintf(h, " aggregate %s\n", t.Aggregate.describe(t.Relation))
	}
	if t.Lifecycle != nil {
		t.Lifecycle.describe(h)
	}
	if t.Columns != nil {
		for _, column := range t.Columns.Columns {
			fmt.Fprintf(h, " column %q %d %q %d %q%s\n", column.Name, column.Mask, column.Unit, column.Amount,
				column.Keys, column.needs(t.Relation))
		}
		if k := t.Columns.ByKey; k != nil {
			k.describe(h, t.Relation)
		}
	}
}

func (k *ByKey) describe(h io.Writer, r *catalog.Relation) {
	fmt.Fprintf(h, " by key %q %d", k.Key, k.AtMost)
	for _, column := range k.Columns {
		fmt.Fprintf(h, " %q%s", column.Name, column.needs(r))
	}
	fmt.Fprintln(h)
}
