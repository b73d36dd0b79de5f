package policy

import (
	"fmt"
	"io"
	"strings"
)

// Bounds are descriptions of what bounds statements besides the rows and columns that exist: objects, contracts, what
// functions read, limits, aggregates, and columns by key. Two that are equal mean the same.
func (p *Policy) Bounds() map[string]string {
	out := map[string]string{}
	for _, o := range p.objectList {
		out["object "+o.Name] = written(o.describe)
	}
	for _, c := range p.contracts {
		out["contract "+c.Name] = written(c.describe)
	}
	for _, f := range p.functions {
		if f.Reads != nil {
			out["reads of "+f.Name.String()] = fmt.Sprint(f.Reads)
		}
	}
	for _, l := range p.limits {
		per := "limits per agent"
		if l.Per != "" {
			per = "limits per " + l.Per
		}
		out[per] += l.describe() + "\n"
	}
	for _, t := range p.tables {
		if t.Aggregate != nil {
			out["aggregate of "+t.Relation.Name.String()] = t.Aggregate.describe(t.Relation)
		}
		if t.Columns != nil && t.Columns.ByKey != nil {
			out["by_key of "+t.Relation.Name.String()] = written(t.Columns.ByKey.describe)
		}
		if t.Observed != nil {
			out["observe of "+t.Relation.Name.String()] = ""
		}
	}
	return out
}

func written(describe func(io.Writer)) string {
	var b strings.Builder
	describe(&b)
	return b.String()
}
