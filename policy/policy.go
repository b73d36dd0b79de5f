// Package policy loads policies and compiles them against a database's catalog.
//
// A policy says which tables, columns, views and functions agents may use, and which rows exist for them. [Load] and
// [Parse] read its YAML into a [Document]. [Compile] resolves the names of a document in a catalog snapshot and returns
// a [Policy], which gives each table one predicate. A table that the policy does not list cannot be read at all. A
// construct that this version does not know is an error with its place in the file; it is never ignored.
//
// The phases are types: decoders read each section (decode*.go, *_decode.go), resolver finds names (resolve*.go),
// ruleCompiler compiles the blocks of rules (block_*.go, and sql_*.go for expressions), and the other compilers a
// section each (*_compile.go). leak*.go find what errors of an agent's writes would tell about hidden rows. lint*.go
// warn of what is allowed and unwise. judge*.go hold statements to contracts.
//
// A policy holds no secrets: the configuration has the credentials and their attributes.
package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Policy is a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	version    string
	tables     []*Table
	functions  []*Function
	operators  []string // names of extensions
	channels   []string // the channels that agents may name in LISTEN and NOTIFY, sorted
	views      []*View
	children   []*Child
	attributes []Attribute
	live       []predicate.Live

	expressions map[string]string // the text of each attribute's expression

	limits   []Limit
	reminder *ReminderAttributes
	subject  string
	purpose  string

	derivations []Derivation
	cascades    []Cascade

	tableIndex    map[catalog.Name]*Table
	functionIndex map[catalog.Name]*Function
	warnings      []*Error
	withheld      []*Error
	disclosures   []*Error

	privacy *Privacy
	sources *Sources

	objects    map[catalog.Name]*Object // the objects, also by the names of their partitions and children
	objectList []*Object
	contracts  []*Contract
}

// Table is a table that agents may read.
type Table struct {
	Relation *catalog.Relation
	Rows     predicate.Node
	Rule     *Rule           // Rows by blocks, with places in the file
	Write    *Write          // nil: agents cannot write it
	Columns  *VisibleColumns // nil: agents see every column, unchanged

	Aggregate *Aggregate // nil: aggregates count only rows that show one by one
	Lifecycle *Lifecycle // nil: rows end only by the application

	// searches for the nearest rows may use an approximate index, so that hidden rows influence which visible rows they
	// find
	Approximate bool

	AuditKeys bool // records of statements that read it hold commitments to the keys of the rows

	Observed *Table // the table as enforcing it would make it; this one is open. nil: the table is enforced
}

// LacksRowSecurity tells whether the relation is a materialised view or a foreign table. Agents have no right on it,
// and read it through a view with the rule.
func (t *Table) LacksRowSecurity() bool { return lacksRowSecurity(t.Relation) }

func lacksRowSecurity(r *catalog.Relation) bool {
	return r.Kind == catalog.MatView || r.Kind == catalog.ForeignTable
}

// Visible is the table without the columns that are hidden from agents.
func (t *Table) Visible() *catalog.Relation {
	if t.Columns == nil {
		return t.Relation
	}
	visible := *t.Relation
	visible.Columns = nil
	for _, c := range t.Columns.Columns {
		column := *t.Relation.Column(c.Name)
		column.NotNull = column.NotNull && c.Plain()
		visible.Columns = append(visible.Columns, column)
	}
	return &visible
}

// VisibleByKey is the table for statements that fetch it by key: with the columns that exist by key only.
func (t *Table) VisibleByKey() *catalog.Relation {
	keyed := *t.Visible()
	keyed.Columns = nil
	for _, c := range t.Columns.ByKey.AllColumns {
		column := *t.Relation.Column(c.Name)
		column.NotNull = column.NotNull && c.Plain()
		keyed.Columns = append(keyed.Columns, column)
	}
	return &keyed
}

// View is a view that agents may read, or that such a view reads. Agents read a copy that runs with their own rights.
type View struct {
	Relation *catalog.Relation
	Listed   bool           // agents may name it
	Tables   []catalog.Name // the tables that it reads, also through other views; sorted

	// The queries of the copies: Query has no predicates and relies on row security; FilteredQuery has the predicates
	// of its tables.
	Query, FilteredQuery string
	SignedQuery          string // over signed views; "" if the query has an expression that is not leak-safe
	// PartlyFiltered is true if some table in FilteredQuery has no predicate, for example where the query means a whole
	// row.
	PartlyFiltered bool

	Write *Write // what agents may change through the view; nil: nothing. The table has the conditions and stamps
}

// Function is a function that agents may call.
type Function struct {
	Name      catalog.Name
	Overloads []*catalog.Function
	Pins      []Pin
	Reads     []FunctionReads // what the policy declares that the function reads; nil: nothing is declared
	Tool      *Tool           // its tool of MCP; nil: it has none
}

// Pin fixes an argument of a function, whatever the caller passes, by name or by position.
type Pin struct {
	Arg   string
	Value string // a SQL literal with a qualified cast: 'true'::pg_catalog.bool
}

// Attribute is a fact about a session, with which rules compare rows.
type Attribute struct {
	Name   string
	Type   string // the type as the policy writes it, such as uuid, text or bigint
	Source string // credential, set, query or expression

	Optional bool   // a session may lack it: then predicates hide the rows that need it
	Setting  string // the setting, in lower case, by which the session claims a value of an attribute with the source set
	Audit    Recording
}

// Live tells whether the database computes the attribute for each statement.
func (a Attribute) Live() bool { return a.Source != sourceCredential }

// Version is a hash of the policy's meaning.
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

// Live returns the attributes that the database computes for each statement. None of them needs a later one.
func (p *Policy) Live() []predicate.Live { return p.live }

// Settings returns the settings in which sessions claim attributes, with the name of each attribute.
func (p *Policy) Settings() map[string]string {
	out := map[string]string{}
	for _, a := range p.attributes {
		if a.Setting != "" {
			out[a.Setting] = a.Name
		}
	}
	return out
}

// Warnings are the warnings of the compilation. [Lint] has more.
func (p *Policy) Warnings() []*Error { return p.warnings }

// Withheld are the warnings about writes that the policy lists and agents are not given.
func (p *Policy) Withheld() []*Error { return p.withheld }

// WriteDisclosures are the warnings about what agents learn of hidden rows by their writes.
func (p *Policy) WriteDisclosures() []*Error { return p.disclosures }

func compareNames(a, b catalog.Name) int {
	if c := strings.Compare(a.Schema, b.Schema); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
