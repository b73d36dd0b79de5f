package config

import (
	"reflect"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Attributes are the values that a credential gives an agent, by the names of the attributes. A list is written as
// PostgreSQL writes an array, `{"a","b"}`; whether the policy wants a list is for the policy to check.
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

// arrayLiteral returns an array literal with every element in quotes.
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
