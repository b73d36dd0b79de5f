package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// LintRest lints the parts of a policy that compile if the policy as a whole does not, so that one run finds all
// mistakes. It leaves out the tables and views with problems, and those that do not compile without them. otherErrors
// has the problems of views that read no table which was left out.
func LintRest(doc *Document, snap *catalog.Snapshot, context LintContext, problems Errors,
	options ...Option) (otherErrors Errors,
	warnings []*Error) {
	left := *doc
	left.tables, left.views = slices.Clone(doc.tables), slices.Clone(doc.views)
	omittedTables := map[string]bool{} // the tables that were left out, by their names in the policy
	for {
		sections := doc.sectionPlaces()
		isAbout := func(position place) bool {
			return slices.ContainsFunc(problems, func(e *Error) bool { return sectionOf(sections, e) == position })
		}
		errorsBefore := len(left.tables) + len(left.views)
		left.tables = slices.DeleteFunc(left.tables, func(d tableDecl) bool {
			omittedTables[d.name] = omittedTables[d.name] || isAbout(d.place)
			return isAbout(d.place)
		})
		left.views = slices.DeleteFunc(left.views, func(d viewDecl) bool { return isAbout(d.place) })
		if len(left.tables)+len(left.views) == errorsBefore { // the problems are in other sections of the policy
			return otherErrors, nil
		}
		c, _, err := compileDocument(&left, snap, options)
		if err != nil {
			problems = c.sortedErrors()
			for _, e := range problems {
				i := slices.IndexFunc(doc.views, func(d viewDecl) bool { return d.place == sectionOf(sections, e) })
				if i >= 0 && !mayReadOmitted(snap, doc.views[i].name, omittedTables) {
					otherErrors = append(otherErrors, e)
				}
			}
			continue
		}
		findings, err := Lint(&left, snap, context, options...)
		if err != nil {
			return otherErrors, nil
		}
		for _, w := range findings { // a warning that a relation is not listed may be wrong, since tables were left out
			if position := sectionOf(sections, w); position != (place{}) {
				warnings = append(warnings, w)
			}
		}
		return otherErrors, warnings
	}
}

// sectionPlaces returns the places at which the tables, views, functions and attributes of the policy begin.
func (d *Document) sectionPlaces() []place {
	var out []place
	for _, t := range d.tables {
		out = append(out, t.place)
	}
	for _, v := range d.views {
		out = append(out, v.place)
	}
	for _, f := range d.functions {
		out = append(out, f.place)
	}
	for _, a := range d.attributes {
		out = append(out, a.place)
	}
	slices.SortFunc(out, comparePlaces)
	return out
}

// sectionOf returns the entry of sections in which an error is: the last place before it. It returns the zero place if
// the error is about the whole file.
func sectionOf(sections []place, e *Error) place {
	position := place{File: e.File, Line: e.Line, Column: e.Column}
	section := place{}
	for _, s := range sections {
		if s.File == position.File && comparePlaces(s, position) <= 0 {
			section = s
		}
	}
	return section
}

func comparePlaces(a, b place) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// mayReadOmitted tells whether a view reads a table that was left out. A view that does not exist reads none.
func mayReadOmitted(snap *catalog.Snapshot, view string, omittedTables map[string]bool) bool {
	schema, name := "", view
	if i := strings.IndexByte(view, '.'); i >= 0 {
		schema, name = view[:i], view[i+1:]
	}
	found, ok := snap.ResolveRelation(schema, name)
	r, there := snap.Relation(found)
	return ok && there && slices.ContainsFunc(r.Reads, func(read catalog.ViewRead) bool {
		return omittedTables[read.Relation.Name] || omittedTables[read.Relation.String()]
	})
}
