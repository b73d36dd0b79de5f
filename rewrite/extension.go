package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// IsKnownExtension tells whether pgconsent's lists contain an extension. Agents may use its types and operators, and
// those of its functions that functions lists allow.
func IsKnownExtension(name string) bool { return isKnownExtension(name) }

// IsUnknownOperator tells whether an operator belongs to no extension that pgconsent knows. Statements with an operator
// of this name are refused, unless the policy lists the operator's extension under operators.
func IsUnknownOperator(o *catalog.Operator) bool { return !isKnownExtension(o.Extension) }
