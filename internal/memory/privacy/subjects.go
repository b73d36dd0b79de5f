package privacy

import (
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// maxAuditedSubjects is how many memories AuditableSubjects reads to find subjects.
const maxAuditedSubjects = 2000

// AuditableSubjects returns at most limit subjects about whom the caller may call [Service.Audit], sorted. These are
// the caller itself, persons whose guardian the caller is, and the subjects of memories in the caller's own stores. It
// lists only subjects about whom there is a memory.
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
