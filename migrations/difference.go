package migrations

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// difference is what has to be done so that one plan becomes another one.
type difference struct {
	drop     []installedObject // in this order
	replaced []installedObject // of which a new version takes the place
	steps    []step            // in this order
	all      []Object          // of the new plan
}

// step makes an object, or replaces an earlier version of it.
type step struct {
	Object
	replaces bool
}

func (s step) statements() []Statement {
	if s.replaces {
		return s.Replace
	}
	return s.Make
}

// compare finds the objects that differ, and those that need what has to be dropped.
func compare(installed map[string]installedObject, plan []Object) difference {
	d := difference{all: plan}
	dropped, there := map[string]bool{}, map[string]bool{}
	drop := func(was installedObject) {
		dropped[was.identity] = true
		d.drop = append(d.drop, was)
	}
	for _, o := range plan {
		there[o.Identity] = true
		was, known := installed[o.Identity]
		needs := slices.ContainsFunc(o.Needs, func(identity string) bool { return dropped[identity] })
		switch {
		case !known:
			d.steps = append(d.steps, step{o, false})
		case needs || was.made != o.made() && o.Replace == nil:
			drop(was)
			d.steps = append(d.steps, step{o, false})
		case was.made != o.made():
			d.replaced = append(d.replaced, was)
			d.steps = append(d.steps, step{o, true})
		}
	}
	for identity, was := range installed {
		if !there[identity] {
			drop(was)
		}
	}
	slices.SortFunc(d.drop, func(a, b installedObject) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.identity, b.identity))
	})
	return d
}

// made is a hash of how an object is made.
func (o Object) made() string {
	h := sha256.New()
	for _, s := range o.Make {
		fmt.Fprintf(h, "%s;\n", s.SQL)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// revokes take back the rights that dropped and replaced objects have given on others, and that no object of the plan
// gives.
func (d difference) revokes() []string {
	given := map[string]bool{}
	for _, o := range d.all {
		for _, sql := range o.revokes() {
			given[sql] = true
		}
	}
	var out []string
	for _, was := range slices.Concat(d.drop, d.replaced) {
		for _, sql := range was.revokes {
			if !given[sql] {
				given[sql] = true
				out = append(out, sql)
			}
		}
	}
	return out
}

func (o Object) revokes() []string {
	var out []string
	for _, g := range o.Grants {
		out = append(out, g.revokes()...)
	}
	return out
}

// tables are those to which objects belong that differ.
func (d difference) tables() []string {
	var out []string
	for _, was := range slices.Concat(d.drop, d.replaced) {
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
	for _, was := range d.drop {
		identities[was.identity] = true
	}
	for _, s := range d.steps {
		identities[s.Identity] = true
	}
	all := map[string]bool{}
	for _, o := range d.all {
		all[o.Identity] = true
	}
	for identity := range identities {
		all[identity] = true
	}
	// Our own tables are under row security as well.
	theirs := func(tables []string) int {
		return len(slices.DeleteFunc(tables, func(t string) bool { return strings.HasPrefix(t, "pgconsent") }))
	}
	tables := d.tables()
	everywhere := append(tablesOf(d.all), tables...)
	slices.Sort(everywhere)
	return Changed{
		Objects: len(identities), AllObjects: len(all),
		Tables: theirs(tables), AllTables: theirs(slices.Compact(everywhere)),
	}
}
