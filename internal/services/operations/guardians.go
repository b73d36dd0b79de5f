package operations

import (
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// Guardians returns the guardians of the caller. Only subjects may call it.
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

// Wards returns the subjects whose guardian the caller is. Only subjects may call it.
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

// WardConsents returns the newest record of each consent of a ward of the caller. A caller who is not the guardian gets
// the same refusal whether the person exists or not.
func (d *Service) WardConsents(ctx context.Context, caller identity.Caller, ward string) ([]ConsentStatus, error) {
	wards, err := d.Wards(ctx, caller)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(wards, ward) {
		return nil, newForbiddenError()
	}
	records, now, err := d.Databases[caller.Database].Registry.CurrentOfSubject(ctx, ward)
	if err != nil {
		return nil, err
	}
	out := make([]ConsentStatus, len(records))
	for i, rec := range records {
		out[i] = ConsentStatus{rec, now}
	}
	return out, nil
}
