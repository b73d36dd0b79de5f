package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/sqltext"
)

// relationNames are functions whose first argument, or the second where a role comes first, is the name of a relation: those
// that take a text, and those that take a regclass, for which PostgreSQL tells where the name stands.
var (
	relationNames = []string{"has_table_privilege", "has_column_privilege", "has_any_column_privilege", "has_sequence_privilege", "row_security_active"}
	relationArgs  = []string{"pg_relation_is_updatable", "pg_column_is_updatable"}
)

// namedCast judges 'name'::regclass: a relation that is not shown is answered as one that is not there, in PostgreSQL's words.
// Texts that are not constants, OIDs and parameters are beyond what the text tells.
func (w *walker) namedCast(c *sqltext.TypeCast) {
	schema, name, ok := qualifiedName(c.GetTypeName().GetNames())
	if ok && name == "regclass" && (schema == "" || schema == "pg_catalog") && len(c.GetTypeName().GetArrayBounds()) == 0 {
		w.namedRelation(c.Arg, c.Arg.GetAConst() != nil)
	}
}

// namedArguments judges the constants among the arguments of a function that takes the name of a relation.
func (w *walker) namedArguments(name string, args []*sqltext.Node) {
	texts, args := slices.Contains(relationNames, name), args[:min(2, len(args))]
	if texts || slices.Contains(relationArgs, name) {
		for _, arg := range args {
			w.namedRelation(arg, !texts)
		}
	}
}

func (w *walker) namedRelation(n *sqltext.Node, placed bool) {
	written, constant := constantString(n)
	if !constant || w.refused != nil {
		return
	}
	parts := splitName(written)
	if len(parts) == 0 {
		return // for the server to complain of, as it does whatever there is
	}
	schema, name := "", parts[len(parts)-1]
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	if relation, found := w.snap.ResolveRelation(schema, name); !found || isShown(w.snap, w.pol, relation) {
		return
	}
	if schema != "" {
		name = schema + "." + name
	}
	w.refused = sqlstate.New(sqlstate.UndefinedTable, sqlstate.ReasonRelation, "relation \"%s\" does not exist", name)
	if placed {
		w.refused = w.refused.At(w.source.Position(n.GetAConst().GetLocation()))
	}
}

// isShown tells whether the catalogs that agents see have a relation. Of sequences and indexes the server knows.
func isShown(snap *catalog.Snapshot, p *policy.Policy, n catalog.Name) bool {
	if n.Schema == "pg_catalog" || n.Schema == "information_schema" {
		return true
	}
	if r, ok := snap.Relation(n); ok && r.Kind == catalog.Sequence {
		return true
	}
	if _, listed := p.Table(n); listed {
		return true
	}
	if v, ok := p.View(n); ok && v.Listed {
		return true
	}
	return slices.ContainsFunc(p.Children(), func(c *policy.Child) bool { return c.Relation.Name == n })
}

// splitName reads the name of a relation as PostgreSQL reads it in a text, or returns nil.
func splitName(text string) []string {
	const blanks = " \t\n\r\f\v"
	var parts []string
	for rest := strings.Trim(text, blanks); ; {
		var part string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			closed := false
			for {
				i := strings.IndexByte(quoted, '"')
				if i < 0 {
					break
				}
				part += quoted[:i]
				if quoted = quoted[i+1:]; !strings.HasPrefix(quoted, `"`) {
					closed = true
					break
				}
				part, quoted = part+`"`, quoted[1:]
			}
			if !closed {
				return nil
			}
			rest = quoted
		} else {
			i := strings.IndexAny(rest, "."+blanks)
			if i < 0 {
				i = len(rest)
			}
			part, rest = strings.ToLower(rest[:i]), rest[i:]
		}
		if part == "" {
			return nil
		}
		parts = append(parts, part)
		rest = strings.TrimLeft(rest, blanks)
		if rest == "" {
			return parts
		}
		var ok bool
		if rest, ok = strings.CutPrefix(rest, "."); !ok {
			return nil
		}
		rest = strings.TrimLeft(rest, blanks)
	}
}
