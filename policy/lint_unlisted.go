package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// unlisted warns of relations that the policy does not list and that are next to what agents see: by a right that they
// have in the database, by a foreign key, by a view.
func (l *linter) unlisted() {
	for _, g := range l.around.Grants {
		if !l.lists(g.Relation) {
			suggestion := "REVOKE ALL ON " + g.Relation.SQL() + " FROM " + role(g.To) + ";"
			if g.To != "PUBLIC" {
				suggestion = "pgconsent migrate takes it away where the policy listed it until now; else " + suggestion
			}
			l.warn(l.start(), suggestion,
				"%s has rights on %s, which the policy does not list: the proxy refuses it, and nothing in the "+
					"database does", g.To, g.Relation)
		}
	}
	near := map[catalog.Name]string{}
	for _, name := range l.order {
		t := l.tables[name]
		for _, key := range t.relation.ForeignKeys {
			shown := t.decl.columns == nil ||
				slices.ContainsFunc(t.decl.columns, func(d columnDecl) bool { return slices.Contains(key.Columns, d.Name) })
			if shown && !l.lists(key.Target) && near[key.Target] == "" {
				near[key.Target] = fmt.Sprintf("%s (%s.%s refers to it)", key.Target, name, strings.Join(key.Columns, ", "))
			}
		}
	}
	for _, r := range l.snap.Relations() {
		if r.Kind != catalog.View || system(r.Name.Schema) || r.Extension != "" || l.lists(r.Name) || len(r.Reads) == 0 {
			continue
		}
		if !slices.ContainsFunc(r.Reads, func(read catalog.Read) bool { return l.tables[read.Relation] == nil }) {
			near[r.Name] = fmt.Sprintf("%s (a view of tables that are)", r.Name)
		}
	}
	if len(near) > 0 {
		l.warn(l.start(), "list under tables or views what agents are to read",
			"not listed, and so not to be read by agents: %s", strings.Join(slices.Sorted(maps.Values(near)), ", "))
	}
}

// lists tells whether the policy lists a relation, or one that it is a part of.
func (l *linter) lists(n catalog.Name) bool {
	if system(n.Schema) || l.tables[n] != nil {
		return true
	}
	if _, ok := l.policy.View(n); ok {
		return true
	}
	return l.policy.beneath(n)
}

// start is where the policy begins to list tables.
func (l *linter) start() place {
	for _, t := range l.doc.tables {
		return t.place
	}
	return l.file()
}

// file is the first file of the policy, where nothing else says what is meant.
func (l *linter) file() place {
	for _, a := range l.doc.attributes {
		return place{File: a.File}
	}
	for _, t := range l.doc.tables {
		return place{File: t.File}
	}
	return place{File: "the policy"}
}

func role(name string) string {
	if name == "PUBLIC" {
		return name
	}
	return catalog.QuoteIdent(name)
}
