// Package policy loads policies and compiles them against a catalog.
//
// What [Compile] returns names only tables, columns and functions that exist, of types that compare in pg_catalog, and
// gives each protected table exactly one predicate. A table that the policy does not list is not readable at all; a
// construct that this version does not know is an error with its place in the file, never ignored.
//
// Nothing here is secret: what a credential is worth is the configuration's to say.
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
	operators  []string // extensions
	views      []*View
	children   []*Child
	attributes []Attribute
	live       []predicate.Live

	expressions map[string]string // of attributes that follow from others, as they are written

	limits  []Limit
	air     *AIR
	subject string
	purpose string

	derivations []Derivation
	cascades    []Cascade

	tableIndex    map[catalog.Name]*Table
	functionIndex map[catalog.Name]*Function
	warnings      []*Error
	withheld      []*Error
	disclosures   []*Error

	privacy *Privacy
	sources *Sources

	objects    map[catalog.Name]*Object // and their partitions and children
	objectList []*Object
	contracts  []*Contract
}

// Table is a table that agents may read.
type Table struct {
	Relation *catalog.Relation
	Rows     predicate.Node
	Rule     *Rule           // Rows as the policy writes it, with places
	Write    *Write          // nil: agents write nothing
	Columns  *VisibleColumns // nil: every column, as it is

	Aggregate *Aggregate // nil: aggregates see what shows one by one
	Lifecycle *Lifecycle // nil: rows stay until the application deletes them

	Approximate bool // which visible rows a search for the nearest finds may depend on hidden ones

	AuditKeys bool // the outcome of what reads it has commitments to the keys of the rows

	Observed *Table // the table as it would be: it is observed only, and this one is open; nil: the policy is enforced
}

// LacksRowSecurity tells whether the relation is a materialised view or a foreign table, which cannot have row security: agents
// read it through a view that has the rule in it, and hold no right on it.
func (t *Table) LacksRowSecurity() bool { return lacksRowSecurity(t.Relation) }

func lacksRowSecurity(r *catalog.Relation) bool {
	return r.Kind == catalog.MatView || r.Kind == catalog.ForeignTable
}

// Visible is the table as agents know it: without the columns that are hidden from them.
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

// VisibleByKey is the table as a statement knows it that fetches it by key.
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

// View is a view that agents may read, or that such a view reads: through a copy that runs with the agent's rights.
type View struct {
	Relation *catalog.Relation
	Listed   bool           // agents may name it
	Tables   []catalog.Name // the tables that it reads, through other views as well; sorted

	// The copy's query, without predicates, which row security holds alone, and with the predicates of its tables in it.
	Query, FilteredQuery string
	SignedQuery          string // the same over door views; "" where an expression of it is not vetted
	// some table in Walled stands without its predicate, as where a whole row is meant: row security alone holds
	PartlyFiltered bool

	Write *Write // what agents may change through it; nil: nothing. Conditions and stamps are the table's
}

// Function is a function that agents may call.
type Function struct {
	Name      catalog.Name
	Overloads []*catalog.Function
	Pins      []Pin
	Reads     []FunctionReads // what it reads, as the policy says it; nil: not said
	Tool      *Tool           // it is published as a tool of MCP; nil: it is not
}

// Pin fixes an argument whatever the caller passes, by name or by position.
type Pin struct {
	Arg   string
	Value string // a SQL literal with a qualified cast: 'true'::pg_catalog.bool
}

// Attribute is a fact about the session that predicates use.
type Attribute struct {
	Name   string
	Type   string // as the policy writes it: uuid, text, bigint …
	Source string // credential, set, query or expression

	Optional bool   // it may be missing: predicates do not demand it
	Setting  string // of source set, in lower case: the setting in which the session claims it
	Audit    Recording
}

// Live tells whether the database works the attribute out at each statement.
func (a Attribute) Live() bool { return a.Source != sourceCredential }

// Version is a hash of the whole policy.
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

// Views returns every view, those that others read before these.
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

// Live returns the attributes that the database works out at each statement, those that others need before these.
func (p *Policy) Live() []predicate.Live { return p.live }

// Settings are the settings in which sessions claim attributes, each with the name of its attribute.
func (p *Policy) Settings() map[string]string {
	out := map[string]string{}
	for _, a := range p.attributes {
		if a.Setting != "" {
			out[a.Setting] = a.Name
		}
	}
	return out
}

// Warnings tell what compiling found allowed and unwise; [Lint] tells more.
func (p *Policy) Warnings() []*Error { return p.warnings }

// Withheld are those of the warnings that say what agents are not given though the policy asks for it.
func (p *Policy) Withheld() []*Error { return p.withheld }

// WriteDisclosures are those of the warnings that say what agents learn of rows that they do not see by what they write.
func (p *Policy) WriteDisclosures() []*Error { return p.disclosures }

func compareNames(a, b catalog.Name) int {
	if c := strings.Compare(a.Schema, b.Schema); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
