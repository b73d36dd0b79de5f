package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// What a DBA may accept that agents can learn by their writes. Without it, the write is refused.
const (
	// whether a key collides with a hidden row, or an index fails as it compares with one
	acceptConflicts = "conflicts"
	// whether a foreign key refers to a hidden row, or a hidden row refers to the written one
	acceptReferences = "references"
	acceptSequences  = "sequences" // how many numbers others have drawn from a sequence
	acceptValues     = "values"    // values in hidden columns of visible rows
)

type writeDecl struct {
	place
	commands, columns, immutable, accept []wordDecl
	allColumns                           bool // columns is not there
	stamps                               []stampDecl
	lists                                []listDecl
	check                                block
	own                                  map[string]commandDecl // the rules of single commands
}

// commandDecl is the rule that a command has beside those of the table.
type commandDecl struct {
	place
	rows block
}

// ownRows returns the rule of a command; nil: it has none.
func (d *writeDecl) ownRows(command string) block { return d.own[command].rows }

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

// decodeWrite reads the section write of a table.
func (d *tableDecoder) decodeWrite(n *node) *writeDecl {
	decl := &writeDecl{place: n.Place, allColumns: true, own: map[string]commandDecl{}}
	command := func(name string) func(*node) {
		return func(v *node) {
			own := commandDecl{place: v.Place}
			d.fields(v, name, map[string]func(*node){"rows": func(v *node) { own.rows = d.blocks.decodeRows(v) }})
			d.need(v, name, "rows")
			decl.own[name] = own
		}
	}
	d.fields(n, "write", map[string]func(*node){
		"insert":   command("insert"),
		"update":   command("update"),
		"delete":   command("delete"),
		"commands": func(v *node) { decl.commands = d.words(v, "commands", "insert", "update", "delete") },
		"columns": func(v *node) {
			decl.columns, decl.allColumns = d.words(v, "columns"), false
		},
		"immutable": func(v *node) { decl.immutable = d.words(v, "immutable") },
		"accept": func(v *node) {
			decl.accept = d.words(v, "accept", acceptConflicts, acceptReferences, acceptSequences, acceptValues)
		},
		"check": func(v *node) { decl.check = d.blocks.decodeRows(v) },
		"lists": func(v *node) { decl.lists = d.decodeLists(v) },
		"stamp": func(v *node) {
			if !d.expect(v, yamlfile.Mapping, "stamp") {
				return
			}
			for i, column := range v.Keys {
				decl.stamps = append(decl.stamps, d.decodeStamp(v.KeyAt[i], column, v.Values[i]))
			}
		},
	})
	d.need(n, "write", "commands")
	return decl
}

func (d *tableDecoder) decodeStamp(at place, column string, n *node) stampDecl {
	s := stampDecl{place: at, column: column, valueAt: n.Place}
	d.fields(n, "stamp", map[string]func(*node){
		"attribute": d.word(&s.attribute, "attribute"),
		"value":     d.word(&s.value, "value"),
		"unless":    func(v *node) { s.unless = d.blocks.decodeRows(v) },
	})
	if n.Kind == yamlfile.Mapping && (s.attribute == "") == (s.value == "") {
		d.fail(n.Place, "write { attribute: name } or { value: word }", "a stamp is an attribute or a value")
	}
	return s
}
