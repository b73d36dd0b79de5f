package privacy

import (
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// maxAuditedSubjects is how many memories are read to find subjects.
const maxAuditedSubjects = 2000

// AuditableSubjects are the subjects about whom the caller may ask an Audit, sorted, at most the given number: the
// caller itself, those of whom it is a guardian, and the subjects of memories of its own stores. Only subjects with a
// memory about them are listed.
func (d *Service) AuditableSubjects(ctx context.Context, c identity.Caller, limit int) (subjects []string, hasMore bool,
	err error) {
	_, section, err := d.privacySection()
	if err != nil {
		return nil, false, err
	}
	caller, err := d.auditCaller(section, c)
	if err != nil {
		return nil, false, err
	}
	control, err := d.ConnectControl(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = control.Close(context.WithoutCancel(ctx)) }()
	rows, err := auditor{controlConn: control}.readMemories(ctx, caller, "", "", "", nil, maxAuditedSubjects)
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		if r.owner == caller {
			subjects = append(subjects, r.subjects...)
		} else {
			subjects = append(subjects, r.toldBy...)
		}
	}
	slices.Sort(subjects)
	subjects = slices.Compact(subjects)
	if hasMore = len(rows) == maxAuditedSubjects || len(subjects) > limit; len(subjects) > limit {
		subjects = subjects[:limit]
	}
	return subjects, hasMore, nil
}
