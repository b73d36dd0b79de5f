package enforce

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/policy"
)

// checkTokenClaims checks the attributes that the claims of an agent's tokens give by the configuration. If the policy
// did not declare such an attribute, a misspelt name would be ignored and nobody would notice. The error is for the
// operator.
func (a Agent) checkTokenClaims(p *policy.Policy) error {
	if !a.LogsInByToken {
		return nil
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(a.Claims)) {
		declared, ok := p.Attribute(name)
		switch {
		case !ok:
			var names []string
			for _, one := range p.Attributes() {
				if !one.IsLive() {
					names = append(names, one.Name)
				}
			}
			hint := policy.Suggest(name, names)
			if hint == "" {
				hint = "declare it there with source: credential, and with optional: true if only agents of " +
					"another database need it, or take it out"
			}
			problems = append(problems, fmt.Errorf(
				"jwt.claims.attributes: the claim %q is to be attribute %q, which the policy of database %q does "+
					"not declare: %s", a.Claims[name], name, a.Database, hint))
		case declared.IsLive():
			problems = append(problems, fmt.Errorf(
				"jwt.claims.attributes: the claim %q is to be attribute %q, whose source is %s in the policy of "+
					"database %q: take it out, or declare it with source: credential", a.Claims[name], name, declared.Source, a.Database))
		}
	}
	return errors.Join(problems...)
}

// logUnusableClaims logs an error for each agent of a database whose configured claims make every login by a token
// fail. The caller does not hold e.mu.
func (e *Enforcer) logUnusableClaims(d *database, p *policy.Policy) {
	e.mu.Lock()
	agents := maps.Clone(e.agents)
	e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		if a := agents[name]; a.Database == d.cfg.Name {
			e.logClaimError(a, p)
		}
	}
}

func (e *Enforcer) logClaimError(a Agent, p *policy.Policy) {
	if err := a.checkTokenClaims(p); err != nil {
		e.cfg.Log.Error("agent refused until jwt.claims.attributes is put right in the configuration", "agent",
			a.Name, "database", a.Database, "error", err)
	}
}
