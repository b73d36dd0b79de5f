package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// compileRecordConsent compiles a consent block with the key record.
func (c *ruleCompiler) compileRecordConsent(b consentBlock, row *catalog.Relation) predicate.Node {
	errorsBefore := len(c.errs)
	out, subjects, elements, ok := c.compileSubjects(b, row)
	if !ok {
		return predicate.Any{}
	}
	out.ExceptCallers = c.findIDAttributes(b.records.exceptCallers, subjects.relation, subjects.column, elements)
	out.Record = c.compileRecord(b.records.record, row, subjects.column, elements)
	if len(c.errs) > errorsBefore {
		return predicate.Any{}
	}
	return out
}

// compileSubjects compiles which subjects must consent: the links from the row to the subjects, and the column with
// their ids.
func (c *ruleCompiler) compileSubjects(b consentBlock, row *catalog.Relation) (predicate.RecordedConsent, *subjectColumn,
	string, bool) {
	decl, out := b.records, predicate.RecordedConsent{}
	source := row
	for i, link := range b.subjectLinks {
		target := c.followLink(link, source)
		if target == nil {
			return out, nil, "", false
		}
		if i == 0 && link.coversKey(target.PrimaryKey) {
			out.FirstRequired = true
		}
		out.Steps = append(out.Steps, predicate.Step{
			Relation: target, Column: link.pairs[0].Column, FromColumn: link.pairs[0].FromColumn, MorePairs: link.otherPairs()})
		source = target
	}
	subjects, elements := c.findSubjects(decl, source)
	if subjects == nil {
		return out, nil, "", false
	}
	out.Subjects = subjects.list
	if decl.subject != "" {
		out.Subject, out.Subjects.Column = decl.subject, ""
	}
	return out, subjects, elements, true
}

// subjectColumn is the column that holds the ids of subjects.
type subjectColumn struct {
	relation *catalog.Relation
	column   *catalog.Column
	list     predicate.List
}

// findSubjects finds the column with the ids of the subjects, and the type family of the ids; nil after an error.
func (c *ruleCompiler) findSubjects(decl *recordedDecl, r *catalog.Relation) (*subjectColumn, string) {
	if decl.subject != "" {
		column := c.findRuleColumn(decl.subjectAt, r, decl.subject)
		if column == nil {
			return nil, ""
		}
		if f := typeFamily(column.Type); f != "text" && f != "uuid" && f != "integer" {
			c.fail(decl.subjectAt, "write subjects: for a column of several", "%s.%s is a %s, which is no id",
				r.Name, column.Name, column.Type)
			return nil, ""
		}
		return &subjectColumn{r, column, predicate.List{Column: column.Name, Form: idForm(typeFamily(column.Type))}},
			typeFamily(column.Type)
	}
	list, elements, ok := c.findIDList(decl.subjectAt, r, decl.subjects)
	if !ok {
		return nil, ""
	}
	return &subjectColumn{r, r.Column(decl.subjects), list}, elements
}

// compileRecord compiles the conditions under which a row of the table of records gives consent.
func (c *ruleCompiler) compileRecord(decl *recordDecl, row *catalog.Relation, subject *catalog.Column,
	elements string) predicate.Record {
	r := c.findTable(decl.place, decl.table)
	if r == nil {
		return predicate.Record{}
	}
	out := predicate.Record{Relation: r, GrantorColumn: decl.grantor, MatchedColumns: decl.match}
	c.checkIDColumn(decl.place, r, decl.grantor, subject, elements)
	for _, p := range decl.match {
		c.checkPair(decl.matchAt, r, row, p)
	}
	where := slices.Clone(decl.where)
	g := decl.grantee
	if column := c.findRuleColumn(g.place, r, g.column); column != nil {
		if g.element {
			out.ElementColumn = g.column
			if !c.inListCondition {
				c.fail(g.place, "write to: [attributes that are ids of the caller]",
					"there is no element here: only wider, under write, judges the elements of a list")
			}
		} else {
			out.Grantee = predicate.Grant{Column: g.column, Form: idForm(typeFamily(column.Type)), EverybodyWord: g.everybodyWord}
			switch {
			case typeFamily(column.Type) != "text" && typeFamily(column.Type) != "uuid" &&
				typeFamily(column.Type) != "integer", column.Nondeterministic:
				c.fail(g.place, "a grantee is one uuid, integer or text", "%s.%s is a %s", r.Name, column.Name, column.Type)
			case g.everybodyWord != "" && typeFamily(column.Type) != "text":
				c.fail(g.place, "", "%s.%s is a %s: it cannot hold a word for everybody", r.Name, column.Name, column.Type)
			}
			out.Grantee.Grantees = c.findIDAttributes(g.grantees, r, column, typeFamily(column.Type))
		}
	}
	if decl.revokedColumn != "" {
		where = append(where, c.impliedCondition(decl.place, quoteIdentifier(decl.revokedColumn)+" IS NULL"))
	}
	if decl.expires != "" {
		where = append(where, c.impliedCondition(decl.place,
			quoteIdentifier(decl.expires)+" IS NULL OR "+quoteIdentifier(decl.expires)+" > now()"))
	}
	out.Rows = c.compileWhere(where, r)
	if s := decl.scope; s != nil {
		out.Scope = c.compileScope(s, r, row)
	}
	if decl.guardians != nil {
		out.Guardians = c.compileGuardians(decl.guardians, r.Column(decl.grantor), row, subject, elements)
	}
	return out
}

func (c *ruleCompiler) compileGuardians(decl *guardiansDecl, grantor *catalog.Column, row *catalog.Relation,
	subject *catalog.Column, elements string) *predicate.Guardians {
	r := c.findTable(decl.place, decl.table)
	if r == nil || grantor == nil {
		return nil
	}
	for _, p := range decl.match {
		c.checkPair(decl.place, r, row, p)
	}
	c.checkIDColumn(decl.place, r, decl.subject, subject, elements)
	c.checkIDColumn(decl.place, r, decl.guardian, grantor, typeFamily(grantor.Type))
	return &predicate.Guardians{Relation: r, SubjectColumn: decl.subject, GuardianColumn: decl.guardian,
		MatchedColumns: decl.match,
		Rows:           c.compileWhere(decl.where, r)}
}

func (c *ruleCompiler) compileScope(decl *scopeDecl, r, row *catalog.Relation) *predicate.Scope {
	out := &predicate.Scope{Column: decl.column, EveryRowWord: decl.everyRowWord}
	column := c.findRuleColumn(decl.place, r, decl.column)
	if column == nil {
		return out
	}
	if decl.everyRowWord != "" && typeFamily(column.Type) != "text" {
		c.fail(decl.place, "", "%s.%s is a %s: it cannot hold a word for every row", r.Name, column.Name, column.Type)
	}
	for _, w := range decl.wordColumns {
		if c.checkPair(w.place, r, row, predicate.ColumnPair{Column: decl.column, FromColumn: w.text}) {
			out.WordColumns = append(out.WordColumns, w.text)
		}
	}
	for _, w := range decl.listColumns {
		if list, elements, ok := c.findIDList(w.place, row, w.text); ok {
			c.checkIDColumn(w.place, r, decl.column, row.Column(w.text), elements)
			out.ListColumns = append(out.ListColumns, list)
		}
	}
	return out
}
