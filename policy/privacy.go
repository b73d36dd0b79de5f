package policy

import (
	"fmt"
	"io"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Privacy says which tables hold memories, grants, contexts, consents and guardians. Agents that grant, revoke and
// audit by HTTP, MCP or the command line use these tables. Who sees a row is decided by the keys rows and write of the
// tables, not here.
type Privacy struct {
	CallerAttribute  string   // the attribute with the caller's id
	RoleAttributes   []string // attributes whose values are further ids of the caller
	ContextAttribute string   // the attribute with the context that the caller has entered; "": there is none
	ContextSetting   string   // the setting by which a session enters a context
	EverybodyWord    string   // the word that stands for everybody in a list of ids; "": there is none

	Memories []*Memories // the tables of memories, in the order of the policy
	// the table with the owner of each store of memories; nil: a store has the id of its owner as its name
	Stores    *Stores
	Contexts  *Contexts // the table of contexts; nil: there are none
	Consents  *Consents
	Guardians *Guardians

	Generalize *Generalize // the tables in which general beliefs are stored; nil: callers cannot make any
}

// Memories is a table with the memories of one kind.
type Memories struct {
	Kind         string // the name of the kind
	Relation     *catalog.Relation
	Key          string // the column of the primary key
	StoreColumn  string
	Content      string
	TellerColumn string // the column with the person who told the memory; "": the table has no such column
	// the column with the key of the memory from which this memory was told; "": the table has no such column
	ToldFromColumn string
	Subjects       predicate.List // the list of the people whom a memory is about
	Grants         predicate.List // the list of the ids to which a memory is granted
	// the list of the people who are said to have agreed; it is only information. Column "": the table has no such list
	Evidence predicate.List
}

// Stores is the table with the owner of each store of memories.
type Stores struct {
	Relation  *catalog.Relation
	ID, Owner string
}

// Contexts is the table of contexts, in each of which several callers take part.
type Contexts struct {
	Relation    *catalog.Relation
	Store, Name string
	// the lists of a context's participants, and of the grants of new memories in the context; Defaults.Column "": new
	// memories get no grants
	Participants, Defaults predicate.List
}

// Consents is the table of consent records.
type Consents struct {
	Relation                       *catalog.Relation
	Store, Grantor, Grantee        string
	Scope, Given, Revoked, Expires string // the columns with a record's scope and times; "": there is no such column
	Key                            string
}

// Guardians is the table with the guardians of each subject.
type Guardians struct {
	Relation                 *catalog.Relation
	Store, Subject, Guardian string
}

// Generalize names the table of general beliefs, which callers make from private memories, and the table that records
// from which memories they made them.
type Generalize struct {
	BeliefKind *Memories // the kind of memories in which beliefs are stored
	Link       *Link
	Aliases    *Aliases // the table with further names of subjects; nil: there is none
}

// Link is the table that records from which memory a belief was made. Each of its rows has the id of one source.
type Link struct {
	Relation *catalog.Relation
	// the columns: Made has the belief, Source the source, Kind the kind of the source, At the time. Kind, Note and At may
	// be "", if there is no such column.
	Store, Made, Source, Kind, Note, At string
}

// Aliases is the table with further names of subjects.
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
