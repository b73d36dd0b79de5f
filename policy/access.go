package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// The sources of an access. They say of which kind the columns are that a statement uses, or that it writes or calls a
// function.
const (
	// the statement uses only columns that the policy calls metadata of the object, or it uses no column and counts rows
	SourceMetadata   = "metadata"
	SourceStructured = "structured" // the statement uses columns that are neither metadata nor embeddings
	// the statement uses an embedding in its result or conditions, or compares values by similarity
	SourceVector   = "vector"
	SourceWrite    = "write"    // the statement writes rows
	SourceFunction = "function" // the statement calls a function for which the policy does not say what it reads
)

// Access says that a statement reads or writes one relation, and in which way.
type Access struct {
	Relation catalog.Name `json:"relation"`
	Columns  []string     `json:"columns"` // the columns that the statement uses; nil: all
	Source   string       `json:"source"`  // metadata, structured, vector, write or function
	ByKey    bool         `json:"by_key"`  // the statement compares the whole primary key with constants or parameters
	Written  bool         `json:"written,omitempty"`

	// the names that the statement gives the relation, if they differ from the relation's own name
	Aliases []string `json:"as,omitempty"`
	// the views and functions through which the statement reads the relation
	Through []string `json:"through,omitempty"`
	// the values in the result depend on the relation's columns; false: only conditions of the statement do
	AffectsOutput bool `json:"output,omitempty"`
	// wherever the statement names the relation, it compares a key column of the relation with a column of another table
	JoinedByKey bool `json:"joined,omitempty"`
}

// Statement has the facts about a statement by which contracts allow or refuse it.
type Statement struct {
	Tag             string // SELECT, INSERT …
	Accesses        []Access
	NamedStatements []string // the texts of the policy's named statements to which this statement is equal
	PlainSelect     bool     // the statement is SELECT columns FROM tables, at most with joins, conditions and an ORDER BY
	// the statement is a plain SELECT that names one table once; set only if the audit records keys of rows
	SingleTable bool
	Limit       int64 // the number after LIMIT in a plain SELECT; -1: there is none
}

// FunctionReads is one table that a function of the policy reads, and the ways in which it reads the table, as the
// policy declares them.
type FunctionReads struct {
	Relation catalog.Name
	Sources  []string // metadata, structured or vector, as in Access.Source
}
