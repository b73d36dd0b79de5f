package policy

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// AuditForm says how audit records show an attribute's value.
type AuditForm string

// The forms in which audit records show a value. Without the key audit, the value of a credential's attribute is
// recorded as a reference, which becomes useless when the person is erased. The value of a live attribute is not
// recorded.
const (
	AuditPlain AuditForm = "as it is" // the value as it is: `audit: true`
	// a reference in place of the value, also for an attribute that the database computes
	AuditReference AuditForm = "reference"
	// a reference in place of the value, which names the person for whom the session reads
	AuditSubject AuditForm = "subject"
	AuditPurpose AuditForm = "purpose" // the unchanged value, which names the purpose for which the session reads
)

// decodeAttributeAudit reads `audit: true`, `reference`, `subject` or `purpose` of an attribute.
func (d *attributeDecoder) decodeAttributeAudit(decl *attributeDecl) func(*node) {
	return func(n *node) {
		decl.audit = &n.Place
		switch {
		case n.Kind == yamlfile.ScalarNode && n.ScalarType == yamlfile.BoolScalar && n.Value == "true":
			decl.Audit = AuditPlain
		case n.Kind == yamlfile.ScalarNode && n.ScalarType == yamlfile.BoolScalar:
			decl.audit = nil
		case n.Kind == yamlfile.ScalarNode && n.ScalarType == yamlfile.StringScalar &&
			slices.Contains([]AuditForm{AuditReference, AuditSubject, AuditPurpose}, AuditForm(n.Value)):
			decl.Audit = AuditForm(n.Value)
		default:
			d.fail(n.Place, "write true, reference, subject or purpose", "audit of an attribute says how records have its value")
		}
	}
}

// findAuditAttributes finds the attributes that give audit records their subject and their purpose, at most one of
// each.
func (c *attributeCompiler) findAuditAttributes(p *Policy) {
	attributeOfForm := map[AuditForm]string{}
	for _, decl := range c.doc.attributes {
		if decl.Audit != AuditSubject && decl.Audit != AuditPurpose {
			continue
		}
		if other, isTaken := attributeOfForm[decl.Audit]; isTaken {
			c.fail(*decl.audit, "say audit: true, or leave it out", "attribute %s cannot be the %s of records: %s is",
				decl.Name, decl.Audit, other)
		}
		attributeOfForm[decl.Audit] = decl.Name
	}
	p.subject, p.purpose = attributeOfForm[AuditSubject], attributeOfForm[AuditPurpose]
	if p.subject == "" && len(c.rules.ownAttributes) == 1 {
		name := slices.Collect(maps.Keys(c.rules.ownAttributes))[0]
		if a, ok := p.Attribute(name); ok && !a.IsLive() {
			p.subject = name
		}
	}
}

// SubjectAttribute returns the attribute that names the person for whom a session reads: the attribute with `audit:
// subject`. If there is none, it is the only attribute with which blocks own of the policy compare, provided that it
// comes from the credential. Otherwise the result is "".
func (p *Policy) SubjectAttribute() string { return p.subject }

// PurposeAttribute returns the attribute that names the purpose of a session; "": there is none.
func (p *Policy) PurposeAttribute() string { return p.purpose }

// RecordsKeys tells whether the audit records which rows of some table statements read, by the keys of the rows.
func (p *Policy) RecordsKeys() bool {
	return slices.ContainsFunc(p.tables, func(t *Table) bool { return t.AuditKeys })
}

// decodeTableAudit reads `audit: { keys: true }` of a table.
func (d *tableDecoder) decodeTableAudit(decl *tableDecl, n *node) {
	d.decodeFields(n, "audit", map[string]func(*node){
		"keys": func(v *node) { decl.keysAt = &v.Place; d.decodeFlag(&decl.auditKeys, "keys")(v) },
	})
}

// auditsKeys tells whether the audit records the keys of the rows that statements read from a table.
func (c *compiler) auditsKeys(decl tableDecl, relation *catalog.Relation) bool {
	if decl.auditKeys && len(relation.PrimaryKey) == 0 {
		c.fail(*decl.keysAt, "leave audit out, or give it a primary key",
			"table %s has no primary key whose values could be recorded", relation.Name)
	}
	return decl.auditKeys
}
