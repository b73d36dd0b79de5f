package policy

import (
	"math/big"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// defaultMinimum is the smallest number of subjects of a cell that counts, if the policy gives no number.
const defaultMinimum = 5

// aggregateDecl is the section aggregate of a table.
type aggregateDecl struct {
	place
	subject        string
	subjectAt      place
	rows           block
	minimum, share int
	dimensions     []dimensionDecl
	measures       []measureDecl
	accept         []wordDecl
}

// dimensionDecl is an entry of dimensions.
type dimensionDecl struct {
	place
	column, unit    string
	onlyPastPeriods bool
}

// measureDecl is an entry of measures.
type measureDecl struct {
	place
	column, low, high string
}

func (d *tableDecoder) decodeAggregate(position place, n *node) *aggregateDecl {
	decl := &aggregateDecl{place: position, minimum: defaultMinimum}
	d.decodeFields(n, "aggregate", map[string]func(*node){
		"subject": func(v *node) {
			decl.subjectAt = v.Place
			d.decodeWord(&decl.subject, "subject")(v)
		},
		"rows":       func(v *node) { decl.rows = d.blocks.decodeRows(v) },
		"minimum":    func(v *node) { d.decodeNumberBetween(&decl.minimum, v, "minimum", 2, 1_000_000) },
		"share":      func(v *node) { d.decodeNumberBetween(&decl.share, v, "share, in percent,", 1, 99) },
		"dimensions": func(v *node) { d.decodeDimensions(decl, v) },
		"measures":   func(v *node) { d.decodeMeasures(decl, v) },
		"accept":     func(v *node) { decl.accept = d.decodeWords(v, "accept", acceptValues) },
	})
	d.requireFields(n, "aggregate", "subject", "rows")
	return decl
}

func (d *tableDecoder) decodeDimensions(decl *aggregateDecl, n *node) {
	const shape = "write { column: allow }, or { column: { by: month } } for a time"
	if n.Kind != yamlfile.MappingNode {
		d.fail(n.Place, shape, "dimensions must be a mapping, not %s", n.Kind)
		return
	}
	for i, name := range n.Keys {
		v, dim := n.Values[i], dimensionDecl{place: n.KeyPlaces[i], column: name}
		if v.Kind == yamlfile.ScalarNode {
			if v.Value != "allow" {
				d.fail(v.Place, shape, "unknown rule %q of dimension %s", v.Value, name)
			}
			decl.dimensions = append(decl.dimensions, dim)
			continue
		}
		d.decodeFields(v, "dimension "+name, map[string]func(*node){
			"by": func(v *node) {
				d.decodeWord(&dim.unit, "by")(v)
				if truncationUnits[dim.unit] == nil && dim.unit != "" {
					d.fail(v.Place, closest(dim.unit, sortedKeys(truncationUnits)), "by takes hour, day, week, month, quarter or year, not %q",
						dim.unit)
				}
			},
			"closed": func(v *node) {
				if v.Kind != yamlfile.ScalarNode || v.ScalarType != yamlfile.BoolScalar {
					d.fail(v.Place, "", "closed takes true or false")
					return
				}
				dim.onlyPastPeriods = v.Value == "true"
			},
		})
		d.requireFields(v, "dimension "+name, "by")
		decl.dimensions = append(decl.dimensions, dim)
	}
}

func (d *tableDecoder) decodeMeasures(decl *aggregateDecl, n *node) {
	if !d.requireKind(n, yamlfile.MappingNode, "measures") {
		return
	}
	for i, name := range n.Keys {
		v, m := n.Values[i], measureDecl{place: n.KeyPlaces[i], column: name}
		d.decodeFields(v, "measure "+name, map[string]func(*node){
			"between": func(v *node) {
				if v.Kind != yamlfile.ListNode || len(v.Items) != 2 || !isDecimal(v.Items[0]) || !isDecimal(v.Items[1]) {
					d.fail(v.Place, "write between: [0, 1000]", "between takes two numbers")
					return
				}
				m.low, m.high = v.Items[0].Value, v.Items[1].Value
				low, _ := new(big.Rat).SetString(m.low)
				high, _ := new(big.Rat).SetString(m.high)
				if low.Cmp(high) >= 0 {
					d.fail(v.Place, "the lower bound comes first", "between holds no number")
				}
			},
		})
		if v.Kind != yamlfile.MappingNode || !slices.Contains(v.Keys, "between") {
			d.fail(n.KeyPlaces[i],
				"what lies outside counts as the bound: without one, a single large value shows in any sum",
				"measure %s needs between: [lowest, highest]", name)
		}
		decl.measures = append(decl.measures, m)
	}
}

// isDecimal tells whether a scalar is a decimal number of at most 30 characters.
func isDecimal(n *node) bool {
	if n.Kind != yamlfile.ScalarNode || n.ScalarType != yamlfile.IntegerScalar && n.ScalarType != yamlfile.FloatScalar ||
		len(n.Value) > 30 ||
		strings.Trim(n.Value, "-0123456789.") != "" {
		return false
	}
	_, ok := new(big.Rat).SetString(n.Value)
	return ok
}
