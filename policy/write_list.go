package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// listDecl bounds a column with a list of ids: `{ from: [sources], narrow: true, wider: blocks, chain: … }`.
type listDecl struct {
	place
	column    string
	from      []sourceDecl
	fromGiven bool // the key from is given, maybe with an empty list
	narrow    bool
	widerRows block
	chain     *chainDecl
}

// chainDecl is `{ match: { its column: the column of the row that it equals }, all: word }`.
type chainDecl struct {
	place
	match []predicate.Pair
	all   string // the word that means everybody
	allAt place
}

// sourceDecl is an entry of from: `{ table: …, match: …, where: …, lists: …, ids: …, when: … }`.
type sourceDecl struct {
	place
	table   string
	match   []predicate.Pair
	where   []block
	columns []wordDecl // columns with lists
	ids     []wordDecl // columns with single ids
	when    block
}

func (d *tableDecoder) decodeLists(n *node) []listDecl {
	if !d.expect(n, yamlfile.Mapping, "lists") {
		return nil
	}
	var out []listDecl
	for i, column := range n.Keys {
		decl := listDecl{place: n.KeyAt[i], column: column}
		d.fields(n.Values[i], "list "+column, map[string]func(*node){
			"from": func(v *node) {
				decl.fromGiven = true
				if !d.expect(v, yamlfile.List, "from") {
					return
				}
				for _, item := range v.Items {
					decl.from = append(decl.from, d.decodeSource(item))
				}
			},
			"narrow": func(v *node) {
				if v.Kind != yamlfile.Scalar || v.Value != "true" {
					d.fail(v.Place, "leave it out if the list may grow", "narrow takes nothing but true")
				}
				decl.narrow = true
			},
			"wider": func(v *node) { decl.widerRows = d.blocks.decodeRows(v) },
			"chain": func(v *node) {
				chain := &chainDecl{place: v.Place}
				d.fields(v, "chain", map[string]func(*node){
					"match": func(v *node) { chain.match = d.pairs(v, "match") },
					"all":   d.wordAt(&chain.all, &chain.allAt, "all"),
				})
				d.need(v, "chain", "match")
				decl.chain = chain
			},
		})
		if decl.chain != nil && !decl.fromGiven {
			d.fail(decl.chain.place, "say from: [] if nothing else gives a new row its list",
				"chain bounds what from gives, and there is none")
		}
		if decl.widerRows != nil && !decl.narrow && !decl.fromGiven {
			d.fail(decl.place, "say narrow: true, or from", "wider is what permits more than a bound, and there is none")
		}
		out = append(out, decl)
	}
	return out
}

func (d *tableDecoder) decodeSource(n *node) sourceDecl {
	s := sourceDecl{place: n.Place}
	d.fields(n, "from", map[string]func(*node){
		"table": d.word(&s.table, "table"),
		"match": func(v *node) { s.match = d.pairs(v, "match") },
		"where": func(v *node) { s.where = d.blocks.decodeBlocks(v, "where") },
		"lists": func(v *node) { s.columns = d.words(v, "lists") },
		"ids":   func(v *node) { s.ids = d.words(v, "ids") },
		"when":  func(v *node) { s.when = d.blocks.decodeRows(v) },
	})
	switch {
	case len(s.columns)+len(s.ids) == 0:
		d.fail(n.Place, "name columns under lists (several ids) or ids (one)", "a source needs columns")
	case s.table == "" && len(s.match)+len(s.where) > 0:
		d.fail(n.Place, "name the table, or say when", "match and where speak of a table")
	case s.table != "" && len(s.match) == 0:
		d.fail(n.Place, "write match: { its column: the column of the new row that it equals }",
			"a source in another table needs to be found")
	}
	return s
}

// listBounds compiles the bounds of lists.
func (c *writeCompiler) listBounds(decl *writeDecl, r *catalog.Relation) []predicate.Bound {
	var out []predicate.Bound
	for _, l := range decl.lists {
		list, elements, ok := c.idList(l.place, r, l.column)
		if !ok {
			continue
		}
		b := predicate.Bound{List: list, Type: r.Column(l.column).Type, Narrow: l.narrow}
		if l.fromGiven {
			b.From = []predicate.Source{}
		}
		for _, s := range l.from {
			if source, ok := c.boundSource(s, r, r.Column(l.column), elements); ok {
				b.From = append(b.From, source)
			}
		}
		if l.widerRows != nil {
			c.rules.judgesElements = true
			b.Wider = c.rules.compileCondition(l.widerRows, r)
			c.rules.judgesElements = false
		}
		if l.chain != nil {
			if l.chain.all != "" && elements != "text" {
				c.fail(l.chain.allAt, "leave it out",
					"%s.%s holds ids that are %s, among which no word can stand for everybody", r.Name, l.column, elements)
			}
			b.Chain = c.listChain(l.chain, r)
		}
		out = append(out, b)
	}
	return out
}

// listChain compiles how rows of a table refer to each other. A hidden row gives nothing to the chain.
func (c *writeCompiler) listChain(decl *chainDecl, r *catalog.Relation) *predicate.Chain {
	failed := len(c.errs)
	var key []string
	for _, p := range decl.match {
		c.checkPair(decl.place, r, r, p)
		key = append(key, p.Column)
	}
	slices.Sort(key)
	if len(c.errs) == failed && !slices.Equal(key, slices.Sorted(slices.Values(r.PrimaryKey))) {
		c.fail(decl.place, "let match lead to the whole primary key",
			"a chain goes from row to row, and %s may lead to several of %s", strings.Join(key, ", "), r.Name)
	}
	if len(c.errs) > failed {
		return nil
	}
	return &predicate.Chain{Relation: r, Match: decl.match, All: decl.all, Rows: c.tables[r.Name].rows}
}

func (c *writeCompiler) boundSource(s sourceDecl, row *catalog.Relation, target *catalog.Column,
	elements string) (predicate.Source, bool) {
	failed := len(c.errs)
	out := predicate.Source{Match: s.match}
	from := row
	if s.table != "" {
		if from = c.findTable(s.place, s.table); from == nil {
			return out, false
		}
		out.Relation = from
		for _, p := range s.match {
			c.checkPair(s.place, from, row, p)
		}
		out.Where = c.rules.ownConditions(s.where, from)
	}
	for _, w := range s.columns {
		if list, found, ok := c.idList(w.place, from, w.text); ok {
			if found != elements {
				c.fail(w.place, "lists of one kind go together",
					"%s.%s is of ids that are %s, and %s.%s of ids that are %s", from.Name, w.text, found, row.Name, target.Name, elements)
			}
			out.Columns, out.One = append(out.Columns, list), append(out.One, false)
		}
	}
	for _, w := range s.ids {
		if column := c.ruleColumn(w.place, from, w.text); column != nil {
			if typeFamily(column.Type) != elements {
				c.fail(w.place, "an id is of the kind of the list's elements",
					"%s.%s is a %s, and %s.%s of ids that are %s", from.Name, w.text, column.Type, row.Name, target.Name, elements)
			}
			out.Columns, out.One = append(out.Columns, predicate.List{Column: w.text, Form: idForm(elements)}), append(out.One, true)
		}
	}
	if s.when != nil {
		out.When = c.rules.compileCondition(s.when, row)
	}
	return out, len(c.errs) == failed
}

// describeBounds describes the bounds that the database enforces, for the hash of the policy.
func describeBounds(bounds []predicate.Bound) string {
	var parts []string
	for _, b := range bounds {
		parts = append(parts, strconv.Quote(b.Column), strconv.FormatBool(b.From != nil),
			strconv.FormatBool(b.Narrow), b.DefaultList(), b.Exceeds("NULL", false))
		if b.Chain != nil {
			parts = append(parts, "chain", b.ChainIntersection())
		}
	}
	return strings.Join(parts, " ")
}
