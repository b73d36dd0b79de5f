// Package policy loads policies and compiles them against a database's catalog.
//
// A policy says which tables, columns, views and functions agents may use, and which rows exist for them. [Load] and
// [Parse] read its YAML into a [Document]. [Compile] finds the names of a document in a catalog snapshot and returns a
// [Policy], which has one predicate for each table. Agents cannot read a table that the policy does not list. A
// construct that this version does not know is an error with its place in the file, and is never ignored.
//
// Each phase has a type of its own. Decoders read the sections (decode*.go, *_decode.go), resolver finds names
// (resolve*.go), and ruleCompiler compiles the blocks of rules (block_*.go, and sql_*.go for expressions). Each other
// compiler compiles one section (*_compile.go). The files leak*.go find what errors of an agent's writes would tell
// about hidden rows. The files lint*.go warn of probable mistakes, and judge*.go decide whether contracts allow a
// statement.
//
// A policy contains no secrets: the configuration has the credentials and their attributes.
package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Policy is a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	version            string
	tables             []*Table
	functions          []*Function
	operatorExtensions []string // names of the extensions whose operators agents may use
	channels           []string // the channels that agents may use in LISTEN and NOTIFY, sorted
	views              []*View
	children           []*Child
	attributes         []Attribute
	live               []predicate.LiveAttribute

	attributeExpressions map[string]string // the text of the expression of each attribute that has one

	limits   []Limit
	reminder *ReminderAttributes
	subject  string
	purpose  string

	derivations []Derivation
	cascades    []Cascade

	tableIndex     map[catalog.Name]*Table
	functionIndex  map[catalog.Name]*Function
	warnings       []*Error
	withheldWrites []*Error // the warnings about listed writes that agents do not get
	disclosures    []*Error

	privacy *Privacy
	sources *Sources

	objects    map[catalog.Name]*Object // the objects by table, also by the names of partitions and children
	objectList []*Object
	contracts  []*Contract
}

// Table is a table that agents may read.
type Table struct {
	Relation *catalog.Relation
	Rows     predicate.Node
	Rule     *Rule           // the blocks from which Rows was compiled, with their places in the file
	Write    *Write          // what agents may write; nil: nothing
	Columns  *VisibleColumns // nil: agents see every column, unchanged

	Aggregate *Aggregate // which rows count in aggregates; nil: only the rows that agents see one by one
	Lifecycle *Lifecycle // when rows are deleted or made anonymous; nil: only the application does that

	// a search for the nearest rows may use an approximate index, so that hidden rows affect which visible rows it finds
	Approximate bool

	AuditKeys bool // the audit records which rows statements read, by commitments to the rows' keys

	// the table with the rule that the policy only observes, while this value shows every row; nil: the rule is enforced
	Observed *Table
}

// LacksRowSecurity tells whether the relation is a materialised view or a foreign table. Agents have no rights on it,
// and read it through a view that contains its rule.
func (t *Table) LacksRowSecurity() bool { return lacksRowSecurity(t.Relation) }

func lacksRowSecurity(r *catalog.Relation) bool {
	return r.Kind == catalog.MaterializedView || r.Kind == catalog.ForeignTable
}

// VisibleRelation returns the table's relation without the columns that are hidden from agents.
func (t *Table) VisibleRelation() *catalog.Relation {
	if t.Columns == nil {
		return t.Relation
	}
	visible := *t.Relation
	visible.Columns = nil
	for _, c := range t.Columns.Columns {
		column := *t.Relation.Column(c.Name)
		column.NotNull = column.NotNull && c.IsPlain()
		visible.Columns = append(visible.Columns, column)
	}
	return &visible
}

// VisibleRelationByKey returns the table's relation for statements that fetch rows by key. It has the columns that
// exist by key only, too.
func (t *Table) VisibleRelationByKey() *catalog.Relation {
	keyed := *t.VisibleRelation()
	keyed.Columns = nil
	for _, c := range t.Columns.ByKey.AllColumns {
		column := *t.Relation.Column(c.Name)
		column.NotNull = column.NotNull && c.IsPlain()
		keyed.Columns = append(keyed.Columns, column)
	}
	return &keyed
}

// View is a view that agents may read, or that another such view reads. Agents read pgconsent's copy of the view, which
// runs with their own rights.
type View struct {
	Relation *catalog.Relation
	Listed   bool           // agents may name the view in statements
	Tables   []catalog.Name // the tables that the view reads, also through other views; sorted

	// The queries of the copies. Query contains no predicates and relies on row security; FilteredQuery contains the
	// predicates of the tables that it reads.
	Query, FilteredQuery string
	// the query over signed views; "": the view has an expression that may fail or print hidden values (is not leak-safe)
	SignedQuery string
	// FilteredQuery reads some table without its predicate, for example because it uses a whole row.
	PartlyFiltered bool

	// what agents may write through the view; nil: nothing. Conditions and stamps are those of the view's table
	Write *Write
}

// Function is a function that agents may call.
type Function struct {
	Name      catalog.Name
	Overloads []*catalog.Function
	Pins      []Pin
	// the tables that the policy says the function reads; nil: the policy does not say
	Reads []FunctionReads
	Tool  *Tool // the MCP tool that publishes the function; nil: there is none
}

// Pin is a fixed value of a function's argument. It replaces the value that the caller passes by name or by position.
type Pin struct {
	Arg   string
	Value string // a SQL literal with a cast to a qualified type: 'true'::pg_catalog.bool
}

// Attribute is a fact about a session, such as its user, with which rules compare rows.
type Attribute struct {
	Name   string
	Type   string // the type as the policy writes it, such as uuid, text or bigint
	Source string // credential, set, query or expression

	Optional bool   // a session may have no value; then predicates hide the rows that need it
	Setting  string // for the source set: the setting, in lower case, in which a session claims a value
	Audit    AuditForm
}

// IsLive tells whether the database computes the attribute again for each statement.
func (a Attribute) IsLive() bool { return a.Source != sourceCredential }

// Version returns a hash of what the policy means.
func (p *Policy) Version() string { return p.version }

// Table returns the table of that name.
func (p *Policy) Table(n catalog.Name) (*Table, bool) {
	t, ok := p.tableIndex[n]
	return t, ok
}

// Tables returns every table, sorted by name.
func (p *Policy) Tables() []*Table { return p.tables }

// Children returns the partitions and inheritance children of tables that the policy does not list, sorted by name.
func (p *Policy) Children() []*Child { return p.children }

// Views returns every view. A view comes after the views that it reads.
func (p *Policy) Views() []*View { return p.views }

// View returns the view of that name.
func (p *Policy) View(n catalog.Name) (*View, bool) {
	for _, v := range p.views {
		if v.Relation.Name == n {
			return v, true
		}
	}
	return nil, false
}

// Function returns the function of that name.
func (p *Policy) Function(n catalog.Name) (*Function, bool) {
	f, ok := p.functionIndex[n]
	return f, ok
}

// Functions returns every function, sorted by name.
func (p *Policy) Functions() []*Function { return p.functions }

// Attribute returns the attribute of that name.
func (p *Policy) Attribute(name string) (Attribute, bool) {
	for _, a := range p.attributes {
		if a.Name == name {
			return a, true
		}
	}
	return Attribute{}, false
}

// Attributes returns every attribute, sorted by name.
func (p *Policy) Attributes() []Attribute { return p.attributes }

// LiveAttributes returns the attributes that the database computes for each statement. They are ordered so that no
// attribute needs a later one.
func (p *Policy) LiveAttributes() []predicate.LiveAttribute { return p.live }

// Settings returns the settings in which sessions claim values of attributes, each with its attribute's name.
func (p *Policy) Settings() map[string]string {
	out := map[string]string{}
	for _, a := range p.attributes {
		if a.Setting != "" {
			out[a.Setting] = a.Name
		}
	}
	return out
}

// Warnings returns the warnings of [Compile]. [Lint] finds more.
func (p *Policy) Warnings() []*Error { return p.warnings }

// WithheldWrites returns the warnings about writes that the policy lists, but that agents do not get.
func (p *Policy) WithheldWrites() []*Error { return p.withheldWrites }

// WriteDisclosures returns the warnings about what agents learn of hidden rows from the success or failure of their
// writes.
func (p *Policy) WriteDisclosures() []*Error { return p.disclosures }

func compareNames(a, b catalog.Name) int {
	if c := strings.Compare(a.Schema, b.Schema); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
