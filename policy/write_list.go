package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// listDecl says which ids agents may write into a list: `{ from: [sources], narrow: true, wider: blocks, chain: … }`.
type listDecl struct {
	place
	column        string
	from          []sourceDecl
	hasFrom       bool // the key from is there, maybe with an empty list
	onlyNarrowing bool
	widerRows     block
	chain         *chainDecl
}

// chainDecl says by which columns a row refers to another row of its table, whose list also bounds the row's list: `{
// match: { its column: the row's column that equals it }, all: word }`.
type chainDecl struct {
	place
	match         []predicate.ColumnPair
	everybodyWord string // the word that stands for everybody in a list
	allAt         place
}

// sourceDecl is an entry of from. It says where permitted ids come from: `{ table: …, match: …, where: …, lists: …,
// ids: …, when: … }`.
type sourceDecl struct {
	place
	table       string
	match       []predicate.ColumnPair
	where       []block
	listColumns []wordDecl // the columns with lists of ids
	idColumns   []wordDecl // the columns with single ids
	when        block
}

func (d *tableDecoder) decodeLists(n *node) []listDecl {
	if !d.requireKind(n, yamlfile.MappingNode, "lists") {
		return nil
	}
	var out []listDecl
	for i, column := range n.Keys {
		decl := listDecl{place: n.KeyPlaces[i], column: column}
		d.decodeFields(n.Values[i], "list "+column, map[string]func(*node){
			"from": func(v *node) {
				decl.hasFrom = true
				if !d.requireKind(v, yamlfile.ListNode, "from") {
					return
				}
				for _, item := range v.Items {
					decl.from = append(decl.from, d.decodeSource(item))
				}
			},
			"narrow": func(v *node) {
				if v.Kind != yamlfile.ScalarNode || v.Value != "true" {
					d.fail(v.Place, "leave it out if the list may grow", "narrow takes nothing but true")
				}
				decl.onlyNarrowing = true
			},
			"wider": func(v *node) { decl.widerRows = d.blocks.decodeRows(v) },
			"chain": func(v *node) {
				chain := &chainDecl{place: v.Place}
				d.decodeFields(v, "chain", map[string]func(*node){
					"match": func(v *node) { chain.match = d.decodePairs(v, "match") },
					"all":   d.decodeWordAt(&chain.everybodyWord, &chain.allAt, "all"),
				})
				d.requireFields(v, "chain", "match")
				decl.chain = chain
			},
		})
		if decl.chain != nil && !decl.hasFrom {
			d.fail(decl.chain.place, "say from: [] if nothing else gives a new row its list",
				"chain bounds what from gives, and there is none")
		}
		if decl.widerRows != nil && !decl.onlyNarrowing && !decl.hasFrom {
			d.fail(decl.place, "say narrow: true, or from", "wider is what permits more than a bound, and there is none")
		}
		out = append(out, decl)
	}
	return out
}

func (d *tableDecoder) decodeSource(n *node) sourceDecl {
	s := sourceDecl{place: n.Place}
	d.decodeFields(n, "from", map[string]func(*node){
		"table": d.decodeWord(&s.table, "table"),
		"match": func(v *node) { s.match = d.decodePairs(v, "match") },
		"where": func(v *node) { s.where = d.blocks.decodeBlocks(v, "where") },
		"lists": func(v *node) { s.listColumns = d.decodeWords(v, "lists") },
		"ids":   func(v *node) { s.idColumns = d.decodeWords(v, "ids") },
		"when":  func(v *node) { s.when = d.blocks.decodeRows(v) },
	})
	switch {
	case len(s.listColumns)+len(s.idColumns) == 0:
		d.fail(n.Place, "name columns under lists (several ids) or ids (one)", "a source needs columns")
	case s.table == "" && len(s.match)+len(s.where) > 0:
		d.fail(n.Place, "name the table, or say when", "match and where speak of a table")
	case s.table != "" && len(s.match) == 0:
		d.fail(n.Place, "write match: { its column: the column of the new row that it equals }",
			"a source in another table needs to be found")
	}
	return s
}

// compileListBounds compiles which ids agents may write into lists.
func (c *writeCompiler) compileListBounds(decl *writeDecl, r *catalog.Relation) []predicate.ListBound {
	var out []predicate.ListBound
	for _, l := range decl.lists {
		list, elements, ok := c.findIDList(l.place, r, l.column)
		if !ok {
			continue
		}
		b := predicate.ListBound{List: list, Type: r.Column(l.column).Type, MayOnlyRemove: l.onlyNarrowing}
		if l.hasFrom {
			b.PermittedIDs = []predicate.ListSource{}
		}
		for _, s := range l.from {
			if source, ok := c.compileBoundSource(s, r, r.Column(l.column), elements); ok {
				b.PermittedIDs = append(b.PermittedIDs, source)
			}
		}
		if l.widerRows != nil {
			c.rules.inListCondition = true
			b.WiderCondition = c.rules.compileCondition(l.widerRows, r)
			c.rules.inListCondition = false
		}
		if l.chain != nil {
			if l.chain.everybodyWord != "" && elements != "text" {
				c.fail(l.chain.allAt, "leave it out",
					"%s.%s holds ids that are %s, among which no word can stand for everybody", r.Name, l.column, elements)
			}
			b.Chain = c.compileListChain(l.chain, r)
		}
		out = append(out, b)
	}
	return out
}

// compileListChain compiles by which columns rows of a table refer to each other in a chain. A row of the chain that is
// hidden from the writer permits no ids.
func (c *writeCompiler) compileListChain(decl *chainDecl, r *catalog.Relation) *predicate.ListChain {
	errorsBefore := len(c.errs)
	var key []string
	for _, p := range decl.match {
		c.checkPair(decl.place, r, r, p)
		key = append(key, p.Column)
	}
	slices.Sort(key)
	if len(c.errs) == errorsBefore && !slices.Equal(key, slices.Sorted(slices.Values(r.PrimaryKey))) {
		c.fail(decl.place, "let match lead to the whole primary key",
			"a chain goes from row to row, and %s may lead to several of %s", strings.Join(key, ", "), r.Name)
	}
	if len(c.errs) > errorsBefore {
		return nil
	}
	return &predicate.ListChain{Relation: r, MatchedColumns: decl.match, EverybodyWord: decl.everybodyWord,
		Rows: c.tables[r.Name].rows}
}

func (c *writeCompiler) compileBoundSource(s sourceDecl, row *catalog.Relation, target *catalog.Column,
	elements string) (predicate.ListSource, bool) {
	errorsBefore := len(c.errs)
	out := predicate.ListSource{MatchedColumns: s.match}
	source := row
	if s.table != "" {
		if source = c.findTable(s.place, s.table); source == nil {
			return out, false
		}
		out.Relation = source
		for _, p := range s.match {
			c.checkPair(s.place, source, row, p)
		}
		out.RowCondition = c.rules.compileWhere(s.where, source)
	}
	for _, w := range s.listColumns {
		if list, name, ok := c.findIDList(w.place, source, w.text); ok {
			if name != elements {
				c.fail(w.place, "lists of one kind go together",
					"%s.%s is of ids that are %s, and %s.%s of ids that are %s", source.Name, w.text, name, row.Name, target.Name,
					elements)
			}
			out.Columns, out.SingleIDs = append(out.Columns, list), append(out.SingleIDs, false)
		}
	}
	for _, w := range s.idColumns {
		if column := c.findRuleColumn(w.place, source, w.text); column != nil {
			if typeFamily(column.Type) != elements {
				c.fail(w.place, "an id is of the kind of the list's elements",
					"%s.%s is a %s, and %s.%s of ids that are %s", source.Name, w.text, column.Type, row.Name, target.Name, elements)
			}
			out.Columns, out.SingleIDs = append(out.Columns, predicate.List{Column: w.text, Form: idForm(elements)}),
				append(out.SingleIDs, true)
		}
	}
	if s.when != nil {
		out.AppliesIf = c.rules.compileCondition(s.when, row)
	}
	return out, len(c.errs) == errorsBefore
}

// describeBounds returns a text with the bounds of lists, which the database enforces, for the hash of the policy.
func describeBounds(bounds []predicate.ListBound) string {
	var parts []string
	for _, b := range bounds {
		parts = append(parts, strconv.Quote(b.Column), strconv.FormatBool(b.PermittedIDs != nil),
			strconv.FormatBool(b.MayOnlyRemove), b.DefaultListSQL(), b.ExceedsSQL("NULL", false))
		if b.Chain != nil {
			parts = append(parts, "chain", b.ChainIntersectionSQL())
		}
	}
	return strings.Join(parts, " ")
}
