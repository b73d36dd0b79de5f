package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// categoryDecl is the category to which a subject must have consented for a column to show.
type categoryDecl struct {
	place
	words []wordDecl
	// the last full day after a withdrawal on which the column shows, and the last on which it counts in groups; 0: no end
	lastDay, lastGroupDay int
	untilAt               place
}

func (d *tableDecoder) decodeUntil(decl *categoryDecl, n *node) {
	decl.untilAt = n.Place
	d.decodeFields(n, "until", map[string]func(*node){
		"decay":  func(v *node) { decl.lastDay = d.decodeDays(v, "decay") },
		"groups": func(v *node) { decl.lastGroupDay = d.decodeDays(v, "groups") },
	})
	d.requireFields(n, "until", "decay")
	if decl.lastGroupDay > 0 && decl.lastGroupDay < decl.lastDay {
		d.fail(n.Place, "", "a column counts in groups at least as long as it shows")
	}
}

// columnConsent compiles the consent that all columns with a category need, except for the category itself.
func (c *columnCompiler) columnConsent(decl tableDecl, r *catalog.Relation) *predicate.RegistryConsent {
	if decl.consent == nil {
		return nil
	}
	b, ok := decl.consent.(consentBlock)
	if !ok || b.records == nil || b.records.registry == nil {
		c.fail(decl.consent.At(), "write consent: { subject: …, registry: { … } }",
			"consent of a table is that of the registry; other consents stand under rows")
		return nil
	}
	for _, w := range b.records.registry.categories {
		c.fail(w.place, "write it at the columns", "a category of a whole table stands under rows")
	}
	if b.records.registry.lessThanDays > 0 {
		c.fail(b.records.registry.lessThanAt, "write until: { decay: … } at the columns, and decay under rows",
			"decay of a whole table stands under rows")
	}
	defer func(r *Rule) { c.rules.currentRule = r }(c.rules.currentRule)
	c.rules.currentRule = &Rule{}
	n, ok := c.rules.compileRegistered(b, r)
	if !ok {
		return nil
	}
	if !slices.ContainsFunc(decl.columns, func(d columnDecl) bool { return d.category != nil }) {
		c.fail(decl.consent.At(), "give columns a category: { category: … }, or write it under rows",
			"no column of %s needs it", r.Name)
	}
	return &n
}

// columnCondition returns the conditions under which agents see the values of a column with a category.
func (c *columnCompiler) columnCondition(d columnDecl, consent *predicate.RegistryConsent, hasWords bool,
	r *catalog.Relation) (condition,
	groupCondition predicate.Node) {
	if consent == nil {
		if !hasWords {
			c.fail(d.category.place, "write consent: { subject: …, registry: { … } } beside columns",
				"%s does not say whose consent column %s needs", r.Name, d.Name)
		}
		return nil, nil
	}
	columnConsent := *consent
	for _, w := range d.category.words {
		columnConsent.Categories = append(slices.Clone(columnConsent.Categories), w.text)
	}
	if d.category.lastDay > 0 && columnConsent.DataTimeColumn == "" {
		c.fail(d.category.untilAt, "write since: the column with the row's time, in consent of the table",
			"until needs to know how old a row is")
	}
	columnConsent.DecayDays = predicate.NeverDecays
	group := columnConsent
	group.CountsInGroups, group.Streams = true, nil
	if d.category.lastDay > 0 {
		// DecayDays is the first day on which the column does not show, and lastDay the last on which it does
		columnConsent.DecayDays = d.category.lastDay + 1
		group.DecayDays = max(d.category.lastDay, d.category.lastGroupDay) + 1
	}
	return columnConsent, group
}

// anonymousCondition returns the condition that the row is already anonymous. Then the column counts in groups without
// anybody's consent. The result is nil if the lifecycle has no such condition for the column.
func (c *columnCompiler) anonymousCondition(decl tableDecl, column string, r *catalog.Relation) predicate.Node {
	l := decl.lifecycle
	if l == nil || l.counts == nil || !slices.ContainsFunc(l.counts.columns,
		func(w wordDecl) bool { return w.text == column }) {
		return nil
	}
	return c.rules.compileWhere(l.counts.where, r)
}
