package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// Object is a table under the name that contracts use for it.
type Object struct {
	Name             string
	Relation         catalog.Name
	Vessel           string   // the name of the store that holds the object, as the policy gives it; "": there is none
	MetadataColumns  []string // the columns that hold only metadata
	EmbeddingColumns []string // the columns that hold embeddings
	// statements may join the object on a key and use its columns in conditions, but not return its columns
	JoinOnly bool
}

// Object returns the object that the policy declares for a table, or for the parent of a partition; nil: there is none.
func (p *Policy) Object(n catalog.Name) *Object { return p.objects[n] }

// HasContracts tells whether the policy has contracts.
func (p *Policy) HasContracts() bool { return len(p.contracts) > 0 }
