package policy

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// objectDecl is an entry of the section objects.
type objectDecl struct {
	place
	name, table, vessel  string
	tableAt              place
	metadata, embeddings []wordDecl
	joinOnly             bool
}

// contractDecl is an entry of the section contracts.
type contractDecl struct {
	place
	name             string
	selectedBy       wordDecl
	values           []termsDecl
	governs          []wordDecl
	exclusiveVessels [][]wordDecl
	always           *termsDecl // the terms that the policy writes in the contract itself, which apply to every session
}

// termsDecl is what a contract allows for one value of its attribute.
type termsDecl struct {
	place
	value           wordDecl // the value of the attribute to which the terms belong
	allowsNothing   bool
	allow           []allowDecl // what is allowed of each object; nil: everything
	hasAllow        bool        // the terms have the key allow, maybe with an empty list
	exceptedObjects []wordDecl
	requires        []sqlBlock
	planAttribute   wordDecl
	maxRows         int64
	quotaAttribute  wordDecl
	statementNames  []wordDecl // the names of the allowed statements
	statementTexts  []string
}

// allowDecl is an entry of the key allow: an object, and what the terms allow for it.
type allowDecl struct {
	object  wordDecl
	sources []wordDecl
	columns []wordDecl
}

// sourceWords are the sources that a policy may name.
var sourceWords = []string{SourceMetadata, SourceStructured, SourceVector, SourceWrite}

func (d *contractDecoder) decodeContract(position place, name string, n *node) {
	decl := contractDecl{place: position, name: name}
	label := "contract " + name
	if !attributeName.MatchString(name) {
		d.fail(position, "", "the name of a contract is of a-z, 0-9 and _, at most 32 long")
	}
	var own termsDecl
	decoders := d.termFields(&own, label)
	inValue := sortedKeys(decoders)
	decoders["by"] = func(v *node) {
		decl.selectedBy.place = v.Place
		d.decodeWord(&decl.selectedBy.text, "by")(v)
	}
	decoders["values"] = func(v *node) {
		if !d.requireKind(v, yamlfile.MappingNode, "values") {
			return
		}
		for i, key := range v.Keys {
			decl.values = append(decl.values, d.decodeTerms(wordDecl{v.KeyPlaces[i], key}, v.Values[i]))
		}
		if len(v.Keys) == 0 {
			d.fail(v.Place, "list what each value allows", "values is empty")
		}
	}
	decoders["governs"] = func(v *node) { decl.governs = d.decodeDifferentWords(v, "governs") }
	decoders["apart"] = func(v *node) {
		if !d.requireKind(v, yamlfile.ListNode, "apart") {
			return
		}
		// the list is a single group of vessels, not a list of groups
		if len(v.Items) > 0 && v.Items[0].Kind != yamlfile.ListNode {
			decl.exclusiveVessels = [][]wordDecl{d.decodeDifferentWords(v, "apart")}
		} else {
			for _, item := range v.Items {
				decl.exclusiveVessels = append(decl.exclusiveVessels, d.decodeDifferentWords(item, "apart"))
			}
		}
		for _, group := range decl.exclusiveVessels {
			if len(group) < 2 {
				d.fail(v.Place, "name two vessels or more", "apart keeps vessels from one another")
			}
		}
	}
	d.decodeFields(n, label, decoders)
	if n.Kind == yamlfile.MappingNode {
		hasBy, values := slices.Contains(n.Keys, "by"), slices.Contains(n.Keys, "values")
		terms := slices.ContainsFunc(n.Keys, func(k string) bool { return slices.Contains(inValue, k) })
		switch {
		case hasBy != values:
			d.fail(position, "by names the attribute that decides, values what each of its values allows",
				`%s needs "by" and "values" together`, label)
		case hasBy && terms:
			d.fail(position, "put them under each value, or into a contract of their own", "%s has terms besides values", label)
		case !hasBy && !own.hasAllow:
			d.fail(position, `say "allow: everything" if it only adds conditions`, `%s needs "allow"`, label)
		case !hasBy:
			own.place = position
			decl.always = &own
		}
	}
	d.doc.contracts = append(d.doc.contracts, decl)
}

// decodeTerms reads the terms for one value of the contract's attribute.
func (d *contractDecoder) decodeTerms(value wordDecl, n *node) termsDecl {
	t := termsDecl{place: value.place, value: value}
	label := "the value " + value.text
	if n.Kind == yamlfile.ScalarNode {
		d.decodeAllow(&t, n)
		return t
	}
	d.decodeFields(n, label, d.termFields(&t, label))
	if n.Kind == yamlfile.MappingNode && !t.hasAllow {
		d.fail(value.place, "list objects with their sources, or say everything, or nothing", `%s needs "allow"`, label)
	}
	return t
}

func (d *contractDecoder) termFields(t *termsDecl, label string) map[string]func(*node) {
	return map[string]func(*node){
		"allow":  func(v *node) { d.decodeAllow(t, v) },
		"except": func(v *node) { t.exceptedObjects = d.decodeDifferentWords(v, "except") },
		"requires": func(v *node) {
			items := []*node{v}
			if v.Kind == yamlfile.ListNode {
				items = v.Items
			}
			for _, item := range items {
				if b, ok := d.blocks.decodeSQL(item.Place, item).(sqlBlock); ok && b.text != "" {
					t.requires = append(t.requires, b)
				}
			}
		},
		"plan": func(v *node) {
			t.planAttribute.place = v.Place
			d.decodeWord(&t.planAttribute.text, "plan")(v)
		},
		"rows": func(v *node) {
			number := func(v *node) {
				n, err := strconv.ParseInt(v.Value, 10, 32)
				if v.Kind != yamlfile.ScalarNode || err != nil || n < 1 {
					d.fail(v.Place, "", "rows is a number from 1 on")
				}
				t.maxRows = n
			}
			if v.Kind != yamlfile.MappingNode {
				number(v)
				return
			}
			d.decodeFields(v, "rows", map[string]func(*node){
				"at_most": number,
				"per": func(v *node) {
					t.quotaAttribute.place = v.Place
					d.decodeWord(&t.quotaAttribute.text, "per")(v)
				},
			})
			d.requireFields(v, "rows", "at_most")
			d.requireFields(v, "rows", "per")
		},
		"statements": func(v *node) {
			if !d.requireKind(v, yamlfile.MappingNode, "statements") {
				return
			}
			for i, name := range v.Keys {
				var text string
				d.decodeWord(&text, "a statement")(v.Values[i])
				t.statementNames, t.statementTexts = append(t.statementNames, wordDecl{v.KeyPlaces[i], name}),
					append(t.statementTexts, text)
			}
			if len(v.Keys) == 0 {
				d.fail(v.Place, "name: the statement's SQL", "statements is empty")
			}
		},
	}
}

func (d *contractDecoder) decodeAllow(t *termsDecl, n *node) {
	t.hasAllow = true
	if n.Kind == yamlfile.ScalarNode {
		switch n.Value {
		case "everything":
		case "nothing":
			t.allowsNothing = true
		default:
			d.fail(n.Place, closest(n.Value, []string{"everything", "nothing"}),
				"allow is everything, nothing, or objects with their sources")
		}
		return
	}
	if !d.requireKind(n, yamlfile.MappingNode, "allow") {
		return
	}
	if len(n.Keys) == 0 {
		d.fail(n.Place, `say "nothing"`, "allow is empty")
	}
	for i, key := range n.Keys {
		a := allowDecl{object: wordDecl{n.KeyPlaces[i], key}}
		if v := n.Values[i]; v.Kind == yamlfile.MappingNode {
			d.decodeFields(v, "the allowance of "+key, map[string]func(*node){
				"sources": func(v *node) { a.sources = d.decodeDifferentWords(v, "sources") },
				"columns": func(v *node) { a.columns = d.decodeDifferentWords(v, "columns") },
			})
			d.requireFields(v, "the allowance of "+key, "sources")
		} else {
			a.sources = d.decodeDifferentWords(v, "the sources of "+key)
		}
		for _, s := range a.sources {
			if !slices.Contains(sourceWords, s.text) {
				d.fail(s.place, closestOrAll(s.text, sourceWords), "unknown source %q", s.text)
			}
		}
		t.allow = append(t.allow, a)
	}
}

func (d *contractDecoder) decodeObject(position place, name string, n *node) {
	decl := objectDecl{place: position, name: name}
	label := "object " + name
	if !attributeName.MatchString(name) {
		d.fail(position, "", "the name of an object is of a-z, 0-9 and _, at most 32 long")
	} else if name == "any" {
		d.fail(position, "give it another name", `"any" means every object in a contract`)
	}
	d.decodeFields(n, label, map[string]func(*node){
		"table": func(v *node) {
			decl.tableAt = v.Place
			d.decodeWord(&decl.table, "table")(v)
		},
		"vessel":    d.decodeWord(&decl.vessel, "vessel"),
		"metadata":  func(v *node) { decl.metadata = d.decodeDifferentWords(v, "metadata") },
		"embedding": func(v *node) { decl.embeddings = d.decodeDifferentWords(v, "embedding") },
		"join_only": func(v *node) {
			if v.Kind != yamlfile.ScalarNode || v.Value != "true" && v.Value != "false" {
				d.fail(v.Place, "", "join_only is true or false")
			}
			decl.joinOnly = v.Value == "true"
		},
	})
	d.requireFields(n, label, "table")
	if decl.vessel == "none" {
		decl.vessel = ""
	}
	d.doc.objects = append(d.doc.objects, decl)
}
