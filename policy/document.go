package policy

import (
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Document is a policy as its files write it. Each value has been checked by itself, without a database.
type Document struct {
	attributes         []attributeDecl
	limits             []limitDecl
	tables             []tableDecl
	functions          []functionDecl
	views              []viewDecl
	objects            []objectDecl
	contracts          []contractDecl
	operatorExtensions []wordDecl // the names of the extensions whose operators agents may use
	channels           []wordDecl // the channels that agents may name in LISTEN and NOTIFY
	reminder           *reminderDecl
	privacy            *privacyDecl
	sources            *sourcesDecl
	observe            bool             // `mode: observe` is set: it applies to every table without `observe: false`
	blockNames         map[place]string // the name of the block at each place
	declarations       []entryName      // all entries of sections, including those that could not be read
}

// Parse reads a policy from memory. The argument file is the file name in its errors.
func Parse(file string, data []byte) (*Document, error) {
	l := newLoader()
	l.decodeData(file, data, nil)
	return l.document()
}

// documentDecoder reads a whole file of a policy.
type documentDecoder struct {
	*decoder
	tables     *tableDecoder
	attributes *attributeDecoder
	contracts  *contractDecoder
	functions  *functionDecoder
	privacy    *privacyDecoder
}

func newDocumentDecoder(doc *Document) *documentDecoder {
	d := &decoder{doc: doc, declaredAt: map[string]place{}}
	blocks := &blockDecoder{d}
	return &documentDecoder{d, &tableDecoder{d, blocks}, &attributeDecoder{d, blocks}, &contractDecoder{d, blocks},
		&functionDecoder{d}, &privacyDecoder{d}}
}

// blockDecoder reads the blocks of row rules.
type blockDecoder struct{ *decoder }

// tableDecoder reads the section tables.
type tableDecoder struct {
	*decoder
	blocks *blockDecoder
}

// attributeDecoder reads the section attributes.
type attributeDecoder struct {
	*decoder
	blocks *blockDecoder
}

// contractDecoder reads the sections objects and contracts.
type contractDecoder struct {
	*decoder
	blocks *blockDecoder
}

// functionDecoder reads the sections functions and views.
type functionDecoder struct{ *decoder }

// privacyDecoder reads the sections privacy and sources.
type privacyDecoder struct{ *decoder }

func (d *documentDecoder) decodeRoot(n *node) {
	d.decodeFields(n, "the policy", map[string]func(*node){
		"version": func(v *node) {
			if v.Kind != yamlfile.ScalarNode || v.Value != "1" {
				d.fail(v.Place, "this pgconsent reads version 1", "unknown version of the policy")
			}
		},
		"include":    d.decodeInclude,
		"attributes": func(v *node) { d.decodeSection(v, "attributes", d.attributes.decodeAttribute) },
		"tables":     func(v *node) { d.decodeSection(v, "tables", d.tables.decodeTable) },
		"mode":       d.decodeMode,
		"functions":  func(v *node) { d.decodeSection(v, "functions", d.functions.decodeFunction) },
		"views":      func(v *node) { d.decodeSection(v, "views", d.functions.decodeView) },
		"objects":    func(v *node) { d.decodeSection(v, "objects", d.contracts.decodeObject) },
		"contracts":  func(v *node) { d.decodeSection(v, "contracts", d.contracts.decodeContract) },
		"operators": func(v *node) {
			d.doc.operatorExtensions = append(d.doc.operatorExtensions, d.decodeWords(v, "operators")...)
		},
		"channels": func(v *node) { d.doc.channels = append(d.doc.channels, d.decodeWords(v, "channels")...) },
		"limits":   d.decodeLimits,
		"air":      d.decodeReminder,
		"privacy":  d.privacy.decodePrivacy,
		"sources":  d.privacy.decodeSources,
	}, "registry", "tools")
	d.requireFields(n, "the policy", "version")
}

// decodeMode reads `mode: observe`, or `mode: enforce`, the default.
func (d *documentDecoder) decodeMode(n *node) {
	var word string
	d.decodeWord(&word, "mode")(n)
	switch word {
	case "observe":
		d.doc.observe = true
	case "enforce", "":
	default:
		d.fail(n.Place, closest(word, []string{"observe", "enforce"}), "unknown mode %q", word)
	}
}

// viewDecl is an entry of the section views.
type viewDecl struct {
	place
	name string
}

// decodeView reads a view that agents may read.
func (d *functionDecoder) decodeView(position place, name string, n *node) {
	d.doc.views = append(d.doc.views, viewDecl{place: position, name: name})
	if n.Kind != yamlfile.NullNode {
		d.decodeFields(n, "view "+name, nil, "columns", "by_key", "limit")
	}
}
