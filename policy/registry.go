package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// registryDecl is what `consent` says where each subject must have consented in the registry of pgconsent.
type registryDecl struct {
	place
	categories, purposes               []wordDecl // those that a record lists
	sessionCategories, sessionPurposes []grantee  // those that the session is for
	streams                            []wordDecl
	grantees                           []grantee
	contexts                           []grantee
	key, since                         string
	keyAt, sinceAt                     place
	less                               int // days
	lessAt                             place
}

// registryWord is what categories and purposes are called.
var registryWord = regexp.MustCompile(`^[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:-]+)*$`)

// streams are those of the registry.
var streams = []string{predicate.Anonymous, predicate.Partnered, predicate.Temporary}

func (d *decoder) registry(n *node) *registryDecl {
	r := &registryDecl{place: n.Place}
	if n.Kind == yamlfile.Mapping && len(n.Keys) == 0 {
		return r
	}
	d.fields(n, "registry", map[string]func(*node){
		"category":   func(v *node) { r.categories = d.registryWords(v, "category") },
		"categories": func(v *node) { r.sessionCategories = d.grantees(v, "categories") },
		"purpose":    func(v *node) { r.purposes = d.registryWords(v, "purpose") },
		"purposes":   func(v *node) { r.sessionPurposes = d.grantees(v, "purposes") },
		"stream":     func(v *node) { r.streams = d.streams(v) },
		"grantee":    func(v *node) { r.grantees = d.grantees(v, "grantee") },
		"scope": func(v *node) {
			d.fields(v, "scope", map[string]func(*node){
				"row":     d.wordAt(&r.key, &r.keyAt, "row"),
				"context": func(v *node) { r.contexts = d.grantees(v, "context") },
			})
		},
		"since": d.wordAt(&r.since, &r.sinceAt, "since"),
		"decay": func(v *node) {
			r.lessAt = v.Place
			d.fields(v, "decay", map[string]func(*node){"less_than": func(v *node) { r.less = d.days(v, "less_than") }})
			d.need(v, "decay", "less_than")
		},
	})
	return r
}

// oneWord or more: a word, or a list of them.
func (d *decoder) someWords(n *node, what string) []wordDecl {
	items := []*node{n}
	if n.Kind == yamlfile.List {
		items = n.Items
		if len(items) == 0 {
			d.fail(n.Place, "leave it out", "%s is empty", what)
		}
	}
	var out []wordDecl
	for _, item := range items {
		if d.want(item, yamlfile.Scalar, what) {
			out = append(out, wordDecl{item.Place, item.Value})
		}
	}
	return out
}

func (d *decoder) registryWords(n *node, what string) []wordDecl {
	out := d.someWords(n, what)
	for _, w := range out {
		if !registryWord.MatchString(w.word) {
			d.fail(w.place, "letters, digits and _ . : -, with / before what is below", "%q is no %s", w.word, what)
		}
	}
	return out
}

func (d *decoder) streams(n *node) []wordDecl {
	out := d.someWords(n, "stream")
	for _, w := range out {
		if !slices.Contains(streams, w.word) {
			d.fail(w.place, oneOf(w.word, streams), "the registry has no stream %q", w.word)
		}
	}
	return out
}

// days reads `30 days`.
func (d *decoder) days(n *node, what string) int {
	if !d.want(n, yamlfile.Scalar, what) {
		return 0
	}
	number, unit, _ := strings.Cut(n.Value, " ")
	days, err := strconv.Atoi(number)
	if err != nil || days < 1 || days > 36500 || unit != "days" && unit != "day" {
		d.fail(n.Place, "write 30 days", "%s takes a number of days, from 1 to 36500", what)
		return 0
	}
	return days
}

// registered compiles consent by the registry.
func (c *compiler) registered(b consentBlock, row *catalog.Relation) predicate.Node {
	n, ok := c.registry(b, row)
	if !ok {
		return predicate.Any{}
	}
	return n
}

func (c *compiler) registry(b consentBlock, row *catalog.Relation) (predicate.Registered, bool) {
	failed := len(c.errs)
	decl := b.recorded.registry
	of, subject, elements, ok := c.asked(b, row)
	if !ok {
		return predicate.Registered{}, false
	}
	of.But = c.ids(b.recorded.but, subject.relation, subject.column, elements)
	out := predicate.Registered{Of: of, Tables: []string{row.Name.String()}, Key: decl.key, Since: decl.since,
		Days: decl.less, Grouped: c.grouped,
		SessionCategories: c.texts(decl.sessionCategories), SessionPurposes: c.texts(decl.sessionPurposes),
		Grantees: c.texts(decl.grantees), Contexts: c.texts(decl.contexts)}
	if t := c.tables[row.Name]; t != nil && t.decl.name != row.Name.String() {
		out.Tables = append(out.Tables, t.decl.name)
	}
	for _, w := range decl.categories {
		out.Categories = append(out.Categories, w.word)
	}
	for _, w := range decl.purposes {
		out.Purposes = append(out.Purposes, w.word)
	}
	for _, w := range decl.streams {
		if w.word == predicate.Anonymous && !c.grouped {
			c.fail(w.place, "count them in groups, under aggregate", "rows of %s subjects never show one by one", w.word)
		}
		out.Streams = append(out.Streams, w.word)
	}
	if c.grouped && out.Streams == nil {
		c.fail(decl.place, "write stream: ANONYMOUS", "say whose rows count though they do not show")
	}
	if decl.key != "" {
		if column := c.column(decl.keyAt, row, decl.key); column != nil &&
			(family(column.Type) == "" || family(column.Type) == "date") {
			c.fail(decl.keyAt, "a key is a uuid, integer or text column", "%s.%s is a %s", row.Name, column.Name, column.Type)
		}
	}
	if decl.since != "" {
		if column := c.column(decl.sinceAt, row, decl.since); column != nil && column.TypeOID != 1184 {
			c.fail(decl.sinceAt, "name a column of type timestamp with time zone",
				"%s.%s is a %s: it does not say when", row.Name, column.Name, column.Type)
		}
	}
	if decl.less > 0 && decl.since == "" {
		c.fail(decl.lessAt, "write since: the column with the row's time",
			"decay needs to know how old a row is: rows that are newer than the end of a partnership are anonymous at once")
	}
	return out, len(c.errs) == failed
}

// texts are attributes whose values are words, not ids of a type.
func (c *compiler) texts(to []grantee) []predicate.Grantee {
	var out []predicate.Grantee
	for _, to := range to {
		attribute := c.attribute(to.place, to.attribute)
		if attribute == nil {
			continue
		}
		if attribute.element() != "text" && family(attribute.element()) == "" {
			c.fail(to.place, "declare it as text or text[]", "the attribute %s is a %s", attribute.Name, attribute.Type)
			continue
		}
		out = append(out, predicate.Grantee{Attribute: attribute.Name, List: attribute.List(), Optional: attribute.Optional})
	}
	return out
}

// categoryDecl is what a column says of the consent that it needs.
type categoryDecl struct {
	place
	words         []wordDecl
	decay, groups int // the last full day of a countdown on which it shows, and counts in groups; 0: as long as the row does
	untilAt       place
}

func (d *decoder) until(decl *categoryDecl, n *node) {
	decl.untilAt = n.Place
	d.fields(n, "until", map[string]func(*node){
		"decay":  func(v *node) { decl.decay = d.days(v, "decay") },
		"groups": func(v *node) { decl.groups = d.days(v, "groups") },
	})
	d.need(n, "until", "decay")
	if decl.groups > 0 && decl.groups < decl.decay {
		d.fail(n.Place, "", "a column counts in groups at least as long as it shows")
	}
}

// consentOf is the consent that the columns of a table with a category need, before the category.
func (c *compiler) consentOf(decl tableDecl, r *catalog.Relation) *predicate.Registered {
	if decl.consent == nil {
		return nil
	}
	b, ok := decl.consent.(consentBlock)
	if !ok || b.recorded == nil || b.recorded.registry == nil {
		c.fail(decl.consent.At(), "write consent: { subject: …, registry: { … } }",
			"consent of a table is that of the registry; other consents stand under rows")
		return nil
	}
	for _, w := range b.recorded.registry.categories {
		c.fail(w.place, "write it at the columns", "a category of a whole table stands under rows")
	}
	if b.recorded.registry.less > 0 {
		c.fail(b.recorded.registry.lessAt, "write until: { decay: … } at the columns, and decay under rows",
			"decay of a whole table stands under rows")
	}
	defer func(r *Rule) { c.rule = r }(c.rule)
	c.rule = &Rule{}
	n, ok := c.registry(b, r)
	if !ok {
		return nil
	}
	if !slices.ContainsFunc(decl.columns, func(d columnDecl) bool { return d.category != nil }) {
		c.fail(decl.consent.At(), "give columns a category: { category: … }, or write it under rows",
			"no column of %s needs it", r.Name)
	}
	return &n
}

// needs completes what a column with a category needs.
func (c *compiler) needs(d columnDecl, consent *predicate.Registered, said bool, r *catalog.Relation) (when,
	counts predicate.Node) {
	if consent == nil {
		if !said {
			c.fail(d.category.place, "write consent: { subject: …, registry: { … } } beside columns",
				"%s does not say whose consent column %s needs", r.Name, d.Name)
		}
		return nil, nil
	}
	one := *consent
	for _, w := range d.category.words {
		one.Categories = append(slices.Clone(one.Categories), w.word)
	}
	if d.category.decay > 0 && one.Since == "" {
		c.fail(d.category.untilAt, "write since: the column with the row's time, in consent of the table",
			"until needs to know how old a row is")
	}
	one.Days = predicate.Forever
	group := one
	group.Grouped, group.Streams = true, nil
	if d.category.decay > 0 {
		one.Days = d.category.decay + 1 // on that day still
		group.Days = max(d.category.decay, d.category.groups) + 1
	}
	return one, group
}
