package operations

import "github.com/pgconsent/pgconsent/internal/face/identity"

// Memories tells whether the caller's database keeps memories that are granted, and whether beliefs are drawn from
// them: what it has, and nothing of anybody.
func (d *Service) Memories(c identity.Caller) (kept, general bool) {
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

// AsksRegistry tells whether a rule of the caller's database asks the consents that its registry records. Where none
// does, giving one shows nothing to anybody.
func (d *Service) AsksRegistry(c identity.Caller) bool {
	db, err := d.Database(c)
	if err != nil || db.Policy == nil {
		return true // nobody can say: what is recorded is shown
	}
	p := db.Policy()
	return p == nil || p.UsesRegistry()
}
