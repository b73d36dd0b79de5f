// Package catalog is an immutable snapshot of the objects of a database: relations, columns, keys, functions, operators
// and types. Names in statements are resolved in the snapshot, so that no statement waits for a query of the server's
// catalogs.
//
// A snapshot is safe for concurrent use and never changes; a newer snapshot has another Version. Package pgcatalog,
// below this package, reads snapshots from a server.
package catalog

// Name is a schema-qualified name as the system catalogs store it, without quotes.
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
	MaterializedView RelKind = 'm'
	ForeignTable     RelKind = 'f'
	Sequence         RelKind = 'S'
	Index            RelKind = 'i'
	Composite        RelKind = 'c'
)

// Relation is a row of pg_class with its columns and keys.
type Relation struct {
	OID            uint32
	Name           Name
	Kind           RelKind
	Owner          string
	Extension      string
	Columns        []Column // the columns by attnum, without dropped columns
	WaitingColumns []string // further columns of the table, which agents must not learn of: see [Snapshot.WithoutColumns]

	PrimaryKey  []string
	ForeignKeys []ForeignKey
	// the keys in which rows may collide: the primary key, unique indexes and exclusion constraints
	UniqueKeys    []Key
	BTrees        []BTree        // the valid btree indexes over the whole table
	PartialBTrees []PartialBTree // the valid btree indexes over some rows of the table
	GINColumns    []string       // the columns of valid GIN indexes over the whole table, sorted
	// the to_tsvector expressions that a valid index holds for every row, computed by PostgreSQL's own functions alone
	IndexedVectors []string
	// searches by an index of the relation may be approximate: it is a hnsw or ivfflat index of pgvector, or its access
	// method is not PostgreSQL's own
	HasApproximateIndex bool

	Protection
	Inheritance
	WriteFacts
	UserCode
	ViewFacts
}

// Protection says how row security protects a relation.
type Protection struct {
	RowSecurity       bool // row security is enabled: relrowsecurity
	RowSecurityForced bool // row security is forced on the owner, too: relforcerowsecurity
	HasOurPolicy      bool // the relation has pgconsent's row policy, which decides which rows agents see
}

// Inheritance says of which tables a relation is a partition or an inheritance child, and whether it has partitions or
// children of its own.
type Inheritance struct {
	IsPartition bool
	HasChildren bool     // the relation has partitions or inheritance children
	Parents     []Name   // the direct parents of a partition or an inheritance child
	PartitionBy []string // the columns of the partition key of a partitioned table
}

// WriteFacts say what PostgreSQL computes and checks for a row when it is written.
type WriteFacts struct {
	CheckedColumns  []string   // the columns that CHECK constraints read, by attnum
	CheckedTogether [][]string // for each CHECK constraint on several columns, the columns that it reads, by attnum
	// for each constraint that may fail in an update which changes none of its columns: the columns that it reads, by
	// attnum. Such a constraint is NOT VALID, or depends on more than the row
	RecheckedColumns [][]string
	Computations     []Computation   // the computations on a written row that may fail
	FallibleIndexes  []FallibleIndex // the indexes that compare written rows with functions that may fail
	HasRules         bool            // the relation has rewrite rules; the rule of a view itself does not count
}

// UserCode says where PostgreSQL calls functions of other roles for a relation: functions that are neither PostgreSQL's
// own nor pgconsent's.
type UserCode struct {
	// deleting a row of the table runs only code of PostgreSQL and of pgconsent, apart from referential actions on other
	// tables
	DeleteRunsNoUserCode bool
	// updating a row of the table runs only code of PostgreSQL and of pgconsent, apart from the expressions of the new
	// values
	UpdateRunsNoUserCode bool
	// PostgreSQL may call a function of another role while it plans a statement that reads the table, or while it searches
	// for rows
	PlannerRunsUserCode bool
	// the object for which PostgreSQL calls such functions, for messages: "public.notes, index notes_title:
	// public.f(text)"
	UserCodeSource string
}

// ViewFacts describe a view outside the schemas of PostgreSQL and of pgconsent.
type ViewFacts struct {
	Definition string     // the query of the view, with qualified names
	Reads      []ViewRead // the relations that the view reads directly
	// the commands that PostgreSQL allows on the view without triggers and rules of its own
	AllowedCommands UpdatableCommands
	CheckOption     string // the check option of the view: "", local or cascaded
}

// Computation is a value that PostgreSQL computes when a row is written, besides checks and generated columns.
type Computation struct {
	// "index": the expressions or the predicate of an index, unless all functions in them are leak-proof; "trigger": the
	// condition of a trigger, unless all functions in it are leak-proof; "column", "partition": a generated column or a
	// partition key that depends on more than the row
	Source           string
	Columns          []string // the columns that the computation reads, or whose change triggers it, by attnum
	MayFailUnchanged bool     // the computation may fail in an update that changes none of Columns
	MayFailOnDelete  bool     // the computation may fail when a row is deleted
}

// FallibleIndex is an index with an operator class whose comparisons may fail for some values.
type FallibleIndex struct {
	Index string
	Keys  []IndexKey
}

// IndexKey is a column or an expression of an index. If Method is "operator", it is a column of an exclusion constraint
// whose operator is not PostgreSQL's own.
type IndexKey struct {
	Method string // the access method, such as "gist"
	Class  string // the operator class, such as "range_ops"
	// the owner of the operator class or operator: "postgresql" or the name of an extension; "": another role
	Provider     string
	Type         uint32
	IsExpression bool
	Columns      []string // the columns of the table that the key reads, by attnum
}

// UpdatableCommands is the result of pg_relation_is_updatable: a bit for each command.
type UpdatableCommands int

// AllowsInsert tells whether INSERT is allowed on the view.
func (u UpdatableCommands) AllowsInsert() bool { return u&(1<<3) != 0 }

// AllowsUpdate tells whether UPDATE is allowed on the view.
func (u UpdatableCommands) AllowsUpdate() bool { return u&(1<<2) != 0 }

// AllowsDelete tells whether DELETE is allowed on the view.
func (u UpdatableCommands) AllowsDelete() bool { return u&(1<<4) != 0 }

// Column returns the column of the given name, or nil.
func (r *Relation) Column(name string) *Column {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return &r.Columns[i]
		}
	}
	return nil
}

// ViewRead is a relation that a view reads, with the columns of it that the view reads.
type ViewRead struct {
	Relation Name
	Columns  []string // the names of the columns, sorted
}

// Column is a row of pg_attribute.
type Column struct {
	Name string
	// the type as format_type writes it, with a schema if that is needed: "uuid", "character varying(20)"
	Type         string
	TypeOID      uint32
	NotNull      bool
	Generated    bool
	Virtual      bool     // a generated column that PostgreSQL computes when a statement reads it; its expression may fail
	ComputedFrom []string // the columns that a generated column is computed from, by attnum
	Collation    string   // the collation; "" for the database's own, and for a type without collations

	Nondeterministic bool   // the collation treats some texts with different bytes as equal
	Identity         string // the kind of identity column: "", "always" or "by default"
	Default          string // the default expression of the column, or of its domain; "": none, as for an identity column
	Sequence         Name   // the sequence of the default or of the identity; the zero Name: there is none

	// AllowedValues are the strings that a validated CHECK constraint on this column alone, or on its domain, allows
	// besides NULL, sorted. nil: there is no such constraint, or its condition is not a plain list of strings.
	AllowedValues []string
}

// NamedIndex describes an index that a statement names.
type NamedIndex struct {
	Name    Name
	Table   Name
	Columns []string // all columns of the index, including those of INCLUDE
	IsPlain bool     // the index has neither expressions nor a predicate
}

// BTree is a valid btree index over the whole table.
type BTree struct {
	Columns     []string // the leading columns of the index, up to the first expression
	IsUnique    bool     // the index is unique on exactly Columns, and not deferred
	InByteOrder bool     // text columns are sorted by their bytes (text_pattern_ops)
}

// PartialBTree is a valid btree index over some rows of the table.
type PartialBTree struct {
	Columns []string // the leading columns of the index, up to the first expression
	Where   string   // the predicate of the index, as pg_get_expr writes it
}

// Size is an estimate of the rows of a table, including hidden rows, so that agents must not learn it. It is not part
// of a snapshot, since it changes all the time and no answer depends on it.
type Size struct {
	Rows float64
	// the number of distinct values by column; columns with an unknown number are left out
	DistinctValues map[string]float64
}

// Sizes are the known sizes of tables, by name.
type Sizes map[Name]Size

// Key is a unique index or an exclusion constraint: no two rows may collide in it.
type Key struct {
	Name    string   // the name of the index, and of its constraint if it has one
	Columns []string // the columns that the key, the expressions and the predicate of the index read, by attnum
	// the columns in which two rows must be equal to collide, by the column's own collation: plain columns of a unique
	// key, or columns WITH = of an exclusion constraint
	EqualColumns []string
	// plain columns in which a NULL prevents a collision, because NULL equals no NULL
	NullsDistinctColumns []string
	Where                string   // the predicate of a partial index, as pg_get_expr writes it
	WhereColumns         []string // the columns that Where reads, by attnum
}

// Action says what PostgreSQL does to a referring row when the row to which its foreign key refers is deleted or
// changed.
type Action string

// The actions of foreign keys. NO ACTION and RESTRICT make a statement fail even if the role that sent it cannot see
// the referring row.
const (
	NoAction   Action = "no action"
	Restrict   Action = "restrict"
	Cascade    Action = "cascade"
	SetNull    Action = "set null"
	SetDefault Action = "set default"
)

// ForeignKey is a FOREIGN KEY constraint. PostgreSQL enforces it for new rows, whether the constraint is validated or
// not.
type ForeignKey struct {
	Columns        []string
	Target         Name
	TargetColumns  []string
	Validated      bool
	OnUpdate       Action
	OnDelete       Action
	SetNullColumns []string // the columns that ON DELETE SET NULL sets; empty: all columns of the key
	MatchFull      bool     // MATCH FULL: either all columns are NULL or none is
}

// Function is a row of pg_proc outside pg_catalog and information_schema. Of functions in these two schemas a snapshot
// has only the names.
type Function struct {
	OID             uint32
	Name            Name
	Kind            byte     // the kind of function, by prokind: f, a, w, p
	ArgNames        []string // the names of the input arguments; "" for an argument without a name
	ArgTypes        []string // the types of the input arguments, as format_type writes them
	Defaults        int
	Variadic        bool
	SecurityDefiner bool // the function is SECURITY DEFINER, or is an aggregate that uses a SECURITY DEFINER function
	// the name of a SECURITY DEFINER function that the default of an argument calls; "": there is none. The default calls
	// it directly, or through a function whose body PostgreSQL stores as a parsed tree
	DefinerDefault string
	Volatility     byte // the volatility: i, s or v; of an aggregate the highest volatility of the functions that it uses
	Language       string
	// the function belongs to an extension and is not written in C, so that the extension's owner may have replaced its
	// body
	MayBeReplaced bool
	Extension     string   // the extension to which the function belongs; "": it belongs to none
	ResultTypes   []uint32 // the types of its result and of its OUT arguments
	RangeType     uint32   // for a constructor function of PostgreSQL, the range type that it returns
}

// Type is a row of pg_type. Row types of tables, and arrays of them, are left out.
type Type struct {
	OID       uint32
	Name      Name
	Kind      byte   // the kind of type, by typtype: b, c, d, e, m, p, r
	BaseName  string // for a domain, the type on which it is based, also through several domains, as format_type writes it
	Extension string
	// the element type of an array type; 0 for types such as name and point, which are no arrays but accept subscripts
	Element uint32
	Base    uint32   // the base type of a domain, the type of a range's bounds, or the range of a multirange
	Labels  []string // the labels of an enum, in the order of the enum
	// PostgreSQL itself calls a function of another role when it compares, makes or converts values of the type
	RunsUserCode bool
	// for a range, the function that computes the difference of two bounds, schema-qualified unless it is in pg_catalog;
	// "": there is none
	SubtypeDiff string

	// CheckFunctions are functions outside pg_catalog. For a domain, its own CHECK constraints call them; those of the
	// domains on which it is based are not included. For a range, they compare and round its bounds.
	CheckFunctions []uint32
	CheckTypes     []uint32 // the types that the CHECK constraints of a domain use
}

// Cast is a row of pg_cast that runs a function outside pg_catalog.
type Cast struct {
	Source, Target uint32
	Function       uint32
	Implicit       bool // PostgreSQL applies the cast without being asked to
}

// Operator is a row of pg_operator outside pg_catalog.
type Operator struct {
	Name      Name
	Extension string
}
