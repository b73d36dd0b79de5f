package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// decodeWord returns a decoder of a scalar that is a name or a value.
func (d *decoder) decodeWord(target *string, label string) func(*node) {
	return func(n *node) {
		if !d.requireKind(n, yamlfile.ScalarNode, label) {
			return
		}
		if n.Value == "" {
			d.fail(n.Place, "", "%s is empty", label)
		}
		*target = n.Value
	}
}

// decodeWordAt does the same as decodeWord, and also stores the place of the scalar.
func (d *decoder) decodeWordAt(target *string, position *place, label string) func(*node) {
	return func(n *node) {
		*position = n.Place
		d.decodeWord(target, label)(n)
	}
}

// decodeWords reads a list of different names. If allowedWords is not empty, each name must be one of them.
func (d *decoder) decodeWords(n *node, label string, allowedWords ...string) []wordDecl {
	if !d.requireKind(n, yamlfile.ListNode, label) {
		return nil
	}
	var out []wordDecl
	for _, item := range n.Items {
		w := wordDecl{place: item.Place}
		d.decodeWord(&w.text, "an entry of "+label)(item)
		switch {
		case w.text == "":
		case len(allowedWords) > 0 && !slices.Contains(allowedWords, w.text):
			d.fail(item.Place, closestOrAll(w.text, allowedWords), "unknown entry %q in %s", w.text, label)
		case slices.ContainsFunc(out, func(o wordDecl) bool { return o.text == w.text }):
			d.fail(item.Place, "", "%q is in %s twice", w.text, label)
		default:
			out = append(out, w)
		}
	}
	return out
}

// decodeWordOrList reads a word or a list of words.
func (d *decoder) decodeWordOrList(n *node, label string) []wordDecl {
	items := []*node{n}
	if n.Kind == yamlfile.ListNode {
		items = n.Items
		if len(items) == 0 {
			d.fail(n.Place, "leave it out", "%s is empty", label)
		}
	}
	var out []wordDecl
	for _, item := range items {
		if d.requireKind(item, yamlfile.ScalarNode, label) {
			out = append(out, wordDecl{item.Place, item.Value})
		}
	}
	return out
}

// decodeDifferentWords reads a word or a list of different words.
func (d *decoder) decodeDifferentWords(n *node, label string) []wordDecl {
	items := []*node{n}
	if n.Kind == yamlfile.ListNode {
		items = n.Items
		if len(items) == 0 {
			d.fail(n.Place, "leave it out, or name at least one", "%s is empty", label)
		}
	}
	var out []wordDecl
	for _, item := range items {
		if item.Kind != yamlfile.ScalarNode || item.Value == "" {
			d.fail(item.Place, "write words", "%s is a word or a list of words", label)
			continue
		}
		if slices.ContainsFunc(out, func(w wordDecl) bool { return w.text == item.Value }) {
			d.fail(item.Place, "", "%s names %q twice", label, item.Value)
			continue
		}
		out = append(out, wordDecl{item.Place, item.Value})
	}
	return out
}

func (d *decoder) decodeFlag(target *bool, label string) func(*node) {
	return func(n *node) {
		if n.Kind != yamlfile.ScalarNode || n.ScalarType != yamlfile.BoolScalar {
			d.fail(n.Place, "write true or false", "%s is true or false", label)
			return
		}
		*target = n.Value == "true"
	}
}

func (d *decoder) wholeNumber(n *node, label string, low, high int64) int64 {
	if !d.requireKind(n, yamlfile.ScalarNode, label) {
		return 0
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || n.ScalarType != yamlfile.IntegerScalar || v < low || v > high {
		suggestion := "leave it out for no limit"
		if digits := len(n.Value) - len(strings.TrimLeft(n.Value, "0123456789")); digits > 0 &&
			n.ScalarType != yamlfile.IntegerScalar &&
			n.ScalarType != yamlfile.FloatScalar {
			suggestion = "write " + n.Value[:digits] + ", without quotes or a unit"
		}
		d.fail(n.Place, suggestion, "%s is a whole number from %d to %d", label, low, high)
		return 0
	}
	return v
}

func (d *decoder) decodeNumberBetween(target *int, n *node, label string, low, high int) {
	if !d.requireKind(n, yamlfile.ScalarNode, label) {
		return
	}
	number, err := strconv.Atoi(n.Value)
	if n.ScalarType != yamlfile.IntegerScalar || err != nil || number < low || number > high {
		d.fail(n.Place, "", "%s must be a number from %d to %d", label, low, high)
		return
	}
	*target = number
}

// decodeSize reads a number of bytes.
func (d *decoder) decodeSize(n *node, label string) int64 {
	if !d.requireKind(n, yamlfile.ScalarNode, label) {
		return 0
	}
	m := sizePattern.FindStringSubmatch(n.Value)
	if m == nil {
		d.fail(n.Place, "", "%s is a number of bytes, or one with KiB, MiB or GiB: 10MiB", label)
		return 0
	}
	v, _ := strconv.ParseInt(m[1], 10, 64)
	v <<= map[string]int{"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[m[2]]
	if v < 1 || v > 1<<50 {
		d.fail(n.Place, "leave it out for no limit", "%s is from 1 byte to 1048576GiB", label)
		return 0
	}
	return v
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,12}) ?(KiB|MiB|GiB|)$`)

// decodeDuration reads a length of time.
func (d *decoder) decodeDuration(n *node, label string) time.Duration {
	if !d.requireKind(n, yamlfile.ScalarNode, label) {
		return 0
	}
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < time.Millisecond || v > maxTimeout || v%time.Millisecond != 0 {
		d.fail(n.Place, "", "%s is a time like 500ms, 30s or 5m, of a millisecond at least", label)
		return 0
	}
	return v
}

// maxTimeout is the largest number of whole days that PostgreSQL accepts for statement_timeout.
const maxTimeout = 24 * 24 * time.Hour

// decodeDays reads a number of days, written as `30 days`.
func (d *decoder) decodeDays(n *node, label string) int {
	if !d.requireKind(n, yamlfile.ScalarNode, label) {
		return 0
	}
	number, unit, _ := strings.Cut(n.Value, " ")
	days, err := strconv.Atoi(number)
	if err != nil || days < 1 || days > 36500 || unit != "days" && unit != "day" {
		d.fail(n.Place, "write 30 days", "%s takes a number of days, from 1 to 36500", label)
		return 0
	}
	return days
}

// decodePairs reads a mapping from columns of the linked table to those columns of the row that must equal them.
func (d *decoder) decodePairs(n *node, label string) []predicate.ColumnPair {
	if !d.requireKind(n, yamlfile.MappingNode, label) {
		return nil
	}
	var out []predicate.ColumnPair
	for i, valueNode := range n.Values {
		if valueNode.Kind != yamlfile.ScalarNode || valueNode.Value == "" {
			d.fail(valueNode.Place, "write { its column: the column of the row that it equals }", "a column is a single name")
			continue
		}
		out = append(out, predicate.ColumnPair{Column: n.Keys[i], FromColumn: valueNode.Value})
	}
	return out
}

// attributeRef is the name of an attribute, with the place where the policy names it.
type attributeRef struct {
	place
	attribute string
}

// decodeAttributeRefs reads the name of an attribute, or a list of such names.
func (d *decoder) decodeAttributeRefs(v *node, label string) []attributeRef {
	items := v.Items
	if v.Kind == yamlfile.ScalarNode {
		items = []*node{v}
	} else if !d.requireKind(v, yamlfile.ListNode, label) {
		return nil
	}
	var out []attributeRef
	for _, item := range items {
		g := attributeRef{place: item.Place}
		d.decodeWord(&g.attribute, label)(item)
		out = append(out, g)
	}
	if len(items) == 0 {
		d.fail(v.Place, "name the attributes whose values are ids in the column", "%s is empty", label)
	}
	return out
}

// wordDecl is a word of the policy with its place.
type wordDecl struct {
	place
	text string
}
