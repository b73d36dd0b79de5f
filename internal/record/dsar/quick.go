package dsar

import "bytes"

// quickDecision reads a decision without decoding, if its members have the usual order; false: it must be decoded.
func quickDecision(l line) (r decisionRecord, tables []string, ok bool) {
	b := l.body
	if r.Session, ok = takeText(&b, `"session":"`); !ok {
		return r, nil, false
	}
	if r.Agent, ok = takeText(&b, `,"agent":"`); !ok {
		return r, nil, false
	}
	optional := func(member string) string {
		value, _ := takeText(&b, member)
		return value
	}
	optional(`,"accessed_by":"`)
	r.OnBehalfOf = optional(`,"on_behalf_of":"`)
	if r.Database, ok = takeText(&b, `,"database":"`); !ok {
		return r, nil, false
	}
	if take(&b, `,"attributes":`) && !skip(&b) {
		return r, nil, false
	}
	r.Purpose = optional(`,"purpose":"`)
	if _, ok = takeText(&b, `,"protocol":"`); !ok {
		return r, nil, false
	}
	if r.Tag, ok = takeText(&b, `,"tag":"`); !ok {
		return r, nil, false
	}
	optional(`,"fingerprint":"`)
	if !take(&b, `,"tables":[`) {
		return r, nil, false
	}
	for {
		whole := b
		if !skip(&b) {
			return r, nil, false
		}
		name, ok := takeText(&whole, `{"name":"`)
		if !ok {
			return r, nil, false
		}
		tables = append(tables, name)
		if take(&b, "]") {
			break
		}
		if !take(&b, ",") {
			return r, nil, false
		}
	}
	// Contracts have verdicts, too: only if no verdict in the line is deny, the decision's is known to be allow.
	if bytes.Contains(b, []byte(`"verdict":"deny"`)) || !bytes.Contains(b, allowedVerdict) {
		return r, nil, false
	}
	r.Verdict = "allow"
	return r, tables, true
}

// takeText consumes a member whose value has no escapes.
func takeText(b *[]byte, member string) (string, bool) {
	rest := *b
	if !take(&rest, member) {
		return "", false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return "", false
	}
	*b = rest[end+1:]
	return string(rest[:end]), true
}

// skip consumes an object or a list.
func skip(b *[]byte) bool {
	depth := 0
	for i := 0; i < len(*b); i++ {
		switch (*b)[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				*b = (*b)[i+1:]
				return true
			}
		case '"':
			for i++; i < len(*b) && (*b)[i] != '"'; i++ {
				if (*b)[i] == '\\' {
					i++
				}
			}
		}
		if depth == 0 {
			return false
		}
	}
	return false
}
