package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// raiseNotice returns the statement that the rewriter sends in place of a CREATE … IF NOT EXISTS of an object that
// exists. The statement raises the notice that PostgreSQL would raise. In a failed transaction it fails like any other
// statement.
func raiseNotice(n *verdict.Notice) string {
	return fmt.Sprintf("DO LANGUAGE plpgsql $pgconsent$BEGIN RAISE NOTICE USING ERRCODE = '%s', MESSAGE = %s; END$pgconsent$",
		n.Code, catalog.QuoteLiteral(n.Message))
}

// createStmt handles CREATE … IF NOT EXISTS. If the object exists and agents see it, PostgreSQL's notice is raised and
// the CREATE is not run, so that no event trigger sees it. Every other CREATE is refused, whether the object exists or
// not.
func (w *walker) createStmt(raw *sqltext.RawStmt) verdict.Effect {
	notice, tag := w.noticeOfExisting(raw.GetStmt())
	// the notice stands between dollar quotes, so it must not contain a $
	if notice == nil || strings.Contains(notice.Message, "$") {
		w.refuseAt(refusalOf(sqltext.NodeKind(raw.GetStmt())), w.firstToken(raw))
		return verdict.Effect{}
	}
	text := raiseNotice(notice)
	w.replace(w.firstToken(raw), w.lastToken(raw).End, text, func() {})
	raw.Stmt = parseStatement(text) // the tree is changed now, because nothing else reads the original statement
	kindCounts, _ := sqltext.CountNodeKinds(raw.Stmt)
	for kind, n := range kindCounts {
		w.nodeCounts[kind] += n
	}
	return verdict.Effect{CommandTag: tag, Notices: []verdict.Notice{*notice}}
}

// noticeOfExisting returns PostgreSQL's notice that the object of a CREATE exists already. The result is nil if the
// object does not exist, or is hidden from agents.
func (w *walker) noticeOfExisting(stmt *sqltext.Node) (notice *verdict.Notice, tag string) {
	there := func(code sqlstate.Code, kind, name string) *verdict.Notice {
		return &verdict.Notice{Code: code, Message: kind + " \"" + name + "\" already exists, skipping"}
	}
	switch n := stmt.GetNode().(type) {
	case *sqltext.Node_CreateExtensionStmt:
		if s := n.CreateExtensionStmt; s.IfNotExists && w.snap.HasExtension(s.Extname) {
			return there(sqlstate.DuplicateObject, "extension", s.Extname), "CREATE EXTENSION"
		}
	case *sqltext.Node_CreateSchemaStmt:
		if s := n.CreateSchemaStmt; s.IfNotExists && len(s.SchemaElts) == 0 && w.isVisibleSchema(s.Schemaname) {
			return there(sqlstate.DuplicateSchema, "schema", s.Schemaname), "CREATE SCHEMA"
		}
	case *sqltext.Node_CreateStmt:
		if s := n.CreateStmt; s.IfNotExists {
			if name, ok := w.visibleTarget(s.Relation); ok {
				return there(sqlstate.DuplicateTable, "relation", name.Name), "CREATE TABLE"
			}
		}
	case *sqltext.Node_IndexStmt:
		if s := n.IndexStmt; s.IfNotExists && s.Idxname != "" {
			table, ok := w.visibleTarget(s.Relation)
			if ok && w.isVisibleIndex(table, s.Idxname) {
				return there(sqlstate.DuplicateTable, "relation", s.Idxname), "CREATE INDEX"
			}
		}
	}
	return nil, ""
}

// isVisibleSchema tells whether the policy lists a relation of a schema. A schema on the configured search path need
// not exist, so the search path does not count.
func (w *walker) isVisibleSchema(name string) bool {
	for relation := range w.fragments {
		if relation.Schema == name {
			return true
		}
	}
	return false
}

// visibleTarget returns the relation that CREATE TABLE or CREATE INDEX names, and whether the policy lists it. A name
// without schema means the first schema of the search path.
func (w *walker) visibleTarget(v *sqltext.RangeVar) (catalog.Name, bool) {
	path := w.snap.SearchPath()
	name := catalog.Name{Schema: v.GetSchemaname(), Name: v.GetRelname()}
	if name.Schema == "" && len(path) > 0 {
		name.Schema = path[0]
	}
	return name, v.GetCatalogname() == "" && v.GetRelpersistence() == "p" && w.fragments[name] != nil
}

// isVisibleIndex tells whether the catalogs show agents an index with this name on a table.
func (w *walker) isVisibleIndex(table catalog.Name, name string) bool {
	index := w.snap.ResolveIndex(table.Schema, name)
	if index == nil || index.Table != table || !index.IsPlain {
		return false
	}
	visible := w.fragments[table].visible
	if visible == nil {
		return true
	}
	return !slices.ContainsFunc(index.Columns, func(column string) bool {
		return !slices.ContainsFunc(visible.Columns, func(c catalog.Column) bool { return c.Name == column })
	})
}
