package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// OperatorsOf tells whether the DBA says of an extension that agents may use its operators: none of them acts, or reads
// rows.
func (p *Policy) OperatorsOf(extension string) bool { return slices.Contains(p.operators, extension) }

// Operators returns the extensions that pgconsent does not know and whose operators agents may use, sorted.
func (p *Policy) Operators() []string { return p.operators }

// operators compiles the extensions whose operators agents may use.
func (c *compiler) operators(decls []wordDecl) []string {
	var installed, out []string
	for _, o := range c.snap.Operators() {
		if o.Extension != "" && !slices.Contains(installed, o.Extension) {
			installed = append(installed, o.Extension)
		}
	}
	for _, d := range decls {
		if !slices.Contains(installed, d.word) {
			c.fail(d.place, closest(d.word, installed), "the database has no operators of an extension %q", d.word)
		}
		out = append(out, d.word)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// operators warns of operators that nobody vouches for and that have names of PostgreSQL's own: which of the two a
// statement means depends on the types of what it compares, so every statement with such a name is refused.
func (l *linter) operators() {
	if l.around.UnknownOperator == nil {
		return
	}
	type owner struct{ extension, schema string }
	var owners []owner
	names := map[owner][]string{}
	for _, o := range l.snap.Operators() {
		of := owner{o.Extension, o.Name.Schema}
		if !slices.Contains(l.snap.SearchPath(), of.schema) || !l.snap.HasCatalogOperator(o.Name.Name) ||
			!l.around.UnknownOperator(o) || l.policy.OperatorsOf(o.Extension) {
			continue
		}
		if names[of] == nil {
			owners = append(owners, of)
		}
		if !slices.Contains(names[of], o.Name.Name) {
			names[of] = append(names[of], o.Name.Name)
		}
	}
	for _, of := range owners {
		whose, suggestion := "of the extension "+
			of.extension, fmt.Sprintf(
			"say operators: [%s] where none of them acts or reads rows, or give it a schema off the search path", of.extension)
		if of.extension == "" {
			whose, suggestion = "of your own", "give them a schema off the search path"
		}
		l.warn(l.start(), suggestion,
			"every statement with %s is refused: schema %s has operators %s of these names, which pgconsent does "+
				"not know", strings.Join(names[of], " "), catalog.QuoteIdent(of.schema), whose)
	}
}
