package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// block is one condition of a row rule, as the policy writes it.
type block interface{ At() place }

type (
	// openBlock is `rows: open`: every row shows.
	openBlock struct{ place }
	noneBlock struct { // `rows: none`: agents see no single row of the table, and use it in aggregates only
		place
		isEmptyList bool // the policy writes the block as an empty list
	}
	// allBlock is a list of blocks that must all hold.
	allBlock struct {
		place
		parts []block
	}
	// anyBlock is a list of blocks, at least one of which must hold.
	anyBlock struct {
		place
		parts []block
	}
	// ownBlock is a condition that a column equals an attribute of the session.
	ownBlock struct {
		place
		column, attribute     string
		columnAt, attributeAt place
	}
	// statusBlock is a condition that a column holds a certain word.
	statusBlock struct {
		place
		column, requiredWord     string
		columnAt, requiredWordAt place
	}
	consentBlock struct {
		place
		// the links from the row to the people who must all have consented: the value of the key every
		subjectLinks             []linkDecl
		status, requiredWord     string
		statusAt, requiredWordAt place
		records                  *recordedDecl // how consent by records is declared; nil: a status column says who consents

		expires                  string
		expiresAt, materializeAt place
		materialize              bool
	}
	// visibleBlock is a condition that the row refers to a visible row of another table.
	visibleBlock struct {
		place
		link  linkDecl
		where []block // conditions on the target row, which apply in addition to the rule of the target's table
		rows  []block // conditions on the target row, which apply instead of the rule of the target's table
	}
)

// laterBlocks are the names of blocks that a later version of pgconsent will have. The error for such a block says so,
// instead of "unknown".
var laterBlocks = []string{
	"function", "limit",
}

// decodeRows reads the rule of a table: one block, or a list of blocks that must all hold.
func (d *blockDecoder) decodeRows(n *node) block {
	if n.Kind != yamlfile.ListNode {
		return d.decodeBlock(n)
	}
	block := allBlock{place: n.Place, parts: d.decodeBlocks(n, "rows")}
	if len(block.parts) == 1 {
		return block.parts[0]
	}
	return block
}

func (d *blockDecoder) decodeBlocks(n *node, label string) []block {
	if !d.requireKind(n, yamlfile.ListNode, label) {
		return nil
	}
	if len(n.Items) == 0 {
		d.fail(n.Place, `say "open" if every row may show`, "%s is empty", label)
	}
	var out []block
	for _, item := range n.Items {
		if b := d.decodeBlock(item); b != nil {
			out = append(out, b)
		}
	}
	return out
}

// decodeBlock reads one block; nil after an error.
func (d *blockDecoder) decodeBlock(n *node) block {
	if n.Kind == yamlfile.ScalarNode {
		if n.Value == "open" {
			d.doc.blockNames[n.Place] = n.Value
			return openBlock{n.Place}
		}
		suggestion := closest(n.Value, []string{"open"})
		switch {
		case isLikelyOpen(n):
			suggestion = `say "open" if every row may show`
		case slices.Contains([]string{"none", "nothing", "nobody", "closed", "deny"}, n.Value):
			suggestion = "leave the table out: what is not listed is refused"
		case strings.ContainsAny(n.Value, " =()"):
			suggestion = "write sql: \"…\" for a condition of SQL"
		case slices.Contains(blockNames(), n.Value) && n.Value != "open":
			suggestion = "write " + n.Value + ": …, only open stands alone"
		}
		d.fail(n.Place, suggestion, "unknown block %q", n.Value)
		return nil
	}
	if !d.requireKind(n, yamlfile.MappingNode, "a block") {
		return nil
	}
	if len(n.Keys) != 1 {
		d.fail(n.Place, "begin each block with a dash of its own", "a block has one name")
		return nil
	}
	var out block
	position, value := n.KeyPlaces[0], n.Values[0]
	d.doc.blockNames[position] = n.Keys[0]
	decoders := d.blockDecoders(position, value, &out)
	if slices.Contains(tableKeys, n.Keys[0]) {
		d.fail(position, "it stands beside rows, not in it", "%q is no block of rows", n.Keys[0])
		return nil
	}
	if decoders[n.Keys[0]] == nil && !slices.Contains(laterBlocks, n.Keys[0]) {
		d.fail(position, closestOrAll(n.Keys[0], sortedKeys(decoders)), "unknown block %q", n.Keys[0])
		return nil
	}
	d.decodeFields(n, "rows", decoders, laterBlocks...)
	return out
}

// blockNames are the names of all blocks.
func blockNames() []string {
	var out []string
	for _, k := range blockShapes() {
		out = append(out, k.name)
	}
	return out
}

// blockDecoders returns the decoders of all blocks, by the names of the blocks. Each decoder stores its block in out.
func (d *blockDecoder) blockDecoders(position place, value *node, out *block) map[string]func(*node) {
	return map[string]func(*node){
		"open": func(*node) {
			if value.Kind != yamlfile.ScalarNode || value.Value != "true" {
				d.fail(value.Place, `write "open"`, "open takes nothing but true")
			}
			*out = openBlock{position}
		},
		"all":     func(*node) { *out = allBlock{position, d.decodeBlocks(value, "all")} },
		"any":     func(*node) { *out = anyBlock{position, d.decodeBlocks(value, "any")} },
		"own":     func(*node) { *out = d.decodeOwn(position, value) },
		"status":  func(*node) { *out = d.decodeStatus(position, value) },
		"consent": func(*node) { *out = d.decodeConsent(position, value) },
		"visible": func(*node) { *out = d.decodeVisible(position, value) },
		"derived": func(*node) { *out = d.decodeDerived(position, value) },
		"shared":  func(*node) { *out = d.decodeShared(position, value) },
		"tenant":  func(*node) { *out = d.decodeTenant(position, value) },
		"grant":   func(*node) { *out = d.decodeGrant(position, value) },
		"sql":     func(*node) { *out = d.decodeSQL(position, value) },
		"not":     func(*node) { *out = notBlock{position, d.decodeBlock(value)} },
	}
}

// flatten returns the parts of nested lists of one kind: the parts of any blocks if isAny is true, and otherwise of all
// blocks.
func flatten(b block, isAny bool) []block {
	var parts []block
	switch b := b.(type) {
	case allBlock:
		if isAny {
			return []block{b}
		}
		parts = b.parts
	case anyBlock:
		if !isAny {
			return []block{b}
		}
		parts = b.parts
	default:
		return []block{b}
	}
	var out []block
	for _, part := range parts {
		out = append(out, flatten(part, isAny)...)
	}
	return out
}
