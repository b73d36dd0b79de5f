package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// These words name what agents may learn by their writes. pgconsent refuses such a write unless the policy accepts it
// with the word.
const (
	// whether a key collides with a hidden row, or an index fails to compare a value with a hidden row
	acceptConflicts = "conflicts"
	// whether a foreign key refers to a hidden row, or a hidden row refers to the written row
	acceptReferences = "references"
	acceptSequences  = "sequences" // how many numbers other sessions have drawn from a sequence
	acceptValues     = "values"    // the values in hidden columns of visible rows
)

// writeDecl is the section write of a table.
type writeDecl struct {
	place
	commands, columns, immutable, accept []wordDecl
	// the section write has no key columns, so agents may write all columns that they may write safely
	allColumns   bool
	stamps       []stampDecl
	lists        []listDecl
	check        block
	commandRules map[string]commandDecl // the rules that apply to single commands only
}

// commandDecl is a rule that applies to one command in addition to the rule of the table.
type commandDecl struct {
	place
	rows block
}

// rowsOfCommand returns the rule that applies only to a command; nil: there is none.
func (d *writeDecl) rowsOfCommand(command string) block { return d.commandRules[command].rows }

// stampDecl is an entry of stamps: a column with the value that INSERT gives it.
type stampDecl struct {
	place
	column, attribute, value string
	valueAt                  place
	unless                   block
}

// accepts tells whether the key accept lists a word.
func (d *writeDecl) accepts(label string) bool {
	return slices.ContainsFunc(d.accept, func(w wordDecl) bool { return w.text == label })
}

// namesColumn tells whether the key columns names a column.
func (d *writeDecl) namesColumn(column string) bool {
	return slices.ContainsFunc(d.columns, func(w wordDecl) bool { return w.text == column })
}

// decodeWrite reads the section write of a table.
func (d *tableDecoder) decodeWrite(n *node) *writeDecl {
	decl := &writeDecl{place: n.Place, allColumns: true, commandRules: map[string]commandDecl{}}
	command := func(name string) func(*node) {
		return func(v *node) {
			command := commandDecl{place: v.Place}
			d.decodeFields(v, name, map[string]func(*node){"rows": func(v *node) { command.rows = d.blocks.decodeRows(v) }})
			d.requireFields(v, name, "rows")
			decl.commandRules[name] = command
		}
	}
	d.decodeFields(n, "write", map[string]func(*node){
		"insert":   command("insert"),
		"update":   command("update"),
		"delete":   command("delete"),
		"commands": func(v *node) { decl.commands = d.decodeWords(v, "commands", "insert", "update", "delete") },
		"columns": func(v *node) {
			decl.columns, decl.allColumns = d.decodeWords(v, "columns"), false
		},
		"immutable": func(v *node) { decl.immutable = d.decodeWords(v, "immutable") },
		"accept": func(v *node) {
			decl.accept = d.decodeWords(v, "accept", acceptConflicts, acceptReferences, acceptSequences, acceptValues)
		},
		"check": func(v *node) { decl.check = d.blocks.decodeRows(v) },
		"lists": func(v *node) { decl.lists = d.decodeLists(v) },
		"stamp": func(v *node) {
			if !d.requireKind(v, yamlfile.MappingNode, "stamp") {
				return
			}
			for i, column := range v.Keys {
				decl.stamps = append(decl.stamps, d.decodeStamp(v.KeyPlaces[i], column, v.Values[i]))
			}
		},
	})
	d.requireFields(n, "write", "commands")
	return decl
}

func (d *tableDecoder) decodeStamp(position place, column string, n *node) stampDecl {
	s := stampDecl{place: position, column: column, valueAt: n.Place}
	d.decodeFields(n, "stamp", map[string]func(*node){
		"attribute": d.decodeWord(&s.attribute, "attribute"),
		"value":     d.decodeWord(&s.value, "value"),
		"unless":    func(v *node) { s.unless = d.blocks.decodeRows(v) },
	})
	if n.Kind == yamlfile.MappingNode && (s.attribute == "") == (s.value == "") {
		d.fail(n.Place, "write { attribute: name } or { value: word }", "a stamp is an attribute or a value")
	}
	return s
}
