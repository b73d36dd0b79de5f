package policy

import (
	"fmt"
	"io"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Privacy says which tables hold memories, grants, contexts, consents and guardians, for agents that grant, revoke and
// audit by HTTP, MCP or the command line. It does not decide who sees a row: the keys rows and write of the tables do.
type Privacy struct {
	CallerAttribute  string   // the attribute that is the caller's id
	RoleAttributes   []string // attributes whose values are further ids of the caller
	ContextAttribute string   // the attribute with the context that the caller has entered; "": there is none
	ContextSetting   string   // the setting by which a session enters a context
	EverybodyWord    string   // the word in a list of ids that means everybody; "": there is none

	Memories []*Memories // the tables of memories, in the order of the policy
	// the table with the owner of each store of memories; nil: a memory's store is named by its owner's id
	Stores    *Stores
	Contexts  *Contexts // the table of contexts; nil: there are none
	Consents  *Consents
	Guardians *Guardians

	Generalize *Generalize // where general beliefs go; nil: nowhere
}

// Memories is a table that holds the memories of one kind.
type Memories struct {
	Kind         string // the name of the kind
	Relation     *catalog.Relation
	Key          string // the column of the primary key
	StoreColumn  string
	Content      string
	TellerColumn string // the column with the person who told the memory; "": the table does not record it
	// the column with the key of the memory from which this one was told; "": the table does not record it
	ToldFromColumn string
	Subjects       predicate.List // the list of people whom a memory is about
	Grants         predicate.List // the list of ids to which a memory is granted
	// the list of people who are said to have agreed, which has no effect; Column "": the table does not record them
	Evidence predicate.List
}

// Stores is the table that has the owner of each store of memories.
type Stores struct {
	Relation  *catalog.Relation
	ID, Owner string
}

// Contexts is the table of contexts, in which several callers take part.
type Contexts struct {
	Relation    *catalog.Relation
	Store, Name string
	// the lists of a context's participants and of the grants that new memories get in it; Defaults.Column "": a context
	// has none
	Participants, Defaults predicate.List
}

// Consents is the table of consent records.
type Consents struct {
	Relation                       *catalog.Relation
	Store, Grantor, Grantee        string
	Scope, Given, Revoked, Expires string // the columns of a record's scope and times; "": there is no such column
	Key                            string
}

// Guardians is the table that lists the guardians of each subject.
type Guardians struct {
	Relation                 *catalog.Relation
	Store, Subject, Guardian string
}

// Generalize says into which table general beliefs go that are made from private memories, and in which table their
// sources are noted.
type Generalize struct {
	BeliefKind *Memories // the kind of memories that beliefs are
	Link       *Link
	Aliases    *Aliases // the table with other names of subjects; nil: subjects have none
}

// Link is the table that notes from which memory a belief was made. A row of it has the id of the source.
type Link struct {
	Relation *catalog.Relation
	// the columns: Made is for the belief, Kind for the kind of the source, At for the time. Kind, Note and At may be
	// "" where there is no such column.
	Store, Made, Source, Kind, Note, At string
}

// Aliases is the table with the other names of subjects.
type Aliases struct {
	Relation              *catalog.Relation
	Store, Subject, Alias string
}

// Privacy returns the section privacy of the policy; nil: it has none.
func (p *Policy) Privacy() *Privacy { return p.privacy }

// MemoriesOf returns the table of memories of a kind, or nil.
func (p *Privacy) MemoriesOf(kind string) *Memories {
	for _, m := range p.Memories {
		if m.Kind == kind {
			return m
		}
	}
	return nil
}

// Kinds returns the names of the kinds of memories, in the order of the policy.
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
	fmt.Fprintf(h, "privacy %q %q %q %q\n", p.CallerAttribute, p.RoleAttributes, p.ContextAttribute, p.EverybodyWord)
	for _, m := range p.Memories {
		fmt.Fprintf(h, " memories %q %q %q %q %q %q %q %q %q\n", m.Kind, m.Relation.Name.String(), m.StoreColumn, m.Content,
			m.TellerColumn, m.ToldFromColumn, m.Subjects.Column, m.Grants.Column, m.Evidence.Column)
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
		fmt.Fprintf(h, " generalize %q %q %q %q %q %q %q %q\n", g.BeliefKind.Kind, g.Link.Relation.Name.String(),
			g.Link.Store, g.Link.Made, g.Link.Source, g.Link.Kind, g.Link.Note, g.Link.At)
		if a := g.Aliases; a != nil {
			fmt.Fprintf(h, " aliases %q %q %q %q\n", a.Relation.Name.String(), a.Store, a.Subject, a.Alias)
		}
	}
}
