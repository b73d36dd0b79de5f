package policy

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
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

type privacyDecl struct {
	place
	entity, context wordDecl
	roles           []wordDecl
	all             string
	memories        []memoriesDecl
	stores          *partDecl
	contexts        *partDecl
	consents        *partDecl
	guardians       *partDecl
	generalize      *generalizeDecl
}

type generalizeDecl struct {
	place
	into    wordDecl
	link    *partDecl
	aliases *partDecl
}

type memoriesDecl struct {
	partDecl
	kinds []kindDecl
}

type kindDecl struct {
	place
	kind  string
	table wordDecl
}

// partDecl is a table with the columns that it has under names of ours.
type partDecl struct {
	place
	table   wordDecl
	columns map[string]wordDecl
}

func (d *decoder) privacy(n *node) {
	if d.doc.privacy != nil {
		d.fail(n.Place, "", "privacy is there already, at %s:%d:%d", d.doc.privacy.File, d.doc.privacy.Line, d.doc.privacy.Column)
		return
	}
	decl := &privacyDecl{place: n.Place}
	one := func(into *wordDecl, what string) func(*node) {
		return func(v *node) {
			into.place = v.Place
			d.word(&into.word, what)(v)
		}
	}
	d.fields(n, "privacy", map[string]func(*node){
		"entity":  one(&decl.entity, "entity"),
		"roles":   func(v *node) { decl.roles = d.words(v, "roles") },
		"context": one(&decl.context, "context"),
		"all":     d.word(&decl.all, "all"),
		"memories": func(v *node) {
			if !d.want(v, yamlfile.List, "memories") {
				return
			}
			for _, item := range v.Items {
				decl.memories = append(decl.memories, d.memories(item))
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "name a table", "memories is empty")
			}
		},
		"stores": func(v *node) { decl.stores = d.part(v, "stores", []string{"id", "owner"}) },
		"contexts": func(v *node) {
			decl.contexts = d.part(v, "contexts", []string{"store", "name", "participants"}, "defaults")
		},
		"consents": func(v *node) {
			decl.consents = d.part(v, "consents", []string{"store", "grantor", "grantee"}, "scope", "given", "revoked", "expires")
		},
		"guardians":  func(v *node) { decl.guardians = d.part(v, "guardians", []string{"store", "subject", "guardian"}) },
		"generalize": func(v *node) { decl.generalize = d.generalize(v) },
	})
	d.need(n, "privacy", "entity", "memories")
	d.doc.privacy = decl
}

func (d *decoder) generalize(n *node) *generalizeDecl {
	out := &generalizeDecl{place: n.Place}
	d.fields(n, "generalize", map[string]func(*node){
		"into": func(v *node) {
			out.into.place = v.Place
			d.word(&out.into.word, "into")(v)
		},
		"link":    func(v *node) { out.link = d.part(v, "link", []string{"store", "made", "source"}, "kind", "note", "at") },
		"aliases": func(v *node) { out.aliases = d.part(v, "aliases", []string{"store", "subject", "alias"}) },
	})
	d.need(n, "generalize", "into", "link")
	return out
}

var memoryColumns = []string{"store", "content", "subjects", "grants"}

func (d *decoder) memories(n *node) memoriesDecl {
	out := memoriesDecl{partDecl: partDecl{place: n.Place, columns: map[string]wordDecl{}}}
	known := d.partColumns(&out.partDecl, append(slices.Clone(memoryColumns), "source", "told", "evidence"))
	known["tables"] = func(v *node) {
		if !d.want(v, yamlfile.Mapping, "tables") {
			return
		}
		for i, kind := range v.Keys {
			k := kindDecl{place: v.KeyAt[i], kind: kind, table: wordDecl{place: v.Values[i].Place}}
			if !attributeName.MatchString(kind) {
				d.fail(v.KeyAt[i], "", "the kind of memories is of a-z, 0-9 and _, at most 32 long")
			}
			d.word(&k.table.word, "the table of "+kind)(v.Values[i])
			out.kinds = append(out.kinds, k)
		}
		if len(v.Keys) == 0 {
			d.fail(v.Place, "write tables: { kind: table }", "tables is empty")
		}
	}
	d.fields(n, "memories", known)
	d.need(n, "memories", append([]string{"tables"}, memoryColumns...)...)
	return out
}

func (d *decoder) part(n *node, what string, must []string, may ...string) *partDecl {
	out := &partDecl{place: n.Place, columns: map[string]wordDecl{}}
	known := d.partColumns(out, append(slices.Clone(must), may...))
	known["table"] = func(v *node) {
		out.table.place = v.Place
		d.word(&out.table.word, "table")(v)
	}
	d.fields(n, what, known)
	d.need(n, what, append([]string{"table"}, must...)...)
	return out
}

// partColumns reads columns by our names for them.
func (d *decoder) partColumns(into *partDecl, names []string) map[string]func(*node) {
	known := map[string]func(*node){}
	for _, name := range names {
		known[name] = func(v *node) {
			w := wordDecl{place: v.Place}
			d.word(&w.word, name)(v)
			into.columns[name] = w
		}
	}
	return known
}

// privacy compiles the section, when every table is known.
func (c *compiler) privacy(p *Policy) *Privacy {
	decl := c.doc.privacy
	if decl == nil {
		return nil
	}
	out := &Privacy{Entity: decl.entity.word, Context: decl.context.word, All: decl.all}
	if a := c.entity(decl.entity, "text"); a != nil && a.Source != credential {
		c.fail(decl.entity.place, "name an attribute of source: credential",
			"the attribute %s is not what a credential says: nobody would know who the caller is", a.Name)
	}
	for _, w := range decl.roles {
		c.entity(w, "text", "text[]")
		out.Roles = append(out.Roles, w.word)
	}
	if decl.context.word != "" {
		if a := c.entity(decl.context, "text"); a != nil {
			if a.Source != "set" {
				c.fail(decl.context.place, "give it source: set, within the contexts that a caller takes part in",
					"the attribute %s is not one that a session can set", a.Name)
			}
			out.Setting = a.Setting
		}
		if decl.contexts == nil {
			c.fail(decl.context.place, "say under contexts which table has them",
				"a context is entered, and nothing says where contexts stand")
		}
	}
	seen := map[string]place{}
	for _, m := range decl.memories {
		for _, k := range m.kinds {
			if first, ok := seen[k.kind]; ok {
				c.fail(k.place, "", "memories of the kind %s are there already, at %d:%d", k.kind, first.Line, first.Column)
				continue
			}
			seen[k.kind] = k.place
			if compiled := c.memories(p, m, k); compiled != nil {
				out.Memories = append(out.Memories, compiled)
			}
		}
	}
	x := privacyPart{c: c, p: p}
	if t := x.table(decl.stores, false); t != nil {
		out.Stores = &Stores{Relation: t, ID: x.column("id"), Owner: x.text("owner")}
	}
	if t := x.table(decl.contexts, true); t != nil {
		out.Contexts = &Contexts{Relation: t, Store: x.column("store"), Name: x.text("name"),
			Participants: x.list("participants"), Defaults: x.list("defaults")}
	}
	if t := x.table(decl.consents, true); t != nil {
		out.Consents = &Consents{Relation: t, Store: x.column("store"), Grantor: x.text("grantor"),
			Grantee: x.text("grantee"), Scope: x.text("scope"),
			Given: x.time("given"), Revoked: x.time("revoked"), Expires: x.time("expires"), Key: x.key()}
	}
	if t := x.table(decl.guardians, false); t != nil {
		out.Guardians = &Guardians{Relation: t, Store: x.column("store"), Subject: x.text("subject"),
			Guardian: x.text("guardian")}
	}
	out.Generalize = c.generalize(x, out, decl.generalize)
	for _, f := range p.functions {
		for _, m := range out.Memories {
			if f.Tool != nil && f.Tool.Name == "memory_"+m.Kind {
				c.fail(decl.place, "give the kind or the tool another name",
					"the tool %s is a function's, and makes memories of the kind %s", f.Tool.Name, m.Kind)
			}
		}
	}
	if out.Stores != nil {
		for _, m := range out.Memories {
			c.sameStore(decl.stores.place, m.Relation, m.Store, out.Stores.Relation, out.Stores.ID)
		}
	}
	return out
}

// generalize compiles the part of that name. Callers write the link by their own rights, and so must be let.
func (c *compiler) generalize(x privacyPart, p *Privacy, decl *generalizeDecl) *Generalize {
	if decl == nil {
		return nil
	}
	out := &Generalize{Into: p.MemoriesOf(decl.into.word)}
	if out.Into == nil && decl.into.word != "" && len(p.Memories) > 0 {
		c.fail(decl.into.place, "name one of "+strings.Join(p.Kinds(), ", "), "there are no memories of the kind %s",
			decl.into.word)
	}
	if t := x.table(decl.link, true); t != nil {
		out.Link = &Link{Relation: t, Store: x.column("store"), Made: x.column("made"), Source: x.column("source"),
			Kind: x.text("kind"), Note: x.text("note"), At: x.time("at")}
		x.inserted(out.Link.Store, out.Link.Made, out.Link.Source, out.Link.Kind, out.Link.Note)
		if out.Into != nil {
			c.sameStore(decl.link.place, t, out.Link.Store, out.Into.Relation, out.Into.Store)
			c.sameStore(decl.link.place, t, out.Link.Made, out.Into.Relation, out.Into.Key)
		}
		for _, m := range p.Memories {
			c.sameStore(decl.link.place, t, out.Link.Source, m.Relation, m.Key)
		}
	}
	if t := x.table(decl.aliases, true); t != nil {
		out.Aliases = &Aliases{Relation: t, Store: x.column("store"), Subject: x.text("subject"), Alias: x.text("alias")}
		if out.Into != nil {
			c.sameStore(decl.aliases.place, t, out.Aliases.Store, out.Into.Relation, out.Into.Store)
		}
	}
	if out.Into == nil || out.Link == nil {
		return nil // which is said
	}
	return out
}

// entity checks an attribute that holds ids of the caller.
func (c *compiler) entity(w wordDecl, types ...string) *Attribute {
	a := c.attribute(w.place, w.word)
	if a != nil && !slices.Contains(types, a.Type) {
		c.fail(w.place, "name an attribute of type "+types[0], "the attribute %s is a %s, and ids are texts", a.Name, a.Type)
	}
	return a
}

func (c *compiler) sameStore(at place, r *catalog.Relation, column string, with *catalog.Relation, other string) {
	a, b := r.Column(column), with.Column(other)
	if a != nil && b != nil && (family(a.Type) == "" || family(a.Type) != family(b.Type)) {
		c.fail(at, "name columns of one type", "%s.%s is a %s and %s.%s a %s: no memory is in such a store",
			r.Name, column, a.Type, with.Name, other, b.Type)
	}
}

func (c *compiler) memories(p *Policy, m memoriesDecl, k kindDecl) *Memories {
	part := m.partDecl
	part.table = k.table
	x := privacyPart{c: c, p: p}
	r := x.table(&part, true)
	if r == nil {
		return nil
	}
	return &Memories{
		Kind: k.kind, Relation: r, Key: x.key(), Store: x.column("store"), Content: x.text("content"),
		Source: x.text("source"), ToldFrom: x.text("told"),
		Subjects: x.list("subjects"), Grants: x.list("grants"), Evidence: x.list("evidence"),
	}
}

// privacyPart reads the columns of a table.
type privacyPart struct {
	c        *compiler
	p        *Policy
	decl     *partDecl
	relation *catalog.Relation
	listed   *Table
}

// table finds the table of a part. One that callers use must be listed, for they use it by their own rights.
func (x *privacyPart) table(decl *partDecl, used bool) *catalog.Relation {
	if decl == nil || decl.table.word == "" {
		return nil
	}
	x.decl, x.relation, x.listed = decl, x.c.relation(decl.table.place, decl.table.word), nil
	if x.relation == nil {
		return nil
	}
	x.listed = x.p.tableIndex[x.relation.Name]
	if x.listed == nil && used {
		x.c.fail(decl.table.place, "list it under tables", "%s is not in the policy: nobody could use it", x.relation.Name)
		return nil
	}
	return x.relation
}

// column finds a column that callers see as it is; "" where the policy names none.
func (x *privacyPart) column(name string) string {
	w, ok := x.decl.columns[name]
	if !ok || w.word == "" || x.c.column(w.place, x.relation, w.word) == nil {
		return ""
	}
	if x.listed != nil && x.listed.Columns != nil && !x.listed.Columns.Plain(w.word) {
		x.c.fail(w.place, "allow it under columns", "agents do not see %s.%s as it is", x.relation.Name, w.word)
		return ""
	}
	return w.word
}

// inserted checks that callers may write a row with these columns.
func (x *privacyPart) inserted(columns ...string) {
	w := x.listed.Write
	if !w.Allows("INSERT") {
		x.c.fail(x.decl.table.place, "give it write: { commands: [insert], … }", "agents do not insert into %s", x.relation.Name)
		return
	}
	for _, column := range columns {
		if column != "" && !slices.Contains(w.Insertable, column) {
			x.c.fail(x.decl.table.place, "name it under columns of its write", "agents do not insert %s.%s", x.relation.Name, column)
		}
	}
}

func (x *privacyPart) text(name string) string {
	column := x.column(name)
	if column == "" {
		return ""
	}
	if t := x.relation.Column(column).Type; family(t) != "text" {
		x.c.fail(x.decl.columns[name].place, "name a text column", "%s.%s is a %s: %s is a text", x.relation.Name,
			column, t, name)
		return ""
	}
	return column
}

func (x *privacyPart) time(name string) string {
	column := x.column(name)
	if column == "" {
		return ""
	}
	if oid := x.relation.Column(column).TypeOID; oid != 1184 && oid != 1114 {
		x.c.fail(x.decl.columns[name].place, "name a column of type timestamp, with or without time zone",
			"%s.%s is a %s: it does not say when", x.relation.Name, column, x.relation.Column(column).Type)
		return ""
	}
	return column
}

func (x *privacyPart) list(name string) predicate.List {
	column := x.column(name)
	if column == "" {
		return predicate.List{}
	}
	at := x.decl.columns[name].place
	list, elements, ok := x.c.list(at, x.relation, column)
	if ok && elements != "text" {
		x.c.fail(at, "name a text[], or a JSON array in a jsonb, json or text column",
			"%s.%s is a %s: ids are texts here", x.relation.Name, column, x.relation.Column(column).Type)
	}
	return list
}

// key is the one column of the primary key.
func (x *privacyPart) key() string {
	if len(x.relation.PrimaryKey) != 1 {
		x.c.fail(x.decl.table.place, "give it a primary key of one column", "no id names a row of %s", x.relation.Name)
		return ""
	}
	return x.relation.PrimaryKey[0]
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
