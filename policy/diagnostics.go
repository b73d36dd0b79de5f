package policy

import (
	"cmp"
	"slices"
	"strings"
)

// diagnostics collects the errors and warnings of a compilation. All phases share one value.
type diagnostics struct {
	errs           Errors
	warnings       []*Error
	withheldWrites []*Error // warnings about writes that the policy lists, but that agents do not get
	disclosures    []*Error // warnings about what agents learn of hidden rows by writing
}

func (c *diagnostics) fail(position place, suggestion, format string, args ...any) {
	c.errs = append(c.errs, position.Errorf(suggestion, format, args...))
}

// warn adds a warning about a place in the policy.
func (c *diagnostics) warn(position place, format string, args ...any) {
	c.warnings = append(c.warnings, position.Errorf("", format, args...))
}

// withhold notes that agents do not get a write which the policy lists, as a warning. It is no error, since a later
// version of pgconsent may find that a write tells about hidden rows. The policy must still compile then.
func (c *diagnostics) withhold(position place, label, format string, args ...any) {
	warning := position.Errorf(label, format+"; it is left out", args...)
	c.warnings, c.withheldWrites = append(c.warnings, warning), append(c.withheldWrites, warning)
}

// sortedErrors returns the errors in the order of the files, each once.
func (c *diagnostics) sortedErrors() Errors {
	slices.SortStableFunc(c.errs, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(c.errs, func(a, b *Error) bool { return *a == *b })
}
