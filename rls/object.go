package rls

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// objectBuilder builds an object, with the reason for its next statements.
type objectBuilder struct {
	Object
	why string
}

// newObject begins an object of the plan that belongs to tables.
func newObject(identity, why string, tables ...*catalog.Relation) *objectBuilder {
	m := &objectBuilder{why: why}
	m.Identity = identity
	for _, r := range tables {
		m.Tables = append(m.Tables, r.Name)
	}
	return m
}

func (m *objectBuilder) create(sql string) { m.Make = append(m.Make, Statement{SQL: sql, Why: m.why}) }

func (m *objectBuilder) drop(why, sql string) { m.Drop = append(m.Drop, Statement{SQL: sql, Why: why}) }

// grant gives rights on objects that this one does not create.
func (m *objectBuilder) grant(g migrations.Grant) {
	if g.Why == "" {
		g.Why = m.why
	}
	m.Make = append(m.Make, g.Statement())
	m.Grants = append(m.Grants, g)
}

// rights is an object that gives rights and nothing else.
func rights(identity string, grants ...migrations.Grant) Object {
	m := newObject("rights: "+identity, "")
	for _, g := range grants {
		m.grant(g)
	}
	return m.Object
}

// rightsOn is a grant of rights on objects of a kind.
func rightsOn(kind string, objects []string, to []string, why string, rights ...string) migrations.Grant {
	return migrations.Grant{Rights: migrations.Rights(rights...), Kind: kind, On: objects, To: to, Why: why}
}
