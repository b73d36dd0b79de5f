package predicate

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// A rule does not require an optional attribute: if the attribute is missing, a comparison with it is NULL, and a grant
// ignores it. Under Not, NULL could make a row visible, so there a condition that needs the attribute hides the row.

// usedAttributes returns all attributes that a predicate uses, including optional ones.
func usedAttributes(n Node) map[string]bool {
	out := map[string]bool{}
	walkNodes(n, nil, func(n Node, _ *catalog.Relation) {
		for _, a := range attributesOf(n) {
			out[a.Name] = true
		}
	})
	return out
}

// requiredAttributes returns the attributes without which a predicate shows no row.
func requiredAttributes(n Node) map[string]bool {
	out := map[string]bool{}
	walkNodes(n, nil, func(n Node, _ *catalog.Relation) {
		for _, a := range attributesOf(n) {
			if !a.Optional {
				out[a.Name] = true
			}
		}
	})
	return out
}

// attributesOf returns the attributes that a node uses itself, not in its parts.
func attributesOf(node Node) []Attribute {
	switch n := node.(type) {
	case Own:
		return []Attribute{{Name: n.Attribute, Type: n.Type, Optional: n.Optional}}
	case Tenant:
		return attributesOf(n.Own)
	case Grant:
		var out []Attribute
		for _, to := range n.Grantees {
			out = append(out, Attribute{Name: to.Attribute, Optional: to.Optional})
		}
		return out
	case RecordedConsent:
		return append(attributesOf(Grant{Grantees: n.ExceptCallers}), attributesOf(n.Record.Grantee)...)
	case RegistryConsent:
		var out []Attribute
		for _, to := range [][]Grantee{n.Subjects.ExceptCallers, n.SessionCategories, n.SessionPurposes, n.Grantees,
			n.Contexts} {
			out = append(out, attributesOf(Grant{Grantees: to})...)
		}
		return out
	case SQL:
		return n.attributes()
	default:
		return nil
	}
}

// orMissingSQL makes a condition inside a Not true if an optional attribute of n is missing, so that the Not hides the
// row.
func orMissingSQL(n Node, condition string) string {
	for _, a := range attributesOf(n) {
		if a.Optional {
			condition = "(" + attrSQL(a.Name) + " IS NULL OR " + condition + ")"
		}
	}
	return condition
}
