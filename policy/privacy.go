package policy

import (
	"fmt"
	"io"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Privacy maps the tables of memories, grants, contexts, consents and guardians, for agents that grant, revoke and
// audit by HTTP, MCP or the command line. It decides about no row: rows and write of the tables do.
type Privacy struct {
	Entity  string   // the attribute that is the caller's id
	Roles   []string // attributes whose values are further ids of the caller
	Context string   // the attribute with the context that the caller has entered; "": there is none
	Setting string   // the setting by which a session enters a context
	All     string   // the word for everybody; "": there is none

	Memories  []*Memories // the tables of memories, in the order of the policy
	Stores    *Stores     // nil: the store of a memory is its owner's id
	Contexts  *Contexts   // nil: there are none
	Consents  *Consents
	Guardians *Guardians

	Generalize *Generalize // nil: there is no place for general beliefs
}

// Memories is a table of memories of one kind.
type Memories struct {
	Kind     string // the name of the kind
	Relation *catalog.Relation
	Key      string // the column of the primary key
	Store    string
	Content  string
	Source   string         // who told the memory; "": not recorded
	ToldFrom string         // the key of the memory from which it was told; "": not recorded
	Subjects predicate.List // the people whom a memory is about
	Grants   predicate.List
	Evidence predicate.List // people who are said to have agreed, which has no effect; Column "": not recorded
}

// Stores is the table with the owner of each store of memories.
type Stores struct {
	Relation  *catalog.Relation
	ID, Owner string
}

// Contexts is the table of contexts, in which several callers take part.
type Contexts struct {
	Relation               *catalog.Relation
	Store, Name            string
	Participants, Defaults predicate.List // Defaults.Column "": a context has none
}

// Consents is the table of consent records.
type Consents struct {
	Relation                       *catalog.Relation
	Store, Grantor, Grantee        string
	Scope, Given, Revoked, Expires string // "": there is no such column
	Key                            string
}

// Guardians is the table with the guardians of each subject.
type Guardians struct {
	Relation                 *catalog.Relation
	Store, Subject, Guardian string
}

// Generalize says where general beliefs go that are made from private memories, and where their sources are noted.
type Generalize struct {
	Into    *Memories // the kind of memories that beliefs are
	Link    *Link
	Aliases *Aliases // nil: subjects have no other names
}

// Link is the table that notes the memory from which a belief was made. A row of it tells the source's id.
type Link struct {
	Relation *catalog.Relation
	// Kind is of the source, At is the time; "" for Kind, Note and At: there is no such column
	Store, Made, Source, Kind, Note, At string
}

// Aliases is the table of a subject's other names.
type Aliases struct {
	Relation              *catalog.Relation
	Store, Subject, Alias string
}

// Privacy returns the section privacy; nil: the policy has none.
func (p *Policy) Privacy() *Privacy { return p.privacy }

// MemoriesOf returns the memories of a kind, or nil.
func (p *Privacy) MemoriesOf(kind string) *Memories {
	for _, m := range p.Memories {
		if m.Kind == kind {
			return m
		}
	}
	return nil
}

// Kinds are the kinds of memories, in the order of the policy.
func (p *Privacy) Kinds() []string {
	out := make([]string, len(p.Memories))
	for i, m := range p.Memories {
		out[i] = m.Kind
	}
	return out
}

func (p *Privacy) describe(h io.Writer) {
	if p == nil {
		return
	}
	fmt.Fprintf(h, "privacy %q %q %q %q\n", p.Entity, p.Roles, p.Context, p.All)
	for _, m := range p.Memories {
		fmt.Fprintf(h, " memories %q %q %q %q %q %q %q %q %q\n", m.Kind, m.Relation.Name.String(), m.Store, m.Content,
			m.Source, m.ToldFrom, m.Subjects.Column, m.Grants.Column, m.Evidence.Column)
	}
	if s := p.Stores; s != nil {
		fmt.Fprintf(h, " stores %q %q %q\n", s.Relation.Name.String(), s.ID, s.Owner)
	}
	if x := p.Contexts; x != nil {
		fmt.Fprintf(h, " contexts %q %q %q %q %q\n", x.Relation.Name.String(), x.Store, x.Name, x.Participants.Column,
			x.Defaults.Column)
	}
	if x := p.Consents; x != nil {
		fmt.Fprintf(h, " consents %q %q %q %q %q %q %q %q\n", x.Relation.Name.String(), x.Store, x.Grantor, x.Grantee,
			x.Scope, x.Given, x.Revoked, x.Expires)
	}
	if g := p.Guardians; g != nil {
		fmt.Fprintf(h, " guardians %q %q %q %q\n", g.Relation.Name.String(), g.Store, g.Subject, g.Guardian)
	}
	if g := p.Generalize; g != nil {
		fmt.Fprintf(h, " generalize %q %q %q %q %q %q %q %q\n", g.Into.Kind, g.Link.Relation.Name.String(),
			g.Link.Store, g.Link.Made, g.Link.Source, g.Link.Kind, g.Link.Note, g.Link.At)
		if a := g.Aliases; a != nil {
			fmt.Fprintf(h, " aliases %q %q %q %q\n", a.Relation.Name.String(), a.Store, a.Subject, a.Alias)
		}
	}
}
