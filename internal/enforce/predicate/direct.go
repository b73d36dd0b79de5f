package predicate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// DirectCondition returns n as an SQL condition on the row called alias, for the tables' owner, to whom row security
// does not apply. The condition reads the tables themselves and has a caller's attributes as constants; an attribute
// that is not given counts as missing. It is true for the rows that [RowPolicySQL] shows to this caller, and never
// NULL. It needs no objects of pgconsent, except functions of schema pgconsent_signed for lists in JSON. It is for
// tools and enforces nothing.
func DirectCondition(n Node, alias string, attributes map[string]string) string {
	return "(" + ReplaceByConstants(directNodeSQL(n, alias), attributes) + ") IS TRUE"
}

func directNodeSQL(n Node, alias string) string {
	w := predicateWriter{readsTables: true, prefix: aliasPrefixFor(alias)}
	return strings.Join(append(guardConditions(attributesToGuard(n)), w.nodeSQL(n, catalog.QuoteIdent(alias))), " AND ")
}

// Parameters numbers the attributes of a caller as parameters of a statement, so that PostgreSQL can plan the statement
// once for many callers.
type Parameters struct {
	FirstNumber int // the number of the first parameter
	// AttributeNames are the attributes that the conditions read, in the order of their parameter numbers.
	AttributeNames []string
}

// Condition is like [DirectCondition], but has parameters of type text in place of the constants. A parameter must be
// NULL if the attribute is not given.
func (p *Parameters) Condition(n Node, alias string) string {
	return "(" + replaceAttributes(directNodeSQL(n, alias), func(name string) string {
		i := slices.Index(p.AttributeNames, name)
		if i < 0 {
			i, p.AttributeNames = len(p.AttributeNames), append(p.AttributeNames, name)
		}
		return fmt.Sprintf("$%d::pg_catalog.text", p.FirstNumber+i)
	}) + ") IS TRUE"
}

// SubjectsQuery returns a query of the subjects of the row called alias, for the users of [DirectCondition]. Its
// columns are the subject's id as text, whether the subject is the caller and so needs no consent, whether a record
// says that the subject has agreed, and whether one says so of a guardian.
func SubjectsQuery(n RecordedConsent, alias string, attributes map[string]string) string {
	if n.subjectColumn() == "" || n.Record.Relation == nil || n.Record.ElementColumn != "" {
		return ""
	}
	w := predicateWriter{readsTables: true, prefix: aliasPrefixFor(alias)}
	row, subject := catalog.QuoteIdent(alias), w.newAlias()
	from, where := n.subjectsSQL(row, subject), ""
	if len(n.Steps) > 0 {
		first := w.newAlias()
		last := first
		from = w.lookupName(n.Steps[0].Relation) + " AS " + first
		for i, step := range n.Steps[1:] {
			next := w.newAlias()
			from += w.linkSQL(step, last, next, n.stepColumns(i+1))
			last = next
		}
		from += " CROSS JOIN LATERAL " + n.subjectsSQL(last, subject)
		where = " WHERE " + n.Steps[0].onSQL(first, row)
	}
	id := subject + ".id"
	self, guarded := "false", "false"
	if len(n.ExceptCallers) > 0 {
		self = "(" + oneOfSQL(id, Grant{Form: n.idForm(),
			Grantees: n.ExceptCallers}.idArraySQL()+"::"+n.idForm().elementType()+"[]") + ") IS TRUE"
	}
	if n.Record.Guardians != nil {
		guarded = "NOT (" + w.noGuardianAgreesSQL(n, row, id) + ")"
	}
	return ReplaceByConstants("SELECT "+id+"::pg_catalog.text AS id, "+self+" AS self, EXISTS ("+w.recordSQL(n.Record,
		row, id)+
		offsetZeroEnd+" AS agreed, "+guarded+" AS guarded FROM "+from+where, attributes)
}

// RegistryQuery returns a query of the subjects of the row called alias, with the deciding record for each. Its columns
// are the subject's id as text, whether the subject is the caller, whether the subject consents, and the number, state,
// stream, categories, expires_at and decay_from of that record, which are NULL if there is no record. The deciding
// record is a refusal, else a consent that counts, else the last record about the row and the caller.
func RegistryQuery(n RegistryConsent, alias string, attributes map[string]string) string {
	if n.Subjects.subjectColumn() == "" {
		return ""
	}
	w := predicateWriter{readsTables: true, prefix: aliasPrefixFor(alias)}
	row, subject := catalog.QuoteIdent(alias), w.newAlias()
	from, where := n.Subjects.subjectsSQL(row, subject), ""
	if len(n.Subjects.Steps) > 0 {
		first := w.newAlias()
		last := first
		from = w.lookupName(n.Subjects.Steps[0].Relation) + " AS " + first
		for i, step := range n.Subjects.Steps[1:] {
			next := w.newAlias()
			from += w.linkSQL(step, last, next, n.Subjects.stepColumns(i+1))
			last = next
		}
		from += " CROSS JOIN LATERAL " + n.Subjects.subjectsSQL(last, subject)
		where = " WHERE " + n.Subjects.Steps[0].onSQL(first, row)
	}
	id, self, r := subject+".id", "false", w.newAlias()
	if len(n.Subjects.ExceptCallers) > 0 {
		self = "(" + oneOfSQL(id, Grant{Form: n.Subjects.idForm(),
			Grantees: n.Subjects.ExceptCallers}.idArraySQL()+"::"+n.Subjects.idForm().elementType()+"[]") + ") IS TRUE"
	}
	about := append([]string{equalSQL(columnSQL(r, "subject"), subjectText(id))}, n.recordConcernsRowConditions(r, row)...)
	return ReplaceByConstants("SELECT "+id+"::pg_catalog.text AS id, "+self+" AS self, EXISTS ("+w.consentsSQL(n, row, id)+
		offsetZeroEnd+" AS agreed, d.number, d.state, d.stream, d.categories, d.expires_at, d.decay_from FROM "+from+
		" LEFT JOIN LATERAL (SELECT "+columnListSQL(r, "number", "state", "stream", "categories", "expires_at",
		"decay_from")+" FROM "+CurrentConsents.SQL()+" AS "+r+" WHERE "+strings.Join(about, " AND ")+
		" ORDER BY "+oneOfSQL(columnSQL(r, "state"), textArray(refusingStates))+" DESC, ("+
		strings.Join(w.consentConditions(n, r, row), " AND ")+") IS TRUE DESC, "+columnSQL(r, "number")+
		" DESC LIMIT 1) AS d ON true"+where, attributes)
}

// ReplaceByConstants replaces each attribute of the session in an SQL expression of this package by a constant.
func ReplaceByConstants(sql string, attributes map[string]string) string {
	return replaceAttributes(sql, func(name string) string {
		literal := "NULL"
		if value, exists := attributes[name]; exists {
			literal = catalog.QuoteLiteral(value)
		}
		return literal + "::pg_catalog.text"
	})
}

// replaceAttributes replaces each attribute of the session in an SQL expression of this package by the SQL that
// replacement returns for its name. Quoted text does not change.
func replaceAttributes(sql string, replacement func(name string) string) string {
	return replaceUnquoted(sql, func(rest string) (string, int) {
		name, begins := strings.CutPrefix(rest, attributeCallStart)
		name, _, ends := strings.Cut(name, "')")
		if !begins || !ends {
			return "", 0
		}
		return replacement(name), len(attributeCallStart) + len(name) + len("')")
	})
}

const attributeCallStart = "pgconsent_signed.attr('"

// replaceUnquoted replaces parts of an SQL expression outside of quotes. It calls replacement with the rest of the
// expression at each position. replacement returns the new text and how many bytes this text replaces; 0: none.
func replaceUnquoted(sql string, replacement func(rest string) (string, int)) string {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(sql); i++ {
		c := sql[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		default:
			if text, n := replacement(sql[i:]); n > 0 {
				b.WriteString(text)
				i += n - 1
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
