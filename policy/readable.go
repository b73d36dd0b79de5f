package policy

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// entryName is the name of an entry in a section, as the policy writes it, and its place.
type entryName struct {
	place
	name string
}

// LoadReadable does the same as [Load]. For a policy with errors it also returns what could be read, for
// [CheckReadable]. It returns no document if a file could not be read at all, because too much is unknown then.
func LoadReadable(path string) (*Document, error) {
	l := newLoader()
	doc, err := l.load(path)
	if errors.As(err, new(Errors)) && !l.hasUnreadFile {
		doc = l.doc
	}
	return doc, err
}

// CheckReadable checks a policy against a database although some of its entries have errors, so that one run finds all
// mistakes. problems are the errors that are known. It leaves out the entries with errors, and returns no errors and
// warnings that name these entries.
func CheckReadable(doc *Document, snap *catalog.Snapshot, context LintContext, problems Errors,
	options ...Option) (otherErrors Errors,
	warnings []*Error) {
	remaining, omitted := doc.withoutFaulty(problems)
	_, err := Compile(remaining, snap, options...)
	var found Errors
	switch {
	case err == nil:
		warnings, err = Lint(remaining, snap, context, options...)
		if err != nil {
			return nil, nil
		}
	case errors.As(err, &found):
		otherErrors = slices.Clone(found)
		others, warned := LintRest(remaining, snap, context, found, options...)
		otherErrors, warnings = append(otherErrors, others...), warned
	}
	otherErrors = slices.DeleteFunc(otherErrors, func(e *Error) bool { return e.Line == 0 || omitted.mayCause(doc, e) })
	// Other warnings depend on the whole policy: on which relations it lists and which attributes it uses.
	warnings = slices.DeleteFunc(warnings, func(w *Error) bool {
		return !remaining.isAboutRelation(w) ||
			omitted.mayCause(doc, w)
	})
	return otherErrors, warnings
}

// isAboutRelation tells whether an error is about an entry of the sections tables, views and functions.
func (d *Document) isAboutRelation(e *Error) bool {
	position := sectionOf(d.declarationPlaces(), e)
	return slices.ContainsFunc(d.tables, func(t tableDecl) bool { return t.place == position }) ||
		slices.ContainsFunc(d.views, func(v viewDecl) bool { return v.place == position }) ||
		slices.ContainsFunc(d.functions, func(f functionDecl) bool { return f.place == position })
}

// declarationPlaces returns the places of all entries of sections, in order.
func (d *Document) declarationPlaces() []place {
	places := make([]place, len(d.declarations))
	for i, entry := range d.declarations {
		places[i] = entry.place
	}
	slices.SortFunc(places, comparePlaces)
	return places
}

// omissions are the entries of a policy that are left out.
type omissions struct {
	places []place
	names  *regexp.Regexp // the names of omitted entries; nil: there are none
}

// withoutFaulty returns the document without the entries that have errors, and what it has left out.
func (d *Document) withoutFaulty(problems Errors) (*Document, omissions) {
	var out omissions
	var names []string
	places := d.declarationPlaces()
	for _, e := range problems {
		out.places = append(out.places, sectionOf(places, e))
	}
	isOmitted := func(position place) bool { return slices.Contains(out.places, position) }
	for _, entry := range d.declarations {
		if isOmitted(entry.place) {
			names = append(names, regexp.QuoteMeta(entry.name), regexp.QuoteMeta(entry.name[strings.LastIndexByte(entry.name, '.')+1:]))
		}
	}
	if len(names) > 0 {
		out.names = regexp.MustCompile(`(^|[^\pL\pN_])(` + strings.Join(names, "|") + `)($|[^\pL\pN_])`)
	}
	left := *d
	left.tables = slices.DeleteFunc(slices.Clone(d.tables), func(t tableDecl) bool { return isOmitted(t.place) })
	left.views = slices.DeleteFunc(slices.Clone(d.views), func(v viewDecl) bool { return isOmitted(v.place) })
	left.functions = slices.DeleteFunc(slices.Clone(d.functions), func(f functionDecl) bool { return isOmitted(f.place) })
	left.attributes = slices.DeleteFunc(slices.Clone(d.attributes), func(a attributeDecl) bool { return isOmitted(a.place) })
	left.objects = slices.DeleteFunc(slices.Clone(d.objects), func(o objectDecl) bool { return isOmitted(o.place) })
	left.contracts = slices.DeleteFunc(slices.Clone(d.contracts), func(c contractDecl) bool { return isOmitted(c.place) })
	return &left, out
}

// mayCause tells whether an error may occur only because entries were left out: it is about such an entry, or names
// one.
func (o omissions) mayCause(d *Document, e *Error) bool {
	return slices.Contains(o.places, sectionOf(d.declarationPlaces(), e)) || o.names != nil && o.names.MatchString(e.Message)
}
