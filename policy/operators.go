package policy

import (
	"slices"
)

// PermitsOperatorsOf tells whether the policy permits the operators of an extension.
func (p *Policy) PermitsOperatorsOf(extension string) bool {
	return slices.Contains(p.operatorExtensions, extension)
}

// OperatorExtensions returns, sorted, the extensions that pgconsent does not know but whose operators the policy
// permits.
func (p *Policy) OperatorExtensions() []string { return p.operatorExtensions }

// compileOperators checks the extensions whose operators the policy permits, and returns them sorted.
func (c *compiler) compileOperators(decls []wordDecl) []string {
	var installed, out []string
	for _, o := range c.snap.Operators() {
		if o.Extension != "" && !slices.Contains(installed, o.Extension) {
			installed = append(installed, o.Extension)
		}
	}
	for _, d := range decls {
		if !slices.Contains(installed, d.text) {
			c.fail(d.place, closest(d.text, installed), "the database has no operators of an extension %q", d.text)
		}
		out = append(out, d.text)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
