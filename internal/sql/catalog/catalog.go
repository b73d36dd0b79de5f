// Package catalog is an immutable snapshot of what a database contains: relations, columns, keys, functions, operators,
// types. Names are resolved against it and never by asking the server while a statement waits.
//
// A snapshot is safe for concurrent use and never changes; a newer one has another Version. Reading one from a server
// is the work of package pgcatalog below this one.
package catalog

// Name is a schema-qualified name as the catalog spells it, without quotes.
type Name struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

func (n Name) String() string { return n.Schema + "." + n.Name }

// RelKind is pg_class.relkind.
type RelKind byte

// The kinds of relations.
const (
	Table            RelKind = 'r'
	PartitionedTable RelKind = 'p'
	View             RelKind = 'v'
	MatView          RelKind = 'm'
	ForeignTable     RelKind = 'f'
	Sequence         RelKind = 'S'
	Index            RelKind = 'i'
	Composite        RelKind = 'c'
)

// Relation is a row of pg_class with its columns and keys.
type Relation struct {
	OID       uint32
	Name      Name
	Kind      RelKind
	Owner     string
	Extension string
	Columns   []Column // the columns by attnum, without dropped ones
	Waiting   []string // columns that it has besides, which are not to be known: see Snapshot.Without

	PrimaryKey  []string
	ForeignKeys []ForeignKey
	Unique      []Key // the keys by which rows may collide: the primary key, unique indexes, exclusion constraints
	Indexes     []BTree
	Partial     []Partial
	Inverted    []string // the columns of valid GIN indexes over the whole table, sorted
	// text search vectors that a valid index holds for every row, computed by functions of PostgreSQL alone
	Vectors []string
	// an index of the relation may search approximately: hnsw and ivfflat of pgvector, and every access method that is not
	// PostgreSQL's
	Approximate bool

	Protection
	Inheritance
	WriteFacts
	UserCode
	ViewFacts
}

// Protection is which rows of a relation row security shows.
type Protection struct {
	RowSecurity  bool // relrowsecurity
	ForceRLS     bool // relforcerowsecurity
	HasOurPolicy bool // the relation has the row policy of pgconsent that decides which rows agents see
}

// Inheritance says of which tables a relation is a partition or child, and whether it has partitions or children.
type Inheritance struct {
	IsPartition bool
	HasChildren bool     // inheritance children or partitions
	Parents     []Name   // the direct parents of a partition or an inheritance child
	PartitionBy []string // the columns of the partition key of a partitioned table
}

// WriteFacts are what PostgreSQL computes and checks of a row as it is written.
type WriteFacts struct {
	Checked         []string   // the columns that CHECK constraints read, by attnum
	CheckedTogether [][]string // for each CHECK constraint on several columns, the columns that it reads, by attnum
	// for each constraint that may fail for an update which changes none of its columns, the columns that it reads, by
	// attnum: it is NOT VALID, or reads more than the row
	Rechecked [][]string
	Computed  []Computed // the computations on a written row that may fail
	Compared  []Compared // the indexes that compare written rows with functions that may fail
	HasRules  bool       // the relation has rewrite rules; the rule of a view itself does not count
}

// UserCode says where PostgreSQL runs code of other roles for a relation: code that neither PostgreSQL nor pgconsent
// has brought.
type UserCode struct {
	// deleting a row of the table runs only code of PostgreSQL and of pgconsent, apart from referential actions on other
	// tables
	DeleteRunsNoUserCode bool
	// updating a row of the table runs only code of PostgreSQL and of pgconsent, apart from the expressions of the new
	// values
	UpdateRunsNoUserCode bool
	// PostgreSQL may run a function of other roles as it plans a statement that reads the table, or finds its rows
	PlannerRunsUserCode bool
	// the object that makes PostgreSQL run user code, for people: "public.notes, index notes_title: public.f(text)"
	UserCodeSource string
}

// ViewFacts describe a view outside the schemas of PostgreSQL and of pgconsent.
type ViewFacts struct {
	Definition string // the query of the view, with qualified names
	Reads      []Read // the relations that the view reads directly
	// the commands that PostgreSQL allows on the view, if it has neither triggers nor rules of its own
	Updatable   Updatable
	CheckOption string // "", local or cascaded
}

// Computed is something that PostgreSQL computes of a row as it is written, besides checks and generated columns.
type Computed struct {
	// "index": the expressions or the predicate of an index, unless all of it is leak-proof; "trigger": the condition of a
	// trigger, unless it is leak-proof; "column", "partition": a generated column or a partition key that depends on more
	// than the row
	By          string
	Columns     []string // the columns that the computation reads, or whose change triggers it, by attnum
	OnUnchanged bool     // the computation may fail for an update that does not change Columns
	OnDelete    bool     // the computation may fail for a deleted row
}

// Compared is an index with an operator class whose comparisons may fail for some values.
type Compared struct {
	Index string
	Keys  []IndexKey
}

// IndexKey is a column or an expression of an index. With the method "operator" it is an operator of an exclusion
// constraint that is not PostgreSQL's.
type IndexKey struct {
	Method     string // the access method: "gist"
	Class      string // the operator class: "range_ops"
	By         string // who provides the operator class or operator: "postgresql" or an extension; "": another role
	Type       uint32
	Expression bool
	Columns    []string // the columns of the table that the key reads, by attnum
}

// Updatable is what pg_relation_is_updatable says: a bit for each command.
type Updatable int

// Inserts tells whether rows can be inserted.
func (u Updatable) Inserts() bool { return u&(1<<3) != 0 }

// Updates tells whether rows can be updated.
func (u Updatable) Updates() bool { return u&(1<<2) != 0 }

// Deletes tells whether rows can be deleted.
func (u Updatable) Deletes() bool { return u&(1<<4) != 0 }

// Column returns the column of that name, or nil.
func (r *Relation) Column(name string) *Column {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return &r.Columns[i]
		}
	}
	return nil
}

// Read is a relation that a view reads, with the columns that it names.
type Read struct {
	Relation Name
	Columns  []string // sorted
}

// Column is a row of pg_attribute.
type Column struct {
	Name         string
	Type         string // format_type with schema where needed: "uuid", "character varying(20)"
	TypeOID      uint32
	NotNull      bool
	Generated    bool
	Virtual      bool     // a generated column that PostgreSQL computes when a statement reads it; its expression may fail
	ComputedFrom []string // the columns that a generated column is computed from, by attnum
	Collation    string   // "" for a type without one, and for the database's own

	Nondeterministic bool   // the collation takes different bytes for the same text
	Identity         string // "", "always" or "by default"
	Default          string // the expression of the column, or of its domain; "": none, as for an identity column
	Sequence         Name   // the sequence of the default or identity; the zero Name: none

	// Values are the values that a validated CHECK of this column alone, or of its domain, allows besides NULL, sorted.
	// nil: there is no such CHECK, or it is no plain list of strings.
	Values []string
}

// Indexed is what pgconsent knows of an index that a statement names.
type Indexed struct {
	Name    Name
	Table   Name
	Columns []string // all columns of the index, including those of INCLUDE
	Plain   bool     // the index has neither expressions nor a predicate
}

// BTree is a valid btree index over the whole table.
type BTree struct {
	Columns []string // the leading columns of the index, up to the first expression
	Unique  bool     // on exactly Columns, and not deferred
	Bytes   bool     // text columns are in the order of their bytes (text_pattern_ops)
}

// Partial is a valid btree index over some rows of the table.
type Partial struct {
	Columns []string // the leading columns of the index, up to the first expression
	Where   string   // the predicate of the index, as pg_get_expr writes it
}

// Size is an estimate of what a table holds, hidden rows included: never shown to agents. It is no part of a snapshot,
// since it changes all the time and no answer depends on it.
type Size struct {
	Rows     float64
	Distinct map[string]float64 // number of values by column; those that are not known are left out
}

// Sizes are the known sizes of tables, by name.
type Sizes map[Name]Size

// Key is an index that lets no two rows collide.
type Key struct {
	Name    string   // the name of the index, and of its constraint if it has one
	Columns []string // the columns that the key, the expressions and the predicate of the index read, by attnum
	// columns that must be equal for two rows to collide: plain columns of a unique key, or columns WITH = of an exclusion
	// constraint, in their own collation
	Equal         []string
	NullsDistinct []string // plain columns in which a NULL keeps the row from colliding, because NULL equals no NULL
	Where         string   // the predicate of a partial index, as pg_get_expr writes it
	WhereColumns  []string // the columns that Where reads, by attnum
}

// Action is what PostgreSQL does to a referring row when the row that its foreign key refers to is deleted or changed.
type Action string

// The actions. NO ACTION and RESTRICT make the statement fail even if its user cannot see the referring row.
const (
	NoAction   Action = "no action"
	Restrict   Action = "restrict"
	Cascade    Action = "cascade"
	SetNull    Action = "set null"
	SetDefault Action = "set default"
)

// ForeignKey is a validated or unvalidated FOREIGN KEY constraint, enforced in any case.
type ForeignKey struct {
	Columns    []string
	Target     Name
	TargetCols []string
	Validated  bool
	OnUpdate   Action
	OnDelete   Action
	Nulled     []string // the columns that ON DELETE SET NULL sets; none: it sets all columns of the key
	Full       bool     // MATCH FULL: either all columns are NULL or none is
}

// Function is a row of pg_proc outside pg_catalog and information_schema; of those two only the names are kept.
type Function struct {
	OID             uint32
	Name            Name
	Kind            byte     // prokind: f, a, w, p
	ArgNames        []string // the names of the input arguments; "" for an argument without a name
	ArgTypes        []string // the types of the input arguments, as format_type
	Defaults        int
	Variadic        bool
	SecurityDefiner bool // the function, or a function that the aggregate is made of, is SECURITY DEFINER
	// a SECURITY DEFINER function that a default of an argument calls, by itself or in what PostgreSQL keeps parsed of
	// others; "": none
	DefinerDefault string
	Volatility     byte // i, s, v; of an aggregate the most of what it is made of
	Language       string
	// of an extension: it is not in C, and may have what is not the extension's inside, since anyone who owns the
	// extension may replace it
	MayBeReplaced bool
	Extension     string   // "" if it belongs to none
	Results       []uint32 // the types of what it gives: its result and its OUT arguments
	RangeType     uint32   // the range type that a constructor function of PostgreSQL returns
}

// Type is a row of pg_type that is not a table's row type or an array of one.
type Type struct {
	OID       uint32
	Name      Name
	Kind      byte   // typtype: b, c, d, e, m, p, r
	BaseName  string // the base type of a domain that is itself no domain, as format_type
	Extension string
	Element   uint32   // the element type of an array type; name, point and other types with subscripts have none
	Base      uint32   // the base type of a domain, the type of the bounds of a range, or the range of a multirange
	Labels    []string // the labels of an enum, in its order
	// PostgreSQL runs a function of other roles as it compares its values, or makes or converts them by itself
	RunsUserCode bool
	// of a range: the function that tells how far two bounds are apart, qualified unless it is of pg_catalog; "": none
	SubtypeDiff string

	// CheckFunctions are the functions outside pg_catalog that the checks of a domain call, but not those of the domains
	// under it; and those that a range compares and rounds its bounds by.
	CheckFunctions []uint32
	CheckTypes     []uint32 // the types that the CHECK constraints of a domain use
}

// Cast is a row of pg_cast that runs a function outside pg_catalog.
type Cast struct {
	Source, Target uint32
	Function       uint32
	Implicit       bool // PostgreSQL chooses it by itself
}

// Operator is a row of pg_operator outside pg_catalog.
type Operator struct {
	Name      Name
	Extension string
}
