package policy

import (
	"cmp"
	"slices"
	"strings"
)

// diagnostics are what a compilation finds wrong or unwise. All of its phases write to one.
type diagnostics struct {
	errs           Errors
	warnings       []*Error
	withheldWrites []*Error // of the warnings, those about writes that the policy lists and agents are not given
	disclosures    []*Error // of the warnings, those about what agents learn of hidden rows by writing
}

func (c *diagnostics) fail(at place, suggestion, format string, args ...any) {
	c.errs = append(c.errs, at.Errorf(suggestion, format, args...))
}

// warn adds a warning.
func (c *diagnostics) warn(at place, format string, args ...any) {
	c.warnings = append(c.warnings, at.Errorf("", format, args...))
}

// withhold leaves out what a policy lets agents write, and says so: a policy goes on as it was where what it asks for
// is found to tell of what agents do not see by something that an earlier version did not look at.
func (c *diagnostics) withhold(at place, what, format string, args ...any) {
	said := at.Errorf(what, format+"; it is left out", args...)
	c.warnings, c.withheldWrites = append(c.warnings, said), append(c.withheldWrites, said)
}

// sorted returns the errors in the order of the files, each once.
func (c *diagnostics) sorted() Errors {
	slices.SortStableFunc(c.errs, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(c.errs, func(a, b *Error) bool { return *a == *b })
}
