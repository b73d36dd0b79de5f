package enforce

import "github.com/pgconsent/pgconsent/policy"

// Policy returns the active policy of a database. It returns nil while the database's agents are refused.
func (e *Enforcer) Policy(database string) *policy.Policy {
	d := e.databases[database]
	if d == nil {
		return nil
	}
	v, refused := d.current()
	if refused != nil {
		return nil
	}
	return v.state.policy
}
