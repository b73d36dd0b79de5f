package config

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Attributes are what a credential is worth: the text of each value. A list is written as PostgreSQL writes an array,
// `{"a","b"}`; whether the policy wants one is for the policy to check.
type Attributes map[string]string

var attributesType = reflect.TypeFor[Attributes]()

func (d *decoder) attributes(path string, n ast.Node, v reflect.Value) {
	out := Attributes{}
	d.entries(path, n, func(key string, _ ast.Node, vn ast.Node) {
		if list, ok := vn.(*ast.SequenceNode); ok {
			out[key] = d.list(join(path, key), list)
		} else if s, ok := scalar(vn); ok {
			out[key] = s
		} else {
			d.node(vn, "", "%s must be a text or a list of texts", name(join(path, key)))
		}
	})
	v.Set(reflect.ValueOf(out))
}

// list writes an array literal with every element in quotes.
func (d *decoder) list(path string, n *ast.SequenceNode) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	quoted := make([]string, 0, len(n.Values))
	for _, item := range n.Values {
		s, ok := scalar(item)
		if !ok {
			d.node(item, "", "each element of %s must be a text", name(path))
			continue
		}
		quoted = append(quoted, `"`+escape.Replace(s)+`"`)
	}
	return "{" + strings.Join(quoted, ",") + "}"
}
