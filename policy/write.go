package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Write says what agents may change of a table: rows that they see, and only so that they go on seeing them.
type Write struct {
	Insert, Update, Delete bool

	Insertable  []string // the columns that an INSERT may name, stamped ones included, in the table's order
	CopyColumns []string // of these, those that COPY FROM may name: an identity column has no default of its own
	Updatable   []string // the columns that an UPDATE may set
	Stamps      []Stamp
	Lists       []predicate.Bound

	InsertCheck predicate.Node // what a new row must be
	UpdateCheck predicate.Node // what a changed row must be

	// AffectsOtherRules: rules of other tables read its rows, and who asks decides which of those that they see agents may change.
	AffectsOtherRules bool

	// InsertsHidden: rows that agents insert are certain not to be visible to them, because a stamp says so.
	InsertsHidden bool
}

// Stamp is a column that an INSERT sets whatever the agent sends.
type Stamp struct {
	Column    string
	Attribute string // of the session, or "" for a fixed value
	Type      string // of the attribute, qualified
	Value     string // the fixed value

	Unless predicate.Node // what the new row may be instead, with what the agent sent; nil: nothing
}

// Allows tells whether a command may be sent.
func (w *Write) Allows(command string) bool {
	if w == nil {
		return false
	}
	switch command {
	case "INSERT":
		return w.Insert
	case "UPDATE":
		return w.Update
	case "DELETE":
		return w.Delete
	}
	return false
}

// The commands of a policy, and what a DBA may accept that agents can learn. Each is refused unless it is said.
const (
	acceptConflicts  = "conflicts"  // that a key collides with a hidden row, or that an index fails as it compares with one
	acceptReferences = "references" // that a foreign key points to, or from, a hidden row
	acceptSequences  = "sequences"  // how many numbers others have drawn
	acceptValues     = "values"     // what hidden columns of a visible row hold
)

type writeDecl struct {
	place
	commands, columns, immutable, accept []wordDecl
	allColumns                           bool // no list of columns
	stamps                               []stampDecl
	lists                                []listDecl
	check                                block
}

type wordDecl struct {
	place
	word string
}

type stampDecl struct {
	place
	column, attribute, value string
	valueAt                  place
	unless                   block
}

func (d *writeDecl) accepts(what string) bool {
	return slices.ContainsFunc(d.accept, func(w wordDecl) bool { return w.word == what })
}

// write reads what agents may change of a table.
func (d *decoder) write(n *node) *writeDecl {
	decl := &writeDecl{place: n.Place, allColumns: true}
	d.fields(n, "write", map[string]func(*node){
		"commands": func(v *node) { decl.commands = d.words(v, "commands", "insert", "update", "delete") },
		"columns": func(v *node) {
			decl.columns, decl.allColumns = d.words(v, "columns"), false
		},
		"immutable": func(v *node) { decl.immutable = d.words(v, "immutable") },
		"accept": func(v *node) {
			decl.accept = d.words(v, "accept", acceptConflicts, acceptReferences, acceptSequences, acceptValues)
		},
		"check": func(v *node) { decl.check = d.rows(v) },
		"lists": func(v *node) { decl.lists = d.lists(v) },
		"stamp": func(v *node) {
			if !d.want(v, yamlfile.Mapping, "stamp") {
				return
			}
			for i, column := range v.Keys {
				decl.stamps = append(decl.stamps, d.stamp(v.KeyAt[i], column, v.Values[i]))
			}
		},
	})
	d.need(n, "write", "commands")
	return decl
}

func (d *decoder) stamp(at place, column string, n *node) stampDecl {
	s := stampDecl{place: at, column: column, valueAt: n.Place}
	d.fields(n, "stamp", map[string]func(*node){
		"attribute": d.word(&s.attribute, "attribute"),
		"value":     d.word(&s.value, "value"),
		"unless":    func(v *node) { s.unless = d.rows(v) },
	})
	if n.Kind == yamlfile.Mapping && (s.attribute == "") == (s.value == "") {
		d.fail(n.Place, "write { attribute: name } or { value: word }", "a stamp is an attribute or a value")
	}
	return s
}

// words reads a list of names, each once. Where known are given, it must be one of them.
func (d *decoder) words(n *node, what string, known ...string) []wordDecl {
	if !d.want(n, yamlfile.List, what) {
		return nil
	}
	var out []wordDecl
	for _, item := range n.Items {
		w := wordDecl{place: item.Place}
		d.word(&w.word, "an entry of "+what)(item)
		switch {
		case w.word == "":
		case len(known) > 0 && !slices.Contains(known, w.word):
			d.fail(item.Place, among(w.word, known), "unknown entry %q in %s", w.word, what)
		case slices.ContainsFunc(out, func(o wordDecl) bool { return o.word == w.word }):
			d.fail(item.Place, "", "%q is in %s twice", w.word, what)
		default:
			out = append(out, w)
		}
	}
	return out
}

// withhold leaves out what a policy lets agents write, and says so: a policy goes on as it was where what it asks for
// is found to tell of what agents do not see by something that an earlier version did not look at.
func (c *compiler) withhold(at place, what, format string, args ...any) {
	said := at.Errorf(what, format+"; it is left out", args...)
	c.warnings, c.withheld = append(c.warnings, said), append(c.withheld, said)
}

// write compiles what agents may change of a table, whose own rule and those of all others are compiled already.
func (c *compiler) write(t *compiling) *Write {
	decl, r := t.decl.write, t.relation
	if decl == nil {
		return nil
	}
	switch {
	case lacksRowSecurity(r):
		c.fail(decl.place, "leave write out", "%s is a %s, which agents can only read", r.Name, kindName(r.Kind))
		return nil
	case slices.ContainsFunc(t.decl.columns, func(d columnDecl) bool { return d.byKey != nil }):
		c.fail(decl.place, "leave one of them out",
			"%s has columns that exist by key only: that agents write it is not in this version", r.Name)
		return nil
	case r.IsPartition:
		c.fail(decl.place, "write through the partitioned table", "%s is a partition", r.Name)
		return nil
	case r.HasRules:
		c.fail(decl.place, "replace the rules by triggers", "%s has rewrite rules, which write with their owner's rights", r.Name)
		return nil
	}
	out := &Write{}
	for _, w := range decl.commands {
		out.Insert = out.Insert || w.word == "insert"
		out.Update = out.Update || w.word == "update"
		out.Delete = out.Delete || w.word == "delete"
	}
	if len(decl.commands) == 0 {
		c.fail(decl.place, "leave write out if agents write nothing", "no commands")
	}
	failed, withheld := len(c.errs), len(c.withheld)
	out.Stamps = c.stamps(decl, r)
	out.Lists = c.bounds(decl, r)
	sendable := c.sendable(decl, t)
	for _, key := range c.collisions(r) {
		if out.Insert && !decl.accepts(acceptConflicts) && collides(decl, key, r, sendable) &&
			!decl.withinSight(key, t.rows, t.relation) {
			c.fail(decl.place, "say accept: ["+acceptConflicts+"], or stamp other columns",
				"%s stamps all of the key %s, or leaves it to defaults: a collision would tell that a hidden "+
					"row exists", r.Name, key.Name)
		}
		if !out.Insert || decl.accepts(acceptValues) {
			continue
		}
		if name := c.partly(t, key); name != "" && collides(decl, key, r, sendable) {
			c.withhold(decl.place, "say accept: ["+acceptValues+"], or let the key hold for all rows",
				"agents cannot insert into %s, which stamps all of the key %s, or leaves it to defaults: a "+
					"collision would tell of %s", r.Name, key.Name, t.unseen(name))
			out.Insert = false
		} else if name := c.meets(decl, t, key, sendable); name != "" {
			c.withhold(decl.place, "say accept: ["+acceptValues+"], or let the key do without it",
				"agents cannot insert into %s: the key %s holds %s, and whether a new row collides with one that "+
					"shows would tell what that is there", r.Name, key.Name, t.unseen(name))
			out.Insert = false
		}
	}
	if why := c.chosen(decl, t); out.Insert && why != "" && !decl.accepts(acceptValues) {
		c.withhold(decl.place, "say accept: ["+acceptValues+"], or mask it with null",
			"agents cannot insert into %s: %s", r.Name, why)
		out.Insert = false
	}
	if why := c.presets(decl, t); out.Insert && why != "" && !decl.accepts(acceptConflicts) {
		c.withhold(decl.place, "say accept: ["+acceptConflicts+"], or let another index do",
			"agents cannot insert into %s: %s", r.Name, why)
		out.Insert = false
	}
	if len(c.errs) > failed {
		return nil
	}
	if why := c.departs(t); out.Delete && why != "" && !decl.accepts(acceptValues) {
		c.withhold(decl.place, "say accept: ["+acceptValues+"], or let the condition ask for what fails for no row",
			"agents cannot delete from %s: %s", r.Name, why)
		out.Delete = false
	}
	c.changes(out, decl, t, sendable, withheld)
	c.references(out, decl, t, sendable)
	if len(c.withheld) > withheld { // with all of its columns the command goes
		out.Insert = out.Insert && len(out.Insertable) > 0
		out.Update = out.Update && len(out.Updatable) > 0
	}
	if len(c.errs) == failed && !out.Insert && !out.Update && !out.Delete {
		return nil
	}
	c.sequences(out, decl, t)
	for _, column := range r.Columns {
		if out.Insert && column.NotNull && column.Default == "" && column.Identity == "" && !column.Generated &&
			!slices.Contains(out.Insertable, column.Name) {
			c.warn(decl.place, "agents cannot insert into %s unless a trigger sets %s: it is NOT NULL, has no default and is "+
				"not theirs to write", r.Name, column.Name)
		}
	}
	return out
}

// changes works out the columns of each command, and what the new row must be. withheld is how much was left out before
// this table.
func (c *compiler) changes(out *Write, decl *writeDecl, t *compiling, sendable []string, withheld int) {
	var stamped []string
	var stamps predicate.All
	var overruled []string // columns of which the stamp decides, whatever rows say
	for _, s := range out.Stamps {
		stamped = append(stamped, s.Column)
		var is predicate.Node = predicate.Status{Column: s.Column, Is: s.Value}
		if s.Attribute != "" {
			is = predicate.Own{Column: s.Column, Attribute: s.Attribute, Type: s.Type}
		}
		if s.Unless != nil {
			is = predicate.Any{is, s.Unless}
		} else {
			overruled = append(overruled, s.Column)
		}
		stamps = append(stamps, is)
	}
	judged, known := predicate.RowColumns(t.rows)
	if decl.check != nil {
		more, all := predicate.RowColumns(c.block(decl.check, t.relation))
		judged, known = append(judged, more...), known && all
	}
	judged = andSources(t.relation, judged)
	probed := ""
	for _, column := range t.relation.Columns {
		name := column.Name
		isStamped, isSendable := slices.Contains(stamped, name), slices.Contains(sendable, name)
		if out.Insert && (isStamped && t.decl.plain(name) || isSendable) {
			out.Insertable = append(out.Insertable, name)
			if column.Identity == "" {
				out.CopyColumns = append(out.CopyColumns, name)
			}
		}
		named := slices.ContainsFunc(decl.columns, func(w wordDecl) bool { return w.word == name })
		immutable := slices.ContainsFunc(decl.immutable, func(w wordDecl) bool { return w.word == name })
		// a row that goes to another partition is stamped anew
		moves := len(stamped) > 0 && slices.Contains(t.relation.PartitionBy, name)
		if out.Update && moves && named && !immutable {
			c.fail(decl.place, "list it under immutable",
				"agents cannot update %s.%s: the row would go to another partition, and be stamped anew", t.relation.Name, name)
		}
		why, together := c.probes(decl, t, name)
		if why != "" && isSendable && !immutable && !moves {
			probed = why
		}
		switch {
		case !(out.Update && isSendable && !immutable && !moves && named && why != ""):
		case !together:
			c.withhold(decl.place, "list it under immutable, or say accept: ["+acceptValues+"]",
				"agents cannot update %s.%s: %s", t.relation.Name, name, why)
		default:
			c.fail(decl.place, "list it under immutable, or say accept: ["+acceptValues+"]",
				"agents cannot update %s.%s: %s", t.relation.Name, name, why)
		}
		if out.Update && isSendable && !immutable && !moves && why == "" && (named || known && !slices.Contains(judged, name)) {
			out.Updatable = append(out.Updatable, name)
			if key := c.sharesKey(t, name); key != "" && !decl.accepts(acceptValues) {
				c.warn(decl.place, "agents update %s.%s, which %s holds together with a column that they do not see: what "+
					"they set tells whether two of their rows agree in that", t.relation.Name, name, key)
			}
		}
	}
	switch none := out.Update && len(out.Updatable) == 0; {
	case none && probed != "" && decl.allColumns:
		c.withhold(decl.place, "say accept: ["+acceptValues+"]", "no column of %s is left for agents to update: %s",
			t.relation.Name, probed)
	case none && len(c.withheld) == withheld:
		c.fail(decl.place, "name them under columns", "no column of %s is left for agents to update", t.relation.Name)
	}

	// A stamp overrules what the table's rule says of its column: a person that an agent creates is pending, although only
	// those who have granted show. Only a condition that must hold by itself is overruled, not one of several ways to be
	// visible.
	var insert predicate.All
	for _, part := range predicate.Conjuncts(t.rows) {
		if columns, all := predicate.RowColumns(part); all && len(columns) == 1 &&
			slices.Contains(overruled, columns[0]) && isColumnTest(part) {
			out.InsertsHidden = out.InsertsHidden || contradicts(part, stamps)
			continue
		}
		insert = append(insert, part)
	}
	for i, part := range insert {
		insert[i] = c.sight(part)
	}
	update := predicate.All{t.rows}
	insert = append(insert, stamps...)
	if decl.check != nil {
		check := c.block(decl.check, t.relation)
		insert, update = append(insert, check), append(update, check)
		_, own := predicate.RowColumns(check)
		out.AffectsOtherRules = !own || len(predicate.Attributes(check)) > 0
	}
	out.InsertCheck, out.UpdateCheck = insert, update
}

// isColumnTest tells whether a condition looks at one column of the row and at nothing else.
func isColumnTest(n predicate.Node) bool {
	switch n.(type) {
	case predicate.Own, predicate.Status, predicate.Tenant:
		return true
	}
	return false
}

// contradicts tells whether a row with these stamps cannot meet the condition.
func contradicts(n predicate.Node, stamps predicate.All) bool {
	status, ok := n.(predicate.Status)
	return ok && slices.ContainsFunc(stamps, func(s predicate.Node) bool {
		stamp, fixed := s.(predicate.Status) // one that holds unless something else does is an Any
		return fixed && stamp.Column == status.Column && stamp.Is != status.Is
	})
}

// stamps compiles what an INSERT sets.
func (c *compiler) stamps(decl *writeDecl, r *catalog.Relation) []Stamp {
	var out []Stamp
	for _, s := range decl.stamps {
		column := c.named(s.place, r, s.column)
		if column == nil {
			continue
		}
		if column.Generated || column.Identity == "always" {
			c.fail(s.place, "", "%s.%s is generated and cannot be stamped", r.Name, s.column)
			continue
		}
		if s.attribute != "" {
			if own, ok := c.own(ownBlock{place: s.place, column: s.column, attribute: s.attribute,
				attributeAt: s.valueAt}, r).(predicate.Own); ok {
				if strings.HasSuffix(own.Type, "[]") {
					c.fail(s.valueAt, "stamp an attribute of one value", "%s is a list", s.attribute)
					continue
				}
				out = append(out, Stamp{Column: s.column, Attribute: own.Attribute, Type: own.Type, Unless: c.unless(s, r)})
			}
			continue
		}
		if why := c.unfit(column, s.value); why != "" {
			c.fail(s.valueAt, why, "%q cannot be stamped on %s.%s, which is a %s", s.value, r.Name, s.column, column.Type)
			continue
		}
		out = append(out, Stamp{Column: s.column, Value: s.value, Unless: c.unless(s, r)})
	}
	return out
}

func (c *compiler) unless(s stampDecl, r *catalog.Relation) predicate.Node {
	if s.unless == nil {
		return nil
	}
	return c.unruled(s.unless, r)
}

// unfit tells why a fixed value is not one of the column's type as PostgreSQL writes it.
func (c *compiler) unfit(column *catalog.Column, value string) string {
	t := c.snap.TypeByOID(column.TypeOID)
	switch {
	case t != nil && t.Kind == 'e' && len(t.Labels) > 0 && !slices.Contains(t.Labels, value):
		return oneOf(value, t.Labels)
	case family(column.Type) == "text", t != nil && t.Kind == 'e':
		return ""
	case family(column.Type) == "integer":
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || strconv.FormatInt(n, 10) != value {
			return "write a whole number"
		}
	case family(column.Type) == "uuid":
		if !uuidForm.MatchString(value) {
			return "write it in lower case with dashes"
		}
	case column.Type == "boolean":
		if value != "true" && value != "false" {
			return "write true or false"
		}
	default:
		return "stamp columns of type uuid, integer, text, boolean or an enum"
	}
	return ""
}

// sendable returns the columns that agents may set themselves, in the table's order.
func (c *compiler) sendable(decl *writeDecl, t *compiling) []string {
	r := t.relation
	stamped := func(name string) bool {
		return slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == name })
	}
	written := map[string]place{}
	for _, list := range [][]wordDecl{decl.columns, decl.immutable} {
		for _, w := range list {
			if c.named(w.place, r, w.word) == nil {
				continue
			}
			if stamped(w.word) {
				c.fail(w.place, "leave it out: agents may send it, and the stamp replaces it", "%s.%s is stamped", r.Name, w.word)
			}
			written[w.word] = w.place
		}
	}
	var out []string
	for i := range r.Columns {
		column := &r.Columns[i]
		at, explicit := written[column.Name]
		if stamped(column.Name) || !explicit &&
			(!decl.allColumns || slices.ContainsFunc(andComputed(r, []string{column.Name}),
				func(name string) bool { return decides(t.rows, name) })) {
			continue
		}
		why, what, known := c.unwritable(decl, t, column)
		if !t.decl.plain(column.Name) {
			why, what, known = "it is hidden or masked", "say allow under columns of the table, or stamp it", true
		}
		switch {
		case why == "":
			out = append(out, column.Name)
		case explicit && !known:
			c.withhold(at, what, "agents cannot write %s.%s: %s", r.Name, column.Name, why)
		case explicit:
			c.fail(at, what, "agents cannot write %s.%s: %s", r.Name, column.Name, why)
		}
	}
	return out
}

// plain tells whether agents see the values of a column as they are. They write no other: what a mask shows could not
// be told from what they sent.
func (d *tableDecl) plain(name string) bool {
	return d.columns == nil || slices.ContainsFunc(d.columns,
		func(c columnDecl) bool { return c.Name == name && c.Mask == Plain && !c.general && c.category == nil })
}

// shows tells whether agents see something of a column: its values, or what is made of them.
func (d *tableDecl) shows(name string) bool {
	return d.columns == nil || slices.ContainsFunc(d.columns,
		func(c columnDecl) bool { return c.Name == name && c.Mask != Null })
}

// decides tells whether a column says who may see the row, other than by naming its owner: a status, a list of grants,
// a shared tenant. Agents set such a column only where the policy names it.
func decides(rows predicate.Node, column string) bool {
	for _, part := range predicate.Conjuncts(rows) {
		switch part.(type) {
		case predicate.Own, predicate.Visible, predicate.Consent:
			continue
		}
		if columns, known := predicate.RowColumns(part); !known || slices.Contains(columns, column) {
			return true
		}
	}
	return false
}

// unwritable tells why agents cannot write a column, and what can be done about it; known: it is an error to name such
// a column.
func (c *compiler) unwritable(decl *writeDecl, t *compiling, column *catalog.Column) (why, what string, known bool) {
	if column.Generated || column.Identity == "always" {
		return "it is generated", "leave it out", true
	}
	if !decl.accepts(acceptConflicts) {
		for _, key := range c.collisions(t.relation) {
			if slices.Contains(key.Columns, column.Name) && !decl.withinSight(key, t.rows, t.relation) {
				return "it is part of the key " + key.Name + ", and a collision would tell that a hidden row exists",
					"let the key begin with the columns that say whose row it is, or say accept: [" + acceptConflicts + "]", true
			}
		}
		if why := c.tried(t, column.Name); why != "" {
			return why, "let another index do, or say accept: [" + acceptConflicts + "]", false
		}
	}
	if !decl.accepts(acceptValues) {
		if why := c.computes(t.relation, column.Name, false); why != "" && t.decl.plain(column.Name) {
			return why, "mask that with null, or say accept: [" + acceptValues + "]", false
		}
		for _, key := range c.collisions(t.relation) {
			if name := c.partly(t, key); name != "" && slices.Contains(key.Columns, column.Name) {
				return "it is part of the key " + key.Name + ", which is for some rows only, by " + t.unseen(name) +
						", and a collision would tell what that is",
					"let the key hold for all rows, or say accept: [" + acceptValues + "]", false
			}
		}
	}
	for _, key := range t.relation.ForeignKeys {
		if !slices.Contains(andSources(t.relation, key.Columns), column.Name) || decl.accepts(acceptReferences) {
			continue
		}
		if why := c.blind(key, t.relation); why != "" {
			return why, "list " + key.Target.String() + " under tables, or say accept: [" + acceptReferences + "]", true
		}
		if why := c.guesses(key); why != "" && !decl.accepts(acceptValues) {
			return why, "say accept: [" + acceptReferences + "] or [" + acceptValues +
				"], or let the key lead to columns that show", false
		}
	}
	for _, own := range c.partsOwn(t.relation) {
		if slices.Contains(andSources(own.part, own.key.Columns), column.Name) && !decl.accepts(acceptReferences) {
			return own.part.Name.String() + ", a part of the table, has a foreign key of its own to " + own.key.Target.String(),
				"make it a key of the whole table, or say accept: [" + acceptReferences + "]", true
		}
	}
	return "", "", true
}

// withinSight tells whether rows that collide in a key are certain to be visible: every part of the rule reads nothing
// of a row but columns that the key holds. Then it says of the row that is there what it says of the new one, which
// shows, or it would have been refused before its key was looked at.
func (d *writeDecl) withinSight(key catalog.Key, rows predicate.Node, r *catalog.Relation) bool {
	for _, part := range predicate.Conjuncts(rows) {
		own := predicate.Own{}
		switch n := part.(type) {
		case predicate.Open:
			continue
		case predicate.Own:
			own = n
		case predicate.Tenant:
			own = n.Own
		default:
			if !d.decidedBy(key, part, r) {
				return false
			}
			continue
		}
		disowned := slices.ContainsFunc(d.stamps, func(s stampDecl) bool {
			return s.column == own.Column && (s.attribute != own.Attribute || s.unless != nil)
		})
		if disowned || !slices.Contains(key.Equal, own.Column) {
			return false
		}
	}
	return true
}

// decidedBy tells whether two rows that are equal in a key are equal in all that a part of the rule reads of them, to
// the letter. A stamped column is not: what it decides is not asked of a new row.
func (d *writeDecl) decidedBy(key catalog.Key, part predicate.Node, r *catalog.Relation) bool {
	columns, known := predicate.RowColumns(part)
	return known && len(columns) > 0 && ofTheRow(part) && !slices.ContainsFunc(columns, func(name string) bool {
		stamped := slices.ContainsFunc(d.stamps, func(s stampDecl) bool { return s.column == name })
		return !exact(r.Column(name)) || stamped || !slices.Contains(key.Equal, name)
	})
}

// ofTheRow tells whether a part of a rule depends, of the row itself, on the columns that it names and on nothing else.
func ofTheRow(n predicate.Node) bool {
	all := func(parts []predicate.Node) bool {
		return !slices.ContainsFunc(parts, func(part predicate.Node) bool { return !ofTheRow(part) })
	}
	switch n := n.(type) {
	case predicate.Own, predicate.Tenant, predicate.Status, predicate.Grant, predicate.SQL, predicate.Visible:
		return true
	case predicate.Consent:
		return n.Materialized == nil && len(n.Steps) > 0
	case predicate.All:
		return all(n)
	case predicate.Any:
		return all(n)
	case predicate.Not:
		return ofTheRow(n.Node)
	}
	return false
}

// blind tells why a foreign key cannot be held to the rows that are visible.
func (c *compiler) blind(key catalog.ForeignKey, from *catalog.Relation) string {
	target := c.tables[key.Target]
	if target == nil {
		return "it refers to " + key.Target.String() +
			", which the policy does not list, and a failure would tell which rows exist"
	}
	if _, open := target.rows.(predicate.Open); open {
		return "" // no row of it is hidden, and none is looked up
	}
	for i, name := range key.Columns {
		a, b := from.Column(name), target.relation.Column(key.TargetCols[i])
		if a == nil || b == nil || c.linkable(a) == "" || c.linkable(a) != c.linkable(b) {
			return "it refers to " + key.Target.String() + " by a column of which a visible row cannot be looked up"
		}
	}
	return ""
}

// guesses tells why a foreign key would tell what a row that shows holds: agents do not see all columns that it leads
// to, and whether a row is refused says whether they guessed.
func (c *compiler) guesses(key catalog.ForeignKey) string {
	target := c.tables[key.Target]
	same := sameColumns(target.rows)
	i := slices.IndexFunc(key.TargetCols, func(name string) bool {
		return !c.seen(target, name) && !slices.Contains(same, name)
	})
	if i < 0 {
		return ""
	}
	return "it refers to " + key.Target.String() + " by " + target.unseen(key.TargetCols[i]) +
		", and whether there is such a row would tell what that is"
}

// references adds what a new row's foreign keys must point to, and refuses changes that would tell who refers to a row.
func (c *compiler) references(out *Write, decl *writeDecl, t *compiling, sendable []string) {
	insert, update := out.InsertCheck.(predicate.All), out.UpdateCheck.(predicate.All)
	for _, key := range t.relation.ForeignKeys {
		target := c.tables[key.Target]
		if target == nil || c.blind(key, t.relation) != "" { // accepted, or not writable
			continue
		}
		if _, open := target.rows.(predicate.Open); open {
			continue
		}
		node := predicate.Reference{Relation: target.relation, Columns: key.TargetCols, From: key.Columns, Rows: target.rows}
		if overlap(andSources(t.relation, key.Columns), sendable) {
			insert = append(insert, node)
		}
		if overlap(andSources(t.relation, key.Columns), out.Updatable) {
			node.Before = c.before(out, t)
			update = append(update, node)
		}
	}
	out.InsertCheck, out.UpdateCheck = insert, update
	if decl.accepts(acceptReferences) {
		return
	}
	if out.Delete {
		out.Delete = c.referrers(decl, t.relation, nil, true, map[string]bool{})
	}
	if out.Update && len(out.Updatable) > 0 && !c.referrers(decl, t.relation, out.Updatable, true, map[string]bool{}) {
		out.Updatable = slices.DeleteFunc(out.Updatable, func(name string) bool { return c.referred(t.relation, name) })
	}
	if out.Delete {
		c.along(decl, t, nil)
	}
	if len(out.Updatable) > 0 {
		c.along(decl, t, out.Updatable)
	}
}

// before leads from a changed row to itself as it was, by a primary key that agents cannot change. It leads nowhere
// where agents may not see all columns of a row, by the table or by a contract, which may let them write what they do
// not read: setting a key to what it is already would succeed, and tell what is hidden.
func (c *compiler) before(out *Write, t *compiling) predicate.Step {
	r := t.relation
	if len(r.PrimaryKey) == 0 || t.decl.columns != nil || t.decl.aggregate != nil || len(c.doc.contracts) > 0 ||
		overlap(r.PrimaryKey, out.Updatable) ||
		slices.ContainsFunc(r.PrimaryKey, func(name string) bool { return c.linkable(r.Column(name)) == "" }) {
		return predicate.Step{}
	}
	step := predicate.Step{Relation: r, Column: r.PrimaryKey[0], From: r.PrimaryKey[0]}
	for _, name := range r.PrimaryKey[1:] {
		step.And = append(step.And, predicate.Pair{Column: name, From: name})
	}
	if !step.LeadsToOne() {
		return predicate.Step{}
	}
	return step
}

// allVisible tells whether whoever sees the target of a key sees every row that refers to it.
func (c *compiler) allVisible(from *catalog.Relation, key catalog.ForeignKey) bool {
	t := c.tables[from.Name]
	if t == nil {
		return false
	}
	switch rows := t.rows.(type) {
	case predicate.Open:
		return true
	case predicate.Visible:
		return rows.Relation.Name == key.Target && reflect.DeepEqual(rows.Rows, c.tables[key.Target].rows) &&
			len(rows.And) == 0 && slices.Equal(key.Columns, []string{rows.From}) &&
			slices.Equal(key.TargetCols, []string{rows.Column})
	}
	return false
}

// sequences refuses numbers that agents would see and that others draw as well.
func (c *compiler) sequences(out *Write, decl *writeDecl, t *compiling) {
	if _, open := t.rows.(predicate.Open); open || !out.Insert || decl.accepts(acceptSequences) {
		return
	}
	for _, column := range t.relation.Columns {
		if column.Sequence.Name == "" || slices.ContainsFunc(out.Stamps, func(s Stamp) bool { return s.Column == column.Name }) {
			continue
		}
		c.fail(decl.place, "use a uuid, or say accept: ["+acceptSequences+"]",
			"%s.%s is numbered by a sequence: a new row's number tells how many hidden rows others have made",
			t.relation.Name, column.Name)
	}
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// describe is the meaning, for the hash of the policy.
func (w *Write) describe(r *catalog.Relation) string {
	if w == nil {
		return ""
	}
	parts := []string{
		strconv.FormatBool(w.Insert), strconv.FormatBool(w.Update), strconv.FormatBool(w.Delete), strconv.FormatBool(w.InsertsHidden),
		strconv.Quote(strings.Join(w.Insertable, "\x00")), strconv.Quote(strings.Join(w.Updatable, "\x00")),
		predicate.Check(w.InsertCheck, r), predicate.Check(w.UpdateCheck, r),
	}
	for _, s := range w.Stamps {
		parts = append(parts, strconv.Quote(s.Column), strconv.Quote(s.Attribute), strconv.Quote(s.Value))
		if s.Unless != nil {
			parts = append(parts, predicate.Check(s.Unless, r))
		}
	}
	parts = append(parts, describeBounds(w.Lists))
	return strings.Join(parts, " ")
}

// decisive leaves it to tables that others depend on.
func (p *Policy) decisive() {
	for _, t := range p.tables {
		if t.Write == nil || !t.Write.AffectsOtherRules {
			continue
		}
		t.Write.AffectsOtherRules = slices.ContainsFunc(p.tables, func(o *Table) bool {
			return o != t && slices.ContainsFunc(predicate.Helpers(o.Rows),
				func(h predicate.Helper) bool { return h.Relation.Name == t.Relation.Name })
		})
	}
}
