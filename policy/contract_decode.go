package policy

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

type objectDecl struct {
	place
	name, table, vessel  string
	tableAt              place
	metadata, embeddings []wordDecl
	joinOnly             bool
}

type contractDecl struct {
	place
	name    string
	by      wordDecl
	values  []termsDecl
	governs []wordDecl
	apart   [][]wordDecl
	always  *termsDecl // the terms that the contract itself has
}

type termsDecl struct {
	place
	value      wordDecl // the value of the attribute
	nothing    bool
	allow      []allowDecl // nil: everything
	allowGiven bool        // the key allow is there
	except     []wordDecl
	requires   []sqlBlock
	plan       wordDecl
	rows       int64
	per        wordDecl
	named      []wordDecl // name, with its place
	templates  []string
}

type allowDecl struct {
	object  wordDecl
	sources []wordDecl
	columns []wordDecl
}

// sources are the words for the sources of an access.
var sources = []string{Metadata, Structured, Vector, Writes}

func (d *contractDecoder) decodeContract(at place, name string, n *node) {
	decl := contractDecl{place: at, name: name}
	what := "contract " + name
	if !attributeName.MatchString(name) {
		d.fail(at, "", "the name of a contract is of a-z, 0-9 and _, at most 32 long")
	}
	var own termsDecl
	known := d.termFields(&own, what)
	inValue := keys(known)
	known["by"] = func(v *node) {
		decl.by.place = v.Place
		d.word(&decl.by.text, "by")(v)
	}
	known["values"] = func(v *node) {
		if !d.expect(v, yamlfile.Mapping, "values") {
			return
		}
		for i, key := range v.Keys {
			decl.values = append(decl.values, d.decodeTerms(wordDecl{v.KeyAt[i], key}, v.Values[i]))
		}
		if len(v.Keys) == 0 {
			d.fail(v.Place, "list what each value allows", "values is empty")
		}
	}
	known["governs"] = func(v *node) { decl.governs = d.wordsOf(v, "governs") }
	known["apart"] = func(v *node) {
		if !d.expect(v, yamlfile.List, "apart") {
			return
		}
		if len(v.Items) > 0 && v.Items[0].Kind != yamlfile.List { // one group
			decl.apart = [][]wordDecl{d.wordsOf(v, "apart")}
		} else {
			for _, item := range v.Items {
				decl.apart = append(decl.apart, d.wordsOf(item, "apart"))
			}
		}
		for _, group := range decl.apart {
			if len(group) < 2 {
				d.fail(v.Place, "name two vessels or more", "apart keeps vessels from one another")
			}
		}
	}
	d.fields(n, what, known)
	if n.Kind == yamlfile.Mapping {
		by, values := slices.Contains(n.Keys, "by"), slices.Contains(n.Keys, "values")
		terms := slices.ContainsFunc(n.Keys, func(k string) bool { return slices.Contains(inValue, k) })
		switch {
		case by != values:
			d.fail(at, "by names the attribute that decides, values what each of its values allows",
				`%s needs "by" and "values" together`, what)
		case by && terms:
			d.fail(at, "put them under each value, or into a contract of their own", "%s has terms besides values", what)
		case !by && !own.allowGiven:
			d.fail(at, `say "allow: everything" if it only adds conditions`, `%s needs "allow"`, what)
		case !by:
			own.place = at
			decl.always = &own
		}
	}
	d.doc.contracts = append(d.doc.contracts, decl)
}

// decodeTerms reads the terms for one value.
func (d *contractDecoder) decodeTerms(value wordDecl, n *node) termsDecl {
	t := termsDecl{place: value.place, value: value}
	what := "the value " + value.text
	if n.Kind == yamlfile.Scalar {
		d.decodeAllow(&t, n)
		return t
	}
	d.fields(n, what, d.termFields(&t, what))
	if n.Kind == yamlfile.Mapping && !t.allowGiven {
		d.fail(value.place, "list objects with their sources, or say everything, or nothing", `%s needs "allow"`, what)
	}
	return t
}

func (d *contractDecoder) termFields(t *termsDecl, what string) map[string]func(*node) {
	return map[string]func(*node){
		"allow":  func(v *node) { d.decodeAllow(t, v) },
		"except": func(v *node) { t.except = d.wordsOf(v, "except") },
		"requires": func(v *node) {
			items := []*node{v}
			if v.Kind == yamlfile.List {
				items = v.Items
			}
			for _, item := range items {
				if b, ok := d.blocks.decodeSQL(item.Place, item).(sqlBlock); ok && b.text != "" {
					t.requires = append(t.requires, b)
				}
			}
		},
		"plan": func(v *node) {
			t.plan.place = v.Place
			d.word(&t.plan.text, "plan")(v)
		},
		"rows": func(v *node) {
			number := func(v *node) {
				n, err := strconv.ParseInt(v.Value, 10, 32)
				if v.Kind != yamlfile.Scalar || err != nil || n < 1 {
					d.fail(v.Place, "", "rows is a number from 1 on")
				}
				t.rows = n
			}
			if v.Kind != yamlfile.Mapping {
				number(v)
				return
			}
			d.fields(v, "rows", map[string]func(*node){
				"at_most": number,
				"per": func(v *node) {
					t.per.place = v.Place
					d.word(&t.per.text, "per")(v)
				},
			})
			d.need(v, "rows", "at_most")
			d.need(v, "rows", "per")
		},
		"statements": func(v *node) {
			if !d.expect(v, yamlfile.Mapping, "statements") {
				return
			}
			for i, name := range v.Keys {
				var text string
				d.word(&text, "a statement")(v.Values[i])
				t.named, t.templates = append(t.named, wordDecl{v.KeyAt[i], name}), append(t.templates, text)
			}
			if len(v.Keys) == 0 {
				d.fail(v.Place, "name: the statement's SQL", "statements is empty")
			}
		},
	}
}

func (d *contractDecoder) decodeAllow(t *termsDecl, n *node) {
	t.allowGiven = true
	if n.Kind == yamlfile.Scalar {
		switch n.Value {
		case "everything":
		case "nothing":
			t.nothing = true
		default:
			d.fail(n.Place, closest(n.Value, []string{"everything", "nothing"}),
				"allow is everything, nothing, or objects with their sources")
		}
		return
	}
	if !d.expect(n, yamlfile.Mapping, "allow") {
		return
	}
	if len(n.Keys) == 0 {
		d.fail(n.Place, `say "nothing"`, "allow is empty")
	}
	for i, key := range n.Keys {
		a := allowDecl{object: wordDecl{n.KeyAt[i], key}}
		if v := n.Values[i]; v.Kind == yamlfile.Mapping {
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

func (d *contractDecoder) decodeObject(at place, name string, n *node) {
	decl := objectDecl{place: at, name: name}
	what := "object " + name
	if !attributeName.MatchString(name) {
		d.fail(at, "", "the name of an object is of a-z, 0-9 and _, at most 32 long")
	} else if name == "any" {
		d.fail(at, "give it another name", `"any" means every object in a contract`)
	}
	d.fields(n, what, map[string]func(*node){
		"table": func(v *node) {
			decl.tableAt = v.Place
			d.word(&decl.table, "table")(v)
		},
		"vessel":    d.word(&decl.vessel, "vessel"),
		"metadata":  func(v *node) { decl.metadata = d.wordsOf(v, "metadata") },
		"embedding": func(v *node) { decl.embeddings = d.wordsOf(v, "embedding") },
		"join_only": func(v *node) {
			if v.Kind != yamlfile.Scalar || v.Value != "true" && v.Value != "false" {
				d.fail(v.Place, "", "join_only is true or false")
			}
			decl.joinOnly = v.Value == "true"
		},
	})
	d.need(n, what, "table")
	if decl.vessel == "none" {
		decl.vessel = ""
	}
	d.doc.objects = append(d.doc.objects, decl)
}
