package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Limit bounds how much agents may read. Zero means no bound.
type Limit struct {
	// the attribute for each of whose values the rates are counted; "": the rates are counted for each agent
	RateAttribute string

	// The rates per minute, counted for all sessions of one agent, or of one value of RateAttribute, together.
	Statements int // executed statements
	Rows       int // rows that were sent to agents
	ByKey      int // keys in statements that fetch columns with by_key, including keys for which there is no row

	// The bounds of one statement.
	ResultRows  int64
	ResultBytes int64
	Timeout     time.Duration

	// The bound of one transaction.
	TransactionTimeout time.Duration
}

// Limits returns the limits, in the order of the policy.
func (p *Policy) Limits() []Limit { return p.limits }

// Timeout returns the longest time that a statement may take; 0: no bound.
func (p *Policy) Timeout() time.Duration {
	return p.smallestBound(func(l Limit) time.Duration { return l.Timeout })
}

// TransactionTimeout returns the longest time that a transaction may take; 0: no bound.
func (p *Policy) TransactionTimeout() time.Duration {
	return p.smallestBound(func(l Limit) time.Duration { return l.TransactionTimeout })
}

// smallestBound returns the smallest bound of one kind among the limits; 0: there is none.
func (p *Policy) smallestBound(bound func(Limit) time.Duration) time.Duration {
	smallest := time.Duration(0)
	for _, l := range p.limits {
		if bound := bound(l); bound > 0 && (smallest == 0 || bound < smallest) {
			smallest = bound
		}
	}
	return smallest
}

// limitDecl is an entry of the section limits.
type limitDecl struct {
	place
	perAt place
	Limit
}

// decodeLimits reads the section limits: one mapping, or a list of mappings.
func (d *documentDecoder) decodeLimits(n *node) {
	if n.Kind == yamlfile.ListNode {
		for _, item := range n.Items {
			d.decodeLimit(item)
		}
		if len(n.Items) == 0 {
			d.fail(n.Place, "leave limits out for none", "limits is empty")
		}
		return
	}
	d.decodeLimit(n)
}

func (d *documentDecoder) decodeLimit(n *node) {
	decl := limitDecl{place: n.Place}
	errorsBefore := len(d.errs)
	number := func(target *int, label string) func(*node) {
		return func(v *node) { *target = int(d.wholeNumber(v, label, 1, 1_000_000_000)) }
	}
	if !d.decodeFields(n, "limits", map[string]func(*node){
		"per": func(v *node) {
			decl.perAt = v.Place
			d.decodeWord(&decl.RateAttribute, "per")(v)
			if decl.RateAttribute == "agent" {
				decl.RateAttribute = ""
			}
		},
		"statements":          number(&decl.Statements, "statements"),
		"rows":                number(&decl.Rows, "rows"),
		"by_key":              number(&decl.ByKey, "by_key"),
		"result_rows":         func(v *node) { decl.ResultRows = d.wholeNumber(v, "result_rows", 1, 1_000_000_000_000) },
		"result_bytes":        func(v *node) { decl.ResultBytes = d.decodeSize(v, "result_bytes") },
		"statement_timeout":   func(v *node) { decl.Timeout = d.decodeDuration(v, "statement_timeout") },
		"transaction_timeout": func(v *node) { decl.TransactionTimeout = d.decodeDuration(v, "transaction_timeout") },
	}) {
		return
	}
	if decl.Limit == (Limit{RateAttribute: decl.RateAttribute}) && len(d.errs) == errorsBefore {
		d.fail(n.Place, "",
			"limits names no limit: statements, rows, by_key, result_rows, result_bytes, statement_timeout and "+
				"transaction_timeout are known")
	}
	d.doc.limits = append(d.doc.limits, decl)
}

// compileLimits compiles the limits, and checks the attributes by which they are counted.
func (c *compiler) compileLimits() []Limit {
	var out []Limit
	seen := map[string]bool{}
	for _, decl := range c.doc.limits {
		if seen[decl.RateAttribute] {
			per := decl.RateAttribute
			if per == "" {
				per = "agent"
			}
			c.fail(decl.place, "write them together", "there are limits per %s already", per)
		}
		seen[decl.RateAttribute] = true
		if decl.RateAttribute != "" {
			i := slices.IndexFunc(c.attributes, func(a Attribute) bool { return a.Name == decl.RateAttribute })
			var names []string
			for _, a := range c.attributes {
				names = append(names, a.Name)
			}
			switch {
			case i < 0:
				c.fail(decl.perAt, closestOrAll(decl.RateAttribute, append(names, "agent")),
					"limits are counted per agent or per attribute, and there is no attribute %q", decl.RateAttribute)
			case c.attributes[i].Source != "credential":
				c.fail(decl.perAt, "name an attribute whose source is the credential",
					"limits cannot be counted per %s, which may change while a session lasts", decl.RateAttribute)
			}
		}
		out = append(out, decl.Limit)
	}
	return out
}

// describe returns a text with everything that the limit says, so that different limits have different texts.
func (l Limit) describe() string {
	text := fmt.Sprintf("%q %d %d %d %d %d %d", l.RateAttribute, l.Statements, l.Rows, l.ByKey, l.ResultRows,
		l.ResultBytes, l.Timeout)
	if l.TransactionTimeout > 0 {
		text += fmt.Sprintf(" %d", l.TransactionTimeout)
	}
	return text
}
