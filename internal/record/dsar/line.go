package dsar

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// auditLine is a record that parseLine has split into members. Since their order is fixed, it need not decode JSON.
type auditLine struct {
	seq                uint64
	time               []byte
	previousHash, hash []byte
	keyID, mac         []byte // the id of the key, and the code (MAC) made with it; empty: the record has no code
	kind               string
	body               []byte // the rest of the line, from the first member that not all kinds have
	text               []byte
}

const (
	timeLength = len("2006-01-02T15:04:05.000000Z")
	hashLength = 2 * sha256.Size
)

// takeText removes text from the beginning of b, and reports whether it was there.
func takeText(b *[]byte, text string) bool {
	if len(*b) < len(text) || string((*b)[:len(text)]) != text {
		return false
	}
	*b = (*b)[len(text):]
	return true
}

// takeBytes removes n bytes from the beginning of b and returns them, or nil if b is shorter.
func takeBytes(b *[]byte, n int) []byte {
	if len(*b) < n {
		return nil
	}
	out := (*b)[:n]
	*b = (*b)[n:]
	return out
}

// takeNumber removes digits from the beginning of b and returns their number.
func takeNumber(b *[]byte) (n uint64, ok bool) {
	i := 0
	for ; i < len(*b) && i < 20 && (*b)[i] >= '0' && (*b)[i] <= '9'; i++ {
		n = n*10 + uint64((*b)[i]-'0')
	}
	*b = (*b)[i:]
	return n, i > 0
}

// parseLine splits a line into members and checks it against its own hash. problem says what is wrong.
func parseLine(text []byte) (l auditLine, problem string) {
	const notARecord = "a line is not a record"
	l.text = text
	remaining := text
	if !takeText(&remaining, `{"v":`) {
		return l, notARecord
	}
	if _, ok := takeNumber(&remaining); !ok || !takeText(&remaining, `,"seq":`) {
		return l, notARecord
	}
	var ok bool
	if l.seq, ok = takeNumber(&remaining); !ok || !takeText(&remaining, `,"time":"`) {
		return l, notARecord
	}
	if l.time = takeBytes(&remaining, timeLength); l.time == nil || !takeText(&remaining, `","prev":"`) {
		return l, notARecord
	}
	if l.previousHash = takeBytes(&remaining, hashLength); l.previousHash == nil || !takeText(&remaining, `","kind":"`) {
		return l, notARecord
	}
	end := bytes.IndexByte(remaining, '"')
	if end < 0 {
		return l, notARecord
	}
	switch string(remaining[:end]) {
	case "decision":
		l.kind = "decision"
	case "outcome":
		l.kind = "outcome"
	case "call":
		l.kind = "call"
	}
	l.body = remaining[end:]
	if !takeText(&l.body, `",`) || !bytes.HasSuffix(l.body, []byte("\"}\n")) {
		return l, notARecord
	}
	// A record with a code has the id of the key and the code after its hash.
	lastIndex := len(text) - len("\"}\n")
	const mac, kid = `","mac":"`, `","kid":"`
	if macStart := lastIndex - hashLength - len(mac); macStart > 0 && string(text[macStart:macStart+len(mac)]) == mac {
		l.mac = text[macStart+len(mac) : lastIndex]
		end := macStart
		macStart = bytes.LastIndex(text[:macStart], []byte(kid))
		if macStart < 0 {
			return l, notARecord
		}
		l.keyID = text[macStart+len(kid) : end]
		lastIndex = macStart
	}
	const member = `,"hash":"`
	hashBegin := lastIndex - hashLength
	memberBegin := hashBegin - len(member)
	if memberBegin < 0 || string(text[memberBegin:hashBegin]) != member {
		return l, notARecord
	}
	l.hash = text[hashBegin:lastIndex]
	sum := sha256.Sum256(text[:memberBegin])
	var hexHash [hashLength]byte
	hex.Encode(hexHash[:], sum[:])
	if !bytes.Equal(hexHash[:], l.hash) {
		return l, "record " + strconv.FormatUint(l.seq, 10) + " was changed: its hash does not fit"
	}
	return l, ""
}

func (l auditLine) timestamp() time.Time {
	t, _ := time.Parse("2006-01-02T15:04:05.000000Z", string(l.time))
	return t
}

// decision is the part of a decision record that a report needs.
type decision struct {
	seq        uint64
	decidedAt  time.Time
	session    string
	agent      string
	purpose    string
	onBehalfOf string
	tag        string
	tables     []string // the subject's tables that the statement reads, by the tables' own names
}

type decisionRecord struct {
	Session    string `json:"session"`
	Agent      string `json:"agent"`
	Database   string `json:"database"`
	OnBehalfOf string `json:"on_behalf_of"`
	Purpose    string `json:"purpose"`
	Tag        string `json:"tag"`
	Verdict    string `json:"verdict"`
	Tables     []struct {
		Name string `json:"name"`
	} `json:"tables"`
}

// outcome is the part of an outcome record that a report needs.
type outcome struct {
	decision uint64
	rows     int64
	keys     []keys
}

type keys struct {
	Table string   `json:"table"`
	Exact bool     `json:"exact"`
	Rows  []string `json:"rows"`
}

// readOutcome reads an outcome record. It decodes JSON only if the members have another order than usual.
func readOutcome(l auditLine) (outcome, bool) {
	if o, ok := splitOutcome(l); ok {
		return o, true
	}
	return decodeOutcome(l)
}

// decodeOutcome decodes an outcome record as JSON.
func decodeOutcome(l auditLine) (outcome, bool) {
	var o struct {
		Decision uint64 `json:"decision"`
		Rows     int64  `json:"rows"`
		Keys     []keys `json:"keys"`
	}
	if json.Unmarshal(l.text, &o) != nil {
		return outcome{}, false
	}
	return outcome{o.Decision, o.Rows, o.Keys}, true
}

// splitOutcome reads an outcome record without decoding JSON. ok is false if the record must be decoded.
func splitOutcome(l auditLine) (outcome, bool) {
	b := l.body
	if !takeText(&b, `"decision":`) {
		return outcome{}, false
	}
	seq, ok := takeNumber(&b)
	if !ok || !takeMember(&b, `,"session":"`) || !takeText(&b, `,"rows":`) {
		return outcome{}, false
	}
	rows, ok := takeNumber(&b)
	if !ok || rows > 1<<62 {
		return outcome{}, false
	}
	o := outcome{decision: seq, rows: int64(rows)}
	if !bytes.Contains(b, []byte(`"keys":`)) {
		return o, true
	}
	if !takeText(&b, `,"bytes":`) {
		return outcome{}, false
	}
	if _, ok = takeNumber(&b); !ok || !takeMember(&b, `,"sqlstate":"`) || !takeText(&b, `,"keys":[`) {
		return outcome{}, false
	}
	for {
		var k keys
		if k.Table, ok = takeString(&b, `{"table":"`); !ok || !takeText(&b, `,"exact":`) {
			return outcome{}, false
		}
		switch {
		case takeText(&b, "true"):
			k.Exact = true
		case !takeText(&b, "false"):
			return outcome{}, false
		}
		for begin := `,"rows":["`; ; begin = `,"` {
			row, ok := takeString(&b, begin)
			if !ok {
				break
			}
			k.Rows = append(k.Rows, row)
		}
		if len(k.Rows) > 0 && !takeText(&b, "]") || !takeText(&b, "}") {
			return outcome{}, false
		}
		o.keys = append(o.keys, k)
		if takeText(&b, "]") {
			return o, true
		}
		if !takeText(&b, ",") {
			return outcome{}, false
		}
	}
}

// takeMember removes a string member from the beginning of b, and reports whether it was there with a value that has no
// escapes.
func takeMember(b *[]byte, member string) bool {
	remaining := *b
	if !takeText(&remaining, member) {
		return false
	}
	end := bytes.IndexByte(remaining, '"')
	if end < 0 || bytes.IndexByte(remaining[:end], '\\') >= 0 {
		return false
	}
	*b = remaining[end+1:]
	return true
}
