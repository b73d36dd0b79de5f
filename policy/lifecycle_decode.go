package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// anonymousAfter is the last full day of a countdown on which a row is not yet anonymous.
const anonymousAfter = 89

// lifecycleDecl is the section lifecycle of a table.
type lifecycleDecl struct {
	place
	subject, timeColumn     string
	subjectAt, timeColumnAt place
	anonymise               bool
	endedAt                 place
	columns                 []lifecycleColumnDecl
	counts                  *countsDecl
}

// countsDecl names the columns that count in groups even when the row is anonymous and its subject unknown.
type countsDecl struct {
	place
	where   []block
	columns []wordDecl
}

// lifecycleColumnDecl is an entry of the columns of a lifecycle.
type lifecycleColumnDecl struct {
	columnDecl
	value     *wordDecl
	afterDays int
}

func (d *tableDecoder) decodeLifecycle(position place, n *node) *lifecycleDecl {
	decl := &lifecycleDecl{place: position}
	d.decodeFields(n, "lifecycle", map[string]func(*node){
		"subject": d.decodeWordAt(&decl.subject, &decl.subjectAt, "subject"),
		"at":      d.decodeWordAt(&decl.timeColumn, &decl.timeColumnAt, "at"),
		"ended": func(v *node) {
			decl.endedAt = v.Place
			word := ""
			d.decodeWord(&word, "ended")(v)
			decl.anonymise = word == "anonymise"
			if word != "" && word != "delete" && word != "anonymise" {
				d.fail(v.Place, closestOrAll(word, []string{"anonymise", "delete"}), "unknown word %q for ended", word)
			}
		},
		"columns": func(v *node) {
			if !d.requireKind(v, yamlfile.MappingNode, "columns") {
				return
			}
			for i, name := range v.Keys {
				decl.columns = append(decl.columns, d.decodeLifecycleColumn(v.KeyPlaces[i], name, v.Values[i]))
			}
		},
		"counts": func(v *node) {
			decl.counts = &countsDecl{place: v.Place}
			d.decodeFields(v, "counts", map[string]func(*node){
				"where":   func(v *node) { decl.counts.where = d.blocks.decodeBlocks(v, "where") },
				"columns": func(v *node) { decl.counts.columns = d.decodeWords(v, "columns") },
			})
			d.requireFields(v, "counts", "where", "columns")
		},
	})
	d.requireFields(n, "lifecycle", "subject")
	return decl
}

func (d *tableDecoder) decodeLifecycleColumn(position place, name string, n *node) lifecycleColumnDecl {
	decl := lifecycleColumnDecl{columnDecl: columnDecl{place: position, VisibleColumn: VisibleColumn{Name: name}},
		afterDays: anonymousAfter}
	label := "column " + name
	d.decodeFields(n, label, map[string]func(*node){
		"becomes": func(v *node) {
			if v.Kind == yamlfile.MappingNode && slices.Contains(v.Keys, "value") {
				d.decodeFields(v, "becomes", map[string]func(*node){"value": func(v *node) {
					if d.requireKind(v, yamlfile.ScalarNode, "value") {
						decl.value = &wordDecl{v.Place, v.Value}
					}
				}})
				return
			}
			d.decodeMask(&decl.columnDecl, v)
		},
		"after": func(v *node) { decl.afterDays = d.decodeDays(v, "after") },
	})
	d.requireFields(n, label, "becomes")
	return decl
}
