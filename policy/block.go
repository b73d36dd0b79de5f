package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// block is a building block of a row rule, as it is written.
type block interface{ At() place }

type (
	openBlock struct{ place }
	allBlock  struct {
		place
		parts []block
	}
	anyBlock struct {
		place
		parts []block
	}
	ownBlock struct {
		place
		column, attribute     string
		columnAt, attributeAt place
	}
	statusBlock struct {
		place
		column, is     string
		columnAt, isAt place
	}
	consentBlock struct {
		place
		every          []linkDecl
		status, is     string
		statusAt, isAt place
		recorded       *recordedDecl // instead of a status

		expires           string
		expiresAt, keptAt place
		kept              bool
	}
	visibleBlock struct {
		place
		link  linkDecl
		where []block // of the row that it points to, besides its own rule
		rows  []block // instead of that rule
	}
)

// linkDecl is `table: { its column: the column it equals }`, with more pairs for a key of several columns.
type linkDecl struct {
	place
	table   string
	pairs   []predicate.Pair
	pairsAt []place // of each pair
}

// laterBlocks are blocks of the design that this version does not have: said so, instead of "unknown".
var laterBlocks = []string{
	"function", "limit",
}

// rows reads a table's rule: a list, of which every block must hold, or a single block.
func (d *decoder) rows(n *node) block {
	if n.Kind != yamlfile.List {
		return d.block(n)
	}
	all := allBlock{place: n.Place, parts: d.blocks(n, "rows")}
	if len(all.parts) == 1 {
		return all.parts[0]
	}
	return all
}

func (d *decoder) blocks(n *node, what string) []block {
	if !d.want(n, yamlfile.List, what) {
		return nil
	}
	if len(n.Items) == 0 {
		d.fail(n.Place, `say "open" if every row may show`, "%s is empty", what)
	}
	var out []block
	for _, item := range n.Items {
		if b := d.block(item); b != nil {
			out = append(out, b)
		}
	}
	return out
}

// block reads one block; nil after an error.
func (d *decoder) block(n *node) block {
	if n.Kind == yamlfile.Scalar {
		if n.Value == "open" {
			d.doc.blocks[n.Place] = n.Value
			return openBlock{n.Place}
		}
		suggestion := closest(n.Value, []string{"open"})
		switch {
		case openSlip(n):
			suggestion = `say "open" if every row may show`
		case slices.Contains([]string{"none", "nothing", "nobody", "closed", "deny"}, n.Value):
			suggestion = "leave the table out: what is not listed is refused"
		case strings.ContainsAny(n.Value, " =()"):
			suggestion = "write sql: \"…\" for a condition of SQL"
		case slices.Contains(d.blockNames(), n.Value) && n.Value != "open":
			suggestion = "write " + n.Value + ": …, only open stands alone"
		}
		d.fail(n.Place, suggestion, "unknown block %q", n.Value)
		return nil
	}
	if !d.want(n, yamlfile.Mapping, "a block") {
		return nil
	}
	if len(n.Keys) != 1 {
		d.fail(n.Place, "begin each block with a dash of its own", "a block has one name")
		return nil
	}
	var out block
	at, value := n.KeyAt[0], n.Values[0]
	d.doc.blocks[at] = n.Keys[0]
	known := d.blocksOf(at, value, &out)
	if slices.Contains(tableKeys, n.Keys[0]) {
		d.fail(at, "it stands beside rows, not in it", "%q is no block of rows", n.Keys[0])
		return nil
	}
	if known[n.Keys[0]] == nil && !slices.Contains(laterBlocks, n.Keys[0]) {
		d.fail(at, among(n.Keys[0], keys(known)), "unknown block %q", n.Keys[0])
		return nil
	}
	d.fields(n, "rows", known, laterBlocks...)
	return out
}

// blockNames are the names of all blocks.
func (d *decoder) blockNames() []string { return keys(d.blocksOf(place{}, &node{}, new(block))) }

// blocksOf has a function for each block, which reads it into out.
func (d *decoder) blocksOf(at place, value *node, out *block) map[string]func(*node) {
	return map[string]func(*node){
		"open": func(*node) {
			if value.Kind != yamlfile.Scalar || value.Value != "true" {
				d.fail(value.Place, `write "open"`, "open takes nothing but true")
			}
			*out = openBlock{at}
		},
		"all":     func(*node) { *out = allBlock{at, d.blocks(value, "all")} },
		"any":     func(*node) { *out = anyBlock{at, d.blocks(value, "any")} },
		"own":     func(*node) { *out = d.own(at, value) },
		"status":  func(*node) { *out = d.status(at, value) },
		"consent": func(*node) { *out = d.consent(at, value) },
		"visible": func(*node) { *out = d.visible(at, value) },
		"derived": func(*node) { *out = d.derived(at, value) },
		"shared":  func(*node) { *out = d.shared(at, value) },
		"tenant":  func(*node) { *out = d.tenant(at, value) },
		"grant":   func(*node) { *out = d.grant(at, value) },
		"sql":     func(*node) { *out = d.sql(at, value) },
		"not":     func(*node) { *out = notBlock{at, d.block(value)} },
	}
}

func (d *decoder) status(at place, n *node) block {
	b := statusBlock{place: at}
	d.fields(n, "status", map[string]func(*node){
		"column": d.wordAt(&b.column, &b.columnAt, "column"),
		"is":     d.wordAt(&b.is, &b.isAt, "is"),
	})
	d.need(n, "status", "column", "is")
	return b
}

func (d *decoder) consent(at place, n *node) block {
	b := consentBlock{place: at}
	d.fields(n, "consent", map[string]func(*node){
		"every": func(v *node) {
			if !d.want(v, yamlfile.List, "every") {
				return
			}
			for _, item := range v.Items {
				b.every = append(b.every, d.link(item, "every"))
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "name the table of the subjects, and the link table before it if there is one", "every is empty")
			}
		},
		"status":  d.wordAt(&b.status, &b.statusAt, "status"),
		"is":      d.wordAt(&b.is, &b.isAt, "is"),
		"expires": d.wordAt(&b.expires, &b.expiresAt, "expires"),
		"materialize": func(v *node) {
			b.keptAt = v.Place
			d.flag(&b.kept, "materialize")(v)
		},
		"subject": d.recordedKey(&b, func(r *recordedDecl, v *node) { d.word(&r.subject, "subject")(v); r.subjectAt = v.Place }),
		"subjects": d.recordedKey(&b, func(r *recordedDecl, v *node) {
			d.word(&r.subjects, "subjects")(v)
			r.subjectAt = v.Place
		}),
		"but":      d.recordedKey(&b, func(r *recordedDecl, v *node) { r.but = d.grantees(v, "but") }),
		"record":   d.recordedKey(&b, func(r *recordedDecl, v *node) { r.record = d.record(v) }),
		"registry": d.recordedKey(&b, func(r *recordedDecl, v *node) { r.registry = d.registry(v) }),
	})
	if b.recorded == nil {
		d.need(n, "consent", "every", "status", "is")
		return b
	}
	if b.recorded.registry == nil {
		d.need(n, "consent", "record")
	}
	if b.expires != "" || b.kept {
		d.fail(b.expiresAt.Or(b.keptAt), "leave it out",
			"expires and materialize are for consent by a status: whose records count depends on who asks")
	}
	switch {
	case b.recorded.record != nil && b.recorded.registry != nil:
		d.fail(n.Place, "leave record out, or registry", "consent is by records of your own or by the registry, not both")
	case b.status != "" || b.is != "":
		d.fail(n.Place, "leave status and is out, or record", "consent is a status or a record, not both")
	case (b.recorded.subject == "") == (b.recorded.subjects == ""):
		d.fail(n.Place, "write subject: the column of one, or subjects: the column of a list",
			"consent needs to know the column of its subjects")
	}
	return b
}

// visible reads a link, and what the row that it leads to must be besides visible, or instead.
func (d *decoder) visible(at place, n *node) block {
	b := visibleBlock{place: at}
	link := *n
	for _, key := range []string{"where", "rows"} {
		i := slices.Index(n.Keys, key)
		if n.Kind != yamlfile.Mapping || len(n.Keys) != 2 || i < 0 {
			continue
		}
		if blocks := d.blocks(n.Values[i], key); key == "where" {
			b.where = blocks
		} else {
			b.rows = blocks
		}
		link.Keys, link.KeyAt, link.Values = n.Keys[1-i:2-i], n.KeyAt[1-i:2-i], n.Values[1-i:2-i]
		break
	}
	b.link = d.link(&link, "visible")
	return b
}

// link reads `{ table: { column: column } }`.
func (d *decoder) link(n *node, what string) linkDecl {
	shape := "write { table: { its column: the column it equals } }, one pair for each column of the key"
	if n.Kind != yamlfile.Mapping || len(n.Keys) != 1 || n.Values[0].Kind != yamlfile.Mapping || len(n.Values[0].Keys) == 0 {
		d.fail(n.Place, shape, "%s needs one table with its columns", what)
		return linkDecl{place: n.Place}
	}
	out := linkDecl{place: n.KeyAt[0], table: n.Keys[0]}
	for i, from := range n.Values[0].Values {
		if from.Kind != yamlfile.Scalar || from.Value == "" {
			d.fail(from.Place, shape, "a column is a single name")
		}
		out.pairs = append(out.pairs, predicate.Pair{Column: n.Values[0].Keys[i], From: from.Value})
		out.pairsAt = append(out.pairsAt, n.Values[0].KeyAt[i])
	}
	return out
}
