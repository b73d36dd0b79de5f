package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Derivation says how rows of a table are made from rows of another, or of the same.
type Derivation struct {
	Table            *catalog.Relation
	Origin           predicate.Origin // its Products are the rows that were made from a row
	DeleteWithSource bool             // a row goes when one of its sources does; else it stays, and is hidden
}

// Derivations returns how rows of the policy's tables are made from others, by the order of the files. Where a row was
// made from a chain of others, each link of the chain is one. What of them goes with what is in [Policy.Cascades].
func (p *Policy) Derivations() []Derivation { return p.derivations }

// derivedBlock is `derived: { from: [ links ], unless: [ blocks ] … }`.
type derivedBlock struct {
	place
	from             []linkDecl
	sources, of      string // instead: the column with a list of keys, and the table that has them
	sourcesAt, ofAt  place
	unless, where    []block
	inherit, onErase string
}

// What of a source's rule is asked of what was made from it.
const (
	inheritConsents   = "consents"   // all but whose the source is; so it is where nothing is said
	inheritEverything = "everything" // all of it
)

func (d *decoder) derived(at place, n *node) block {
	b := derivedBlock{place: at, onErase: "erase"}
	one := func(into *string, what string, known ...string) func(*node) {
		return func(v *node) {
			d.word(into, what)(v)
			if *into != "" && !slices.Contains(known, *into) {
				d.fail(v.Place, among(*into, known), "unknown word %q for %s", *into, what)
			}
		}
	}
	d.fields(n, "derived", map[string]func(*node){
		"from": func(v *node) {
			if v.Kind == yamlfile.Mapping {
				b.from = []linkDecl{d.link(v, "from")}
				return
			}
			if !d.want(v, yamlfile.List, "from") {
				return
			}
			for _, item := range v.Items {
				b.from = append(b.from, d.link(item, "from"))
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "name the table of the sources, and the link table before it if there is one", "from is empty")
			}
		},
		"sources":  d.wordAt(&b.sources, &b.sourcesAt, "sources"),
		"of":       d.wordAt(&b.of, &b.ofAt, "of"),
		"unless":   func(v *node) { b.unless = d.blocks(v, "unless") },
		"where":    func(v *node) { b.where = d.blocks(v, "where") },
		"inherit":  one(&b.inherit, "inherit", inheritConsents, inheritEverything),
		"on_erase": one(&b.onErase, "on_erase", "erase", "keep"),
	})
	listed := b.sources != "" || b.of != ""
	switch {
	case n.Kind != yamlfile.Mapping:
	case len(b.from) == 0 && !listed && !slices.Contains(n.Keys, "from"):
		d.fail(n.Place, "write from: { table: { its column: the column it equals } }, or sources: a column with a "+
			"list of keys, and of: their table", "derived needs to know what a row is made from")
	case listed && slices.Contains(n.Keys, "from"):
		d.fail(n.Place, "write two blocks if rows are made from both", "derived goes by links or by a list, not both")
	case listed:
		d.need(n, "derived", "sources", "of")
	}
	return b
}

// derived compiles a block on rows of row.
func (c *compiler) derived(b derivedBlock, row *catalog.Relation) predicate.Node {
	return c.derive(b, row, b.inherit == inheritEverything)
}

func (c *compiler) derive(b derivedBlock, row *catalog.Relation, everything bool) predicate.Node {
	origin, ok := c.origin(b, row)
	if !ok {
		return predicate.Any{}
	}
	source, failed := origin.Table(), len(c.errs)
	at := b.ofAt.Or(b.place)
	if len(b.from) > 0 {
		at = b.from[len(b.from)-1].place
	}
	listed := c.tables[source.Name]
	self := source.Name == row.Name
	switch {
	case listed == nil && (len(b.where) == 0 || self):
		c.fail(at, "list it under tables, or say under where what is asked of its rows",
			"the policy does not list %s, so nothing says what its people consented to", source.Name)
		return predicate.Any{}
	case self && !slices.ContainsFunc(flat(listed.decl.rows, false),
		func(other block) bool { return other != nil && other.At() == b.place }):
		c.fail(b.place, "write it in the list of rows itself, and unless for rows that were made from no other",
			"rows of %s are made from each other: derived cannot stand within another block there", row.Name)
		return predicate.Any{}
	}
	out := predicate.Derived{Origin: origin}
	var rows predicate.All
	if listed != nil {
		rows, out.Again = c.inherited(at, listed, row, everything)
	}
	if len(out.Again) > 0 {
		switch {
		case len(b.where) > 0:
			c.fail(b.place, "say it in the rule of the table itself",
				"rows of %s are made from each other: where would speak of some of them only", source.Name)
		case len(source.PrimaryKey) == 0:
			c.fail(at, "give it one",
				"rows of %s are made from each other, and it has no primary key to follow them by", source.Name)
		}
		for _, name := range source.PrimaryKey {
			key := source.Column(name)
			// these are followed as text
			if under := c.under(key); family(key.Type) == "" && family(under) != "text" && !blankPadded(under) {
				c.fail(at,
					"follow rows by a key of uuid, integer, text, varchar, char or date columns, or of domains "+
						"over texts", "rows of %s are made from each other, and %s of its primary key is a %s", source.Name, name, key.Type)
			}
		}
	}
	if len(b.where) > 0 {
		rows = append(rows, c.otherRows(b.where, source)...)
	}
	if len(rows) == 0 {
		rows = predicate.All{predicate.Open{}}
		c.warn(b.place, "%s asks for nothing but whose a row is: what was made from it shows wherever its sources "+
			"are there", source.Name)
	}
	if len(c.errs) > failed {
		return predicate.Any{}
	}
	out.Rows = rows
	return out
}

// otherRows compiles blocks on rows of another table: they are no rules of the row.
func (c *compiler) otherRows(blocks []block, r *catalog.Relation) predicate.All {
	defer func(r *Rule) { c.rule = r }(c.rule)
	c.rule = &Rule{}
	return c.parts(blocks, r)
}

// inherited is what is asked of a source, and how its table's rows are made from each other.
func (c *compiler) inherited(at place, source *compiling, row *catalog.Relation, everything bool) (rows predicate.All,
	again []predicate.Origin) {
	name := source.relation.Name
	if i := slices.Index(c.path, name); i >= 0 && (i < len(c.path)-1 || row.Name != name) {
		var circle []string
		for _, n := range append(slices.Clone(c.path[i:]), name) {
			circle = append(circle, n.String())
		}
		c.fail(at, "let one of them be made from rows outside the circle; only within one table may rows be made from each other",
			"derived goes round in a circle: %s", strings.Join(circle, " → "))
		return nil, nil
	}
	// they are given for the table itself
	defer func(path []catalog.Name, warnings []*Error) { c.path, c.warnings = path, warnings }(c.path, c.warnings)
	c.path = append(slices.Clone(c.path), name)
	for _, part := range flat(source.decl.rows, false) {
		switch b := part.(type) {
		case openBlock, nil:
			continue
		case ownBlock, tenantBlock:
			if !everything {
				continue
			}
		case visibleBlock:
			if !everything {
				rows = append(rows, c.visibleConsents(b, source.relation))
				continue
			}
		case derivedBlock:
			origin, ok := c.origin(b, source.relation)
			switch {
			case !ok:
				rows = append(rows, predicate.Any{})
			case origin.Table().Name == name:
				again = append(again, origin)
			default:
				rows = append(rows, c.derive(b, source.relation, everything && b.inherit == inheritEverything))
			}
			continue
		}
		rows = append(rows, c.otherRows([]block{part}, source.relation)...)
	}
	return rows, again
}

// visibleConsents is a visible of a source's rule: what the row that it points to asks, but for whose it is.
func (c *compiler) visibleConsents(b visibleBlock, row *catalog.Relation) predicate.Node {
	target := c.link(b.link, row)
	if target == nil || c.tables[target.Name] == nil {
		return predicate.Any{} // told of the table itself
	}
	first := b.link.pairs[0]
	if b.rows != nil {
		asked := slices.DeleteFunc(flat(allBlock{place: b.place, parts: b.rows}, false), func(part block) bool {
			switch part.(type) {
			case ownBlock, tenantBlock:
				return true
			}
			return false
		})
		rows := c.conditionsOf("rows", asked, target)
		if rows == nil {
			rows = predicate.All{predicate.Open{}}
		}
		return predicate.Visible{Relation: target, Column: first.Column, From: first.From, And: b.link.more(), Rows: rows}
	}
	rows, again := c.inherited(b.link.place, c.tables[target.Name], row, false)
	for _, origin := range again {
		rows = append(rows, predicate.Derived{Origin: origin, Rows: or(rows, predicate.All{predicate.Open{}}), Again: again})
	}
	if where := c.conditions(b.where, target); where != nil {
		rows = append(predicate.All{where}, rows...)
	}
	return predicate.Visible{Relation: target, Column: first.Column, From: first.From, And: b.link.more(),
		Rows: or(rows, predicate.All{predicate.Open{}})}
}

func or(rows, otherwise predicate.All) predicate.All {
	if len(rows) == 0 {
		return otherwise
	}
	return slices.Clone(rows)
}

// origin compiles where the sources of a row are.
func (c *compiler) origin(b derivedBlock, row *catalog.Relation) (predicate.Origin, bool) {
	var out predicate.Origin
	failed := len(c.errs)
	from := row
	for _, link := range b.from {
		target := c.link(link, from)
		if target == nil {
			return out, false
		}
		out.Steps = append(out.Steps, predicate.Step{
			Relation: target, Column: link.pairs[0].Column, From: link.pairs[0].From, And: link.more()})
		from = target
	}
	if len(b.from) == 0 {
		if !c.keys(b, row, &out) {
			return out, false
		}
	}
	if len(b.unless) > 0 {
		out.Unless = c.begins(b.unless, row)
	}
	return out, len(c.errs) == failed
}

// begins compiles where a row needs no other: what its own columns say, or that a row that it points to shows.
func (c *compiler) begins(blocks []block, row *catalog.Relation) predicate.Node {
	var check func(blocks []block)
	check = func(blocks []block) {
		for _, b := range blocks {
			switch b := b.(type) {
			case allBlock:
				check(b.parts)
			case anyBlock:
				check(b.parts)
			case visibleBlock:
			default:
				c.ownColumns("where", b)
			}
		}
	}
	check(blocks)
	return predicate.All(c.otherRows(blocks, row))
}

// keys compiles a list of keys.
func (c *compiler) keys(b derivedBlock, row *catalog.Relation, out *predicate.Origin) bool {
	source := c.relation(b.ofAt, b.of)
	list, elements, ok := c.list(b.sourcesAt, row, b.sources)
	if source == nil || !ok {
		return false
	}
	if len(source.PrimaryKey) != 1 {
		c.fail(b.ofAt, "let a link table say what rows are made from",
			"%s has no primary key of one column, which a list could hold", source.Name)
		return false
	}
	key, column := source.Column(source.PrimaryKey[0]), row.Column(b.sources)
	json := list.Form == predicate.GrantJSON || list.Form == predicate.GrantJSONB
	switch {
	case family(key.Type) == "" || family(key.Type) == "date" || !json && family(key.Type) != elements:
		c.fail(b.sourcesAt, "a list holds the values of the primary key",
			"%s.%s is a %s and %s.%s a %s: they do not link", row.Name, column.Name, column.Type, source.Name, key.Name, key.Type)
		return false
	case family(key.Type) == "text" && key.Collation != column.Collation && column.Collation != "":
		c.fail(b.sourcesAt, "give both columns one collation",
			"%s.%s and %s.%s have different collations: PostgreSQL would not know by which to compare",
			row.Name, column.Name, source.Name, key.Name)
		return false
	}
	out.List, out.Source, out.Key = list, source, key.Name
	return true
}

// derivations collects what the rules say, by the order of the files.
func (c *compiler) derivations() []Derivation {
	var out []Derivation
	for _, name := range c.order {
		t := c.tables[name]
		for _, b := range derivedBlocks(t.decl.rows) {
			if origin, ok := c.origin(b, t.relation); ok {
				out = append(out, Derivation{Table: t.relation, Origin: origin, DeleteWithSource: b.onErase == "erase"})
			}
		}
	}
	return out
}

// derivedBlocks are those of a rule, at any depth.
func derivedBlocks(b block) []derivedBlock {
	var out []derivedBlock
	switch b := b.(type) {
	case derivedBlock:
		out = append(out, b)
	case allBlock:
		for _, part := range b.parts {
			out = append(out, derivedBlocks(part)...)
		}
	case anyBlock:
		for _, part := range b.parts {
			out = append(out, derivedBlocks(part)...)
		}
	}
	return out
}
