package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// warnUngoverned warns of objects that no contract allows. It also warns of tables that are not declared as objects,
// because no contract applies to them.
func (c *contractCompiler) warnUngoverned(p *Policy) {
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
			isAllowed := slices.ContainsFunc(contract.allTerms(),
				func(t *Terms) bool { return t.allowanceFor(decl.name) != nil })
			if !isAllowed && !decl.joinOnly {
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

// extendToParts also declares the partitions and inheritance children of an object as objects. It refuses an object
// whose parent is not an object: agents could read the object's rows through the parent.
func (c *contractCompiler) extendToParts(p *Policy) {
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
