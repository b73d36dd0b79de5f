package predicate

import "strings"

// ParseArray parses a one-dimensional PostgreSQL array literal in the form that array_out writes; elements may also
// have quotes that they do not need. A nil element is NULL. Each literal that ParseArray accepts has the same meaning
// for array_in of every server. ParseArray refuses white space outside quotes, bounds and nested arrays.
func ParseArray(literal string) (elements []*string, ok bool) {
	rest, ok := strings.CutPrefix(literal, "{")
	if !ok {
		return nil, false
	}
	if rest == "}" {
		return []*string{}, true
	}
	for {
		var element *string
		if element, rest, ok = readArrayElement(rest); !ok {
			return nil, false
		}
		elements = append(elements, element)
		if rest == "}" {
			return elements, true
		}
		if rest, ok = strings.CutPrefix(rest, ","); !ok {
			return nil, false
		}
	}
}

// readArrayElement parses one element at the beginning of a text, and returns the text behind the element.
func readArrayElement(text string) (element *string, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, "{},\"\\ \t\n\r\v\f")
		if end <= 0 || text[end] != ',' && text[end] != '}' {
			return nil, "", false
		}
		word := text[:end]
		if strings.EqualFold(word, "null") {
			return nil, text[end:], true
		}
		return &word, text[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			value := b.String()
			return &value, text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return nil, "", false
			}
		}
		b.WriteByte(text[i])
	}
	return nil, "", false
}

// WriteArray returns the PostgreSQL array literal with these elements, all quoted.
func WriteArray(elements []string) string {
	quoted := make([]string, len(elements))
	for i, e := range elements {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}
