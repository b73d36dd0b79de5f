package policy

import (
	"slices"
	"strconv"
)

type objectDecl struct {
	place
	name, table, vessel  string
	tableAt              place
	metadata, embeddings []word
	joinOnly             bool
}

// word is a scalar with its place.
type word struct {
	place
	text string
}

type contractDecl struct {
	place
	name    string
	by      word
	values  []termsDecl
	governs []word
	apart   [][]word
	always  *termsDecl // the terms that stand in the contract itself
}

type termsDecl struct {
	place
	value     word // of the attribute
	nothing   bool
	allow     []allowDecl // nil: everything
	allowed   bool        // allow is there
	except    []word
	requires  []sqlBlock
	plan      word
	rows      int64
	per       word
	named     []word // name, with its place
	templates []string
}

type allowDecl struct {
	object  word
	sources []word
	columns []word
}

// sources are the words for how rows are got.
var sources = []string{Metadata, Structured, Vector, Writes}

func (d *decoder) object(at place, name string, n *node) {
	decl := objectDecl{place: at, name: name}
	what := "object " + name
	if !attributeName.MatchString(name) {
		d.fail(at, "", "the name of an object is of a-z, 0-9 and _, at most 32 long")
	} else if name == "any" {
		d.fail(at, "give it another name", `"any" means every object in a contract`)
	}
	d.fields(n, what, map[string]func(*node){
		"table": func(v *node) {
			decl.tableAt = v.place
			d.word(&decl.table, "table")(v)
		},
		"vessel":    d.word(&decl.vessel, "vessel"),
		"metadata":  func(v *node) { decl.metadata = d.wordsOf(v, "metadata") },
		"embedding": func(v *node) { decl.embeddings = d.wordsOf(v, "embedding") },
		"join_only": func(v *node) {
			if v.kind != scalarNode || v.value != "true" && v.value != "false" {
				d.fail(v.place, "", "join_only is true or false")
			}
			decl.joinOnly = v.value == "true"
		},
	})
	d.need(n, what, "table")
	if decl.vessel == "none" {
		decl.vessel = ""
	}
	d.doc.objects = append(d.doc.objects, decl)
}

// wordsOf reads one word, or a list of them.
func (d *decoder) wordsOf(n *node, what string) []word {
	items := []*node{n}
	if n.kind == listNode {
		items = n.items
		if len(items) == 0 {
			d.fail(n.place, "leave it out, or name at least one", "%s is empty", what)
		}
	}
	var out []word
	for _, item := range items {
		if item.kind != scalarNode || item.value == "" {
			d.fail(item.place, "write words", "%s is a word or a list of words", what)
			continue
		}
		if slices.ContainsFunc(out, func(w word) bool { return w.text == item.value }) {
			d.fail(item.place, "", "%s names %q twice", what, item.value)
			continue
		}
		out = append(out, word{item.place, item.value})
	}
	return out
}

func (d *decoder) contract(at place, name string, n *node) {
	decl := contractDecl{place: at, name: name}
	what := "contract " + name
	if !attributeName.MatchString(name) {
		d.fail(at, "", "the name of a contract is of a-z, 0-9 and _, at most 32 long")
	}
	var own termsDecl
	known := d.termFields(&own, what)
	inValue := keys(known)
	known["by"] = func(v *node) {
		decl.by.place = v.place
		d.word(&decl.by.text, "by")(v)
	}
	known["values"] = func(v *node) {
		if !d.want(v, mapNode, "values") {
			return
		}
		for i, key := range v.keys {
			decl.values = append(decl.values, d.terms(word{v.keyAt[i], key}, v.values[i]))
		}
		if len(v.keys) == 0 {
			d.fail(v.place, "list what each value allows", "values is empty")
		}
	}
	known["governs"] = func(v *node) { decl.governs = d.wordsOf(v, "governs") }
	known["apart"] = func(v *node) {
		if !d.want(v, listNode, "apart") {
			return
		}
		if len(v.items) > 0 && v.items[0].kind != listNode { // one group
			decl.apart = [][]word{d.wordsOf(v, "apart")}
		} else {
			for _, item := range v.items {
				decl.apart = append(decl.apart, d.wordsOf(item, "apart"))
			}
		}
		for _, group := range decl.apart {
			if len(group) < 2 {
				d.fail(v.place, "name two vessels or more", "apart keeps vessels from one another")
			}
		}
	}
	d.fields(n, what, known)
	if n.kind == mapNode {
		by, values := slices.Contains(n.keys, "by"), slices.Contains(n.keys, "values")
		terms := slices.ContainsFunc(n.keys, func(k string) bool { return slices.Contains(inValue, k) })
		switch {
		case by != values:
			d.fail(at, "by names the attribute that decides, values what each of its values allows",
				`%s needs "by" and "values" together`, what)
		case by && terms:
			d.fail(at, "put them under each value, or into a contract of their own", "%s has terms besides values", what)
		case !by && !own.allowed:
			d.fail(at, `say "allow: everything" if it only adds conditions`, `%s needs "allow"`, what)
		case !by:
			own.place = at
			decl.always = &own
		}
	}
	d.doc.contracts = append(d.doc.contracts, decl)
}

// terms reads what one value allows.
func (d *decoder) terms(value word, n *node) termsDecl {
	t := termsDecl{place: value.place, value: value}
	what := "the value " + value.text
	if n.kind == scalarNode {
		d.allow(&t, n)
		return t
	}
	d.fields(n, what, d.termFields(&t, what))
	if n.kind == mapNode && !t.allowed {
		d.fail(value.place, "list objects with their sources, or say everything, or nothing", `%s needs "allow"`, what)
	}
	return t
}

func (d *decoder) termFields(t *termsDecl, what string) map[string]func(*node) {
	return map[string]func(*node){
		"allow":  func(v *node) { d.allow(t, v) },
		"except": func(v *node) { t.except = d.wordsOf(v, "except") },
		"requires": func(v *node) {
			items := []*node{v}
			if v.kind == listNode {
				items = v.items
			}
			for _, item := range items {
				if b, ok := d.sql(item.place, item).(sqlBlock); ok && b.text != "" {
					t.requires = append(t.requires, b)
				}
			}
		},
		"plan": func(v *node) {
			t.plan.place = v.place
			d.word(&t.plan.text, "plan")(v)
		},
		"rows": func(v *node) {
			number := func(v *node) {
				n, err := strconv.ParseInt(v.value, 10, 32)
				if v.kind != scalarNode || err != nil || n < 1 {
					d.fail(v.place, "", "rows is a number from 1 on")
				}
				t.rows = n
			}
			if v.kind != mapNode {
				number(v)
				return
			}
			d.fields(v, "rows", map[string]func(*node){
				"at_most": number,
				"per": func(v *node) {
					t.per.place = v.place
					d.word(&t.per.text, "per")(v)
				},
			})
			d.need(v, "rows", "at_most")
			d.need(v, "rows", "per")
		},
		"statements": func(v *node) {
			if !d.want(v, mapNode, "statements") {
				return
			}
			for i, name := range v.keys {
				var text string
				d.word(&text, "a statement")(v.values[i])
				t.named, t.templates = append(t.named, word{v.keyAt[i], name}), append(t.templates, text)
			}
			if len(v.keys) == 0 {
				d.fail(v.place, "name: the statement's SQL", "statements is empty")
			}
		},
	}
}

func (d *decoder) allow(t *termsDecl, n *node) {
	t.allowed = true
	if n.kind == scalarNode {
		switch n.value {
		case "everything":
		case "nothing":
			t.nothing = true
		default:
			d.fail(n.place, closest(n.value, []string{"everything", "nothing"}),
				"allow is everything, nothing, or objects with their sources")
		}
		return
	}
	if !d.want(n, mapNode, "allow") {
		return
	}
	if len(n.keys) == 0 {
		d.fail(n.place, `say "nothing"`, "allow is empty")
	}
	for i, key := range n.keys {
		a := allowDecl{object: word{n.keyAt[i], key}}
		if v := n.values[i]; v.kind == mapNode {
			d.fields(v, "the allowance of "+key, map[string]func(*node){
				"sources": func(v *node) { a.sources = d.wordsOf(v, "sources") },
				"columns": func(v *node) { a.columns = d.wordsOf(v, "columns") },
			})
			d.need(v, "the allowance of "+key, "sources")
		} else {
			a.sources = d.wordsOf(v, "the sources of "+key)
		}
		for _, s := range a.sources {
			if !slices.Contains(sources, s.text) {
				d.fail(s.place, among(s.text, sources), "unknown source %q", s.text)
			}
		}
		t.allow = append(t.allow, a)
	}
}

// reads reads what a function reads.
func (d *decoder) reads(decl *functionDecl, n *node) {
	decl.readsSaid = true
	if n.kind == scalarNode && n.value == "nothing" {
		return
	}
	if !d.want(n, mapNode, "reads") {
		return
	}
	for i, key := range n.keys {
		a := allowDecl{object: word{n.keyAt[i], key}, sources: d.wordsOf(n.values[i], "the sources of "+key)}
		for _, s := range a.sources {
			if s.text == Writes || !slices.Contains(sources, s.text) {
				d.fail(s.place, among(s.text, sources[:3]), "unknown source %q", s.text)
			}
		}
		decl.reads = append(decl.reads, a)
	}
}
