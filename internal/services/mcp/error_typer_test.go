package mcp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An error of the SDK without data gets data with an SQLSTATE. All other messages stay unchanged.
func TestErrorsAreTyped(t *testing.T) {
	const data = `"data":{"sqlstate":"08P01",`
	longMessage := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`\"error\":`, 100) + `"}]}}`
	for _, c := range []struct {
		name, kind, body string
		status           int
		want             string // "": unchanged
	}{
		{"an answer", "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`, 200, ""},
		{"a long answer", "application/json", longMessage, 200, ""},
		{"a tool's error", "application/json",
			`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"error":{"sqlstate":"42501","message":"no"}}}}`, 200, ""},
		{"an error with data", "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{"sqlstate":"22023"}}}`, 200, ""},
		{"an id that is used", "application/json",
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"duplicate in-flight request ID 1"}}`, 400, `"code":-32600,` + data},
		{"types that are not taken", "application/json",
			`{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"unmarshaling secrets"}}`, 200, `"code":-32602,` + data},
		{"a text", "text/plain; charset=utf-8", "Unsupported", 415, `"code":-32600,` + data},
		{"a text that is gone", "text/plain; charset=utf-8", "session not found", 404, `"code":-32001,` + data},
		{"nothing", "", "", 202, ""},
	} {
		w := httptest.NewRecorder()
		errorWriter := &plainErrorWriter{ResponseWriter: w, message: jsonRPCMessage{ID: json.RawMessage(`"x"`), Method: "tools/list"}}
		if c.kind != "" {
			errorWriter.Header().Set("Content-Type", c.kind)
		}
		if c.status != http.StatusOK {
			errorWriter.WriteHeader(c.status)
		}
		if c.body != "" {
			_, _ = errorWriter.Write([]byte(c.body))
		}
		errorWriter.writeWithheld()
		got := w.Body.String()
		if w.Code != c.status || c.want == "" && got != c.body || !strings.Contains(got, c.want) ||
			c.want != "" && !strings.Contains(got, `"id":"x"`) || strings.Contains(got, "secrets") && c.want != "" {
			t.Errorf("%s: %d %s", c.name, w.Code, got)
		}
	}
}
