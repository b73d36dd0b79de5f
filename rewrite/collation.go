package rewrite

import (
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// PostgreSQL cannot compare two values of different collations, and reports that only when it evaluates the comparison
// for a row. PostgreSQL regards comparisons of texts as leak-proof, so it may evaluate them for hidden rows. `CASE WHEN
// title = 'x' THEN a > b END` would fail if a hidden row had that title. Collations come from columns, also from the
// columns of sub-selects, from domains and from the attributes of composite types.
//
// So a statement that reads protected tables may use one collation besides the default of the database. It may use
// several if no expression combines values of two of them. If the statement searches by prefix, all its collations must
// compare byte by byte.

// visitCollate visits the COLLATE clause of an expression or of a column definition, and notes the collation.
func (w *walker) visitCollate(c *sqltext.CollateClause, in map[string]bool) {
	w.countNode("CollateClause")
	w.visitExpr(c.Arg)
	name, ok := collationName(c)
	if !ok {
		w.refuseAt(refusalOf("RangeVar.catalogname"), c.Location)
		return
	}
	if name != "default" {
		in[name] = true
	}
}

// collationName returns the name of a collation, written as in [catalog.Column].
func collationName(c *sqltext.CollateClause) (string, bool) {
	schema, name, ok := qualifiedName(c.Collname)
	if schema != "" && schema != "pg_catalog" {
		name = schema + "." + name
	}
	return name, ok
}

// noteValueType notes a type of which the statement may have values. The collations of the type are noted, too: those
// of a domain, and those of a composite type's attributes.
func (w *walker) noteValueType(t uint32) {
	w.valueTypes[t]++
	for _, name := range w.snap.Collations(t) {
		w.collations[name] = true
	}
}

// noteRowType notes the types and collations of a relation's columns, as noteValueType does for one type.
func (w *walker) noteRowType(n catalog.Name) {
	r, found := w.snap.Relation(n)
	if !found {
		return
	}
	for _, c := range r.Columns {
		w.noteValueType(c.TypeOID)
		if c.Collation != "" {
			w.collations[c.Collation] = true
		}
	}
}

// nameFunctions are functions that return a value of type name, whose collation is "C".
var nameFunctions = []string{"current_database", "current_schema", "current_schemas", "current_user",
	"getdatabaseencoding", "getpgusername", "name",
	"nameconcatoid", "pg_available_extension_versions", "pg_available_extensions",
	"pg_client_encoding", "pg_encoding_to_char", "pg_extension_update_paths", "pg_get_userbyid", "session_user"}

// byteCollations are the collations that compare texts byte by byte: no leak-safe expression fails with them.
var byteCollations = []string{"C", "POSIX", "ucs_basic"}

// checkCollations refuses a statement that may compare values of different collations on hidden rows.
func (w *walker) checkCollations(tree *sqltext.ParseResult) {
	for name := range w.functions {
		schema, function, _ := strings.Cut(name, ".")
		if schema == "pg_catalog" || schema == "information_schema" {
			continue
		}
		for _, f := range w.snap.FunctionsNamed(schema, function) {
			for _, t := range f.ResultTypes {
				w.noteValueType(t)
			}
		}
	}
	for _, name := range nameFunctions {
		if w.functions["pg_catalog."+name] {
			w.collations["C"] = true
		}
	}
	for _, ref := range w.references {
		if ref.fragment == nil {
			w.collations["C"] = true // names in catalogs have the collation "C"
		}
	}
	all, protected := w.columnCollations()
	if !protected || w.refused != nil {
		return
	}
	custom := slices.ContainsFunc(slices.Collect(maps.Keys(all)),
		func(name string) bool { return !slices.Contains(byteCollations, name) })
	if custom && w.hasPrefixSearch() || len(all) > 1 && w.mixesCollations(tree, w.collations) {
		w.refuse(refusalOf("CollateClause(several)"))
	}
}

func (w *walker) hasPrefixSearch() bool {
	return w.hasPrefixOperator || w.functions["pg_catalog.starts_with"]
}

// columnCollations returns the collations of the columns that the statement reads and of its other values. protected
// tells whether the statement reads a table that may hide rows.
func (w *walker) columnCollations() (all map[string]bool, protected bool) {
	all = maps.Clone(w.collations)
	maps.Copy(all, w.explicitCollations)
	for _, ref := range w.references {
		if ref.fragment == nil {
			continue
		}
		protected = protected || !ref.fragment.showsAllRows
		if ref.relation == nil {
			continue
		}
		for _, c := range ref.relation.Columns {
			if !ref.allColumns && !w.columnNames[c.Name] {
				continue
			}
			for _, name := range w.snap.Collations(c.TypeOID) {
				all[name] = true
			}
			if c.Collation != "" {
				all[c.Collation] = true
				protected = protected || c.Nondeterministic && w.hasPrefixSearch()
			}
		}
	}
	return all, protected
}
