package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// recordedDecl is what `consent` says where each subject must have consented by a record.
type recordedDecl struct {
	subject, subjects string
	subjectAt         place
	but               []grantee
	record            *recordDecl
	registry          *registryDecl // instead of a record
}

// recordDecl is `record: { table: …, match: …, grantor: …, grantee: …, … }`.
type recordDecl struct {
	place
	table            string
	match            []predicate.Pair
	matchAt          place
	grantor          string
	grantee          *recordGrantee
	guardians        *guardiansDecl
	scope            *scopeDecl
	revoked, expires string
	where            []block
}

// recordGrantee is to whom a record gives consent: the caller, or the id that a list is about to have.
type recordGrantee struct {
	place
	column  string
	to      []grantee
	all     string
	element bool
}

type guardiansDecl struct {
	place
	table             string
	match             []predicate.Pair
	subject, guardian string
	where             []block
}

type scopeDecl struct {
	place
	column string
	is, in []wordDecl
	all    string
}

// recordedKey reads a key that only consent by records has.
func (d *decoder) recordedKey(b *consentBlock, read func(*recordedDecl, *node)) func(*node) {
	return func(v *node) {
		if b.recorded == nil {
			b.recorded = &recordedDecl{subjectAt: v.Place}
		}
		read(b.recorded, v)
	}
}

func (d *decoder) record(n *node) *recordDecl {
	r := &recordDecl{place: n.Place, matchAt: n.Place}
	d.fields(n, "record", map[string]func(*node){
		"table":     d.word(&r.table, "table"),
		"match":     func(v *node) { r.match, r.matchAt = d.pairs(v, "match"), v.Place },
		"grantor":   d.word(&r.grantor, "grantor"),
		"grantee":   func(v *node) { r.grantee = d.recordGrantee(v) },
		"guardians": func(v *node) { r.guardians = d.guardians(v) },
		"scope":     func(v *node) { r.scope = d.scope(v) },
		"revoked":   d.word(&r.revoked, "revoked"),
		"expires":   d.word(&r.expires, "expires"),
		"where":     func(v *node) { r.where = d.blocks(v, "where") },
	})
	d.need(n, "record", "table", "grantor", "grantee")
	return r
}

func (d *decoder) recordGrantee(n *node) *recordGrantee {
	g := &recordGrantee{place: n.Place}
	is := ""
	d.fields(n, "grantee", map[string]func(*node){
		"column": d.word(&g.column, "column"),
		"to":     func(v *node) { g.to = d.grantees(v, "to") },
		"all":    d.word(&g.all, "all"),
		"is":     d.word(&is, "is"),
	})
	d.need(n, "grantee", "column")
	g.element = is == "element"
	switch {
	case is != "" && !g.element:
		d.fail(n.Place, `write "is: element"`,
			"under grantee \"is\" takes the word element, the id that a list is about to hold, and nothing else")
	case g.element == (len(g.to) > 0):
		d.fail(n.Place, "write to: [attributes that are ids of the caller]", "a grantee needs to know who it is")
	}
	return g
}

func (d *decoder) guardians(n *node) *guardiansDecl {
	g := &guardiansDecl{place: n.Place}
	d.fields(n, "guardians", map[string]func(*node){
		"table":    d.word(&g.table, "table"),
		"match":    func(v *node) { g.match = d.pairs(v, "match") },
		"subject":  d.word(&g.subject, "subject"),
		"guardian": d.word(&g.guardian, "guardian"),
		"where":    func(v *node) { g.where = d.blocks(v, "where") },
	})
	d.need(n, "guardians", "table", "subject", "guardian")
	return g
}

func (d *decoder) scope(n *node) *scopeDecl {
	s := &scopeDecl{place: n.Place}
	d.fields(n, "scope", map[string]func(*node){
		"column": d.word(&s.column, "column"),
		"is":     func(v *node) { s.is = d.words(v, "is") },
		"in":     func(v *node) { s.in = d.words(v, "in") },
		"all":    d.word(&s.all, "all"),
	})
	d.need(n, "scope", "column")
	if len(s.is)+len(s.in) == 0 && s.all == "" {
		d.fail(n.Place, "name columns of the row under is (one word) or in (a list), or the word for every row "+
			"under all", "a scope that no row has is no scope")
	}
	return s
}

// pairs reads `{ its column: the column of the row that it equals }`.
func (d *decoder) pairs(n *node, what string) []predicate.Pair {
	if !d.want(n, yamlfile.Mapping, what) {
		return nil
	}
	var out []predicate.Pair
	for i, from := range n.Values {
		if from.Kind != yamlfile.Scalar || from.Value == "" {
			d.fail(from.Place, "write { its column: the column of the row that it equals }", "a column is a single name")
			continue
		}
		out = append(out, predicate.Pair{Column: n.Keys[i], From: from.Value})
	}
	return out
}

// recorded compiles consent by records.
func (c *compiler) recorded(b consentBlock, row *catalog.Relation) predicate.Node {
	failed := len(c.errs)
	out, subjects, elements, ok := c.asked(b, row)
	if !ok {
		return predicate.Any{}
	}
	out.But = c.ids(b.recorded.but, subjects.relation, subjects.column, elements)
	out.Record = c.record(b.recorded.record, row, subjects.column, elements)
	if len(c.errs) > failed {
		return predicate.Any{}
	}
	return out
}

// asked compiles who is asked: the links to the subjects, and the column of their ids.
func (c *compiler) asked(b consentBlock, row *catalog.Relation) (predicate.Recorded, *subjectColumn, string, bool) {
	decl, out := b.recorded, predicate.Recorded{}
	from := row
	for i, link := range b.every {
		target := c.link(link, from)
		if target == nil {
			return out, nil, "", false
		}
		if i == 0 && link.isKey(target.PrimaryKey) {
			out.Required = true
		}
		out.Steps = append(out.Steps, predicate.Step{
			Relation: target, Column: link.pairs[0].Column, From: link.pairs[0].From, And: link.more()})
		from = target
	}
	subjects, elements := c.subjects(decl, from)
	if subjects == nil {
		return out, nil, "", false
	}
	out.Subjects = subjects.list
	if decl.subject != "" {
		out.Subject, out.Subjects.Column = decl.subject, ""
	}
	return out, subjects, elements, true
}

// ids are the attributes whose values are compared with a column's.
func (c *compiler) ids(to []grantee, r *catalog.Relation, column *catalog.Column, elements string) []predicate.Grantee {
	var out []predicate.Grantee
	for _, to := range to {
		attribute := c.attribute(to.place, to.attribute)
		if attribute == nil {
			continue
		}
		if elements != "text" && family(attribute.element()) != elements {
			c.fail(to.place, "declare the attribute with the type of the column's ids", "%s.%s is a %s and the attribute %s a %s",
				r.Name, column.Name, column.Type, attribute.Name, attribute.Type)
			continue
		}
		out = append(out, predicate.Grantee{Attribute: attribute.Name, List: attribute.List(), Optional: attribute.Optional})
	}
	return out
}

// formOf is the form of one id of a family.
func formOf(family string) predicate.GrantForm {
	return map[string]predicate.GrantForm{"uuid": predicate.GrantUUID, "integer": predicate.GrantInteger}[family]
}

// subjectColumn is where the ids of subjects stand.
type subjectColumn struct {
	relation *catalog.Relation
	column   *catalog.Column
	list     predicate.List
}

// subjects finds the column of the subjects and the family of their ids; nil after an error.
func (c *compiler) subjects(decl *recordedDecl, r *catalog.Relation) (*subjectColumn, string) {
	if decl.subject != "" {
		column := c.column(decl.subjectAt, r, decl.subject)
		if column == nil {
			return nil, ""
		}
		if f := family(column.Type); f != "text" && f != "uuid" && f != "integer" {
			c.fail(decl.subjectAt, "write subjects: for a column of several", "%s.%s is a %s, which is no id",
				r.Name, column.Name, column.Type)
			return nil, ""
		}
		return &subjectColumn{r, column, predicate.List{Column: column.Name, Form: formOf(family(column.Type))}},
			family(column.Type)
	}
	list, elements, ok := c.list(decl.subjectAt, r, decl.subjects)
	if !ok {
		return nil, ""
	}
	return &subjectColumn{r, r.Column(decl.subjects), list}, elements
}

// list finds a column of several ids.
func (c *compiler) list(at place, r *catalog.Relation, name string) (predicate.List, string, bool) {
	column := c.column(at, r, name)
	if column == nil {
		return predicate.List{}, "", false
	}
	list, elements, ok := listOfIDs(column)
	switch {
	case !ok:
		c.fail(at, "a list is a text[], uuid[] or bigint[], or a JSON array in a jsonb, json or text column",
			"%s.%s is a %s", r.Name, column.Name, column.Type)
	case column.Nondeterministic:
		c.fail(at, "give the column a collation that tells all texts apart",
			"%s.%s has a collation by which different ids are the same", r.Name, column.Name)
		ok = false
	}
	return list, elements, ok
}

// record compiles which rows of another table are a consent.
func (c *compiler) record(decl *recordDecl, row *catalog.Relation, subject *catalog.Column,
	elements string) predicate.Record {
	r := c.relation(decl.place, decl.table)
	if r == nil {
		return predicate.Record{}
	}
	out := predicate.Record{Relation: r, Grantor: decl.grantor, Match: decl.match}
	c.names(decl.place, r, decl.grantor, subject, elements)
	for _, p := range decl.match {
		c.pair(decl.matchAt, r, row, p)
	}
	where := slices.Clone(decl.where)
	g := decl.grantee
	if column := c.column(g.place, r, g.column); column != nil {
		if g.element {
			out.Element = g.column
			if !c.elements {
				c.fail(g.place, "write to: [attributes that are ids of the caller]",
					"there is no element here: only wider, under write, judges the elements of a list")
			}
		} else {
			out.Grantee = predicate.Grant{Column: g.column, Form: formOf(family(column.Type)), All: g.all}
			switch {
			case family(column.Type) != "text" && family(column.Type) != "uuid" &&
				family(column.Type) != "integer", column.Nondeterministic:
				c.fail(g.place, "a grantee is one uuid, integer or text", "%s.%s is a %s", r.Name, column.Name, column.Type)
			case g.all != "" && family(column.Type) != "text":
				c.fail(g.place, "", "%s.%s is a %s: it cannot hold a word for everybody", r.Name, column.Name, column.Type)
			}
			out.Grantee.To = c.ids(g.to, r, column, family(column.Type))
		}
	}
	if decl.revoked != "" {
		where = append(where, c.condition(decl.place, identifier(decl.revoked)+" IS NULL"))
	}
	if decl.expires != "" {
		where = append(where, c.condition(decl.place,
			identifier(decl.expires)+" IS NULL OR "+identifier(decl.expires)+" > now()"))
	}
	out.Rows = c.conditions(where, r)
	if s := decl.scope; s != nil {
		out.Scope = c.scope(s, r, row)
	}
	if decl.guardians != nil {
		out.Guardians = c.guardians(decl.guardians, r.Column(decl.grantor), row, subject, elements)
	}
	return out
}

func (c *compiler) guardians(decl *guardiansDecl, grantor *catalog.Column, row *catalog.Relation,
	subject *catalog.Column, elements string) *predicate.Guardians {
	r := c.relation(decl.place, decl.table)
	if r == nil || grantor == nil {
		return nil
	}
	for _, p := range decl.match {
		c.pair(decl.place, r, row, p)
	}
	c.names(decl.place, r, decl.subject, subject, elements)
	c.names(decl.place, r, decl.guardian, grantor, family(grantor.Type))
	return &predicate.Guardians{Relation: r, Subject: decl.subject, Guardian: decl.guardian, Match: decl.match,
		Rows: c.conditions(decl.where, r)}
}

func (c *compiler) scope(decl *scopeDecl, r, row *catalog.Relation) *predicate.Scope {
	out := &predicate.Scope{Column: decl.column, All: decl.all}
	column := c.column(decl.place, r, decl.column)
	if column == nil {
		return out
	}
	if decl.all != "" && family(column.Type) != "text" {
		c.fail(decl.place, "", "%s.%s is a %s: it cannot hold a word for every row", r.Name, column.Name, column.Type)
	}
	for _, w := range decl.is {
		if c.pair(w.place, r, row, predicate.Pair{Column: decl.column, From: w.word}) {
			out.Is = append(out.Is, w.word)
		}
	}
	for _, w := range decl.in {
		if list, elements, ok := c.list(w.place, row, w.word); ok {
			c.names(w.place, r, decl.column, row.Column(w.word), elements)
			out.In = append(out.In, list)
		}
	}
	return out
}

// names checks that a column holds ids of the kind that another column, or the elements of its list, are.
func (c *compiler) names(at place, r *catalog.Relation, name string, other *catalog.Column, elements string) {
	column := c.column(at, r, name)
	if column == nil {
		return
	}
	switch {
	case family(column.Type) != elements:
		hint := "ids are uuid, integer or text on both sides"
		if elements == "text" {
			hint = fmt.Sprintf(
				"compare it as text, by a column of its own such as ADD COLUMN %s text GENERATED ALWAYS AS "+
					"(%s::text) STORED", catalog.QuoteIdent(column.Name+"_text"), catalog.QuoteIdent(column.Name))
		}
		c.fail(at, hint, "%s.%s is of type %s, and %s is of ids that are %s", r.Name, column.Name, column.Type,
			other.Name, elements)
	case column.Nondeterministic || other.Nondeterministic:
		c.fail(at, "give it a deterministic collation",
			"%s.%s and %s compare by a collation that takes different ids for the same", r.Name, column.Name, other.Name)
	case other.Type != "jsonb" && other.Type != "json" && column.Collation != other.Collation:
		c.fail(at, "give both columns one collation",
			"%s.%s and %s have different collations: PostgreSQL would not know by which to compare", r.Name, column.Name, other.Name)
	}
}

// conditions compiles blocks over a helper table's own columns; nil if there are none.
func (c *compiler) conditions(blocks []block, r *catalog.Relation) predicate.Node {
	return c.conditionsOf("where", blocks, r)
}

// conditionsOf does that with blocks that stand under another key.
func (c *compiler) conditionsOf(key string, blocks []block, r *catalog.Relation) predicate.Node {
	if len(blocks) == 0 {
		return nil
	}
	for _, b := range blocks {
		c.ownColumns(key, b)
	}
	defer func(r *Rule) { c.rule = r }(c.rule)
	c.rule = &Rule{} // these are no rules of the row
	return predicate.All(c.parts(blocks, r))
}

// ownColumns refuses what reads a table besides.
func (c *compiler) ownColumns(key string, b block) {
	switch b := b.(type) {
	case allBlock:
		for _, part := range b.parts {
			c.ownColumns(key, part)
		}
	case anyBlock:
		for _, part := range b.parts {
			c.ownColumns(key, part)
		}
	case notBlock:
		c.ownColumns(key, b.part)
	case ownBlock, tenantBlock, grantBlock, statusBlock, sqlBlock, openBlock, nil:
	default:
		c.fail(b.At(), "", "%s speaks of the table's own columns only", key)
	}
}

// condition is a block made of an expression that the policy implies.
func (c *compiler) condition(at place, text string) block {
	return sqlBlock{place: at, text: text, where: func(int) place { return at }}
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
