package policy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

func (d *blockDecoder) decodeConsent(position place, n *node) block {
	b := consentBlock{place: position}
	d.decodeFields(n, "consent", map[string]func(*node){
		"every": func(v *node) {
			if !d.requireKind(v, yamlfile.ListNode, "every") {
				return
			}
			for _, item := range v.Items {
				b.subjectLinks = append(b.subjectLinks, d.decodeLink(item, "every"))
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "name the table of the subjects, and the link table before it if there is one", "every is empty")
			}
		},
		"status":  d.decodeWordAt(&b.status, &b.statusAt, "status"),
		"is":      d.decodeWordAt(&b.requiredWord, &b.requiredWordAt, "is"),
		"expires": d.decodeWordAt(&b.expires, &b.expiresAt, "expires"),
		"materialize": func(v *node) {
			b.materializeAt = v.Place
			d.decodeFlag(&b.materialize, "materialize")(v)
		},
		"subject": d.recordedKey(&b, func(r *recordedDecl,
			v *node) {
			d.decodeWord(&r.subject, "subject")(v)
			r.subjectAt = v.Place
		}),
		"subjects": d.recordedKey(&b, func(r *recordedDecl, v *node) {
			d.decodeWord(&r.subjects, "subjects")(v)
			r.subjectAt = v.Place
		}),
		"but":      d.recordedKey(&b, func(r *recordedDecl, v *node) { r.exceptCallers = d.decodeAttributeRefs(v, "but") }),
		"record":   d.recordedKey(&b, func(r *recordedDecl, v *node) { r.record = d.decodeRecord(v) }),
		"registry": d.recordedKey(&b, func(r *recordedDecl, v *node) { r.registry = d.decodeRegistry(v) }),
	})
	if b.records == nil {
		d.requireFields(n, "consent", "every", "status", "is")
		return b
	}
	if b.records.registry == nil {
		d.requireFields(n, "consent", "record")
	}
	if b.expires != "" || b.materialize {
		d.fail(b.expiresAt.OrElse(b.materializeAt), "leave it out",
			"expires and materialize are for consent by a status: whose records count depends on who asks")
	}
	switch {
	case b.records.record != nil && b.records.registry != nil:
		d.fail(n.Place, "leave record out, or registry", "consent is by records of your own or by the registry, not both")
	case b.status != "" || b.requiredWord != "":
		d.fail(n.Place, "leave status and is out, or record", "consent is a status or a record, not both")
	case (b.records.subject == "") == (b.records.subjects == ""):
		d.fail(n.Place, "write subject: the column of one, or subjects: the column of a list",
			"consent needs to know the column of its subjects")
	}
	return b
}

// compileStatusConsent compiles a consent block whose subjects have a status column.
func (c *ruleCompiler) compileStatusConsent(b consentBlock, row *catalog.Relation) predicate.Node {
	out := predicate.Consent{StatusColumn: b.status, AgreedStatus: b.requiredWord}
	source := row
	for i, link := range b.subjectLinks {
		target := c.followLink(link, source)
		if target == nil {
			return predicate.Any{}
		}
		if i == 0 && link.coversKey(target.PrimaryKey) {
			out.FirstRequired = true
		}
		out.Steps = append(out.Steps, predicate.Step{
			Relation: target, Column: link.pairs[0].Column, FromColumn: link.pairs[0].FromColumn, MorePairs: link.otherPairs()})
		source = target
	}
	if len(out.Steps) == 0 {
		return predicate.Any{}
	}
	out.StatusType = c.checkStatusColumn(b.statusAt.OrElse(b.place), b.requiredWordAt.OrElse(b.place), source, b.status,
		b.requiredWord)
	c.compileConsentExpiry(b, source, &out)
	c.materializeConsent(b, row, &out)
	return out
}

// compileConsentExpiry compiles the column that says until when a subject consents.
func (c *ruleCompiler) compileConsentExpiry(b consentBlock, subjects *catalog.Relation, out *predicate.Consent) {
	if b.expires == "" {
		return
	}
	column := c.findRuleColumn(b.expiresAt, subjects, b.expires)
	if column == nil {
		return
	}
	if column.Type != "timestamp with time zone" {
		c.fail(b.expiresAt, "a moment is a timestamp with time zone; sql compares others", "%s.%s is a %s",
			subjects.Name, column.Name, column.Type)
		return
	}
	out.ExpiryColumn = column.Name
}
