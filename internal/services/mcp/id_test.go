package mcp

import (
	"strings"
	"testing"
)

// The error for a message that is not valid JSON has the message's id, if one can be found.
func TestIDOf(t *testing.T) {
	deepArray := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"params":{"x":"\ud800"}}`: `7`,
		`{"params":{"x":"\ud800","id":1},"id":"seven"}`:    `"seven"`,
		`{"jsonrpc":"2.0","id":0,"params":{"x":"\ud800"}}`: `0`, // clients begin with this id
		"{\"params\":\"a\xffb\",\"id\":7}":                 `7`,
		`{"params":` + deepArray + `,"id":7}`:              `7`,
		`{"params":{"a":1,"a":2},"id":7}`:                  `7`,
		`{"params":[{"id":1},{"id":2}],"id":-7}`:           `-7`,
		`{"id":7,"params":`:                                `7`,
		`{"id":7} {"id":8}`:                                `7`,
		`{"id":7,"id":8}`:                                  ``,
		`{"id":7.5,"x":"\ud800"}`:                          ``,
		`{"id":null}`:                                      ``,
		`{"id":{"id":7}}`:                                  ``,
		`{"method":"id","params":{"id":7}}`:                ``,
		`[{"id":7}]`:                                       ``,
		`{"x":`:                                            ``,
		`7`:                                                ``,
		``:                                                 ``,
		`{"id":"` + strings.Repeat("i", 300) + `","x":"\ud800"}`:     ``,
		`{"x":"` + strings.Repeat("long ", 60000) + `","id":"last"}`: `"last"`,
	} {
		if got := string(messageID([]byte(message))); got != want {
			t.Errorf("%.80s: %s, not %s", message, got, want)
		}
	}
}
