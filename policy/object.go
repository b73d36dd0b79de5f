package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// Object is a table under the name that contracts give it.
type Object struct {
	Name       string
	Relation   catalog.Name
	Vessel     string   // the policy's name of the store that holds the object; "": none
	Metadata   []string // columns
	Embeddings []string // columns
	JoinOnly   bool     // statements may join the object on a key and use its columns in conditions, but not return them
}

// Object returns the object that a table, or the parent of a partition, is; nil: none.
func (p *Policy) Object(n catalog.Name) *Object { return p.objects[n] }

// HasContracts tells whether the policy has contracts.
func (p *Policy) HasContracts() bool { return len(p.contracts) > 0 }
