package predicate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Direct writes n for the owner, to whom row security does not apply: as a condition on the row called alias, over the
// tables themselves, with the attributes of a caller as constants; an absent one counts as missing. It shows the rows
// that [Policy] shows this caller, is never NULL, and needs nothing installed but, for lists in JSON, the functions of
// schema pgconsent_signed. It is for tools and enforces nothing.
func Direct(n Node, alias string, attributes map[string]string) string {
	return "(" + Constants(direct(n, alias), attributes) + ") IS TRUE"
}

func direct(n Node, alias string) string {
	w := writer{direct: true, prefix: prefixFor(alias)}
	return strings.Join(append(guards(attributesToGuard(n)), w.write(n, catalog.QuoteIdent(alias))), " AND ")
}

// Parameters numbers the attributes of a caller as parameters of a statement, so that it is planned once for many
// callers.
type Parameters struct {
	First int      // the number of the first
	Names []string // the names of the attributes that the conditions read, in the order of their parameter numbers
}

// Direct is as [Direct], with the attributes as parameters of type text; one that is absent is NULL.
func (p *Parameters) Direct(n Node, alias string) string {
	return "(" + replaceAttributes(direct(n, alias), func(name string) string {
		i := slices.Index(p.Names, name)
		if i < 0 {
			i, p.Names = len(p.Names), append(p.Names, name)
		}
		return fmt.Sprintf("$%d::pg_catalog.text", p.First+i)
	}) + ") IS TRUE"
}

// Subject is a query of the subjects of the row called alias, for [Direct]'s callers. Its columns are the subject's id
// as text, whether the subject is the caller and so needs no consent, whether the subject has agreed by a record, and
// whether a guardian has.
func Subject(n Recorded, alias string, attributes map[string]string) string {
	if n.subject() == "" || n.Record.Relation == nil || n.Record.Element != "" {
		return ""
	}
	w := writer{direct: true, prefix: prefixFor(alias)}
	row, subject := catalog.QuoteIdent(alias), w.alias()
	from, where := n.subjectsSQL(row, subject), ""
	if len(n.Steps) > 0 {
		first := w.alias()
		last := first
		from = w.helper(n.Steps[0].Relation) + " AS " + first
		for i, step := range n.Steps[1:] {
			next := w.alias()
			from += w.linkSQL(step, last, next, n.reads(i+1))
			last = next
		}
		from += " CROSS JOIN LATERAL " + n.subjectsSQL(last, subject)
		where = " WHERE " + n.Steps[0].onSQL(first, row)
	}
	id := subject + ".id"
	self, guarded := "false", "false"
	if len(n.But) > 0 {
		self = "(" + oneOf(id, Grant{Form: n.form(), To: n.But}.idArraySQL()+"::"+n.form().element()+"[]") + ") IS TRUE"
	}
	if n.Record.Guardians != nil {
		guarded = "NOT (" + w.noGuardianAgrees(n, row, id) + ")"
	}
	return Constants("SELECT "+id+"::pg_catalog.text AS id, "+self+" AS self, EXISTS ("+w.recordSQL(n.Record, row, id)+
		fence+" AS agreed, "+guarded+" AS guarded FROM "+from+where, attributes)
}

// Registry is a query of the subjects of the row called alias, and of the record that decides for each. Its columns are
// the subject's id as text, whether the subject is the caller, whether the subject consents, and the number, state,
// stream, categories and expiry of the last record about the row and the caller; NULL where there is none. A record
// that counts comes before others.
func Registry(n Registered, alias string, attributes map[string]string) string {
	if n.Of.subject() == "" {
		return ""
	}
	w := writer{direct: true, prefix: prefixFor(alias)}
	row, subject := catalog.QuoteIdent(alias), w.alias()
	from, where := n.Of.subjectsSQL(row, subject), ""
	if len(n.Of.Steps) > 0 {
		first := w.alias()
		last := first
		from = w.helper(n.Of.Steps[0].Relation) + " AS " + first
		for i, step := range n.Of.Steps[1:] {
			next := w.alias()
			from += w.linkSQL(step, last, next, n.Of.reads(i+1))
			last = next
		}
		from += " CROSS JOIN LATERAL " + n.Of.subjectsSQL(last, subject)
		where = " WHERE " + n.Of.Steps[0].onSQL(first, row)
	}
	id, self, r := subject+".id", "false", w.alias()
	if len(n.Of.But) > 0 {
		self = "(" + oneOf(id, Grant{Form: n.Of.form(), To: n.Of.But}.idArraySQL()+"::"+n.Of.form().element()+"[]") + ") IS TRUE"
	}
	about := append([]string{equal(column(r, "subject"), subjectText(id))}, n.aboutConditions(r, row)...)
	return Constants("SELECT "+id+"::pg_catalog.text AS id, "+self+" AS self, EXISTS ("+w.consentsSQL(n, row, id)+
		fence+" AS agreed, d.number, d.state, d.stream, d.categories, d.expires_at, d.decay_from FROM "+from+
		" LEFT JOIN LATERAL (SELECT "+columns(r, "number", "state", "stream", "categories", "expires_at",
		"decay_from")+" FROM "+CurrentConsents.SQL()+" AS "+r+" WHERE "+strings.Join(about, " AND ")+
		" ORDER BY "+oneOf(column(r, "state"), textArray(refusals))+" DESC, ("+
		strings.Join(w.consentConditions(n, r, row), " AND ")+") IS TRUE DESC, "+column(r, "number")+
		" DESC LIMIT 1) AS d ON true"+where, attributes)
}

// Constants replaces each attribute of the session in an expression of this package by a constant.
func Constants(sql string, attributes map[string]string) string {
	return replaceAttributes(sql, func(name string) string {
		literal := "NULL"
		if value, there := attributes[name]; there {
			literal = catalog.QuoteLiteral(value)
		}
		return literal + "::pg_catalog.text"
	})
}

// replaceAttributes replaces each attribute of the session in an expression of this package. It leaves quoted text
// alone.
func replaceAttributes(sql string, by func(name string) string) string {
	return replaceUnquoted(sql, func(rest string) (string, int) {
		name, begins := strings.CutPrefix(rest, attrCall)
		name, _, ends := strings.Cut(name, "')")
		if !begins || !ends {
			return "", 0
		}
		return by(name), len(attrCall) + len(name) + len("')")
	})
}

const attrCall = "pgconsent_signed.attr('"

// replaceUnquoted replaces what by finds at the beginning of the rest of an expression, and leaves quoted text alone. by
// returns what to write in place of so many bytes; 0: it has found nothing.
func replaceUnquoted(sql string, by func(rest string) (string, int)) string {
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
			if text, n := by(sql[i:]); n > 0 {
				b.WriteString(text)
				i += n - 1
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
