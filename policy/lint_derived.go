package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// checkInherit warns of a derived block without the key inherit if the sources' rule compares with attributes that the
// row's rule does not use. Other agents may then see the row than its sources.
func (l *linter) checkInherit(t *policyTable) {
	for _, b := range derivedBlocks(t.decl.rows) {
		origin, ok := l.rules.compileOrigin(b, t.relation)
		source, isList := l.policy.Table(origin.SourceTable().Name)
		if b.inherit != "" || !ok || !isList || source.Relation.Name == t.relation.Name {
			continue
		}
		attributes := predicate.AttributesOf(l.recompileBlock(b, t.relation))
		for _, part := range flatten(t.decl.rows, false) {
			if _, derived := part.(derivedBlock); !derived {
				attributes = append(attributes, predicate.AttributesOf(l.recompileBlock(part, t.relation))...)
			}
		}
		missingAttributes := slices.DeleteFunc(predicate.AttributesOf(source.Rows),
			func(name string) bool { return slices.Contains(attributes, name) })
		if len(missingAttributes) > 0 {
			l.warn(b.place,
				"say inherit: everything if each source must show to who is asking, and inherit: consents if this is meant",
				"which rows of %s show goes by %s, and which of %s, made from them, does not", source.Relation.Name,
				strings.Join(missingAttributes, ", "), t.relation.Name)
		}
	}
}
