package rewrite

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// checkRelations checks every relation of a rewritten text, independently of the rewriter's walk. A name with a schema
// is a table of the policy, the view that replaces it, a shadow view of a catalog, or a signed view inside a predicate.
// A name without one is a WITH query of the same text.
func checkRelations(t *testing.T, r *Rewriter, tree *sqltext.ParseResult, result *Result) {
	t.Helper()
	targets := map[*sqltext.RangeVar]bool{}                              // the targets of INSERT, UPDATE and DELETE
	copyViews := map[*sqltext.RangeVar]bool{}                            // the views that COPY FROM writes, which are allowed nowhere else
	ctes, lockedItems := map[string]bool{}, map[*sqltext.RangeVar]bool{} // FOR UPDATE OF names items of FROM, not relations
	each(tree.ProtoReflect(), func(m proto.Message) {
		switch s := m.(type) {
		case *sqltext.InsertStmt:
			targets[s.Relation] = true
		case *sqltext.UpdateStmt:
			targets[s.Relation] = true
		case *sqltext.DeleteStmt:
			targets[s.Relation] = true
		}
		if c, ok := m.(*sqltext.LockingClause); ok {
			for _, n := range c.LockedRels {
				lockedItems[n.GetRangeVar()] = true
			}
		}
		if c, ok := m.(*sqltext.CopyStmt); ok && c.IsFrom {
			for _, t := range r.pol.Tables() {
				if view := predicate.CopyView(t.Relation.Name); t.Write.Allows("INSERT") &&
					view.Schema == c.Relation.GetSchemaname() && view.Name == c.Relation.GetRelname() {
					copyViews[c.Relation] = true
				}
			}
		}
		if c, ok := m.(*sqltext.CommonTableExpr); ok {
			ctes[c.Ctename] = true
		}
	})
	each(tree.ProtoReflect(), func(m proto.Message) {
		rv, ok := m.(*sqltext.RangeVar)
		if !ok || copyViews[rv] || lockedItems[rv] && rv.Schemaname == "" {
			return
		}
		name := catalog.Name{Schema: rv.Schemaname, Name: rv.Relname}
		switch {
		case rv.Catalogname != "":
			t.Fatalf("%s reads %v of another database", result.Text, name)
		case rv.Schemaname == "" && ctes[rv.Relname]:
		case rv.Schemaname == catalog.ShadowSchema:
		case rv.Schemaname == "pgconsent_signed":
			if !result.NeedsSignature {
				t.Fatalf("%s names a signed view and asks for no signature", result.Text)
			}
			if len(tree.Stmts) != 1 {
				t.Fatalf("%s names a signed view in several statements", result.Text)
			}
		default:
			for _, view := range r.pol.Views() {
				if f := r.fragments[view.Relation.Name]; f != nil && name == f.view {
					return
				}
				if view.Write != nil && targets[rv] && name == predicate.RowView(view.Relation.Name) {
					return
				}
			}
			for _, table := range r.pol.Tables() {
				if table.Write != nil && name == predicate.CopyView(table.Relation.Name) {
					return
				}
				if table.Columns == nil && name == table.Relation.Name || table.Columns != nil && name == r.fragments[table.Relation.Name].view ||
					table.Columns != nil && table.Write != nil && targets[rv] && name == predicate.RowView(table.Relation.Name) {
					return
				}
			}
			t.Fatalf("%s reads %v", result.Text, name)
		}
	})
}

func each(m protoreflect.Message, visit func(proto.Message)) {
	visit(m.Interface())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				each(v.List().Get(i).Message(), visit)
			}
		default:
			each(v.Message(), visit)
		}
		return true
	})
}
