package policy

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Recording says how audit records show an attribute's value.
type Recording string

// The ways of recording. By default the value of a credential's attribute is recorded as a reference, which an erasure
// forgets, and the value of a live attribute is not recorded.
const (
	AsIs        Recording = "as it is"  // audit: true
	AsReference Recording = "reference" // a reference, also for a live attribute
	AsSubject   Recording = "subject"   // a reference, and the value names the person on whose behalf the session reads
	AsPurpose   Recording = "purpose"   // as it is, and the value is the purpose for which the session reads
)

// decodeAttributeAudit reads `audit: true`, `reference`, `subject` or `purpose` of an attribute.
func (d *attributeDecoder) decodeAttributeAudit(decl *attributeDecl) func(*node) {
	return func(n *node) {
		decl.audit = &n.Place
		switch {
		case n.Kind == yamlfile.Scalar && n.Literal == yamlfile.Bool && n.Value == "true":
			decl.Audit = AsIs
		case n.Kind == yamlfile.Scalar && n.Literal == yamlfile.Bool:
			decl.audit = nil
		case n.Kind == yamlfile.Scalar && n.Literal == yamlfile.String &&
			slices.Contains([]Recording{AsReference, AsSubject, AsPurpose}, Recording(n.Value)):
			decl.Audit = Recording(n.Value)
		default:
			d.fail(n.Place, "write true, reference, subject or purpose", "audit of an attribute says how records have its value")
		}
	}
}

// auditAttributes finds the attributes that name the subject and the purpose of records, at most one each.
func (c *attributeCompiler) auditAttributes(p *Policy) {
	first := map[Recording]string{}
	for _, decl := range c.doc.attributes {
		if decl.Audit != AsSubject && decl.Audit != AsPurpose {
			continue
		}
		if other, taken := first[decl.Audit]; taken {
			c.fail(*decl.audit, "say audit: true, or leave it out", "attribute %s cannot be the %s of records: %s is",
				decl.Name, decl.Audit, other)
		}
		first[decl.Audit] = decl.Name
	}
	p.subject, p.purpose = first[AsSubject], first[AsPurpose]
	if p.subject == "" && len(c.rules.ownAttributes) == 1 {
		name := slices.Collect(maps.Keys(c.rules.ownAttributes))[0]
		if a, ok := p.Attribute(name); ok && !a.Live() {
			p.subject = name
		}
	}
}

// Subject is the attribute that names the person on whose behalf a session reads. It is the one with audit: subject;
// else the credential's attribute that all own blocks compare with, if they use only one. "": there is none.
func (p *Policy) Subject() string { return p.subject }

// Purpose is the attribute that names the purpose of a session; "": there is none.
func (p *Policy) Purpose() string { return p.purpose }

// RecordsKeys tells whether records of some table hold the keys of rows.
func (p *Policy) RecordsKeys() bool {
	return slices.ContainsFunc(p.tables, func(t *Table) bool { return t.AuditKeys })
}

// decodeTableAudit reads `audit: { keys: true }` of a table.
func (d *tableDecoder) decodeTableAudit(decl *tableDecl, n *node) {
	d.fields(n, "audit", map[string]func(*node){
		"keys": func(v *node) { decl.keysAt = &v.Place; d.flag(&decl.auditKeys, "keys")(v) },
	})
}

// auditsKeys tells whether records hold the keys of a table's rows.
func (c *compiler) auditsKeys(decl tableDecl, relation *catalog.Relation) bool {
	if decl.auditKeys && len(relation.PrimaryKey) == 0 {
		c.fail(*decl.keysAt, "leave audit out, or give it a primary key",
			"table %s has no primary key whose values could be recorded", relation.Name)
	}
	return decl.auditKeys
}
