package policy

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Schema is the JSON Schema of a policy, draft 2020-12, for editors. It knows what can be seen without a database: keys,
// their kinds, and the words that are known.
func Schema() []byte {
	defs := map[string]any{}
	root := policyShape().schema(defs)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "pgconsent policy"
	root["$defs"] = defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		panic("policy: a schema is plain data: " + err.Error())
	}
	return b.Bytes()
}

func (s *shape) schema(defs map[string]any) map[string]any {
	out := map[string]any{}
	if s.doc != "" {
		out["description"] = s.doc
	}
	switch s.kind {
	case aName:
		if _, ok := defs[s.def]; !ok {
			defs[s.def] = nil // it may use itself
			defs[s.def] = s.of().schema(defs)
		}
		out["$ref"] = "#/$defs/" + s.def
	case aWord:
		if s.words != nil {
			out["enum"] = s.words
		} else {
			out["type"] = []string{"string", "number", "boolean"}
			out["minLength"] = 1
		}
	case aText:
		out["type"], out["minLength"] = "string", 1
		if s.pattern != "" {
			out["pattern"] = s.pattern
		}
	case aNumber:
		out["type"] = "integer"
		if len(s.words) == 1 {
			n, _ := strconv.Atoi(s.words[0])
			out["const"] = n
		} else {
			out["minimum"] = max(1, s.least)
			if s.most > 0 {
				out["maximum"] = s.most
			}
		}
	case aDecimal:
		out["type"] = "number"
	case aBool:
		out["type"] = "boolean"
	case aTrue:
		out["const"] = true
	case aNull:
		out["type"] = "null"
	case aList:
		out["type"], out["items"] = "array", s.values.schema(defs)
		if s.some {
			out["minItems"] = 1
		}
	case aTable:
		out["type"], out["additionalProperties"] = "object", s.values.schema(defs)
		if s.names != "" {
			out["propertyNames"] = map[string]any{"pattern": s.names}
		}
		if s.some || s.single {
			out["minProperties"] = 1
		}
		if s.single {
			out["maxProperties"] = 1
		} else if s.most > 0 {
			out["maxProperties"] = s.most
		}
	case aMapping:
		properties := map[string]any{}
		for _, k := range s.keys {
			properties[k.name] = k.is.schema(defs)
		}
		out["type"], out["properties"], out["additionalProperties"] = "object", properties, false
		if s.must != nil {
			out["required"] = s.must
		}
		if s.either != nil {
			var of []any
			for _, keys := range s.either {
				of = append(of, map[string]any{"required": keys})
			}
			out["anyOf"] = of
		}
		if s.one {
			out["minProperties"], out["maxProperties"] = 1, 1
		}
	case anyOf:
		var of []any
		for _, one := range s.any {
			of = append(of, one.schema(defs))
		}
		out["anyOf"] = of
	}
	return out
}
