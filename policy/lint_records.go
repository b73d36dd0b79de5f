package policy

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// whySharedNever returns why no record to which a row refers can be granted; nil: some record can.
func (l *linter) whySharedNever(b sharedBlock, row *catalog.Relation) *neverReason {
	parts, _ := l.recompileBlock(b, row).(predicate.All)
	for _, part := range parts {
		n, ok := part.(predicate.Visible)
		if !ok {
			continue
		}
		if w := l.whyNeverWord(b.grantedStatus.requiredWordAt, n.Relation, b.grantedStatus.column, b.grantedStatus.requiredWord); w != nil {
			return w
		}
		if w := whyAlwaysRevoked(b.revokedAt, n.Relation, b.revokedColumn); w != nil {
			return w
		}
	}
	return nil
}

// whyAlwaysRevoked returns why every record counts as revoked: the column with its revocation time is NOT NULL.
func whyAlwaysRevoked(position place, record *catalog.Relation, name string) *neverReason {
	if column := record.Column(name); column != nil && column.NotNull && column.Type != "boolean" {
		return &neverReason{position, fmt.Sprintf("%s.%s is NOT NULL, so that every record counts as revoked", record.Name,
			name)}
	}
	return nil
}

// whyRecordNever returns why no record of consent can be valid; nil: some record can.
func (l *linter) whyRecordNever(b consentBlock) *neverReason {
	if b.records == nil || b.records.record == nil {
		return nil
	}
	decl := b.records.record
	record := l.tableNamed(decl.place, decl.table)
	if record == nil {
		return nil
	}
	if w := whyAlwaysRevoked(decl.place, record, decl.revokedColumn); w != nil {
		return w
	}
	return l.whyNever(allBlock{place: decl.place, parts: decl.where}, record)
}

// alwaysHasSubject tells whether every row has a subject who must consent and who is not the caller.
func (l *linter) alwaysHasSubject(b consentBlock, row *catalog.Relation) bool {
	n, ok := l.recompileBlock(b, row).(predicate.RecordedConsent)
	if !ok || len(n.ExceptCallers) > 0 || len(n.Steps) > 0 || n.Subject == "" {
		return false
	}
	column := row.Column(n.Subject)
	return column != nil && column.NotNull
}

// tableNamed finds a table by its name. The whole policy has compiled, so the errors are known already.
func (l *linter) tableNamed(position place, name string) *catalog.Relation {
	errs, warnings := l.errs, l.warnings
	defer func() { l.errs, l.warnings = errs, warnings }()
	return l.findTable(position, name)
}

// checkAttributes warns of attributes that never have a value.
func (l *linter) checkAttributes() {
	for i := range l.doc.attributes {
		decl := &l.doc.attributes[i]
		q, label := decl.lookup, "the attribute %s never has a value: %s"
		if decl.within != nil && decl.within.source != nil {
			q, label = decl.within.source, "no claim of the attribute %s ever counts: %s"
		}
		if q == nil || q.rows == nil {
			continue
		}
		if table := l.tableNamed(q.tableAt, q.table); table != nil {
			if w := l.whyNever(q.rows, table); w != nil {
				l.warn(w.place, "", label, decl.Name, w.text)
			}
			l.checkRule(q.rows, table)
		}
	}
}

// checkAggregate warns of an aggregate whose rows have fewer conditions than the table's rule. Such an aggregate counts
// everybody's rows, in a table in which agents see only their own.
func (l *linter) checkAggregate(t *policyTable) {
	decl := t.decl.aggregate
	if decl == nil {
		return
	}
	if _, isOpen := decl.rows.(openBlock); isOpen {
		return // Compile itself warns of this case
	}
	meanings := l.meaningTexts(flatten(decl.rows, false), t.relation)
	for _, part := range flatten(t.decl.rows, false) {
		switch part.(type) {
		case ownBlock, tenantBlock:
		default:
			continue
		}
		meaning := l.meaningText(part, t.relation)
		found := false
		for _, m := range meanings {
			found = found || m == meaning
		}
		if !found {
			l.warn(decl.place, "write it under aggregate as well, unless everybody may count everybody's",
				"the rows of aggregate take nothing over from rows: groups count rows for which the block at "+
					"%d:%d does not hold", part.At().Line, part.At().Column)
		}
	}
	if w := l.whyNever(decl.rows, t.relation); w != nil {
		l.warn(w.place, "", "no row of %s counts in groups: %s", t.relation.Name, w.text)
	}
	l.checkRule(decl.rows, t.relation)
}
