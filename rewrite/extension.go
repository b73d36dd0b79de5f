package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// KnownExtension tells whether agents may use the types and operators of an extension, and its functions as far as they
// are classified.
func KnownExtension(name string) bool { return knownExtension(name) }

// UnknownOperator tells whether an operator closes its name: statements with that name are refused, unless the policy
// has the operator's extension under operators.
func UnknownOperator(o *catalog.Operator) bool { return !knownExtension(o.Extension) }
