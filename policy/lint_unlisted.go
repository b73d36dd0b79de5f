package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// checkUnlisted warns of relations that the policy does not list although agents probably need them. Agents have rights
// on them in the database, a listed table refers to them, or they are views of listed tables.
func (l *linter) checkUnlisted() {
	for _, g := range l.context.Grants {
		if !l.isListed(g.Relation) {
			suggestion := "REVOKE ALL ON " + g.Relation.SQL() + " FROM " + roleText(g.Grantee) + ";"
			if g.Grantee != "PUBLIC" {
				suggestion = "pgconsent migrate takes it away where the policy listed it until now; else " + suggestion
			}
			l.warn(l.tablesPlace(), suggestion,
				"%s has rights on %s, which the policy does not list: the proxy refuses it, and nothing in the "+
					"database does", g.Grantee, g.Relation)
		}
	}
	reasons := map[catalog.Name]string{}
	for _, name := range l.tableOrder {
		t := l.tables[name]
		for _, key := range t.relation.ForeignKeys {
			isShown := t.decl.columns == nil ||
				slices.ContainsFunc(t.decl.columns, func(d columnDecl) bool { return slices.Contains(key.Columns, d.Name) })
			if isShown && !l.isListed(key.Target) && reasons[key.Target] == "" {
				reasons[key.Target] = fmt.Sprintf("%s (%s.%s refers to it)", key.Target, name, strings.Join(key.Columns, ", "))
			}
		}
	}
	for _, r := range l.snap.Relations() {
		if r.Kind != catalog.View || isSystemSchema(r.Name.Schema) || r.Extension != "" || l.isListed(r.Name) ||
			len(r.Reads) == 0 {
			continue
		}
		if !slices.ContainsFunc(r.Reads, func(read catalog.ViewRead) bool { return l.tables[read.Relation] == nil }) {
			reasons[r.Name] = fmt.Sprintf("%s (a view of tables that are)", r.Name)
		}
	}
	if len(reasons) > 0 {
		l.warn(l.tablesPlace(), "list under tables or views what agents are to read",
			"not listed, and so not to be read by agents: %s", strings.Join(slices.Sorted(maps.Values(reasons)), ", "))
	}
}

// isListed tells whether the policy lists a relation, or a table whose partition or child the relation is.
func (l *linter) isListed(n catalog.Name) bool {
	if isSystemSchema(n.Schema) || l.tables[n] != nil {
		return true
	}
	if _, ok := l.policy.View(n); ok {
		return true
	}
	return l.policy.hasChild(n)
}

// tablesPlace returns the place of the policy's first table.
func (l *linter) tablesPlace() place {
	for _, t := range l.doc.tables {
		return t.place
	}
	return l.filePlace()
}

// filePlace returns the beginning of the policy's first file, for warnings without a better place.
func (l *linter) filePlace() place {
	for _, a := range l.doc.attributes {
		return place{File: a.File}
	}
	for _, t := range l.doc.tables {
		return place{File: t.File}
	}
	return place{File: "the policy"}
}

func roleText(name string) string {
	if name == "PUBLIC" {
		return name
	}
	return catalog.QuoteIdent(name)
}
