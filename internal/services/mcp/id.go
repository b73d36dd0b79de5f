package mcp

import (
	"bytes"
	"encoding/json"
)

// isID reports whether a JSON value may be the id of a request: a string or an integer.
func isID(value json.RawMessage) bool {
	if len(value) == 0 || len(value) > 200 {
		return false
	}
	return value[0] == '"' || (value[0] == '-' || value[0] >= '0' && value[0] <= '9') && !bytes.ContainsAny(value, ".eE")
}

// messageID returns the id of a message that is not valid JSON, so that the error can be sent with it and reaches the
// waiting caller. It returns nil if the message has no id or several.
func messageID(message []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(message))
	d.UseNumber()
	var id json.RawMessage
	depth, name := 0, false // depth: open brackets. name: a name of the outermost object is next.
	key := ""
	for {
		token, err := d.Token()
		if err != nil {
			return id
		}
		delim, isDelim := token.(json.Delim)
		switch {
		case depth == 0 && delim != '{':
			return nil // only an object can have an id
		case delim == '{' || delim == '[':
			depth++
			name = depth == 1
			continue
		case isDelim:
			depth--
			if depth == 0 {
				return id
			}
			name = depth == 1
			continue
		case depth > 1:
			continue
		case name:
			key, _ = token.(string)
		case key == "id":
			value, err := json.Marshal(token)
			if err != nil || id != nil || !isID(value) {
				return nil
			}
			id = value
		}
		name = !name
	}
}
