package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// What a table's own keys do not say, its parts may: partitions and children can have keys of their own, and can be
// referred to by name. What agents write goes there.

// withParts returns a table and all its partitions and children, to any depth.
func (c *compiler) withParts(r *catalog.Relation) []*catalog.Relation {
	out := []*catalog.Relation{r}
	for i := 0; i < len(out); i++ {
		if !out[i].HasChildren {
			continue
		}
		for _, part := range c.snap.Relations() {
			if slices.Contains(part.Parents, out[i].Name) && !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
	}
	return out
}

// wholesOf returns what a partition is one of, to any depth: a key to one of them may lead to a row of the partition.
func (c *compiler) wholesOf(r *catalog.Relation) []*catalog.Relation {
	var out []*catalog.Relation
	for part := r; part != nil && part.IsPartition && len(part.Parents) > 0; {
		whole, ok := c.snap.Relation(part.Parents[0])
		if !ok {
			break
		}
		out, part = append(out, whole), whole
	}
	return out
}

// andSources adds the columns that those which are generated are computed from.
func andSources(r *catalog.Relation, names []string) []string {
	out := slices.Clone(names)
	for _, name := range names {
		if column := r.Column(name); column != nil {
			out = append(out, column.ComputedFrom...)
		}
	}
	return out
}

// andComputed adds the columns that are computed from some.
func andComputed(r *catalog.Relation, names []string) []string {
	out := slices.Clone(names)
	for _, column := range r.Columns {
		if overlap(column.ComputedFrom, names) {
			out = append(out, column.Name)
		}
	}
	return out
}

// collisions are the keys of a table and its parts: columns that decide about a collision by what is computed from them
// are of the key.
func (c *compiler) collisions(r *catalog.Relation) []catalog.Key {
	var out []catalog.Key
	for _, part := range c.withParts(r) {
		for _, key := range part.Unique {
			key.Columns = andSources(part, key.Columns)
			out = append(out, key)
		}
	}
	return out
}

// seen tells whether agents that write a table see a column of it as it is.
func (c *compiler) seen(t *compiling, name string) bool {
	return t.decl.plain(name) && c.contracted(t.relation.Name, name)
}

// unseen says of a column that agents do not see it, and why.
func (t *compiling) unseen(name string) string {
	if t.decl.plain(name) {
		return name + ", which a contract leaves out"
	}
	return name + ", which is hidden or masked"
}

// computers are what computes something of a row as it is written.
var computers = map[string]string{"index": "an index", "trigger": "a trigger's condition",
	"column": "a generated column", "partition": "what says to which partition a row goes"}

// probes tells why an UPDATE of a column would tell what columns of the row hold that agents do not see: a check, an
// index, a trigger's condition, a partition's bounds, the policy's own check, or what is computed, reads both, so that
// it goes by them whether the update fails, and they may stand in what the error says. What is made for text search
// fails by size alone. What may fail though the row is as it was is asked whatever is updated, and not together with
// the column; what is computed for indexes and triggers counts as that, since it is by and by that more is found to
// fail.
func (c *compiler) probes(decl *writeDecl, t *compiling, column string) (why string, together bool) {
	if decl.accepts(acceptValues) {
		return "", false
	}
	if why := c.computes(t.relation, column, true); why != "" && t.decl.plain(column) {
		return why, false
	}
	seen := func(name string) bool { return c.seen(t, name) }
	if !slices.ContainsFunc(t.relation.Columns, func(column catalog.Column) bool { return !seen(column.Name) }) {
		return "", false
	}
	hidden := func(columns []string, but []string) string {
		i := slices.IndexFunc(columns, func(name string) bool { return !seen(name) && !slices.Contains(but, name) })
		if i < 0 {
			return ""
		}
		return columns[i]
	}
	unseen := func(together []string, but []string) string {
		if !slices.Contains(together, column) {
			return ""
		}
		return hidden(together, but)
	}
	told := func(what, name, fails string) string {
		return what + " reads it together with " + t.unseen(name) + ", and whether " + fails + " would tell what that is"
	}
	known := ownColumns(t.rows) // the agent's own, as it knows
	if decl.check != nil {
		if columns, _ := predicate.RowColumns(c.block(decl.check, t.relation)); slices.Contains(columns, column) {
			if name := unseen(columns, known); name != "" {
				return told("the policy's own check", name, "it holds"), true
			}
		}
	}
	for _, part := range c.withParts(t.relation) {
		for _, together := range part.CheckedTogether {
			if name := unseen(andSources(part, together), nil); name != "" {
				return told("a check", name, "the check holds"), true
			}
		}
		for _, computed := range part.Columns {
			if name := unseen(computed.ComputedFrom, nil); name != "" && computed.Type != "tsvector" {
				return computed.Name + " is computed from it and from " + t.unseen(name) +
					", and whether that fails would tell what that is", true
			}
		}
		for _, computed := range part.Computed {
			if name := unseen(andSources(part, computed.Columns), known); name != "" {
				return told(computers[computed.By], name, "that fails"), false
			}
		}
		if name := unseen(part.PartitionBy, known); name != "" {
			return told("what says to which partition a row goes", name, "there is one"), true
		}
		for _, checked := range part.Rechecked {
			if name := hidden(andSources(part, checked), known); name != "" {
				return "each update asks anew what a constraint says of " + t.unseen(name) +
					", since that is NOT VALID or goes by more than the row: whether it holds would tell what that is", false
			}
		}
		for _, computed := range part.Computed {
			if name := hidden(andSources(part, computed.Columns), known); name != "" && computed.OnUnchanged {
				return "each update may compute anew what " + computers[computed.By] + " makes of " + t.unseen(name) +
					": whether that fails would tell what that is", false
			}
		}
	}
	for _, trial := range c.trials(t.relation) {
		if name := hidden(trial.columns, known); name != "" {
			return "each update may compare " + t.unseen(name) + ", with other rows by the index " + trial.index +
				", and " + trial.by() + " fails for some values: whether it does would tell what that is", false
		}
	}
	return "", false
}

// departs tells why a DELETE would tell what columns of a row hold that agents do not see: the condition of a trigger
// reads them, and may fail as the row goes.
func (c *compiler) departs(t *compiling) string {
	known := ownColumns(t.rows)
	for _, part := range c.withParts(t.relation) {
		for _, computed := range part.Computed {
			for _, name := range andSources(part, computed.Columns) {
				if computed.OnDelete && !c.seen(t, name) && !slices.Contains(known, name) {
					return "as a row goes, " + computers[computed.By] + " reads " + t.unseen(name) +
						", and whether that fails would tell what that is"
				}
			}
		}
	}
	return ""
}

// sharesKey names a key, or a foreign key, that holds a column together with one that agents do not see: whether rows
// collide, or lead to a row, tells of it what other values that are seen tell.
func (c *compiler) sharesKey(t *compiling, column string) string {
	known := ownColumns(t.rows)
	unseen := func(columns []string) bool {
		return slices.Contains(columns, column) && slices.ContainsFunc(columns, func(name string) bool {
			return !slices.Contains(known, name) && !c.seen(t, name)
		})
	}
	for _, key := range t.relation.Unique {
		if unseen(key.Equal) || unseen(key.Columns) && key.Where == "" {
			return "the key " + key.Name
		}
	}
	for _, key := range t.relation.ForeignKeys {
		if unseen(key.Columns) {
			return "the foreign key to " + key.Target.String()
		}
	}
	return ""
}

// ownColumns are the columns that equal an attribute of the session in every row that shows.
func ownColumns(rows predicate.Node) []string {
	var out []string
	for _, part := range predicate.Conjuncts(rows) {
		switch part := part.(type) {
		case predicate.Own:
			out = append(out, part.Column)
		case predicate.Tenant:
			if part.Shared == "" && !part.SharedNull {
				out = append(out, part.Column)
			}
		}
	}
	return out
}

// contracted tells whether every contract that lets agents write a table shows them a column of it.
func (c *compiler) contracted(table catalog.Name, column string) bool {
	object := ""
	for _, o := range c.doc.objects {
		if r := c.listed(o.tableAt, o.table); r != nil && r.Name == table {
			object = o.name
		}
	}
	shows := func(terms *termsDecl) bool {
		return terms == nil || !slices.ContainsFunc(terms.allow, func(a allowDecl) bool {
			return a.object.text == object && a.columns != nil &&
				slices.ContainsFunc(a.sources, func(w word) bool { return w.text == "write" }) &&
				!slices.ContainsFunc(a.columns, func(w word) bool { return w.text == column })
		})
	}
	for _, contract := range c.doc.contracts {
		if object != "" && (!shows(contract.always) ||
			slices.ContainsFunc(contract.values, func(terms termsDecl) bool { return !shows(&terms) })) {
			return false
		}
	}
	return true
}

// partsOwn are foreign keys that parts of a table have and the table has not.
func (c *compiler) partsOwn(r *catalog.Relation) []partKey {
	var out []partKey
	for _, part := range c.withParts(r)[1:] {
		for _, key := range part.ForeignKeys {
			if !slices.ContainsFunc(r.ForeignKeys, func(k catalog.ForeignKey) bool { return alike(k, key) }) {
				out = append(out, partKey{part, key})
			}
		}
	}
	return out
}

type partKey struct {
	part *catalog.Relation
	key  catalog.ForeignKey
}

// alike tells whether two foreign keys ask the same.
func alike(a, b catalog.ForeignKey) bool {
	return a.Target == b.Target && slices.Equal(a.Columns, b.Columns) && slices.Equal(a.TargetCols, b.TargetCols)
}

// ofTheWhole tells whether a foreign key of a partition is that of what it is a part of.
func (c *compiler) ofTheWhole(r *catalog.Relation, key catalog.ForeignKey) bool {
	return slices.ContainsFunc(c.wholesOf(r), func(whole *catalog.Relation) bool {
		return slices.ContainsFunc(whole.ForeignKeys, func(k catalog.ForeignKey) bool { return alike(k, key) })
	})
}

// collides tells whether rows may collide in a key though agents set no column of it: all have stamps, defaults that
// say the same of other rows, or NULL where NULL does not keep them apart.
func collides(decl *writeDecl, key catalog.Key, r *catalog.Relation, sendable []string) bool {
	fixed := func(name string) bool {
		column := r.Column(name)
		if column == nil {
			return false
		}
		switch {
		case slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == name }), column.Generated:
			return true
		case slices.Contains(sendable, name) || column.Identity != "":
			return false
		case column.Default == "":
			return !column.NotNull && !slices.Contains(key.NullsDistinct, name)
		}
		return !drawn(column)
	}
	// A row outside of what a partial index is about: WHERE active, and the default is false.
	if column := r.Column(key.Where); column != nil && column.Default == "false" && !slices.Contains(sendable, key.Where) &&
		!slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == key.Where }) {
		return false
	}
	return len(key.Columns) > 0 && !slices.ContainsFunc(key.Columns, func(name string) bool { return !fixed(name) })
}

// breaks tells what may fail in a row when its foreign key changes along with the row that it leads to: columns of it
// are set to NULL, or to the new key. "": nothing. anew: it is what fails whatever changes.
func (c *compiler) breaks(from *catalog.Relation, key catalog.ForeignKey, changed []string, null bool) (why string,
	anew bool) {
	if null && key.Full && slices.ContainsFunc(key.Columns,
		func(name string) bool { return !slices.Contains(changed, name) }) {
		return "its key is MATCH FULL", false
	}
	if trials := c.trials(from); len(trials) > 0 {
		return "the index " + trials[0].index + " compares rows anew, and " + trials[0].by() + " fails for some", true
	}
	target, _ := c.snap.Relation(key.Target)
	for _, part := range c.withParts(from) {
		switch {
		case overlap(part.Checked, changed):
			return "a check reads what changes", false
		case overlap(part.PartitionBy, changed):
			return "what changes says to which partition a row goes", false
		case len(andComputed(part, changed)) > len(changed):
			return "a column is computed from what changes", false
		case len(part.Rechecked) > 0:
			return "a constraint is NOT VALID or goes by more than the row, and is asked anew", true
		}
		for _, computed := range part.Computed {
			if overlap(computed.Columns, changed) {
				return computers[computed.By] + " reads what changes", false
			}
			if computed.OnUnchanged {
				return computers[computed.By] + " may be computed anew", true
			}
		}
		for i, name := range key.Columns {
			column := part.Column(name)
			if column == nil || !slices.Contains(changed, name) {
				continue
			}
			t := c.snap.TypeByOID(column.TypeOID)
			if null && t != nil && t.Kind == 'd' {
				return "the domain of " + name + " may allow no NULL", false
			}
			if to := target.Column(key.TargetCols[i]); !null && (to == nil || to.Type != column.Type) {
				return name + " is of another type than what it refers to", false
			}
		}
		for _, k := range part.Unique {
			switch {
			case !overlap(k.Columns, changed):
			case null && overlap(k.NullsDistinct, changed):
			case !null && len(k.Equal) > 0 &&
				!slices.ContainsFunc(key.Columns, func(name string) bool { return !slices.Contains(k.Equal, name) }):
				// Rows that are equal in it lead to the same row, as they did before.
			default:
				return "what changes is part of the key " + k.Name, false
			}
		}
		for _, k := range part.ForeignKeys {
			if alike(k, key) || !overlap(k.Columns, changed) {
				continue
			}
			if !null || k.Full {
				return "what changes is part of another foreign key", false
			}
		}
	}
	return "", false
}

// referrers refuses a change of a row on which rows may depend that agents do not see: whether it fails would tell.
// keys are the columns that may change; nil: the row goes away. sees tells whether agents see all such rows: they do
// not where these go along with others. False: it is to be left out.
func (c *compiler) referrers(decl *writeDecl, r *catalog.Relation, keys []string, sees bool, seen map[string]bool) bool {
	this := r.Name.String() + " " + strconv.FormatBool(keys == nil) + strconv.FormatBool(sees) +
		strings.Join(slices.Sorted(slices.Values(keys)), "\x00")
	if seen[this] {
		return true
	}
	seen[this] = true
	may := true
	for _, by := range c.dependents(r, keys) {
		may = c.referrer(decl, r, by, keys, sees, seen) && may
	}
	return may
}

// dependents are the foreign keys by which rows depend on a row of a table, or of its parts, that changes in these
// columns; nil: that goes away.
func (c *compiler) dependents(r *catalog.Relation, keys []string) []partKey {
	var out []partKey
	targets := append(c.withParts(r), c.wholesOf(r)...)
	for _, from := range c.snap.Relations() {
		for _, key := range from.ForeignKeys {
			i := slices.IndexFunc(targets, func(target *catalog.Relation) bool { return target.Name == key.Target })
			if i < 0 || keys != nil && !overlap(key.TargetCols, andComputed(targets[i], keys)) || c.ofTheWhole(from, key) {
				continue
			}
			out = append(out, partKey{from, key})
		}
	}
	return out
}

// follows is what a foreign key does to the rows that depend on one that changes in these columns, nil: that goes away,
// and which columns it sets.
func (c *compiler) follows(key catalog.ForeignKey, keys []string) (what catalog.Action, changed []string) {
	what, changed = key.OnUpdate, key.Columns
	if keys == nil {
		if what = key.OnDelete; (what == catalog.SetNull || what == catalog.SetDefault) && len(key.Nulled) > 0 {
			changed = key.Nulled
		}
	} else if what == catalog.Cascade {
		target, _ := c.snap.Relation(key.Target)
		changed = slices.DeleteFunc(slices.Clone(changed), func(name string) bool {
			return !slices.Contains(andComputed(target, keys), key.TargetCols[slices.Index(key.Columns, name)])
		})
	}
	return what, changed
}

// referred tells whether a foreign key refers to a column, or to what is computed from it.
func (c *compiler) referred(r *catalog.Relation, column string) bool {
	targets := append(c.withParts(r), c.wholesOf(r)...)
	return slices.ContainsFunc(c.snap.Relations(), func(from *catalog.Relation) bool {
		return slices.ContainsFunc(from.ForeignKeys, func(key catalog.ForeignKey) bool {
			return slices.ContainsFunc(targets, func(target *catalog.Relation) bool {
				return target.Name == key.Target && overlap(key.TargetCols, andComputed(target, []string{column}))
			})
		})
	})
}

// hides tells whether agents do not see some column of a table.
func (c *compiler) hides(r *catalog.Relation) bool {
	t := c.tables[r.Name]
	return t == nil || slices.ContainsFunc(r.Columns, func(column catalog.Column) bool { return !c.seen(t, column.Name) })
}

// hidesKey names a column of a foreign key that agents do not see in rows that show through a table, nor know as their
// own; "": there is none.
func (c *compiler) hidesKey(t *compiling, key catalog.ForeignKey) string {
	known := ownColumns(t.rows)
	i := slices.IndexFunc(key.Columns, func(name string) bool { return !c.seen(t, name) && !slices.Contains(known, name) })
	if i < 0 {
		return ""
	}
	return key.Columns[i]
}

// referrer is one foreign key by which rows may depend on a row.
func (c *compiler) referrer(decl *writeDecl, r *catalog.Relation, by partKey, keys []string, sees bool,
	seen map[string]bool) bool {
	from, key := by.part, by.key
	what, changed := c.follows(key, keys)
	why, instead, anew := "", "let the foreign key cascade", false
	switch what {
	case catalog.Cascade:
		if keys == nil {
			if slices.ContainsFunc(c.withParts(from), func(part *catalog.Relation) bool {
				return slices.ContainsFunc(part.Computed, func(computed catalog.Computed) bool { return computed.OnDelete })
			}) {
				why, instead, anew = "the condition of a trigger may fail as they go along",
					"let it ask for what fails for no row", true
			}
			break
		}
		why, anew = c.breaks(from, key, changed, false)
		instead = "take the columns that others refer to out of write" // it cascades already
	case catalog.SetNull:
		if slices.ContainsFunc(changed, func(name string) bool { return from.Column(name) == nil || from.Column(name).NotNull }) {
			why = "their key may not be NULL"
			break
		}
		why, anew = c.breaks(from, key, changed, true)
	default:
		why = "the key does not let it"
	}
	visible := c.allVisible(from, key)
	if why == "" || visible && sees && !(anew && c.hides(from)) && c.hidesKey(c.tables[from.Name], key) == "" {
		sees = sees && c.showsWith(r, by)
		switch {
		case what == catalog.Cascade && keys == nil:
			return c.referrers(decl, from, nil, sees, seen)
		case what == catalog.Cascade, what == catalog.SetNull:
			return c.referrers(decl, from, changed, sees, seen)
		}
		return true
	}
	if visible && !sees {
		c.withhold(decl.place, instead+", or say accept: ["+acceptReferences+"]",
			"agents would learn that rows of %s that they do not see go or change along, by whether rows of %s "+
				"refer to them: %s", r.Name, from.Name, why)
		return false
	}
	say, tells := c.fail, "that hidden rows of %s refer to it"
	if anew || visible {
		say = c.withhold
	}
	if visible {
		tells = "what columns of %s hold that agents do not see"
	}
	say(decl.place, instead+", or say accept: ["+acceptReferences+"]",
		"whether a row of %s can be deleted, or its key changed, would tell "+tells+": %s", r.Name, from.Name, why)
	return !anew && !visible
}
