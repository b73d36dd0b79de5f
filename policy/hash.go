package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// meaningHash returns a hash of what the policy means. Policies with equal hashes allow the same, even if their files
// differ.
func (p *Policy) meaningHash() string {
	h := sha256.New()
	for _, a := range p.attributes {
		fmt.Fprintf(h, "attribute %q %q %q %t %q %t\n", a.Name, a.Type, a.Source, a.Optional, a.Setting,
			a.Audit == AuditPlain)
		if a.Audit != "" && a.Audit != AuditPlain {
			fmt.Fprintf(h, " recorded %q\n", a.Audit)
		}
	}
	fmt.Fprintf(h, "live %q\n", predicate.LiveFunctionBody(p.live))
	for _, l := range p.limits {
		fmt.Fprintf(h, "limit %s\n", l.describe())
	}
	if p.reminder != nil {
		fmt.Fprintf(h, "air %q %q\n", p.reminder.User, p.reminder.Channel)
	}
	for _, t := range p.tables {
		t.describe(h)
		if t.Observed != nil {
			fmt.Fprintln(h, "observed")
			t.Observed.describe(h)
		}
	}
	for _, child := range p.children {
		fmt.Fprintf(h, "child %q %q %t\n", child.Relation.Name.Schema, child.Relation.Name.Name, child.ReadableByName)
	}
	for _, v := range p.views {
		fmt.Fprintf(h, "view %q %q %t %q %q %q\n", v.Relation.Name.Schema, v.Relation.Name.Name, v.Listed, v.Query,
			v.FilteredQuery, v.SignedQuery)
		if v.Write != nil {
			fmt.Fprintf(h, " write %t %t %t %q %q %q\n", v.Write.Insert, v.Write.Update, v.Write.Delete,
				v.Write.Insertable, v.Write.Updatable, v.Relation.CheckOption)
		}
	}
	for _, f := range p.functions {
		fmt.Fprintf(h, "function %q %q\n", f.Name.Schema, f.Name.Name)
		for _, o := range f.Overloads {
			fmt.Fprintf(h, " overload %q\n", o.ArgTypes)
		}
		for _, pin := range f.Pins {
			fmt.Fprintf(h, " pin %q %q\n", pin.Arg, pin.Value)
		}
		if f.Tool != nil {
			fmt.Fprintf(h, " tool %s\n", f.Tool.describe())
		}
	}
	for _, extension := range p.operatorExtensions {
		fmt.Fprintf(h, "operators %q\n", extension)
	}
	for _, channel := range p.channels {
		fmt.Fprintf(h, "channel %q\n", channel)
	}
	for _, d := range p.derivations {
		from, where := d.Origin.DerivedRowsSQL(d.Table, "made", "source")
		fmt.Fprintf(h, "derived %q %q %q %q %t\n", d.Table.Name.String(), d.Origin.SourceTable().Name.String(), from, where,
			d.DeleteWithSource)
	}
	p.describeContracts(h)
	p.privacy.describe(h)
	p.sources.describe(h)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (t *Table) describe(h io.Writer) {
	fmt.Fprintf(h, "table %q %q %q\n", t.Relation.Name.Schema, t.Relation.Name.Name, predicate.RowPolicySQL(t.Rows,
		t.Relation))
	if t.Write != nil {
		fmt.Fprintf(h, " write %s\n", t.Write.describe(t.Relation))
	}
	if t.AuditKeys {
		fmt.Fprintln(h, " audit keys")
	}
	if t.Approximate {
		fmt.Fprintln(h, " approximate")
	}
	if t.Aggregate != nil {
		fmt.Fprintf(h, " aggregate %s\n", t.Aggregate.describe(t.Relation))
	}
	if t.Lifecycle != nil {
		t.Lifecycle.describe(h)
	}
	if t.Columns != nil {
		for _, column := range t.Columns.Columns {
			fmt.Fprintf(h, " column %q %d %q %d %q%s\n", column.Name, column.Mask, column.Unit, column.Amount,
				column.Keys, column.describeConditions(t.Relation))
		}
		if k := t.Columns.ByKey; k != nil {
			k.describe(h, t.Relation)
		}
	}
}

func (k *ByKey) describe(h io.Writer, r *catalog.Relation) {
	fmt.Fprintf(h, " by key %q %d", k.Key, k.MaxKeys)
	for _, column := range k.Columns {
		fmt.Fprintf(h, " %q%s", column.Name, column.describeConditions(r))
	}
	fmt.Fprintln(h)
}

// describeContracts writes everything that contracts allow and require, for the hash of the policy.
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
	fmt.Fprintf(w, "object %q %q %q %q %q %q %t\n", o.Name, o.Relation.Schema, o.Relation.Name, o.Vessel,
		o.MetadataColumns,
		o.EmbeddingColumns, o.JoinOnly)
}

func (c *Contract) describe(w io.Writer) {
	fmt.Fprintf(w, "contract %q %q %q %t %q\n", c.Name, c.By, c.GovernedObjects, c.GovernedObjects == nil,
		c.ExclusiveVessels)
	for i, t := range c.allTerms() {
		value := ""
		if c.By != "" {
			value = c.order[i]
		}
		fmt.Fprintf(w, " value %q %t %t %q %q %d %q\n", value, t.AllowsNothing, t.Allow == nil, t.ExceptedObjects,
			t.PlanAttribute, t.MaxRows, t.QuotaAttribute)
		for _, name := range sortedKeys(t.Allow) {
			fmt.Fprintf(w, "  allow %q %q %q\n", name, t.Allow[name].Sources, t.Allow[name].Columns)
		}
		if t.otherObjects != nil {
			fmt.Fprintf(w, "  any %q\n", t.otherObjects.Sources)
		}
		for _, r := range t.Requirements {
			fmt.Fprintf(w, "  requires %q\n", r.Text)
		}
		for _, name := range sortedKeys(t.Statements) {
			fmt.Fprintf(w, "  statement %q %q\n", name, t.Statements[name])
		}
	}
}
