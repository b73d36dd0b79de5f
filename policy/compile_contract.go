package policy

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// session stands for the row in conditions, which speak of attributes alone.
var session = &catalog.Relation{Name: catalog.Name{Schema: "the", Name: "session"}}

// named finds attributes in the text of an expression that compiles.
var named = regexp.MustCompile(`(?i)\battribute\s*\(\s*'([a-z0-9_]+)'`)

// contracts compiles objects and contracts, and adds to the rows of each object what the contracts say of sessions.
func (c *compiler) contracts(p *Policy) {
	p.objects = map[catalog.Name]*Object{}
	byName := map[string]*Object{}
	for _, decl := range c.doc.objects {
		if o := c.object(decl); o != nil {
			if other := p.objects[o.Relation]; other != nil {
				c.fail(decl.place, "", "%s is the object %s already", o.Relation, other.Name)
				continue
			}
			p.objects[o.Relation], byName[o.Name] = o, o
			p.objectList = append(p.objectList, o)
		}
	}
	slices.SortFunc(p.objectList, func(a, b *Object) int { return strings.Compare(a.Name, b.Name) })
	for _, decl := range c.doc.contracts {
		if contract := c.contract(decl, byName); contract != nil {
			p.contracts = append(p.contracts, contract)
		}
	}
	if len(c.errs) > 0 {
		return
	}
	c.unmentioned(p)
	for _, t := range p.tables {
		if o := p.objects[t.Relation.Name]; o != nil && !o.JoinOnly {
			for _, contract := range p.contracts {
				if contract.governs(o.Name) {
					at := contract.place
					rule := &Rule{File: at.File, Line: at.Line, Column: at.Column, Block: "contract " + contract.Name,
						Node: c.sessions(contract, o), contract: true}
					t.Rows = predicate.All{rule.Node, t.Rows}
					if t.Rule != nil {
						t.Rule = &Rule{File: t.Rule.File, Line: t.Rule.Line, Column: t.Rule.Column, Block: "all",
							Node: t.Rows, Parts: []*Rule{rule, t.Rule}}
					}
				}
			}
		}
	}
	c.partsOf(p)
}

func (c *compiler) object(decl objectDecl) *Object {
	r := c.listed(decl.tableAt, decl.table)
	if r == nil {
		return nil
	}
	if _, ok := c.tables[r.Name]; !ok {
		c.fail(decl.tableAt, "list it under tables, with its rows",
			"the object %s is the table %s, which the policy does not list", decl.name, r.Name)
		return nil
	}
	o := &Object{Name: decl.name, Relation: r.Name, Vessel: decl.vessel, JoinOnly: decl.joinOnly}
	for _, w := range decl.metadata {
		if c.named(w.place, r, w.text) != nil {
			o.Metadata = append(o.Metadata, w.text)
		}
	}
	for _, w := range decl.embeddings {
		if c.named(w.place, r, w.text) != nil {
			o.Embeddings = append(o.Embeddings, w.text)
		}
		if slices.Contains(o.Metadata, w.text) {
			c.fail(w.place, "take it out of one", "%s.%s is metadata and an embedding", r.Name, w.text)
		}
	}
	return o
}

func (c *compiler) contract(decl contractDecl, objects map[string]*Object) *Contract {
	out := &Contract{Name: decl.name, By: decl.by.text, Values: map[string]*Terms{}, place: decl.place}
	if len(c.doc.objects) == 0 {
		c.fail(decl.place, "name the tables that it governs under objects", "contract %s is there, and no object", decl.name)
		return nil
	}
	if decl.governs != nil {
		out.Governs = c.objectNames(decl.governs, objects)
	}
	vessels := []string{}
	for _, o := range objects {
		if o.Vessel != "" {
			vessels = append(vessels, o.Vessel)
		}
	}
	for _, group := range decl.apart {
		var list []string
		for _, w := range group {
			if !slices.Contains(vessels, w.text) {
				c.fail(w.place, closest(w.text, vessels), "no object is in the vessel %q", w.text)
			}
			list = append(list, w.text)
		}
		out.SeparateVessels = append(out.SeparateVessels, list)
	}
	if decl.always != nil {
		out.Always = c.terms(*decl.always, out, objects)
		return out
	}
	by := c.attribute(decl.by.place, decl.by.text)
	if by == nil {
		return nil
	}
	if by.List() {
		c.fail(decl.by.place, "let an attribute of one value decide", "%s is a list", by.Name)
		return nil
	}
	for _, t := range decl.values {
		if err := by.Check(t.value.text); err != nil {
			c.fail(t.value.place, "", "%q is no value that attribute %s can have: it is of type %s", t.value.text, by.Name, by.Type)
			continue
		}
		out.Values[t.value.text] = c.terms(t, out, objects)
		out.order = append(out.order, t.value.text)
	}
	return out
}

func (c *compiler) objectNames(words []word, objects map[string]*Object) []string {
	var out []string
	for _, w := range words {
		if objects[w.text] == nil {
			c.fail(w.place, closest(w.text, keys(objects)), "there is no object %q", w.text)
			continue
		}
		out = append(out, w.text)
	}
	return out
}

func (c *compiler) terms(decl termsDecl, contract *Contract, objects map[string]*Object) *Terms {
	t := &Terms{Nothing: decl.nothing, Rows: decl.rows, Except: c.objectNames(decl.except, objects)}
	if len(decl.except) > 0 && (decl.nothing || decl.allow != nil) {
		c.fail(decl.except[0].place, "leave the object out of allow", "except goes with allow: everything")
	}
	if decl.nothing && (len(decl.requires) > 0 || decl.plan.text != "" || decl.rows > 0 || len(decl.named) > 0) {
		c.fail(decl.place, "take the rest out", "nothing is allowed, so that nothing else matters")
	}
	if decl.allow != nil {
		t.Allow = map[string]*Allowance{}
	}
	for _, a := range decl.allow {
		allowance := &Allowance{}
		for _, s := range a.sources {
			allowance.Sources = append(allowance.Sources, s.text)
		}
		if a.object.text == "any" {
			if a.columns != nil {
				c.fail(a.object.place, "name the object", "any has no columns of its own")
			}
			t.any = allowance
			continue
		}
		o := objects[a.object.text]
		if o == nil {
			c.fail(a.object.place, closest(a.object.text, append(keys(objects), "any")), "there is no object %q", a.object.text)
			continue
		}
		if contract.Governs != nil && !slices.Contains(contract.Governs, o.Name) {
			c.fail(a.object.place, "add it to governs", "contract %s does not govern %s", contract.Name, o.Name)
		}
		if o.JoinOnly {
			c.fail(a.object.place, "leave it out: it may be joined wherever something is allowed", "%s is join_only", o.Name)
		}
		r, _ := c.snap.Relation(o.Relation)
		for _, w := range a.columns {
			if c.named(w.place, r, w.text) != nil {
				allowance.Columns = append(allowance.Columns, w.text)
			}
		}
		for _, s := range a.sources {
			if s.text == Vector && !c.searchable(o, r) {
				c.warn(s.place, "%s has neither an embedding nor a text: it can never be searched by likeness", o.Name)
			}
			if s.text == Metadata && len(o.Metadata) == 0 {
				c.warn(s.place, "no column of %s is metadata: its rows can be counted and no more", o.Name)
			}
			if s.text == Writes && c.tables[o.Relation].decl.write == nil {
				c.warn(s.place, "%s cannot be written: its table has no write", o.Name)
			}
		}
		t.Allow[o.Name] = allowance
	}
	for _, b := range decl.requires {
		t.Requires = append(t.Requires, c.requirement(b))
	}
	if decl.plan.text != "" {
		if a := c.attribute(decl.plan.place, decl.plan.text); a != nil {
			if a.Type != "text[]" && a.Type != "text" {
				c.fail(decl.plan.place, "declare it as text, a list with commas", "plan names %s, which is of type %s", a.Name, a.Type)
			}
			t.Plan = a.Name
		}
	}
	if decl.per.text != "" {
		if a := c.attribute(decl.per.place, decl.per.text); a != nil {
			switch {
			case a.List():
				c.fail(decl.per.place, "name an attribute of one value", "rows are counted per %s, which is a list", a.Name)
			case a.Source == "set":
				c.warn(decl.per.place, "rows are counted per %s, which agents set: they have so many rows for each value that they may claim", a.Name)
			}
			t.Per = a.Name
		}
	}
	for i, w := range decl.named {
		text := decl.templates[i]
		tree, err := sqltext.Parse(text)
		switch {
		case err != nil:
			c.fail(w.place, "", "the statement %s does not parse: %s", w.text, err.Message)
		case len(tree.Stmts) != 1:
			c.fail(w.place, "", "%s must be one statement", w.text)
		}
		if t.Statements == nil {
			t.Statements = map[string]string{}
		}
		t.Statements[w.text] = text
	}
	return t
}

// searchable tells whether likeness can be measured on some column.
func (c *compiler) searchable(o *Object, r *catalog.Relation) bool {
	if len(o.Embeddings) > 0 {
		return true
	}
	return slices.ContainsFunc(r.Columns, func(column catalog.Column) bool {
		t := c.snap.TypeByOID(column.TypeOID)
		return family(column.Type) == "text" || t != nil && t.Extension != ""
	})
}

// requirement compiles an expression over attributes.
func (c *compiler) requirement(b sqlBlock) Condition {
	out := Condition{Text: b.text, Rule: c.sql(b, session)}
	for _, m := range named.FindAllStringSubmatch(b.text, -1) {
		if name := strings.ToLower(m[1]); !slices.Contains(out.Attributes, name) {
			out.Attributes = append(out.Attributes, name)
		}
	}
	return out
}

// sessions is what a contract says of the sessions to which rows of an object may show at all: the second wall. Which
// columns a statement uses, and how, no row knows.
func (c *compiler) sessions(contract *Contract, o *Object) predicate.Node {
	expression := func(format string, args ...any) predicate.Node {
		text := fmt.Sprintf(format, args...)
		return c.sql(sqlBlock{place: contract.place, text: text, where: func(int) place { return contract.place }}, session)
	}
	of := func(t *Terms) (more predicate.All, ok bool) {
		allowed := t.of(o.Name)
		if allowed == nil {
			return nil, false
		}
		for _, r := range t.Requires {
			more = append(more, r.Rule)
		}
		if t.Plan != "" {
			list := c.attribute(contract.place, t.Plan).List()
			var entries []string
			for _, s := range append(slices.Clone(allowed.Sources), Metadata) {
				entries = append(entries, lists(t.Plan, list, o.Name+":"+s))
			}
			more = append(more, expression("%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(entries))), " OR ")))
		}
		return more, true
	}
	if contract.By == "" {
		more, ok := of(contract.Always)
		switch {
		case !ok:
			return predicate.Any{}
		case len(more) == 0:
			return predicate.Open{}
		}
		return more
	}
	var plain []string
	var out predicate.Any
	for _, value := range contract.order {
		more, ok := of(contract.Values[value])
		switch literal := c.literal(contract.By, value); {
		case !ok:
		case len(more) == 0:
			plain = append(plain, literal)
		default:
			out = append(out, append(predicate.All{expression("attribute('%s') = %s", contract.By, literal)}, more...))
		}
	}
	if len(plain) > 0 {
		out = append(out, expression("attribute('%s') IN (%s)", contract.By, strings.Join(plain, ", ")))
	}
	return out
}

// lists is the expression that a plan has an entry: as an element of a list, or between the commas of a text.
func lists(attribute string, list bool, entry string) string {
	if list {
		return fmt.Sprintf("%s = ANY (attribute('%s'))", catalog.QuoteLiteral(entry), attribute)
	}
	pattern := strings.ReplaceAll(entry, "_", `\_`)
	var parts []string
	for _, form := range []string{pattern, pattern + ",%", "%," + pattern, "%," + pattern + ",%"} {
		parts = append(parts, fmt.Sprintf("attribute('%s') LIKE '%s'", attribute, form))
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

func (c *compiler) literal(attribute, value string) string {
	a := c.attribute(place{}, attribute)
	if a.Type == "integer" || a.Type == "bigint" {
		return value
	}
	return catalog.QuoteLiteral(value)
}

// unmentioned warns of objects that no contract allows, and of tables that are no objects.
func (c *compiler) unmentioned(p *Policy) {
	if len(p.contracts) == 0 {
		for _, decl := range c.doc.objects {
			c.warn(decl.place, "there are objects and no contract: they change nothing")
			break
		}
		return
	}
	for _, decl := range c.doc.objects {
		governed, possible := false, true
		for _, contract := range p.contracts {
			if !contract.governs(decl.name) {
				continue
			}
			governed = true
			allowed := slices.ContainsFunc(contract.terms(), func(t *Terms) bool { return t.of(decl.name) != nil })
			if !allowed && !decl.joinOnly {
				possible = false
				c.warn(decl.place, "contract %s never allows %s", contract.Name, decl.name)
			}
		}
		if !governed && !decl.joinOnly && possible {
			c.warn(decl.place, "no contract governs %s: nobody may read it", decl.name)
		}
	}
	for _, t := range p.tables {
		if p.objects[t.Relation.Name] == nil {
			c.warn(c.tables[t.Relation.Name].decl.place, "%s is no object: contracts do not govern it", t.Relation.Name)
		}
	}
}

// partsOf makes the partitions and children of an object parts of it, and refuses tables above it that are no objects:
// rows of it could be read through them.
func (c *compiler) partsOf(p *Policy) {
	if len(p.contracts) == 0 {
		return
	}
	children := map[catalog.Name][]catalog.Name{}
	for _, r := range c.snap.Relations() {
		for _, parent := range r.Parents {
			children[parent] = append(children[parent], r.Name)
		}
	}
	var descend func(n catalog.Name, f func(catalog.Name))
	descend = func(n catalog.Name, f func(catalog.Name)) {
		for _, child := range children[n] {
			f(child)
			descend(child, f)
		}
	}
	for _, o := range p.objectList {
		descend(o.Relation, func(n catalog.Name) {
			if p.objects[n] == nil {
				part := *o
				part.Relation = n
				p.objects[n] = &part
			}
		})
	}
	for _, t := range p.tables {
		if p.objects[t.Relation.Name] != nil {
			continue
		}
		descend(t.Relation.Name, func(n catalog.Name) {
			if o := p.objects[n]; o != nil {
				c.fail(c.tables[t.Relation.Name].decl.place, "make it an object as well",
					"the object %s can be read through %s", o.Name, t.Relation.Name)
			}
		})
	}
}

// functionReads compiles what a function reads.
func (c *compiler) functionReads(decl functionDecl, f *Function) {
	if !decl.readsSaid {
		return
	}
	f.Reads = []FunctionReads{}
	for _, d := range decl.reads {
		r := c.relation(d.object.place, d.object.text)
		if r == nil {
			continue
		}
		reads := FunctionReads{Relation: r.Name}
		for _, s := range d.sources {
			reads.Sources = append(reads.Sources, s.text)
		}
		f.Reads = append(f.Reads, reads)
	}
}

// describeContracts writes down all that contracts say, for the hash of the policy.
func (p *Policy) describeContracts(w io.Writer) {
	for _, o := range p.objectList {
		o.describe(w)
	}
	for _, c := range p.contracts {
		c.describe(w)
	}
	for _, f := range p.functions {
		fmt.Fprintf(w, "reads %q %t %v\n", f.Name, f.Reads == nil, f.Reads)
	}
}

func (o *Object) describe(w io.Writer) {
	fmt.Fprintf(w, "object %q %q %q %q %q %q %t\n", o.Name, o.Relation.Schema, o.Relation.Name, o.Vessel, o.Metadata,
		o.Embeddings, o.JoinOnly)
}

func (c *Contract) describe(w io.Writer) {
	fmt.Fprintf(w, "contract %q %q %q %t %q\n", c.Name, c.By, c.Governs, c.Governs == nil, c.SeparateVessels)
	for i, t := range c.terms() {
		value := ""
		if c.By != "" {
			value = c.order[i]
		}
		fmt.Fprintf(w, " value %q %t %t %q %q %d %q\n", value, t.Nothing, t.Allow == nil, t.Except, t.Plan, t.Rows, t.Per)
		for _, name := range keys(t.Allow) {
			fmt.Fprintf(w, "  allow %q %q %q\n", name, t.Allow[name].Sources, t.Allow[name].Columns)
		}
		if t.any != nil {
			fmt.Fprintf(w, "  any %q\n", t.any.Sources)
		}
		for _, r := range t.Requires {
			fmt.Fprintf(w, "  requires %q\n", r.Text)
		}
		for _, name := range keys(t.Statements) {
			fmt.Fprintf(w, "  statement %q %q\n", name, t.Statements[name])
		}
	}
}
