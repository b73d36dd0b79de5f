package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// The sources of an access: by which kind of columns, or by which command, a statement gets at the rows.
const (
	// the statement uses only columns that the policy calls metadata of the object, or it uses no column and counts rows
	SourceMetadata   = "metadata"
	SourceStructured = "structured" // the statement uses columns that are neither metadata nor embeddings
	SourceVector     = "vector"     // the statement uses an embedding, or measures likeness
	SourceWrite      = "write"      // the statement writes rows
	SourceFunction   = "function"   // the statement calls a function, and the policy does not say what the function reads
)

// Access is one relation that a statement reads in one way.
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
	// the values in the result depend on the relation's columns; false: only the conditions do
	AffectsOutput bool `json:"output,omitempty"`
	// at every mention, the statement compares a key column of the relation with a column of another table
	JoinedByKey bool `json:"joined,omitempty"`
}

// Statement is a statement as contracts judge it.
type Statement struct {
	Tag             string // SELECT, INSERT …
	Accesses        []Access
	NamedStatements []string // the texts of those statements named in the policy that this statement is equal to
	PlainSelect     bool     // the statement is SELECT columns FROM tables, with at most joins, conditions and an order
	// the statement is a plain SELECT that names one table once; known if the policy records keys of rows
	SingleTable bool
	Limit       int64 // the number after LIMIT in a plain SELECT; -1: there is none
}

// FunctionReads is one table that a function of the policy reads, and the ways in which it reads the table, as the
// policy declares them.
type FunctionReads struct {
	Relation catalog.Name
	Sources  []string // metadata, structured or vector, as in Access.Source
}
