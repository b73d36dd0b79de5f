package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// privacyCompiler compiles the section privacy.
type privacyCompiler struct{ *resolver }

// compile compiles the section privacy, after all tables.
func (c *privacyCompiler) compile(p *Policy) *Privacy {
	decl := c.doc.privacy
	if decl == nil {
		return nil
	}
	out := &Privacy{CallerAttribute: decl.entity.text, ContextAttribute: decl.context.text, EverybodyWord: decl.all}
	c.compileCallers(decl, out)
	c.compileMemoryTables(p, decl, out)
	x := mappedTable{names: c.resolver, policy: p}
	if t := x.findTable(decl.stores, false); t != nil {
		out.Stores = &Stores{Relation: t, ID: x.findColumn("id"), Owner: x.textColumn("owner")}
	}
	if t := x.findTable(decl.contexts, true); t != nil {
		out.Contexts = &Contexts{Relation: t, Store: x.findColumn("store"), Name: x.textColumn("name"),
			Participants: x.listColumn("participants"), Defaults: x.listColumn("defaults")}
	}
	if t := x.findTable(decl.consents, true); t != nil {
		out.Consents = &Consents{Relation: t, Store: x.findColumn("store"), Grantor: x.textColumn("grantor"),
			Grantee: x.textColumn("grantee"), Scope: x.textColumn("scope"),
			Given: x.timeColumn("given"), Revoked: x.timeColumn("revoked"), Expires: x.timeColumn("expires"), Key: x.keyColumn()}
	}
	if t := x.findTable(decl.guardians, false); t != nil {
		out.Guardians = &Guardians{Relation: t, Store: x.findColumn("store"), Subject: x.textColumn("subject"),
			Guardian: x.textColumn("guardian")}
	}
	out.Generalize = c.compileGeneralize(x, out, decl.generalize)
	c.checkMemories(p, decl, out)
	return out
}

// compileCallers compiles the attributes that say who the caller is, and which context the caller has entered.
func (c *privacyCompiler) compileCallers(decl *privacyDecl, out *Privacy) {
	if a := c.findCallerAttribute(decl.entity, "text"); a != nil && a.Source != sourceCredential {
		c.fail(decl.entity.place, "name an attribute of source: credential",
			"the attribute %s is not what a credential says: nobody would know who the caller is", a.Name)
	}
	for _, w := range decl.roles {
		c.findCallerAttribute(w, "text", "text[]")
		out.RoleAttributes = append(out.RoleAttributes, w.text)
	}
	if decl.context.text == "" {
		return
	}
	if a := c.findCallerAttribute(decl.context, "text"); a != nil {
		if a.Source != sourceSet {
			c.fail(decl.context.place, "give it source: set, within the contexts that a caller takes part in",
				"the attribute %s is not one that a session can set", a.Name)
		}
		out.ContextSetting = a.Setting
	}
	if decl.contexts == nil {
		c.fail(decl.context.place, "say under contexts which table has them",
			"a context is entered, and nothing says where contexts stand")
	}
}

// compileMemoryTables compiles the tables of memories, and refuses a kind that occurs twice.
func (c *privacyCompiler) compileMemoryTables(p *Policy, decl *privacyDecl, out *Privacy) {
	seen := map[string]place{}
	for _, m := range decl.memories {
		for _, k := range m.kinds {
			if firstPosition, ok := seen[k.kind]; ok {
				c.fail(k.place, "", "memories of the kind %s are there already, at %d:%d", k.kind, firstPosition.Line,
					firstPosition.Column)
				continue
			}
			seen[k.kind] = k.place
			if compiled := c.compileMemories(p, m, k); compiled != nil {
				out.Memories = append(out.Memories, compiled)
			}
		}
	}
}

// checkMemories refuses kinds of memories whose MCP tools would have the same name, and stores whose keys have
// different types.
func (c *privacyCompiler) checkMemories(p *Policy, decl *privacyDecl, out *Privacy) {
	for _, f := range p.functions {
		for _, m := range out.Memories {
			if f.Tool != nil && f.Tool.Name == "memory_"+m.Kind {
				c.fail(decl.place, "give the kind or the tool another name",
					"the tool %s is a function's, and makes memories of the kind %s", f.Tool.Name, m.Kind)
			}
		}
	}
	if out.Stores == nil {
		return
	}
	for _, m := range out.Memories {
		c.checkSameType(decl.stores.place, m.Relation, m.StoreColumn, out.Stores.Relation, out.Stores.ID)
	}
}

// compileGeneralize compiles the subsection generalize. Callers write the link with their own rights, so the policy
// must allow them to.
func (c *privacyCompiler) compileGeneralize(x mappedTable, p *Privacy, decl *generalizeDecl) *Generalize {
	if decl == nil {
		return nil
	}
	out := &Generalize{BeliefKind: p.MemoriesOf(decl.into.text)}
	if out.BeliefKind == nil && decl.into.text != "" && len(p.Memories) > 0 {
		c.fail(decl.into.place, "name one of "+strings.Join(p.Kinds(), ", "), "there are no memories of the kind %s",
			decl.into.text)
	}
	if t := x.findTable(decl.link, true); t != nil {
		out.Link = &Link{Relation: t, Store: x.findColumn("store"), Made: x.findColumn("made"),
			Source: x.findColumn("source"),
			Kind:   x.textColumn("kind"), Note: x.textColumn("note"), At: x.timeColumn("at")}
		x.checkInsertable(out.Link.Store, out.Link.Made, out.Link.Source, out.Link.Kind, out.Link.Note)
		if out.BeliefKind != nil {
			c.checkSameType(decl.link.place, t, out.Link.Store, out.BeliefKind.Relation, out.BeliefKind.StoreColumn)
			c.checkSameType(decl.link.place, t, out.Link.Made, out.BeliefKind.Relation, out.BeliefKind.Key)
		}
		for _, m := range p.Memories {
			c.checkSameType(decl.link.place, t, out.Link.Source, m.Relation, m.Key)
		}
	}
	if t := x.findTable(decl.aliases, true); t != nil {
		out.Aliases = &Aliases{Relation: t, Store: x.findColumn("store"), Subject: x.textColumn("subject"), Alias: x.textColumn("alias")}
		if out.BeliefKind != nil {
			c.checkSameType(decl.aliases.place, t, out.Aliases.Store, out.BeliefKind.Relation, out.BeliefKind.StoreColumn)
		}
	}
	if out.BeliefKind == nil || out.Link == nil {
		return nil // an error was reported for the table
	}
	return out
}

// findCallerAttribute finds an attribute that holds ids of the caller, and checks its type.
func (c *privacyCompiler) findCallerAttribute(w wordDecl, types ...string) *Attribute {
	a := c.findAttribute(w.place, w.text)
	if a != nil && !slices.Contains(types, a.Type) {
		c.fail(w.place, "name an attribute of type "+types[0], "the attribute %s is a %s, and ids are texts", a.Name, a.Type)
	}
	return a
}

func (c *privacyCompiler) checkSameType(position place, r *catalog.Relation, column string,
	otherRelation *catalog.Relation, other string) {
	a, b := r.Column(column), otherRelation.Column(other)
	if a != nil && b != nil && (typeFamily(a.Type) == "" || typeFamily(a.Type) != typeFamily(b.Type)) {
		c.fail(position, "name columns of one type", "%s.%s is a %s and %s.%s a %s: no memory is in such a store",
			r.Name, column, a.Type, otherRelation.Name, other, b.Type)
	}
}

func (c *privacyCompiler) compileMemories(p *Policy, m memoriesDecl, k kindDecl) *Memories {
	columnMap := m.columnMapDecl
	columnMap.table = k.table
	x := mappedTable{names: c.resolver, policy: p}
	r := x.findTable(&columnMap, true)
	if r == nil {
		return nil
	}
	return &Memories{
		Kind: k.kind, Relation: r, Key: x.keyColumn(), StoreColumn: x.findColumn("store"), Content: x.textColumn("content"),
		TellerColumn: x.textColumn("source"), ToldFromColumn: x.textColumn("told"),
		Subjects: x.listColumn("subjects"), Grants: x.listColumn("grants"), Evidence: x.listColumn("evidence"),
	}
}
