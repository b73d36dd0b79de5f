package operations

import "github.com/pgconsent/pgconsent/internal/services/identity"

// HasMemories reports whether the policy of the caller's database describes memories with grants, and whether it
// describes beliefs that agents draw from memories.
func (d *Service) HasMemories(c identity.Caller) (memories, beliefs bool) {
	db, err := d.Database(c)
	if err != nil || db.Privacy == nil || db.Policy == nil {
		return false, false
	}
	p := db.Policy()
	if p == nil || p.Privacy() == nil {
		return false, false
	}
	return true, p.Privacy().Generalize != nil
}

// ReadsRegistry reports whether a rule of the caller's database reads the consent registry. If no rule does, the
// consents in the registry have no effect.
func (d *Service) ReadsRegistry(c identity.Caller) bool {
	db, err := d.Database(c)
	if err != nil || db.Policy == nil {
		return true // Without a policy this is not known; then the console shows the consents.
	}
	p := db.Policy()
	return p == nil || p.UsesRegistry()
}
