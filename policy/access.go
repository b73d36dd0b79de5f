package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// The sources of an access: how its rows are got.
const (
	Metadata   = "metadata"   // only columns that the policy calls metadata of the object are used, or none: rows are counted
	Structured = "structured" // columns are used
	Vector     = "vector"     // an embedding is used, or likeness is measured
	Writes     = "write"      // rows are written
	Calls      = "function"   // a function is called, and the policy does not say what it reads
)

// Access is one relation that a statement reads in one way.
type Access struct {
	Relation catalog.Name `json:"relation"`
	Columns  []string     `json:"columns"` // that are used; nil: all
	Source   string       `json:"source"`  // metadata, structured, vector, write or function
	ByKey    bool         `json:"by_key"`  // the whole primary key equals constants or parameters
	Written  bool         `json:"written,omitempty"`

	Aliases []string `json:"as,omitempty"`      // what the statement calls it, where that is another name
	Through []string `json:"through,omitempty"` // the views and functions that read it
	Output  bool     `json:"output,omitempty"`  // the result depends on its columns, beyond conditions
	Joined  bool     `json:"joined,omitempty"`  // wherever it stands, a column of a key of it equals a column of another table
}

// Statement is what a contract judges.
type Statement struct {
	Tag             string // SELECT, INSERT …
	Accesses        []Access
	NamedStatements []string // the statements of the policy that it is, by their text
	PlainSelect     bool     // it is SELECT columns FROM tables, joined if there are several, with conditions and an order at most
	SingleTable     bool     // it is plain and names one table, once; known where the policy has keys of rows recorded
	Limit           int64    // of a plain one: the number after LIMIT, -1 if there is none
}

// FunctionReads is what a function reads of a table, as the policy says it.
type FunctionReads struct {
	Relation catalog.Name
	Sources  []string
}
