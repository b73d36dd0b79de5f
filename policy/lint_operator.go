package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// checkOperators warns of operators of other roles that pgconsent does not know and that have the name of one of
// PostgreSQL's operators. The types of the operands decide which operator a statement means, so pgconsent refuses every
// statement with such a name.
func (l *linter) checkOperators() {
	if l.context.IsUnknownOperator == nil {
		return
	}
	type owner struct{ extension, schema string }
	var owners []owner
	names := map[owner][]string{}
	for _, o := range l.snap.Operators() {
		owner := owner{o.Extension, o.Name.Schema}
		if !slices.Contains(l.snap.SearchPath(), owner.schema) || !l.snap.HasCatalogOperator(o.Name.Name) ||
			!l.context.IsUnknownOperator(o) || l.policy.PermitsOperatorsOf(o.Extension) {
			continue
		}
		if names[owner] == nil {
			owners = append(owners, owner)
		}
		if !slices.Contains(names[owner], o.Name.Name) {
			names[owner] = append(names[owner], o.Name.Name)
		}
	}
	for _, of := range owners {
		whose, suggestion := "of the extension "+
			of.extension, fmt.Sprintf(
			"say operators: [%s] where none of them acts or reads rows, or give it a schema off the search path", of.extension)
		if of.extension == "" {
			whose, suggestion = "of your own", "give them a schema off the search path"
		}
		l.warn(l.tablesPlace(), suggestion,
			"every statement with %s is refused: schema %s has operators %s of these names, which pgconsent does "+
				"not know", strings.Join(names[of], " "), catalog.QuoteIdent(of.schema), whose)
	}
}
