package predicate

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// An optional attribute is not required: where it is missing, a comparison with it is NULL, and a grant ignores it.
// Under Not, which could turn that into a row that shows, a condition that needs it hides the row.

// usedAttributes returns the attributes that n uses at any depth, optional ones too.
func usedAttributes(n Node) map[string]bool {
	out := map[string]bool{}
	walk(n, nil, func(n Node, _ *catalog.Relation) {
		for _, a := range attributesOf(n) {
			out[a.Name] = true
		}
	})
	return out
}

// requiredAttributes returns the attributes without which n shows nothing.
func requiredAttributes(n Node) map[string]bool {
	out := map[string]bool{}
	walk(n, nil, func(n Node, _ *catalog.Relation) {
		for _, a := range attributesOf(n) {
			if !a.Optional {
				out[a.Name] = true
			}
		}
	})
	return out
}

// attributesOf are the attributes that a node without parts uses.
func attributesOf(n Node) []Attr {
	switch n := n.(type) {
	case Own:
		return []Attr{{Name: n.Attribute, Type: n.Type, Optional: n.Optional}}
	case Tenant:
		return attributesOf(n.Own)
	case Grant:
		var out []Attr
		for _, to := range n.To {
			out = append(out, Attr{Name: to.Attribute, Optional: to.Optional})
		}
		return out
	case Recorded:
		return append(attributesOf(Grant{To: n.But}), attributesOf(n.Record.Grantee)...)
	case Registered:
		var out []Attr
		for _, to := range [][]Grantee{n.Of.But, n.SessionCategories, n.SessionPurposes, n.Grantees, n.Contexts} {
			out = append(out, attributesOf(Grant{To: to})...)
		}
		return out
	case SQL:
		return n.attributes()
	default:
		return nil
	}
}

// orMissing makes a condition under Not true where an optional attribute of n is missing.
func orMissing(n Node, condition string) string {
	for _, a := range attributesOf(n) {
		if a.Optional {
			condition = "(" + attr(a.Name) + " IS NULL OR " + condition + ")"
		}
	}
	return condition
}
