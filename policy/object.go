package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// Object is a table under the name by which contracts speak of it.
type Object struct {
	Name             string
	Relation         catalog.Name
	Vessel           string   // the name that the policy gives to the store which holds the object; "": none
	MetadataColumns  []string // the columns that hold only metadata
	EmbeddingColumns []string // the columns that hold embeddings
	// statements may join the object on a key and use its columns in conditions, but not return them
	JoinOnly bool
}

// Object returns the object that a table is, or, for a partition, the object that its parent is; nil: none.
func (p *Policy) Object(n catalog.Name) *Object { return p.objects[n] }

// HasContracts tells whether the policy has contracts.
func (p *Policy) HasContracts() bool { return len(p.contracts) > 0 }
