package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// sessionRow is a relation without columns. Conditions that read only attributes are compiled as conditions on a row of
// it.
var sessionRow = &catalog.Relation{Name: catalog.Name{Schema: "the", Name: "session"}}

// attributeCalls matches each call attribute('name') in the text of a valid expression.
var attributeCalls = regexp.MustCompile(`(?i)\battribute\s*\(\s*'([a-z0-9_]+)'`)

// contractCompiler compiles objects and contracts.
type contractCompiler struct {
	*resolver
	rules *ruleCompiler
}

// compile compiles objects and contracts. It adds to the rule of each object the condition that contracts allow the
// object to the session.
func (c *contractCompiler) compile(p *Policy) {
	p.objects = map[catalog.Name]*Object{}
	byName := map[string]*Object{}
	for _, decl := range c.doc.objects {
		if o := c.compileObject(decl); o != nil {
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
		if contract := c.compileContract(decl, byName); contract != nil {
			p.contracts = append(p.contracts, contract)
		}
	}
	if len(c.errs) > 0 {
		return
	}
	c.warnUngoverned(p)
	for _, t := range p.tables {
		if o := p.objects[t.Relation.Name]; o != nil && !o.JoinOnly {
			for _, contract := range p.contracts {
				if contract.governs(o.Name) {
					position := contract.place
					rule := &Rule{File: position.File, Line: position.Line, Column: position.Column, Block: "contract " +
						contract.Name,
						Node: c.sessionRule(contract, o), addedByContract: true}
					t.Rows = predicate.All{rule.Node, t.Rows}
					if t.Rule != nil {
						t.Rule = &Rule{File: t.Rule.File, Line: t.Rule.Line, Column: t.Rule.Column, Block: "all",
							Node: t.Rows, Parts: []*Rule{rule, t.Rule}}
					}
				}
			}
		}
	}
	c.extendToParts(p)
}

// compileObject compiles an entry of the section objects.
func (c *contractCompiler) compileObject(decl objectDecl) *Object {
	r := c.findListable(decl.tableAt, decl.table)
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
		if c.findColumn(w.place, r, w.text) != nil {
			o.MetadataColumns = append(o.MetadataColumns, w.text)
		}
	}
	for _, w := range decl.embeddings {
		if c.findColumn(w.place, r, w.text) != nil {
			o.EmbeddingColumns = append(o.EmbeddingColumns, w.text)
		}
		if slices.Contains(o.MetadataColumns, w.text) {
			c.fail(w.place, "take it out of one", "%s.%s is metadata and an embedding", r.Name, w.text)
		}
	}
	return o
}

// compileContract compiles a contract.
func (c *contractCompiler) compileContract(decl contractDecl, objects map[string]*Object) *Contract {
	out := &Contract{Name: decl.name, By: decl.selectedBy.text, Values: map[string]*Terms{}, place: decl.place}
	if len(c.doc.objects) == 0 {
		c.fail(decl.place, "name the tables that it governs under objects", "contract %s is there, and no object", decl.name)
		return nil
	}
	if decl.governs != nil {
		out.GovernedObjects = c.objectNames(decl.governs, objects)
	}
	vessels := []string{}
	for _, o := range objects {
		if o.Vessel != "" {
			vessels = append(vessels, o.Vessel)
		}
	}
	for _, group := range decl.exclusiveVessels {
		var list []string
		for _, w := range group {
			if !slices.Contains(vessels, w.text) {
				c.fail(w.place, closest(w.text, vessels), "no object is in the vessel %q", w.text)
			}
			list = append(list, w.text)
		}
		out.ExclusiveVessels = append(out.ExclusiveVessels, list)
	}
	if decl.always != nil {
		out.Always = c.compileTerms(*decl.always, out, objects)
		return out
	}
	selector := c.findAttribute(decl.selectedBy.place, decl.selectedBy.text)
	if selector == nil {
		return nil
	}
	if selector.IsList() {
		c.fail(decl.selectedBy.place, "let an attribute of one value decide", "%s is a list", selector.Name)
		return nil
	}
	for _, t := range decl.values {
		if err := selector.Check(t.value.text); err != nil {
			c.fail(t.value.place, "", "%q is no value that attribute %s can have: it is of type %s", t.value.text,
				selector.Name, selector.Type)
			continue
		}
		out.Values[t.value.text] = c.compileTerms(t, out, objects)
		out.order = append(out.order, t.value.text)
	}
	return out
}

func (c *contractCompiler) objectNames(words []wordDecl, objects map[string]*Object) []string {
	var out []string
	for _, w := range words {
		if objects[w.text] == nil {
			c.fail(w.place, closest(w.text, sortedKeys(objects)), "there is no object %q", w.text)
			continue
		}
		out = append(out, w.text)
	}
	return out
}

// compileTerms compiles the terms of a contract.
func (c *contractCompiler) compileTerms(decl termsDecl, contract *Contract, objects map[string]*Object) *Terms {
	t := &Terms{AllowsNothing: decl.allowsNothing, MaxRows: decl.maxRows,
		ExceptedObjects: c.objectNames(decl.exceptedObjects, objects)}
	if len(decl.exceptedObjects) > 0 && (decl.allowsNothing || decl.allow != nil) {
		c.fail(decl.exceptedObjects[0].place, "leave the object out of allow", "except goes with allow: everything")
	}
	if decl.allowsNothing && (len(decl.requires) > 0 || decl.planAttribute.text != "" || decl.maxRows > 0 ||
		len(decl.statementNames) > 0) {
		c.fail(decl.place, "take the rest out", "nothing is allowed, so that nothing else matters")
	}
	if decl.allow != nil {
		t.Allow = map[string]*Allowance{}
	}
	for _, a := range decl.allow {
		c.compileAllowance(t, a, contract, objects)
	}
	for _, b := range decl.requires {
		t.Requirements = append(t.Requirements, c.compileRequirement(b))
	}
	c.compilePlan(t, decl.planAttribute)
	c.compileQuotaAttribute(t, decl.quotaAttribute)
	c.compileStatements(t, decl)
	return t
}

// compileAllowance compiles what terms allow for one object, or for all objects.
func (c *contractCompiler) compileAllowance(t *Terms, a allowDecl, contract *Contract, objects map[string]*Object) {
	allowance := &Allowance{}
	for _, s := range a.sources {
		allowance.Sources = append(allowance.Sources, s.text)
	}
	if a.object.text == "any" {
		if a.columns != nil {
			c.fail(a.object.place, "name the object", "any has no columns of its own")
		}
		t.otherObjects = allowance
		return
	}
	o := objects[a.object.text]
	if o == nil {
		c.fail(a.object.place, closest(a.object.text, append(sortedKeys(objects), "any")), "there is no object %q", a.object.text)
		return
	}
	if contract.GovernedObjects != nil && !slices.Contains(contract.GovernedObjects, o.Name) {
		c.fail(a.object.place, "add it to governs", "contract %s does not govern %s", contract.Name, o.Name)
	}
	if o.JoinOnly {
		c.fail(a.object.place, "leave it out: it may be joined wherever something is allowed", "%s is join_only", o.Name)
	}
	r, _ := c.snap.Relation(o.Relation)
	for _, w := range a.columns {
		if c.findColumn(w.place, r, w.text) != nil {
			allowance.Columns = append(allowance.Columns, w.text)
		}
	}
	c.warnUselessSources(a, o, r)
	t.Allow[o.Name] = allowance
}

// warnUselessSources warns of allowed sources with which no statement can access the object.
func (c *contractCompiler) warnUselessSources(a allowDecl, o *Object, r *catalog.Relation) {
	for _, s := range a.sources {
		if s.text == SourceVector && !c.hasSearchableColumn(o, r) {
			c.warn(s.place, "%s has neither an embedding nor a text: it can never be searched by likeness", o.Name)
		}
		if s.text == SourceMetadata && len(o.MetadataColumns) == 0 {
			c.warn(s.place, "no column of %s is metadata: its rows can be counted and no more", o.Name)
		}
		if s.text == SourceWrite && c.tables[o.Relation].decl.write == nil {
			c.warn(s.place, "%s cannot be written: its table has no write", o.Name)
		}
	}
}

func (c *contractCompiler) compilePlan(t *Terms, plan wordDecl) {
	if plan.text == "" {
		return
	}
	a := c.findAttribute(plan.place, plan.text)
	if a == nil {
		return
	}
	if a.Type != "text[]" && a.Type != "text" {
		c.fail(plan.place, "declare it as text, a list with commas", "plan names %s, which is of type %s", a.Name, a.Type)
	}
	t.PlanAttribute = a.Name
}

func (c *contractCompiler) compileQuotaAttribute(t *Terms, per wordDecl) {
	if per.text == "" {
		return
	}
	a := c.findAttribute(per.place, per.text)
	if a == nil {
		return
	}
	switch {
	case a.IsList():
		c.fail(per.place, "name an attribute of one value", "rows are counted per %s, which is a list", a.Name)
	case a.Source == sourceSet:
		c.warn(per.place, "rows are counted per %s, which agents set: they have so many rows for each value that they "+
			"may claim", a.Name)
	}
	t.QuotaAttribute = a.Name
}

// compileStatements compiles the named statements. If terms name statements, agents may send no other.
func (c *contractCompiler) compileStatements(t *Terms, decl termsDecl) {
	for i, w := range decl.statementNames {
		text := decl.statementTexts[i]
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
}

// hasSearchableColumn tells whether some column of an object can be searched by similarity, so that accesses may have
// the source vector.
func (c *contractCompiler) hasSearchableColumn(o *Object, r *catalog.Relation) bool {
	if len(o.EmbeddingColumns) > 0 {
		return true
	}
	return slices.ContainsFunc(r.Columns, func(column catalog.Column) bool {
		t := c.snap.TypeByOID(column.TypeOID)
		return typeFamily(column.Type) == "text" || t != nil && t.Extension != ""
	})
}

// compileRequirement compiles a condition of the key requires, an expression over attributes.
func (c *contractCompiler) compileRequirement(b sqlBlock) Condition {
	out := Condition{Text: b.text, Rule: c.rules.compileSQL(b, sessionRow)}
	for _, m := range attributeCalls.FindAllStringSubmatch(b.text, -1) {
		if name := strings.ToLower(m[1]); !slices.Contains(out.Attributes, name) {
			out.Attributes = append(out.Attributes, name)
		}
	}
	return out
}
