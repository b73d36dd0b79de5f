package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// privacyDecl is the section privacy.
type privacyDecl struct {
	place
	entity, context wordDecl
	roles           []wordDecl
	all             string
	memories        []memoriesDecl
	stores          *columnMapDecl
	contexts        *columnMapDecl
	consents        *columnMapDecl
	guardians       *columnMapDecl
	generalize      *generalizeDecl
}

// generalizeDecl is the subsection generalize.
type generalizeDecl struct {
	place
	into    wordDecl
	link    *columnMapDecl
	aliases *columnMapDecl
}

// memoriesDecl is an entry of memories: a table with its columns, which are the same for all its kinds of memories.
type memoriesDecl struct {
	columnMapDecl
	kinds []kindDecl
}

// kindDecl is a kind of memories, with its place.
type kindDecl struct {
	place
	kind  string
	table wordDecl
}

// columnMapDecl says which columns of a table have the parts of a record that the section privacy names.
type columnMapDecl struct {
	place
	table   wordDecl
	columns map[string]wordDecl
}

func (d *privacyDecoder) decodePrivacy(n *node) {
	if d.doc.privacy != nil {
		d.fail(n.Place, "", "privacy is there already, at %s:%d:%d", d.doc.privacy.File, d.doc.privacy.Line, d.doc.privacy.Column)
		return
	}
	decl := &privacyDecl{place: n.Place}
	one := func(target *wordDecl, label string) func(*node) {
		return func(v *node) {
			target.place = v.Place
			d.decodeWord(&target.text, label)(v)
		}
	}
	d.decodeFields(n, "privacy", map[string]func(*node){
		"entity":  one(&decl.entity, "entity"),
		"roles":   func(v *node) { decl.roles = d.decodeWords(v, "roles") },
		"context": one(&decl.context, "context"),
		"all":     d.decodeWord(&decl.all, "all"),
		"memories": func(v *node) {
			if !d.requireKind(v, yamlfile.ListNode, "memories") {
				return
			}
			for _, item := range v.Items {
				decl.memories = append(decl.memories, d.decodeMemories(item))
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "name a table", "memories is empty")
			}
		},
		"stores": func(v *node) { decl.stores = d.decodeColumnMap(v, "stores", []string{"id", "owner"}) },
		"contexts": func(v *node) {
			decl.contexts = d.decodeColumnMap(v, "contexts", []string{"store", "name", "participants"}, "defaults")
		},
		"consents": func(v *node) {
			decl.consents = d.decodeColumnMap(v, "consents", []string{"store", "grantor", "grantee"}, "scope", "given", "revoked", "expires")
		},
		"guardians": func(v *node) {
			decl.guardians = d.decodeColumnMap(v, "guardians", []string{"store", "subject", "guardian"})
		},
		"generalize": func(v *node) { decl.generalize = d.decodeGeneralize(v) },
	})
	d.requireFields(n, "privacy", "entity", "memories")
	d.doc.privacy = decl
}

func (d *privacyDecoder) decodeGeneralize(n *node) *generalizeDecl {
	out := &generalizeDecl{place: n.Place}
	d.decodeFields(n, "generalize", map[string]func(*node){
		"into": func(v *node) {
			out.into.place = v.Place
			d.decodeWord(&out.into.text, "into")(v)
		},
		"link": func(v *node) {
			out.link = d.decodeColumnMap(v, "link", []string{"store", "made", "source"}, "kind", "note", "at")
		},
		"aliases": func(v *node) { out.aliases = d.decodeColumnMap(v, "aliases", []string{"store", "subject", "alias"}) },
	})
	d.requireFields(n, "generalize", "into", "link")
	return out
}

var memoryColumns = []string{"store", "content", "subjects", "grants"}

func (d *privacyDecoder) decodeMemories(n *node) memoriesDecl {
	out := memoriesDecl{columnMapDecl: columnMapDecl{place: n.Place, columns: map[string]wordDecl{}}}
	decoders := d.columnMapDecoders(&out.columnMapDecl, append(slices.Clone(memoryColumns), "source", "told", "evidence"))
	decoders["tables"] = func(v *node) {
		if !d.requireKind(v, yamlfile.MappingNode, "tables") {
			return
		}
		for i, kind := range v.Keys {
			k := kindDecl{place: v.KeyPlaces[i], kind: kind, table: wordDecl{place: v.Values[i].Place}}
			if !attributeName.MatchString(kind) {
				d.fail(v.KeyPlaces[i], "", "the kind of memories is of a-z, 0-9 and _, at most 32 long")
			}
			d.decodeWord(&k.table.text, "the table of "+kind)(v.Values[i])
			out.kinds = append(out.kinds, k)
		}
		if len(v.Keys) == 0 {
			d.fail(v.Place, "write tables: { kind: table }", "tables is empty")
		}
	}
	d.decodeFields(n, "memories", decoders)
	d.requireFields(n, "memories", append([]string{"tables"}, memoryColumns...)...)
	return out
}

func (d *privacyDecoder) decodeColumnMap(n *node, label string, required []string, optional ...string) *columnMapDecl {
	out := &columnMapDecl{place: n.Place, columns: map[string]wordDecl{}}
	decoders := d.columnMapDecoders(out, append(slices.Clone(required), optional...))
	decoders["table"] = func(v *node) {
		out.table.place = v.Place
		d.decodeWord(&out.table.text, "table")(v)
	}
	d.decodeFields(n, label, decoders)
	d.requireFields(n, label, append([]string{"table"}, required...)...)
	return out
}

// columnMapDecoders returns for each name a decoder that reads which column has the part of that name.
func (d *privacyDecoder) columnMapDecoders(target *columnMapDecl, names []string) map[string]func(*node) {
	decoders := map[string]func(*node){}
	for _, name := range names {
		decoders[name] = func(v *node) {
			w := wordDecl{place: v.Place}
			d.decodeWord(&w.text, name)(v)
			target.columns[name] = w
		}
	}
	return decoders
}
