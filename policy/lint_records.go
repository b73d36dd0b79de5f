package policy

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// sharedNever returns why no record that a row points to is ever granted.
func (l *linter) sharedNever(b sharedBlock, row *catalog.Relation) *why {
	parts, _ := l.node(b, row).(predicate.All)
	for _, part := range parts {
		n, ok := part.(predicate.Visible)
		if !ok {
			continue
		}
		if w := l.word(b.granted.isAt, n.Relation, b.granted.column, b.granted.is); w != nil {
			return w
		}
		if w := revokedAlways(b.revokedAt, n.Relation, b.revoked); w != nil {
			return w
		}
	}
	return nil
}

// revokedAlways tells of a time of withdrawal that every record has.
func revokedAlways(at place, record *catalog.Relation, name string) *why {
	if column := record.Column(name); column != nil && column.NotNull && column.Type != "boolean" {
		return &why{at, fmt.Sprintf("%s.%s is NOT NULL, so that every record counts as revoked", record.Name, name)}
	}
	return nil
}

// recordNever returns why no record of consent ever counts.
func (l *linter) recordNever(b consentBlock) *why {
	if b.recorded == nil || b.recorded.record == nil {
		return nil
	}
	decl := b.recorded.record
	record := l.named(decl.place, decl.table)
	if record == nil {
		return nil
	}
	if w := revokedAlways(decl.place, record, decl.revoked); w != nil {
		return w
	}
	return l.impossible(allBlock{place: decl.place, parts: decl.where}, record)
}

// alwaysAsked tells whether every row has somebody to ask who is not the caller.
func (l *linter) alwaysAsked(b consentBlock, row *catalog.Relation) bool {
	n, ok := l.node(b, row).(predicate.Recorded)
	if !ok || len(n.But) > 0 || len(n.Steps) > 0 || n.Subject == "" {
		return false
	}
	column := row.Column(n.Subject)
	return column != nil && column.NotNull
}

// named is a table by its name. The policy compiles, so that nothing new can go wrong.
func (l *linter) named(at place, name string) *catalog.Relation {
	errs, warnings := l.errs, l.warnings
	defer func() { l.errs, l.warnings = errs, warnings }()
	return l.relation(at, name)
}

// origins warns of attributes that never have a value.
func (l *linter) origins() {
	for i := range l.doc.attributes {
		decl := &l.doc.attributes[i]
		q, what := decl.query, "the attribute %s never has a value: %s"
		if decl.within != nil && decl.within.source != nil {
			q, what = decl.within.source, "no claim of the attribute %s ever counts: %s"
		}
		if q == nil || q.rows == nil {
			continue
		}
		if table := l.named(q.tableAt, q.table); table != nil {
			if w := l.impossible(q.rows, table); w != nil {
				l.warn(w.place, "", what, decl.Name, w.text)
			}
			l.rule(q.rows, table)
		}
	}
}

// taken warns of an aggregate that counts rows of everybody, on a table whose rows are somebody's: its rows take
// nothing over from those of the table.
func (l *linter) taken(t *compiling) {
	decl := t.decl.aggregate
	if decl == nil {
		return
	}
	if _, open := decl.rows.(openBlock); open {
		return // said already
	}
	taken := l.meanings(flat(decl.rows, false), t.relation)
	for _, part := range flat(t.decl.rows, false) {
		switch part.(type) {
		case ownBlock, tenantBlock:
		default:
			continue
		}
		meaning := l.meaning(part, t.relation)
		found := false
		for _, m := range taken {
			found = found || m == meaning
		}
		if !found {
			l.warn(decl.place, "write it under aggregate as well, unless everybody may count everybody's",
				"the rows of aggregate take nothing over from rows: groups count rows for which the block at "+
					"%d:%d does not hold", part.At().Line, part.At().Column)
		}
	}
	if w := l.impossible(decl.rows, t.relation); w != nil {
		l.warn(w.place, "", "no row of %s counts in groups: %s", t.relation.Name, w.text)
	}
	l.rule(decl.rows, t.relation)
}
