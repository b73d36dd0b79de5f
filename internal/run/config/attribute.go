package config

import (
	"reflect"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Attributes has an agent's attributes: their values by their names. A list is written like a PostgreSQL array,
// `{"a","b"}`. The policy checks whether an attribute may be a list.
type Attributes map[string]string

var attributesType = reflect.TypeFor[Attributes]()

func (d *decoder) decodeAttributes(path string, n *yamlfile.Node, v reflect.Value) {
	out := Attributes{}
	d.eachEntry(path, n, func(key string, _ yamlfile.Place, value *yamlfile.Node) {
		switch value.Kind {
		case yamlfile.ListNode:
			out[key] = d.arrayLiteral(joinPath(path, key), value)
		case yamlfile.ScalarNode:
			out[key] = value.SourceText
		default:
			d.addProblemAt(value.Place, "", "%s must be a text or a list of texts", keyName(joinPath(path, key)))
		}
	})
	v.Set(reflect.ValueOf(out))
}

// arrayLiteral returns a list as a PostgreSQL array literal, with quotes around every element.
func (d *decoder) arrayLiteral(path string, n *yamlfile.Node) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	quotedItems := make([]string, 0, len(n.Items))
	for _, item := range n.Items {
		if item.Kind != yamlfile.ScalarNode {
			d.addProblemAt(item.Place, "", "each element of %s must be a text", keyName(path))
			continue
		}
		quotedItems = append(quotedItems, `"`+escape.Replace(item.SourceText)+`"`)
	}
	return "{" + strings.Join(quotedItems, ",") + "}"
}
