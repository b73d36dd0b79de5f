package rls

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// objectBuilder builds an object of a plan. why is the reason that is printed with the statements that are added next.
type objectBuilder struct {
	Object
	why string
}

// newObject begins an object of a plan that belongs to these tables.
func newObject(identity, why string, tables ...*catalog.Relation) *objectBuilder {
	m := &objectBuilder{why: why}
	m.Identity = identity
	for _, r := range tables {
		m.Tables = append(m.Tables, r.Name)
	}
	return m
}

// create adds a statement to those that make the object.
func (m *objectBuilder) create(sql string) {
	m.MakeStatements = append(m.MakeStatements, Statement{SQL: sql, Why: m.why})
}

// drop adds a statement to those that remove the object.
func (m *objectBuilder) drop(why, sql string) {
	m.DropStatements = append(m.DropStatements, Statement{SQL: sql, Why: why})
}

// grant adds a grant of rights on objects that this object does not create itself.
func (m *objectBuilder) grant(g migrations.Grant) {
	if g.Why == "" {
		g.Why = m.why
	}
	m.MakeStatements = append(m.MakeStatements, g.GrantStatement())
	m.Grants = append(m.Grants, g)
}

// rightsObject returns an object that only grants rights.
func rightsObject(identity string, grants ...migrations.Grant) Object {
	m := newObject("rights: "+identity, "")
	for _, g := range grants {
		m.grant(g)
	}
	return m.Object
}

// rightsOn returns a grant of rights on objects of one kind.
func rightsOn(kind string, objects []string, to []string, why string, rights ...string) migrations.Grant {
	return migrations.Grant{Rights: migrations.WholeObjectRights(rights...), Kind: kind, Objects: objects, Roles: to,
		Why: why}
}
