package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// IsKnownExtension tells whether agents may use the types and operators of an extension, and its classified functions.
func IsKnownExtension(name string) bool { return isKnownExtension(name) }

// IsUnknownOperator tells whether pgconsent does not know an operator. Statements with the operator's name are then
// refused, unless the policy lists the operator's extension under operators.
func IsUnknownOperator(o *catalog.Operator) bool { return !isKnownExtension(o.Extension) }
