package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// tableDecl is an entry of the section tables.
type tableDecl struct {
	place
	name         string
	rows         block
	noRows       *place       // the place of `rows: none`; nil: the key has another value
	columns      []columnDecl // the columns that agents see; nil: all of them
	write        *writeDecl
	observe      *place // the place of `observe: true`; nil: it is not there
	neverObserve bool   // the table has `observe: false`

	auditKeys bool   // the table has `audit: { keys: true }`
	keysAt    *place // the place of the key keys in audit

	approximate bool // the table has `approximate: accept`

	aggregate *aggregateDecl
	consent   block // the consent that columns with a category need; nil: the table declares none
	lifecycle *lifecycleDecl
}

// tableKeys are the keys of a table that people sometimes write inside rows by mistake.
var tableKeys = []string{"rows", "columns", "write", "observe", "aggregate", "lifecycle"}

func (d *tableDecoder) decodeTable(position place, name string, n *node) {
	decl := tableDecl{place: position, name: name}
	label := "table " + name
	if n.Kind == yamlfile.ListNode && slices.Contains([]string{"rows", "columns", "write"}, name) {
		d.fail(n.Place, "indent it further than the table's name", "%s is not beneath a table", name)
		return
	}
	// the value of rows stands where the table's mapping belongs
	if n.Kind == yamlfile.ScalarNode || n.Kind == yamlfile.ListNode {
		suggestion := "write { rows: [ … ] }"
		if n.Kind == yamlfile.ScalarNode {
			suggestion = "write { rows: " + n.Value + " }"
			if n.Value != "open" {
				suggestion = "write { rows: … }, or { rows: open } if every row may show"
			}
		}
		d.fail(n.Place, suggestion, "%s must be %s, not %s", label, yamlfile.MappingNode, n.Kind)
		return
	}
	d.decodeFields(n, label, map[string]func(*node){
		"rows":    func(v *node) { d.decodeRows(&decl, v) },
		"columns": func(v *node) { decl.columns = d.decodeColumns(v) },
		"write":   func(v *node) { decl.write = d.decodeWrite(v) },
		"observe": func(v *node) { d.decodeObserve(&decl, v) },

		"aggregate": func(v *node) { decl.aggregate = d.decodeAggregate(v.Place, v) },
		"audit":     func(v *node) { d.decodeTableAudit(&decl, v) },
		"approximate": func(v *node) {
			word := ""
			d.decodeWord(&word, "approximate")(v)
			if decl.approximate = word == "accept"; !decl.approximate && word != "" {
				d.fail(v.Place,
					"write approximate: accept, or leave it out: searches for the nearest rows are then exact",
					"unknown word %q in approximate", word)
			}
		},
		"consent":   func(v *node) { decl.consent = d.blocks.decodeConsent(v.Place, v) },
		"lifecycle": func(v *node) { decl.lifecycle = d.decodeLifecycle(v.Place, v) },
	}, "source", "limit")
	d.requireFields(n, label, "rows")
	if none, _ := decl.rows.(noneBlock); none.isEmptyList && decl.aggregate == nil {
		d.fail(*decl.noRows, `say "open" if every row may show`, "rows is empty")
	}
	d.doc.tables = append(d.doc.tables, decl)
}

// decodeRows reads the rule of a table, or `rows: none`.
func (d *tableDecoder) decodeRows(decl *tableDecl, n *node) {
	isNone := n.Kind == yamlfile.ScalarNode && n.Value == "none" || n.Kind == yamlfile.ListNode && len(n.Items) == 0
	if !isNone {
		decl.rows = d.blocks.decodeRows(n)
		return
	}
	decl.noRows, decl.rows = &n.Place, noneBlock{n.Place, n.Kind == yamlfile.ListNode}
	d.doc.blockNames[n.Place] = "none"
}

// isPlainColumn tells whether agents see a column unchanged. They may write no other columns, because a mask would not
// show them what they have written.
func (d *tableDecl) isPlainColumn(name string) bool {
	return d.columns == nil || slices.ContainsFunc(d.columns,
		func(c columnDecl) bool {
			return c.Name == name && c.Mask == Plain && !c.generalised && c.category == nil
		})
}

// isVisibleColumn tells whether agents see values of a column, unchanged or masked, and not always NULL.
func (d *tableDecl) isVisibleColumn(name string) bool {
	return d.columns == nil || slices.ContainsFunc(d.columns,
		func(c columnDecl) bool { return c.Name == name && c.Mask != Null })
}

// isHashedColumn tells whether agents see a hash of a column.
func (d *tableDecl) isHashedColumn(name string) bool {
	return slices.ContainsFunc(d.columns, func(c columnDecl) bool { return c.Name == name && c.Mask == Hash })
}
