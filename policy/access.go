package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// The sources of an access: how a statement gets the rows.
const (
	// the statement uses only columns that the policy calls metadata of the object, or none: it counts rows
	Metadata   = "metadata"
	Structured = "structured" // the statement uses other columns
	Vector     = "vector"     // the statement uses an embedding, or measures likeness
	Writes     = "write"      // the statement writes rows
	Calls      = "function"   // the statement calls a function, and the policy does not say what the function reads
)

// Access is one relation that a statement reads in one way.
type Access struct {
	Relation catalog.Name `json:"relation"`
	Columns  []string     `json:"columns"` // the columns that are used; nil: all
	Source   string       `json:"source"`  // metadata, structured, vector, write or function
	ByKey    bool         `json:"by_key"`  // the statement compares the whole primary key with constants or parameters
	Written  bool         `json:"written,omitempty"`

	// the names that the statement gives the relation, if they differ from its own
	Aliases []string `json:"as,omitempty"`
	Through []string `json:"through,omitempty"` // the views and functions that read it
	Output  bool     `json:"output,omitempty"`  // the result depends on its columns, not only its conditions
	// at every mention, a column of a key of the relation equals a column of another table
	Joined bool `json:"joined,omitempty"`
}

// Statement is a statement as contracts judge it.
type Statement struct {
	Tag             string // SELECT, INSERT …
	Accesses        []Access
	NamedStatements []string // the texts of the statements of the policy that this statement is
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
