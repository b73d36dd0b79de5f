package policy

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// Restrictions describes what the policy restricts besides rows and columns: objects, contracts, reads of functions,
// published tools, limits, aggregates and columns by key. The outer key is the name of a restriction, and the inner map
// describes its parts for people. The part "" is exact: restrictions with the same part "" mean the same.
func (p *Policy) Restrictions() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, o := range p.objectList {
		out["object "+o.Name] = map[string]string{
			"": describedText(o.describe), "table": o.Relation.String(), "vessel": o.Vessel,
			"metadata":  strings.Join(o.MetadataColumns, ", "),
			"embedding": strings.Join(o.EmbeddingColumns, ", "), "join_only": trueText(o.JoinOnly)}
	}
	for _, c := range p.contracts {
		out["contract "+c.Name] = c.describeParts()
	}
	for _, f := range p.functions {
		if f.Reads != nil {
			var reads []string
			for _, r := range f.Reads {
				reads = append(reads, r.Relation.String()+" ("+strings.Join(r.Sources, ", ")+")")
			}
			out["reads of "+f.Name.String()] = map[string]string{
				"": fmt.Sprint(f.Reads), "reads": orElse(strings.Join(reads, ", "), "nothing")}
		}
	}
	for _, f := range p.functions {
		if f.Tool != nil {
			out["tool "+f.Tool.Name] = f.Tool.describeParts(f)
		}
	}
	for _, l := range p.limits {
		per := "limits per agent"
		if l.RateAttribute != "" {
			per = "limits per " + l.RateAttribute
		}
		out[per] = l.describeParts()
	}
	for _, t := range p.tables {
		if t.Aggregate != nil {
			descriptions := t.Aggregate.describeParts()
			descriptions[""] = t.Aggregate.describe(t.Relation)
			descriptions["which rows count"] = predicate.RowPolicySQL(t.Aggregate.Rows, t.Relation)
			out["aggregate of "+t.Relation.Name.String()] = descriptions
		}
		if t.Columns != nil && t.Columns.ByKey != nil {
			k := t.Columns.ByKey
			var columns []string
			for _, c := range k.Columns {
				columns = append(columns, c.Name)
			}
			out["by_key of "+t.Relation.Name.String()] = map[string]string{
				"": describedText(func(w io.Writer) { k.describe(w, t.Relation) }), "columns": strings.Join(columns,
					", "), "key": strings.Join(k.Key, ", "), "at_most": strconv.Itoa(k.MaxKeys)}
		}
		if t.Observed != nil {
			out["observe of "+t.Relation.Name.String()] = map[string]string{"": ""}
		}
	}
	return out
}

func trueText(value bool) string {
	if value {
		return "true"
	}
	return ""
}

// describeParts describes the contract's terms for people, by the attribute value that selects them.
func (c *Contract) describeParts() map[string]string {
	out := map[string]string{"": describedText(c.describe), "by": c.By, "governs": strings.Join(c.GovernedObjects, ", ")}
	var apart []string
	for _, group := range c.ExclusiveVessels {
		apart = append(apart, strings.Join(group, " and "))
	}
	out["apart"] = strings.Join(apart, ", ")
	for i, t := range c.allTerms() {
		name := "every session"
		if c.By != "" {
			name = c.By + " " + c.order[i]
		}
		label := t.describe(c)
		if t.MaxRows > 0 && t.QuotaAttribute == "" {
			label += fmt.Sprintf(", at most %d rows of a statement", t.MaxRows)
		}
		for _, r := range t.Requirements {
			label += ", if " + r.Text
		}
		if t.PlanAttribute != "" {
			label += ", as planned in " + t.PlanAttribute
		}
		if len(t.Statements) > 0 {
			label += ", by the statements " + strings.Join(sortedKeys(t.Statements), ", ")
		}
		out[name] = label
	}
	return out
}

func (l Limit) describeParts() map[string]string {
	out := map[string]string{"": l.describe()}
	for name, n := range map[string]int64{"statements": int64(l.Statements), "rows": int64(l.Rows),
		"by_key": int64(l.ByKey), "result_rows": l.ResultRows, "result_bytes": l.ResultBytes} {
		if out[name] = "no bound"; n > 0 {
			out[name] = strconv.FormatInt(n, 10)
		}
	}
	for name, maximum := range map[string]time.Duration{
		"statement_timeout": l.Timeout, "transaction_timeout": l.TransactionTimeout} {
		if out[name] = "no bound"; maximum > 0 {
			out[name] = maximum.Round(time.Millisecond).String()
		}
	}
	return out
}

func (a *Aggregate) describeParts() map[string]string {
	out := map[string]string{"subject": a.Subject, "minimum": strconv.Itoa(a.MinSubjects), "share": "no bound"}
	if a.MaxSharePercent > 0 {
		out["share"] = strconv.Itoa(a.MaxSharePercent)
	}
	for _, d := range a.Dimensions {
		label := orElse(d.Unit, "each value")
		if d.OnlyPastPeriods {
			label += ", closed"
		}
		out["dimension "+d.Column] = label
	}
	for _, m := range a.Measures {
		out["measure "+m.Column] = m.Low + " to " + m.High
	}
	return out
}

func describedText(describe func(io.Writer)) string {
	var b strings.Builder
	describe(&b)
	return b.String()
}
