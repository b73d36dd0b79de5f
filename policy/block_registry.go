package policy

import (
	"regexp"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// registryDecl says which consent each subject must have given in pgconsent's consent registry.
type registryDecl struct {
	place
	categories, purposes []wordDecl // the categories and purposes that the subject's record must list
	// attributes of the session whose values the subject's record must list
	sessionCategories, sessionPurposes []attributeRef
	streams                            []wordDecl
	grantees                           []attributeRef
	contexts                           []attributeRef
	key, since                         string
	keyAt, sinceAt                     place
	// the subject must have withdrawn less than so many days ago; 0: the time since a withdrawal does not matter
	lessThanDays int
	lessThanAt   place
}

// registryWord matches the name of a category or of a purpose.
var registryWord = regexp.MustCompile(`^[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:-]+)*$`)

// streams are the kinds of relationships that subjects may have in the registry.
var streams = []string{predicate.Anonymous, predicate.Partnered, predicate.Temporary}

func (d *blockDecoder) decodeRegistry(n *node) *registryDecl {
	r := &registryDecl{place: n.Place}
	if n.Kind == yamlfile.MappingNode && len(n.Keys) == 0 {
		return r
	}
	d.decodeFields(n, "registry", map[string]func(*node){
		"category":   func(v *node) { r.categories = d.registryWords(v, "category") },
		"categories": func(v *node) { r.sessionCategories = d.decodeAttributeRefs(v, "categories") },
		"purpose":    func(v *node) { r.purposes = d.registryWords(v, "purpose") },
		"purposes":   func(v *node) { r.sessionPurposes = d.decodeAttributeRefs(v, "purposes") },
		"stream":     func(v *node) { r.streams = d.decodeStreams(v) },
		"grantee":    func(v *node) { r.grantees = d.decodeAttributeRefs(v, "grantee") },
		"scope": func(v *node) {
			d.decodeFields(v, "scope", map[string]func(*node){
				"row":     d.decodeWordAt(&r.key, &r.keyAt, "row"),
				"context": func(v *node) { r.contexts = d.decodeAttributeRefs(v, "context") },
			})
		},
		"since": d.decodeWordAt(&r.since, &r.sinceAt, "since"),
		"decay": func(v *node) {
			r.lessThanAt = v.Place
			d.decodeFields(v, "decay", map[string]func(*node){"less_than": func(v *node) {
				r.lessThanDays = d.decodeDays(v,
					"less_than")
			}})
			d.requireFields(v, "decay", "less_than")
		},
	})
	return r
}

func (d *decoder) registryWords(n *node, label string) []wordDecl {
	out := d.decodeWordOrList(n, label)
	for _, w := range out {
		if !registryWord.MatchString(w.text) {
			d.fail(w.place, "letters, digits and _ . : -, with / before what is below", "%q is no %s", w.text, label)
		}
	}
	return out
}

func (d *blockDecoder) decodeStreams(n *node) []wordDecl {
	out := d.decodeWordOrList(n, "stream")
	for _, w := range out {
		if !slices.Contains(streams, w.text) {
			d.fail(w.place, closestOrFew(w.text, streams), "the registry has no stream %q", w.text)
		}
	}
	return out
}

// compileRegistryConsent compiles a consent block with the key registry.
func (c *ruleCompiler) compileRegistryConsent(b consentBlock, row *catalog.Relation) predicate.Node {
	n, ok := c.compileRegistered(b, row)
	if !ok {
		return predicate.Any{}
	}
	return n
}

func (c *ruleCompiler) compileRegistered(b consentBlock, row *catalog.Relation) (predicate.RegistryConsent, bool) {
	errorsBefore := len(c.errs)
	decl := b.records.registry
	consent, subject, elements, ok := c.compileSubjects(b, row)
	if !ok {
		return predicate.RegistryConsent{}, false
	}
	consent.ExceptCallers = c.findIDAttributes(b.records.exceptCallers, subject.relation, subject.column, elements)
	out := predicate.RegistryConsent{Subjects: consent, Tables: []string{row.Name.String()}, KeyColumn: decl.key,
		DataTimeColumn: decl.since,
		DecayDays:      decl.lessThanDays, CountsInGroups: c.inGroupRule,
		SessionCategories: c.findWordAttributes(decl.sessionCategories),
		SessionPurposes:   c.findWordAttributes(decl.sessionPurposes),
		Grantees:          c.findWordAttributes(decl.grantees), Contexts: c.findWordAttributes(decl.contexts)}
	if t := c.tables[row.Name]; t != nil && t.decl.name != row.Name.String() {
		out.Tables = append(out.Tables, t.decl.name)
	}
	for _, w := range decl.categories {
		out.Categories = append(out.Categories, w.text)
	}
	for _, w := range decl.purposes {
		out.Purposes = append(out.Purposes, w.text)
	}
	for _, w := range decl.streams {
		if w.text == predicate.Anonymous && !c.inGroupRule {
			c.fail(w.place, "count them in groups, under aggregate", "rows of %s subjects never show one by one", w.text)
		}
		out.Streams = append(out.Streams, w.text)
	}
	if c.inGroupRule && out.Streams == nil {
		c.fail(decl.place, "write stream: ANONYMOUS", "say whose rows count though they do not show")
	}
	if decl.key != "" {
		if column := c.findRuleColumn(decl.keyAt, row, decl.key); column != nil &&
			(typeFamily(column.Type) == "" || typeFamily(column.Type) == "date") {
			c.fail(decl.keyAt, "a key is a uuid, integer or text column", "%s.%s is a %s", row.Name, column.Name, column.Type)
		}
	}
	if decl.since != "" {
		if column := c.findRuleColumn(decl.sinceAt, row, decl.since); column != nil && column.TypeOID != 1184 {
			c.fail(decl.sinceAt, "name a column of type timestamp with time zone",
				"%s.%s is a %s: it does not say when", row.Name, column.Name, column.Type)
		}
	}
	if decl.lessThanDays > 0 && decl.since == "" {
		c.fail(decl.lessThanAt, "write since: the column with the row's time",
			"decay needs to know how old a row is: rows that are newer than the end of a partnership are anonymous at once")
	}
	return out, len(c.errs) == errorsBefore
}
