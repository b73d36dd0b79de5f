package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// Object is a table as contracts speak of it.
type Object struct {
	Name       string
	Relation   catalog.Name
	Vessel     string   // "" is in none
	Metadata   []string // columns
	Embeddings []string // columns
	JoinOnly   bool     // it may be joined on a key; its columns may stand in conditions, and are not returned
}

// Object returns the object that a table is, or the part of one, or nil.
func (p *Policy) Object(n catalog.Name) *Object { return p.objects[n] }

// HasContracts tells whether the policy has contracts.
func (p *Policy) HasContracts() bool { return len(p.contracts) > 0 }
