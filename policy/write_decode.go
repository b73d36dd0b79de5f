package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

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

type stampDecl struct {
	place
	column, attribute, value string
	valueAt                  place
	unless                   block
}

func (d *writeDecl) accepts(what string) bool {
	return slices.ContainsFunc(d.accept, func(w wordDecl) bool { return w.text == what })
}

// names tells whether a column is named under columns.
func (d *writeDecl) names(column string) bool {
	return slices.ContainsFunc(d.columns, func(w wordDecl) bool { return w.text == column })
}

// write reads what agents may change of a table.
func (d *tableDecoder) write(n *node) *writeDecl {
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
		"check": func(v *node) { decl.check = d.blocks.rows(v) },
		"lists": func(v *node) { decl.lists = d.lists(v) },
		"stamp": func(v *node) {
			if !d.expect(v, yamlfile.Mapping, "stamp") {
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

func (d *tableDecoder) stamp(at place, column string, n *node) stampDecl {
	s := stampDecl{place: at, column: column, valueAt: n.Place}
	d.fields(n, "stamp", map[string]func(*node){
		"attribute": d.word(&s.attribute, "attribute"),
		"value":     d.word(&s.value, "value"),
		"unless":    func(v *node) { s.unless = d.blocks.rows(v) },
	})
	if n.Kind == yamlfile.Mapping && (s.attribute == "") == (s.value == "") {
		d.fail(n.Place, "write { attribute: name } or { value: word }", "a stamp is an attribute or a value")
	}
	return s
}
