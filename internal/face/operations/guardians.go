package operations

import (
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/internal/face/identity"
)

// Guardians are those who speak for the caller, a subject.
func (d *Service) Guardians(ctx context.Context, c identity.Caller) ([]string, error) {
	if err := RequireRole(c, identity.Subject); err != nil {
		return nil, err
	}
	r, err := d.registry(c)
	if err != nil {
		return nil, err
	}
	return r.Guardians(ctx, c.Subject)
}

// Wards are those whom the caller, a subject, speaks for.
func (d *Service) Wards(ctx context.Context, c identity.Caller) ([]string, error) {
	if err := RequireRole(c, identity.Subject); err != nil {
		return nil, err
	}
	r, err := d.registry(c)
	if err != nil {
		return nil, err
	}
	return r.Wards(ctx, c.Subject)
}

// WardConsents are the last records of all consents of somebody whom the caller speaks for. The refusal is that of a stranger,
// whether there is such a person or not.
func (d *Service) WardConsents(ctx context.Context, c identity.Caller, ward string) ([]Status, error) {
	wards, err := d.Wards(ctx, c)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(wards, ward) {
		return nil, forbidden()
	}
	records, now, err := d.Databases[c.Database].Registry.CurrentOfSubject(ctx, ward)
	if err != nil {
		return nil, err
	}
	out := make([]Status, len(records))
	for i, rec := range records {
		out[i] = Status{rec, now}
	}
	return out, nil
}
