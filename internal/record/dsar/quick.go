package dsar

import "bytes"

// splitDecision reads a decision record without decoding JSON. ok is false if the record must be decoded, because its
// members have another order than usual.
func splitDecision(l auditLine) (r decisionRecord, tables []string, ok bool) {
	b := l.body
	if r.Session, ok = takeString(&b, `"session":"`); !ok {
		return r, nil, false
	}
	if r.Agent, ok = takeString(&b, `,"agent":"`); !ok {
		return r, nil, false
	}
	optionalMember := func(member string) string {
		value, _ := takeString(&b, member)
		return value
	}
	optionalMember(`,"accessed_by":"`)
	r.OnBehalfOf = optionalMember(`,"on_behalf_of":"`)
	if r.Database, ok = takeString(&b, `,"database":"`); !ok {
		return r, nil, false
	}
	if takeText(&b, `,"attributes":`) && !skipValue(&b) {
		return r, nil, false
	}
	r.Purpose = optionalMember(`,"purpose":"`)
	if _, ok = takeString(&b, `,"protocol":"`); !ok {
		return r, nil, false
	}
	if r.Tag, ok = takeString(&b, `,"tag":"`); !ok {
		return r, nil, false
	}
	optionalMember(`,"fingerprint":"`)
	if !takeText(&b, `,"tables":[`) {
		return r, nil, false
	}
	for {
		start := b
		if !skipValue(&b) {
			return r, nil, false
		}
		name, ok := takeString(&start, `{"name":"`)
		if !ok {
			return r, nil, false
		}
		tables = append(tables, name)
		if takeText(&b, "]") {
			break
		}
		if !takeText(&b, ",") {
			return r, nil, false
		}
	}
	// Contracts in the record have verdicts, too. So the decision is certainly "allow" only if no verdict in the line is
	// "deny".
	if bytes.Contains(b, []byte(`"verdict":"deny"`)) || !bytes.Contains(b, allowedVerdict) {
		return r, nil, false
	}
	r.Verdict = "allow"
	return r, tables, true
}

// takeString removes a string member from the beginning of b, and returns its value if that has no escapes.
func takeString(b *[]byte, member string) (string, bool) {
	remaining := *b
	if !takeText(&remaining, member) {
		return "", false
	}
	end := bytes.IndexByte(remaining, '"')
	if end < 0 || bytes.IndexByte(remaining[:end], '\\') >= 0 {
		return "", false
	}
	*b = remaining[end+1:]
	return string(remaining[:end]), true
}

// skipValue removes an object or a list from the beginning of b, and reports whether it was complete.
func skipValue(b *[]byte) bool {
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
