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
	Columns   []Column // by attnum, dropped ones left out
	Waiting   []string // columns that it has besides, which are not to be known: see Snapshot.Without

	PrimaryKey  []string
	ForeignKeys []ForeignKey
	Unique      []Key // what no two rows may share: unique indexes, exclusion constraints, the primary key
	Indexes     []BTree
	Partial     []Partial
	Inverted    []string // columns that a valid GIN index over the whole table has, sorted
	// text search vectors, of PostgreSQL's own functions alone, that a valid index has computed for every row
	Vectors []string
	// an index of it may search approximately: pgvector's hnsw and ivfflat, and every access method that is not
	// PostgreSQL's own
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
	HasOurPolicy bool // it has the row policy of ours that says which rows agents see
}

// Inheritance is how a relation is part of others, or has others as parts.
type Inheritance struct {
	IsPartition bool
	HasChildren bool     // inheritance children or partitions
	Parents     []Name   // of a partition or an inheritance child, directly
	PartitionBy []string // of a partitioned table: the columns that say where a row goes
}

// WriteFacts are what PostgreSQL computes and checks of a row as it is written.
type WriteFacts struct {
	Checked         []string   // columns that a CHECK constraint reads, by attnum
	CheckedTogether [][]string // of each CHECK constraint that reads several columns: which, by attnum
	// of each constraint that may refuse an update of a row whose columns it leaves as they are: NOT VALID, or of more
	// than the row; which, by attnum
	Rechecked [][]string
	Computed  []Computed // what is computed of a row as it is written, and may fail
	Compared  []Compared // the indexes that compare rows as they are written, other than by what is known to fail for none
	HasRules  bool       // rewrite rules, which a view's own is not counted as
}

// UserCode is where PostgreSQL runs code that is neither its own nor ours for a relation.
type UserCode struct {
	// of a table: nothing but what is PostgreSQL's own, or ours, runs as a row of it is deleted, referential actions on
	// other tables aside
	DeleteRunsNoUserCode bool
	UpdateRunsNoUserCode bool   // the same of an update, the values that are set aside
	PlannerRunsUserCode  bool   // PostgreSQL may run a function of others as it plans to read it, or finds its rows
	UserCodeSource       string // by what, for people: "public.notes, index notes_title: public.f(text)"
}

// ViewFacts are of a view outside the system's schemas and ours.
type ViewFacts struct {
	Definition  string    // its query, with names qualified
	Reads       []Read    // what it reads directly
	Updatable   Updatable // of one without triggers and rules of its own: what PostgreSQL lets be done to it
	CheckOption string    // "", local or cascaded
}

// Computed is something that PostgreSQL computes of a row as it is written, besides checks and generated columns.
type Computed struct {
	// "index": its expressions or its predicate, where they have more than what is leak-proof; "trigger": its
	// condition, if that has; "column", "partition": if they go by more than the row
	By          string
	Columns     []string // that it reads, or that it waits for, by attnum
	OnUnchanged bool     // it may fail for a row of which an update leaves Columns as they are
	OnDelete    bool     // it may fail for a row that is deleted
}

// Compared is an index whose operator classes are not those of plain values alone, each of which PostgreSQL knows to
// compare.
type Compared struct {
	Index string
	Keys  []IndexKey
}

// IndexKey is a column or an expression of an index; or, with the method "operator", an operator of others by which a
// constraint excludes.
type IndexKey struct {
	Method     string // the access method: "gist"
	Class      string // the operator class: "range_ops"
	By         string // whose it is: "postgresql", an extension, or "" for anybody else
	Type       uint32
	Expression bool
	Columns    []string // of the table, by attnum
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
	Virtual      bool     // generated, and computed as it is read: by an expression, which may fail
	ComputedFrom []string // of a generated column: what it is computed from, by attnum
	Collation    string   // "" for a type without one, and for the database's own

	Nondeterministic bool   // the collation takes different bytes for the same text
	Identity         string // "", "always" or "by default"
	Default          string // its expression, or that of its domain; "" if it has none; an identity column has none
	Sequence         Name   // whose next value the default or the identity is; the zero value if none

	// Values are the only ones that a validated CHECK of this column alone, or of its domain, lets through besides NULL,
	// sorted. Nil: there is no such check, or it says something that is not a plain list of strings.
	Values []string
}

// Indexed is what an index shows by its name.
type Indexed struct {
	Name    Name
	Table   Name
	Columns []string // that it has, those that are only included as well
	Plain   bool     // it has neither expressions nor a condition
}

// BTree is a valid btree index over the whole table.
type BTree struct {
	Columns []string // its leading keys as far as they are plain columns
	Unique  bool     // on exactly Columns, and not deferred
	Bytes   bool     // text columns are in the order of their bytes (text_pattern_ops)
}

// Partial is a valid btree index over some rows of the table.
type Partial struct {
	Columns []string // its leading keys as far as they are plain columns
	Where   string   // which rows, as pg_get_expr writes it
}

// Size is an estimate of what a table holds, hidden rows included: never shown to agents. It is no part of a snapshot,
// since it changes all the time and no answer depends on it.
type Size struct {
	Rows     float64
	Distinct map[string]float64 // number of values by column; those that are not known are left out
}

// Sizes are those of the tables that are known.
type Sizes map[Name]Size

// Key is an index that lets no two rows collide.
type Key struct {
	Name    string   // of the index, and of its constraint if it has one
	Columns []string // those that its key, its expressions and its predicate read, by attnum
	// those without which being equal no two rows collide: plain columns of a unique key, or WITH = of one that
	// excludes, in their own collation
	Equal         []string
	NullsDistinct []string // those of which one that is NULL keeps the row from colliding: plain columns, where NULL equals no NULL
	Where         string   // which rows it is about, as pg_get_expr writes it
	WhereColumns  []string // the columns that Where reads, by attnum
}

// Action is what becomes of a row whose foreign key loses its target.
type Action string

// The actions. Those that refuse do so whether or not whoever deletes may see the row.
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
	Nulled     []string // those of its columns that ON DELETE SET NULL sets; none: all of them
	Full       bool     // MATCH FULL: all of its columns are NULL, or none
}

// Function is a row of pg_proc outside pg_catalog and information_schema; of those two only the names are kept.
type Function struct {
	OID             uint32
	Name            Name
	Kind            byte     // prokind: f, a, w, p
	ArgNames        []string // of the input arguments, "" where unnamed
	ArgTypes        []string // of the input arguments, as format_type
	Defaults        int
	Variadic        bool
	SecurityDefiner bool // of an aggregate: one of the functions that it is made of is
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
	RangeType     uint32   // of a constructor that PostgreSQL made for a range type: the type of its result
}

// Type is a row of pg_type that is not a table's row type or an array of one.
type Type struct {
	OID          uint32
	Name         Name
	Kind         byte   // typtype: b, c, d, e, m, p, r
	BaseName     string // of a domain: the type under it that is none, as format_type
	Extension    string
	Element      uint32   // of an array type; name, point and others that have subscripts are none
	Base         uint32   // of a domain; of a range, the type of its bounds; of a multirange, the range
	Labels       []string // of an enum, in its order
	RunsUserCode bool     // PostgreSQL runs a function of others as it compares its values, or makes or converts them by itself
	// of a range: the function that tells how far two bounds are apart, qualified unless it is of pg_catalog; "": none
	SubtypeDiff string

	// CheckFunctions are the functions outside pg_catalog that the checks of a domain call, but not those of the domains
	// under it; and those that a range compares and rounds its bounds by.
	CheckFunctions []uint32
	CheckTypes     []uint32 // of a domain: the types that its checks have to do with
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
