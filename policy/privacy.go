package policy

import (
	"fmt"
	"io"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Privacy says which tables hold memories that are granted to others, and where contexts, consents and guardians stand,
// for those who grant, revoke and look at grants by HTTP, MCP or the command line. It decides about no row: rows and
// write do.
type Privacy struct {
	Entity  string   // the attribute that says who the caller is
	Roles   []string // attributes whose values are ids of the caller as well
	Context string   // the attribute of the context that the caller has entered; "": there is none
	Setting string   // by which a session enters one
	All     string   // the word for everybody; "": there is none

	Memories  []*Memories // in the order of the policy, each by its kind
	Stores    *Stores     // nil: the store of a memory is its owner
	Contexts  *Contexts   // nil: there are none
	Consents  *Consents
	Guardians *Guardians

	Generalize *Generalize // nil: nothing says where beliefs that are drawn from memories go
}

// Memories is a table of them.
type Memories struct {
	Kind     string // as callers name it
	Relation *catalog.Relation
	Key      string // the column of the primary key
	Store    string
	Content  string
	Source   string         // "": nothing says who told it
	ToldFrom string         // the key of the memory that it was told from; "": nothing says so
	Subjects predicate.List // whom a memory is about
	Grants   predicate.List
	Evidence predicate.List // who is said to have agreed, which counts for nothing; Column "": nothing says so
}

// Stores says whose memories a store holds.
type Stores struct {
	Relation  *catalog.Relation
	ID, Owner string
}

// Contexts is the table of them.
type Contexts struct {
	Relation               *catalog.Relation
	Store, Name            string
	Participants, Defaults predicate.List // Defaults.Column "": a context has none
}

// Consents is the table of records.
type Consents struct {
	Relation                       *catalog.Relation
	Store, Grantor, Grantee        string
	Scope, Given, Revoked, Expires string // "": there is no such column
	Key                            string
}

// Guardians is the table of who speaks for whom.
type Guardians struct {
	Relation                 *catalog.Relation
	Store, Subject, Guardian string
}

// Generalize says where a belief goes that is drawn from a private memory, and where it is noted from which.
type Generalize struct {
	Into    *Memories // the memories that beliefs are
	Link    *Link
	Aliases *Aliases // nil: those whom memories are about have no other names
}

// Link is the table that has which memory was made from which. Whoever sees a row of it knows the source's id.
type Link struct {
	Relation                            *catalog.Relation
	Store, Made, Source, Kind, Note, At string // Kind, of the source, Note and At, when, "": there is no such column
}

// Aliases is the table of what else somebody is called.
type Aliases struct {
	Relation              *catalog.Relation
	Store, Subject, Alias string
}

// Privacy returns the section of that name; nil if the policy has none.
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
