package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// resolver finds what the names in a document mean: tables, columns and types of the database, and attributes and
// tables that the document declares.
type resolver struct {
	*diagnostics
	doc        *Document
	snap       *catalog.Snapshot
	attributes []Attribute
	tables     map[catalog.Name]*policyTable
	tableOrder []catalog.Name // the names of the tables in the order of the document
}

// declareTables finds all tables that the policy lists. It runs first, so that a rule may refer to any of them.
func (c *resolver) declareTables() {
	for _, decl := range c.doc.tables {
		relation := c.findListable(decl.place, decl.name)
		if relation == nil {
			continue
		}
		if existing, ok := c.tables[relation.Name]; ok {
			c.fail(decl.place, "", "%s is %s, which is at %s:%d:%d already",
				decl.name, relation.Name, existing.decl.File, existing.decl.Line, existing.decl.Column)
			continue
		}
		c.tables[relation.Name] = &policyTable{decl: decl, relation: relation}
		c.tableOrder = append(c.tableOrder, relation.Name)
	}
}

// policyTable is a table of the policy during its compilation.
type policyTable struct {
	decl       tableDecl
	relation   *catalog.Relation
	rows       predicate.Node
	rule       *Rule
	isCompiled bool
}

// findListable finds a relation that the policy may list under tables: a table, a materialised view or a foreign table.
func (c *resolver) findListable(position place, writtenName string) *catalog.Relation {
	schema, name := splitName(writtenName)
	if resolved, ok := c.snap.ResolveRelation(schema, name); ok && !isSystemSchema(resolved.Schema) {
		if r, _ := c.snap.Relation(resolved); lacksRowSecurity(r) {
			return r
		}
	}
	return c.findTable(position, writtenName)
}

// findTable finds an ordinary or partitioned table by its name in the policy; nil after an error.
func (c *resolver) findTable(position place, writtenName string) *catalog.Relation {
	schema, name := splitName(writtenName)
	resolved, ok := c.snap.ResolveRelation(schema, name)
	if !ok {
		c.fail(position, c.suggestTable(writtenName), "the database has no table %q%s", writtenName, c.searchPathNote(schema))
		return nil
	}
	r, _ := c.snap.Relation(resolved)
	switch {
	case isSystemSchema(resolved.Schema):
		c.fail(position, "", "%s belongs to the system", resolved)
	case r.Kind == catalog.View:
		c.fail(position, "list it under views, and the tables beneath it under tables",
			"%s is a view, which row security cannot protect", resolved)
	case r.Kind != catalog.Table && r.Kind != catalog.PartitionedTable:
		c.fail(position, "name the tables beneath it", "%s is a %s, which row security cannot protect", resolved,
			relationKind(r.Kind))
	default:
		return r
	}
	return nil
}

func isSystemSchema(schema string) bool {
	return schema == "pg_catalog" || schema == "information_schema" || strings.HasPrefix(schema, "pg_") ||
		schema == predicate.OwnSchema || schema == predicate.SignedSchema || schema == predicate.RowsSchema ||
		schema == catalog.ShadowSchema
}

func relationKind(k catalog.RelKind) string {
	switch k {
	case catalog.View:
		return "view"
	case catalog.MaterializedView:
		return "materialised view"
	case catalog.ForeignTable:
		return "foreign table"
	case catalog.Sequence:
		return "sequence"
	case catalog.Table, catalog.PartitionedTable:
		return "table"
	case catalog.Composite:
		return "composite type"
	default:
		return "relation of another kind"
	}
}

// splitName splits `schema.name` at the dot. A policy cannot write a name that itself contains a dot.
func splitName(writtenName string) (schema, name string) {
	if schema, name, ok := strings.Cut(writtenName, "."); ok {
		return schema, name
	}
	return "", writtenName
}

func (c *resolver) searchPathNote(schema string) string {
	if schema != "" {
		return ""
	}
	return " on the search path " + strings.Join(c.snap.SearchPath(), ", ")
}

// findColumn finds a column; nil after an error.
func (c *resolver) findColumn(position place, r *catalog.Relation, name string) *catalog.Column {
	if column := r.Column(name); column != nil {
		return column
	}
	names := make([]string, 0, len(r.Columns))
	for _, column := range r.Columns {
		names = append(names, column.Name)
	}
	c.fail(position, closestOrFew(name, names), "%s has no column %q", r.Name, name)
	return nil
}

// findRuleColumn finds a column that a rule may read; nil after an error. PostgreSQL evaluates rules on hidden rows,
// too, so a rule may not read a virtual generated column, whose computation may fail.
func (c *resolver) findRuleColumn(position place, r *catalog.Relation, name string) *catalog.Column {
	column := c.findColumn(position, r, name)
	if column != nil && column.Virtual {
		c.fail(position, "make it STORED, or write what it is computed from, under sql for example",
			"%s.%s is computed as it is read: it could raise an error on some row, and say what the row holds", r.Name, name)
		return nil
	}
	return column
}

// findAttribute finds an attribute that the document declares; nil after an error.
func (c *resolver) findAttribute(position place, name string) *Attribute {
	if i := slices.IndexFunc(c.attributes, func(a Attribute) bool { return a.Name == name }); i >= 0 {
		return &c.attributes[i]
	}
	names := make([]string, 0, len(c.attributes))
	for _, a := range c.attributes {
		names = append(names, a.Name)
	}
	suggestion := "declare it under attributes"
	if len(names) > 0 {
		suggestion = closestOrAll(name, names)
	}
	c.fail(position, suggestion, "the policy declares no attribute %q", name)
	return nil
}
