package migrations

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// difference lists the objects that migrate must drop, replace and make to turn the installed plan into another one.
type difference struct {
	dropped    []installedObject // the objects to drop, in this order
	replaced   []installedObject // the installed versions of objects that are replaced in place
	steps      []planStep        // the steps that make and replace objects, in this order
	newObjects []Object          // all objects of the new plan
}

// planStep makes an object of the new plan, or replaces its installed version in place.
type planStep struct {
	Object
	isReplacement bool
}

func (s planStep) statements() []Statement {
	if s.isReplacement {
		return s.ReplaceStatements
	}
	return s.MakeStatements
}

// comparePlans compares the installed objects with those of a new plan. An object that needs a dropped object is
// dropped and made anew as well.
func comparePlans(installed map[string]installedObject, plan []Object) difference {
	d := difference{newObjects: plan}
	dropped, there := map[string]bool{}, map[string]bool{}
	drop := func(was installedObject) {
		dropped[was.identity] = true
		d.dropped = append(d.dropped, was)
	}
	for _, o := range plan {
		there[o.Identity] = true
		was, known := installed[o.Identity]
		needs := slices.ContainsFunc(o.NeededObjects, func(identity string) bool { return dropped[identity] })
		switch {
		case !known:
			d.steps = append(d.steps, planStep{o, false})
		case needs || was.definition != o.makeHash() && o.ReplaceStatements == nil:
			drop(was)
			d.steps = append(d.steps, planStep{o, false})
		case was.definition != o.makeHash():
			d.replaced = append(d.replaced, was)
			d.steps = append(d.steps, planStep{o, true})
		}
	}
	for identity, was := range installed {
		if !there[identity] {
			drop(was)
		}
	}
	slices.SortFunc(d.dropped, func(a, b installedObject) int {
		return cmp.Or(cmp.Compare(a.firstUndoNumber, b.firstUndoNumber), cmp.Compare(a.identity, b.identity))
	})
	return d
}

// makeHash returns a hash of the statements that make an object.
func (o Object) makeHash() string {
	h := sha256.New()
	for _, s := range o.MakeStatements {
		fmt.Fprintf(h, "%s;\n", s.SQL)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// revokeStatements returns statements that revoke the rights on other objects which dropped and replaced objects have
// granted. Rights that an object of the new plan also grants stay.
func (d difference) revokeStatements() []string {
	given := map[string]bool{}
	for _, o := range d.newObjects {
		for _, sql := range o.revokes() {
			given[sql] = true
		}
	}
	var out []string
	for _, was := range slices.Concat(d.dropped, d.replaced) {
		for _, sql := range was.revokes {
			if !given[sql] {
				given[sql] = true
				out = append(out, sql)
			}
		}
	}
	return out
}

// revokes returns the statements that revoke the rights which making the object has granted on other objects.
func (o Object) revokes() []string {
	var out []string
	for _, g := range o.Grants {
		out = append(out, g.revokeStatements()...)
	}
	return out
}

// changedTables returns the tables of the objects that are dropped, replaced or made, each once.
func (d difference) changedTables() []string {
	var out []string
	for _, was := range slices.Concat(d.dropped, d.replaced) {
		out = append(out, was.tables...)
	}
	for _, s := range d.steps {
		out = append(out, tableNames(s.Tables)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (d difference) changed() Changed {
	identities := map[string]bool{}
	for _, was := range d.dropped {
		identities[was.identity] = true
	}
	for _, s := range d.steps {
		identities[s.Identity] = true
	}
	all := map[string]bool{}
	for _, o := range d.newObjects {
		all[o.Identity] = true
	}
	for identity := range identities {
		all[identity] = true
	}
	// theirs counts the tables that are not pgconsent's own
	theirs := func(tables []string) int {
		return len(slices.DeleteFunc(tables, func(t string) bool { return strings.HasPrefix(t, "pgconsent") }))
	}
	tables := d.changedTables()
	everywhere := append(tablesOf(d.newObjects), tables...)
	slices.Sort(everywhere)
	return Changed{
		Objects: len(identities), AllObjects: len(all),
		Tables: theirs(tables), AllTables: theirs(slices.Compact(everywhere)),
	}
}
