package policy

import (
	"fmt"
	"io"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Lifecycle says what becomes of the rows of a table: they go when the consent of their subject has ended, and their
// columns when they have decayed. The rule of the table hides what goes, so that nothing goes that agents see.
type Lifecycle struct {
	Subject   string            // the column that says, in the registry's words, whom a row is about
	At        string            // the column that says how old it is; "": rows have no age
	Anonymise bool              // where a consent has ended, every column of Columns becomes what it says, and the row stays
	Columns   []LifecycleColumn // in the order of the table
	// the first full day of a countdown on which the rule shows no row; [predicate.Forever]: it shows them all along
	HiddenFromDay int
}

// LifecycleColumn is what a column becomes.
type LifecycleColumn struct {
	VisibleColumn          // Null, Hash, Truncate, Prefix or Step; Plain: Value
	Value         string   // a fixed value, as text
	After         int      // the last full day of a countdown on which the column is as it was
	Categories    []string // its categories: where a subject who is TEMPORARY now does not list them, it goes at once
	Subject       bool     // it is the column that says whom the row is about
}

// anonymousAfter is the last full day before a row is anonymous.
const anonymousAfter = 89

type lifecycleDecl struct {
	place
	subject, at     string
	subjectAt, atAt place
	anonymise       bool
	endedAt         place
	columns         []becomingDecl
	counting        *countingDecl
}

// countingDecl are the columns that count in groups in rows that are anonymous already, of which no subject is known.
type countingDecl struct {
	place
	where   []block
	columns []wordDecl
}

type becomingDecl struct {
	columnDecl
	value *wordDecl
	after int
}

func (d *decoder) lifecycle(at place, n *node) *lifecycleDecl {
	decl := &lifecycleDecl{place: at}
	d.fields(n, "lifecycle", map[string]func(*node){
		"subject": d.wordAt(&decl.subject, &decl.subjectAt, "subject"),
		"at":      d.wordAt(&decl.at, &decl.atAt, "at"),
		"ended": func(v *node) {
			decl.endedAt = v.Place
			word := ""
			d.word(&word, "ended")(v)
			decl.anonymise = word == "anonymise"
			if word != "" && word != "delete" && word != "anonymise" {
				d.fail(v.Place, among(word, []string{"anonymise", "delete"}), "unknown word %q for ended", word)
			}
		},
		"columns": func(v *node) {
			if !d.want(v, yamlfile.Mapping, "columns") {
				return
			}
			for i, name := range v.Keys {
				decl.columns = append(decl.columns, d.becoming(v.KeyAt[i], name, v.Values[i]))
			}
		},
		"counts": func(v *node) {
			decl.counting = &countingDecl{place: v.Place}
			d.fields(v, "counts", map[string]func(*node){
				"where":   func(v *node) { decl.counting.where = d.blocks(v, "where") },
				"columns": func(v *node) { decl.counting.columns = d.words(v, "columns") },
			})
			d.need(v, "counts", "where", "columns")
		},
	})
	d.need(n, "lifecycle", "subject")
	return decl
}

func (d *decoder) becoming(at place, name string, n *node) becomingDecl {
	decl := becomingDecl{columnDecl: columnDecl{place: at, VisibleColumn: VisibleColumn{Name: name}}, after: anonymousAfter}
	what := "column " + name
	d.fields(n, what, map[string]func(*node){
		"becomes": func(v *node) {
			if v.Kind == yamlfile.Mapping && slices.Contains(v.Keys, "value") {
				d.fields(v, "becomes", map[string]func(*node){"value": func(v *node) {
					if d.want(v, yamlfile.Scalar, "value") {
						decl.value = &wordDecl{v.Place, v.Value}
					}
				}})
				return
			}
			d.mask(&decl.columnDecl, v)
		},
		"after": func(v *node) { decl.after = d.days(v, "after") },
	})
	d.need(n, what, "becomes")
	return decl
}

// lifecycle checks what a table says of its rows' end, when its rule and its columns are known.
func (c *compiler) lifecycle(decl *lifecycleDecl, t *Table) *Lifecycle {
	if decl == nil {
		return nil
	}
	r := t.Relation
	if lacksRowSecurity(r) {
		c.fail(decl.place, "leave it out", "rows of %s are not deleted one by one: it is a %s", r.Name, kindName(r.Kind))
		return nil
	}
	subject := c.column(decl.subjectAt.Or(decl.place), r, decl.subject)
	if subject == nil {
		return nil
	}
	if family(subject.Type) == "" {
		c.fail(decl.subjectAt, "a subject is in a uuid, integer, text or date column", "%s.%s is a %s", r.Name,
			subject.Name, subject.Type)
		return nil
	}
	out := &Lifecycle{Subject: decl.subject, At: decl.at, Anonymise: decl.anonymise}
	if decl.at != "" {
		at := c.column(decl.atAt, r, decl.at)
		if at == nil {
			return nil
		}
		if at.TypeOID != 1184 {
			c.fail(decl.atAt, "name a column of type timestamp with time zone", "%s.%s is a %s: it does not say when",
				r.Name, at.Name, at.Type)
			return nil
		}
	}
	switch {
	case decl.anonymise && len(decl.columns) == 0:
		c.fail(decl.endedAt, "name columns and what they become, or write ended: delete",
			"nothing says what an anonymous row of %s is", r.Name)
		return nil
	case len(decl.columns) > 0 && decl.at == "":
		c.fail(decl.columns[0].place, "write at: the column with the row's time", "columns go by the age of their row")
		return nil
	}
	if !out.hidden(t.Rows) {
		said := "consent: { subject: " + decl.subject + ", registry: {} }"
		if decl.at != "" {
			said = "consent: { subject: " + decl.subject + ", registry: { since: " + decl.at + " } }"
		}
		c.fail(decl.place, "write "+said+" under rows, without but, and not as one way beside another",
			"agents may see rows of %s after the consent of their subject has ended: what goes is hidden first", r.Name)
		return nil
	}
	out.HiddenFromDay, _ = out.days(t.Rows)
	c.counts(decl, t)
	last := 0
	for _, d := range decl.columns {
		if b, ok := c.becomes(d, out, t); ok {
			out.Columns = append(out.Columns, b)
			last = max(last, b.After)
		}
	}
	for _, b := range out.Columns {
		if b.Subject && b.After < last {
			c.fail(decl.subjectAt, fmt.Sprintf("write after: %d days", last),
				"%s.%s says whom a row is about, and goes before other columns: they would not be found any more", r.Name, b.Name)
		}
	}
	for _, other := range c.snap.Relations() {
		for _, key := range other.ForeignKeys {
			if key.Target == r.Name && key.OnDelete == catalog.Cascade {
				c.warn(decl.place, "rows of %s go with those of %s by ON DELETE CASCADE, whether or not they show", other.Name, r.Name)
			}
		}
	}
	slices.SortStableFunc(out.Columns, func(a, b LifecycleColumn) int { return columnIndex(r, a.Name) - columnIndex(r, b.Name) })
	return out
}

func columnIndex(r *catalog.Relation, name string) int {
	return slices.IndexFunc(r.Columns, func(c catalog.Column) bool { return c.Name == name })
}

// hidden tells whether a rule shows no row of a subject whose consent has ended.
func (l *Lifecycle) hidden(n predicate.Node) bool { _, ok := l.days(n); return ok }

// counting is the condition under which a column counts in groups though nobody's consent is asked for any more: its
// row is anonymous. nil: there is none.
func (c *compiler) counting(decl tableDecl, column string, r *catalog.Relation) predicate.Node {
	l := decl.lifecycle
	if l == nil || l.counting == nil || !slices.ContainsFunc(l.counting.columns,
		func(w wordDecl) bool { return w.word == column }) {
		return nil
	}
	return c.conditions(l.counting.where, r)
}

// counts checks what is said of rows that are anonymous already.
func (c *compiler) counts(decl *lifecycleDecl, t *Table) {
	if decl.counting == nil {
		return
	}
	for _, w := range decl.counting.columns {
		column := c.column(w.place, t.Relation, w.word)
		if column == nil {
			continue
		}
		_, needs := t.ConditionalColumn(w.word)
		switch {
		case slices.ContainsFunc(decl.columns, func(d becomingDecl) bool { return d.Name == w.word }):
			c.fail(w.place, "leave it out of one of them",
				"%s.%s counts where a row is anonymous, and becomes something else by then", t.Relation.Name, w.word)
		case !needs:
			c.fail(w.place, "leave it out: it counts by the rule of aggregate alone",
				"%s.%s has no category: no consent is asked for it", t.Relation.Name, w.word)
		case t.Aggregate == nil || t.Aggregate.Dimension(w.word) == nil && t.Aggregate.Measure(w.word) == nil:
			c.fail(w.place, "name it under dimensions or measures of aggregate", "%s.%s does not count in groups",
				t.Relation.Name, w.word)
		}
	}
}

// days is the first full day of a countdown on which the rule shows no row any more; false: it shows rows whose consent
// has ended. Of several conditions one is enough, of several ways each counts.
func (l *Lifecycle) days(n predicate.Node) (days int, ok bool) {
	switch n := n.(type) {
	case predicate.Registered:
		days = n.Days
		if n.Since == "" {
			days = predicate.Forever
			if !n.Grouped {
				days = 0 // TEMPORARY and PARTNERED alone show
			}
		}
		return days, n.Of.Subject == l.Subject && len(n.Of.Steps) == 0 && len(n.Of.But) == 0 && (l.At == "" || n.Since == l.At)
	case predicate.All:
		days = predicate.Forever
		for _, part := range n {
			if d, hides := l.days(part); hides {
				days, ok = min(days, d), true
			}
		}
		return days, ok
	case predicate.Any:
		for _, part := range n {
			d, hides := l.days(part)
			if !hides {
				return predicate.Forever, false
			}
			days = max(days, d)
		}
		return days, true
	default:
		return predicate.Forever, false
	}
}

// becomes checks one column: what it becomes is of its type, and agents do not see it any more when it goes.
func (c *compiler) becomes(d becomingDecl, l *Lifecycle, t *Table) (LifecycleColumn, bool) {
	r, failed := t.Relation, len(c.errs)
	column := c.column(d.place, r, d.Name)
	if column == nil {
		return LifecycleColumn{}, false
	}
	out := LifecycleColumn{VisibleColumn: d.VisibleColumn, After: d.after, Subject: d.Name == l.Subject}
	out.Type = column.Type
	if d.value != nil {
		out.Value = d.value.word
	} else if s, ok := c.shown(d.columnDecl, r); ok {
		out.VisibleColumn = s
		out.Type = column.Type // what is stored, not what is shown
	} else {
		return LifecycleColumn{}, false
	}
	switch {
	case out.Mask == Null && column.NotNull:
		c.fail(d.place, "write hash, { value: … }, or let the column be NULL", "%s.%s is NOT NULL", r.Name, d.Name)
	case out.Mask == Hash && !out.Subject && family(column.Type) != "text", out.Mask == Hash && out.Subject &&
		family(column.Type) != "text" && column.Type != "uuid":
		c.fail(d.place, "write null or { value: … }", "%s.%s is a %s: what stands for it is a text", r.Name, d.Name, column.Type)
	case out.Mask == Hash && family(column.Type) == "text" && tooShort(column.Type, hashLength):
		c.fail(d.place, "write null or { value: … }", "%s.%s is a %s: what stands for it has %d characters",
			r.Name, d.Name, column.Type, hashLength)
	case slices.Contains(r.PrimaryKey, d.Name) && !out.Subject:
		c.fail(d.place, "let it be, or let the row go", "%s.%s is of the primary key", r.Name, d.Name)
	case d.Name == l.At && !(out.Mask == Truncate):
		c.fail(d.place, "write { generalise: month }", "%s.%s says how old a row is, and has to go on saying it", r.Name, d.Name)
	}
	if t.Columns != nil {
		if s, ok := t.ConditionalColumn(d.Name); ok {
			if n, ok := s.Condition.(predicate.Registered); ok {
				out.Categories = n.Categories
			}
		}
	}
	if day, where := l.until(t, out.VisibleColumn); day > d.after+1 {
		suggestion := fmt.Sprintf(
			"write until: { decay: %d days } at the column, or decay: { less_than: %d days } in the rule", d.after, d.after+1)
		if day < predicate.Forever {
			suggestion = fmt.Sprintf("write after: %d days", day-1)
		}
		c.fail(d.place, suggestion, "%s.%s %s after the day on which it goes: what goes is hidden first", r.Name, d.Name, where)
	}
	return out, len(c.errs) == failed
}

// hashLength is how long what stands for a text is.
const hashLength = len("anonymous-") + 32

func tooShort(sqlType string, length int) bool {
	var limit int
	if _, err := fmt.Sscanf(sqlType, "character varying(%d)", &limit); err != nil {
		return false
	}
	return limit < length
}

// until is the first full day on which no agent has the column any more, and how it is had until then.
func (l *Lifecycle) until(t *Table, becomes VisibleColumn) (day int, where string) {
	column := becomes.Name
	rows, _ := l.days(t.Rows)
	grouped := false
	if a := t.Aggregate; a != nil && column != l.Subject {
		d := a.Dimension(column)
		same := d != nil && becomes.Mask == Truncate && d.Unit == becomes.Unit // in groups it is what it was
		grouped = d != nil && !same || a.Measure(column) != nil
	}
	if t.Columns == nil {
		if grouped {
			return predicate.Forever, "counts in groups"
		}
		return rows, "shows"
	}
	shown, conditional := t.ConditionalColumn(column)
	listed := slices.ContainsFunc(t.Columns.Columns, func(s VisibleColumn) bool { return s.Name == column })
	if t.Columns.ByKey != nil {
		listed = listed || slices.ContainsFunc(t.Columns.ByKey.AllColumns, func(s VisibleColumn) bool { return s.Name == column })
	}
	day, where = rows, "shows"
	if column == l.Subject { // without whom the row is nobody's, shown or not
		return rows, "says whose a row is that shows"
	}
	if !listed {
		day = 0
	}
	if conditional {
		if n, ok := shown.Condition.(predicate.Registered); ok && n.Of.Subject == l.Subject && n.Since == l.At {
			day = min(day, n.Days)
		}
	}
	if grouped {
		counts := predicate.Forever
		if n, ok := shown.GroupCondition.(predicate.Registered); ok && conditional && n.Of.Subject == l.Subject && n.Since == l.At {
			counts = n.Days
		}
		if counts > day {
			day, where = counts, "counts in groups"
		}
	}
	return day, where
}

func (l *Lifecycle) describe(h io.Writer) {
	fmt.Fprintf(h, " lifecycle %q %q %t\n", l.Subject, l.At, l.Anonymise)
	for _, b := range l.Columns {
		fmt.Fprintf(h, "  %q %d %q %d %q %d %q\n", b.Name, b.Mask, b.Unit, b.Amount, b.Value, b.After, b.Categories)
	}
}
