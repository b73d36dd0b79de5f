package policy

import (
	"fmt"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// lifecycleCompiler compiles the section lifecycle of tables.
type lifecycleCompiler struct {
	*resolver
	columns *columnCompiler
	rules   *ruleCompiler
}

// compile checks the lifecycle of a table, whose rule and columns must have been compiled before.
func (c *lifecycleCompiler) compile(decl *lifecycleDecl, t *Table) *Lifecycle {
	if decl == nil {
		return nil
	}
	r := t.Relation
	out := &Lifecycle{Subject: decl.subject, TimeColumn: decl.timeColumn, Anonymise: decl.anonymise}
	if !c.checkSubject(decl, r) || !c.checkAge(decl, r) || !c.checkHidden(decl, t, out) {
		return nil
	}
	out.HiddenFromDay, _ = out.hiddenFrom(t.Rows)
	c.checkCounts(decl, t)
	lastDay := 0
	for _, d := range decl.columns {
		if b, ok := c.compileColumn(d, out, t); ok {
			out.Columns = append(out.Columns, b)
			lastDay = max(lastDay, b.LastDay)
		}
	}
	for _, b := range out.Columns {
		if b.Subject && b.LastDay < lastDay {
			c.fail(decl.subjectAt, fmt.Sprintf("write after: %d days", lastDay),
				"%s.%s says whom a row is about, and goes before other columns: they would not be found any more", r.Name, b.Name)
		}
	}
	c.warnCascades(decl, r)
	slices.SortStableFunc(out.Columns, func(a, b LifecycleColumn) int { return columnIndex(r, a.Name) - columnIndex(r, b.Name) })
	return out
}

func (c *lifecycleCompiler) checkSubject(decl *lifecycleDecl, r *catalog.Relation) bool {
	if lacksRowSecurity(r) {
		c.fail(decl.place, "leave it out", "rows of %s are not deleted one by one: it is a %s", r.Name, relationKind(r.Kind))
		return false
	}
	subject := c.findRuleColumn(decl.subjectAt.OrElse(decl.place), r, decl.subject)
	if subject != nil && typeFamily(subject.Type) == "" {
		c.fail(decl.subjectAt, "a subject is in a uuid, integer, text or date column", "%s.%s is a %s", r.Name,
			subject.Name, subject.Type)
		return false
	}
	return subject != nil
}

func (c *lifecycleCompiler) checkAge(decl *lifecycleDecl, r *catalog.Relation) bool {
	if decl.timeColumn != "" {
		timeColumn := c.findRuleColumn(decl.timeColumnAt, r, decl.timeColumn)
		if timeColumn == nil {
			return false
		}
		if timeColumn.TypeOID != 1184 {
			c.fail(decl.timeColumnAt, "name a column of type timestamp with time zone", "%s.%s is a %s: it does not say when",
				r.Name, timeColumn.Name, timeColumn.Type)
			return false
		}
	}
	switch {
	case decl.anonymise && len(decl.columns) == 0:
		c.fail(decl.endedAt, "name columns and what they become, or write ended: delete",
			"nothing says what an anonymous row of %s is", r.Name)
		return false
	case len(decl.columns) > 0 && decl.timeColumn == "":
		c.fail(decl.columns[0].place, "write at: the column with the row's time", "columns go by the age of their row")
		return false
	}
	return true
}

// checkHidden refuses a lifecycle if agents may see rows of subjects whose consent has ended.
func (c *lifecycleCompiler) checkHidden(decl *lifecycleDecl, t *Table, l *Lifecycle) bool {
	if l.hidesEnded(t.Rows) {
		return true
	}
	block := "consent: { subject: " + decl.subject + ", registry: {} }"
	if decl.timeColumn != "" {
		block = "consent: { subject: " + decl.subject + ", registry: { since: " + decl.timeColumn + " } }"
	}
	c.fail(decl.place, "write "+block+" under rows, without but, and not as one way beside another",
		"agents may see rows of %s after the consent of their subject has ended: what goes is hidden first", t.Relation.Name)
	return false
}

// warnCascades warns of tables whose rows ON DELETE CASCADE deletes along with rows of this table, since agents may see
// those rows.
func (c *lifecycleCompiler) warnCascades(decl *lifecycleDecl, r *catalog.Relation) {
	for _, other := range c.snap.Relations() {
		for _, key := range other.ForeignKeys {
			if key.Target == r.Name && key.OnDelete == catalog.Cascade {
				c.warn(decl.place, "rows of %s go with those of %s by ON DELETE CASCADE, whether or not they show", other.Name, r.Name)
			}
		}
	}
}

// checkCounts checks the columns that count in groups when their row is anonymous.
func (c *lifecycleCompiler) checkCounts(decl *lifecycleDecl, t *Table) {
	if decl.counts == nil {
		return
	}
	for _, w := range decl.counts.columns {
		column := c.findRuleColumn(w.place, t.Relation, w.text)
		if column == nil {
			continue
		}
		_, hasCondition := t.ConditionalColumn(w.text)
		switch {
		case slices.ContainsFunc(decl.columns, func(d lifecycleColumnDecl) bool { return d.Name == w.text }):
			c.fail(w.place, "leave it out of one of them",
				"%s.%s counts where a row is anonymous, and becomes something else by then", t.Relation.Name, w.text)
		case !hasCondition:
			c.fail(w.place, "leave it out: it counts by the rule of aggregate alone",
				"%s.%s has no category: no consent is asked for it", t.Relation.Name, w.text)
		case t.Aggregate == nil || t.Aggregate.Dimension(w.text) == nil && t.Aggregate.Measure(w.text) == nil:
			c.fail(w.place, "name it under dimensions or measures of aggregate", "%s.%s does not count in groups",
				t.Relation.Name, w.text)
		}
	}
}

// compileColumn compiles one column of a lifecycle. The new value must fit the column's type, and agents must not see
// the column any more when it changes.
func (c *lifecycleCompiler) compileColumn(d lifecycleColumnDecl, l *Lifecycle, t *Table) (LifecycleColumn, bool) {
	r, errorsBefore := t.Relation, len(c.errs)
	column := c.findRuleColumn(d.place, r, d.Name)
	if column == nil {
		return LifecycleColumn{}, false
	}
	out := LifecycleColumn{VisibleColumn: d.VisibleColumn, LastDay: d.afterDays, Subject: d.Name == l.Subject}
	out.Type = column.Type
	if d.value != nil {
		out.Value = d.value.text
	} else if s, ok := c.columns.visibleColumn(d.columnDecl, r); ok {
		out.VisibleColumn = s
		out.Type = column.Type // the type in the table, not the type that agents see
	} else {
		return LifecycleColumn{}, false
	}
	switch {
	case out.Mask == Null && column.NotNull:
		c.fail(d.place, "write hash, { value: … }, or let the column be NULL", "%s.%s is NOT NULL", r.Name, d.Name)
	case out.Mask == Hash && !out.Subject && typeFamily(column.Type) != "text", out.Mask == Hash && out.Subject &&
		typeFamily(column.Type) != "text" && column.Type != "uuid":
		c.fail(d.place, "write null or { value: … }", "%s.%s is a %s: what stands for it is a text", r.Name, d.Name, column.Type)
	case out.Mask == Hash && typeFamily(column.Type) == "text" && shorterThan(column.Type, hashLength):
		c.fail(d.place, "write null or { value: … }", "%s.%s is a %s: what stands for it has %d characters",
			r.Name, d.Name, column.Type, hashLength)
	case slices.Contains(r.PrimaryKey, d.Name) && !out.Subject:
		c.fail(d.place, "let it be, or let the row go", "%s.%s is of the primary key", r.Name, d.Name)
	case d.Name == l.TimeColumn && !(out.Mask == Truncate):
		c.fail(d.place, "write { generalise: month }", "%s.%s says how old a row is, and has to go on saying it", r.Name, d.Name)
	}
	if t.Columns != nil {
		if s, ok := t.ConditionalColumn(d.Name); ok {
			if n, ok := s.Condition.(predicate.RegistryConsent); ok {
				out.Categories = n.Categories
			}
		}
	}
	if day, where := l.columnHiddenFrom(t, out.VisibleColumn); day > d.afterDays+1 {
		suggestion := fmt.Sprintf(
			"write until: { decay: %d days } at the column, or decay: { less_than: %d days } in the rule", d.afterDays, d.afterDays+1)
		if day < predicate.NeverDecays {
			suggestion = fmt.Sprintf("write after: %d days", day-1)
		}
		c.fail(d.place, suggestion, "%s.%s %s after the day on which it goes: what goes is hidden first", r.Name, d.Name, where)
	}
	return out, len(c.errs) == errorsBefore
}

func columnIndex(r *catalog.Relation, name string) int {
	return slices.IndexFunc(r.Columns, func(c catalog.Column) bool { return c.Name == name })
}

// hashLength is the length of the text that replaces a hashed value.
const hashLength = len("anonymous-") + 32

func shorterThan(sqlType string, length int) bool {
	var limit int
	if _, err := fmt.Sscanf(sqlType, "character varying(%d)", &limit); err != nil {
		return false
	}
	return limit < length
}
