package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// errorTyper passes answers on, and turns the SDK's plain-text errors into protocol errors with data.
type errorTyper struct {
	http.ResponseWriter
	message envelope

	began bool
	held  int // status of a plain text that is withheld; 0: none
	text  strings.Builder
}

// WriteHeader implements http.ResponseWriter.
func (w *errorTyper) WriteHeader(status int) {
	if w.began {
		return
	}
	w.began = true
	if status >= 400 {
		w.held = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// errorBegins is how far from its beginning an answer shows that it is an error: after the longest id.
const errorBegins = 300

// Write implements http.ResponseWriter.
func (w *errorTyper) Write(p []byte) (int, error) {
	if !w.began {
		if bytes.Contains(p[:min(len(p), errorBegins)], []byte(`"error":`)) {
			w.began, w.held = true, http.StatusOK
		} else {
			w.WriteHeader(http.StatusOK)
		}
	}
	if w.held != 0 {
		return w.text.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// done sends what was withheld.
func (w *errorTyper) done() {
	if w.held == 0 {
		return
	}
	text, code := w.text.String(), invalidRequest
	if w.held == http.StatusNotFound {
		code = noSession
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		var answer struct {
			Error *struct {
				Code    int             `json:"code"`
				Message string          `json:"message"`
				Data    json.RawMessage `json:"data"`
			} `json:"error"`
		}
		err := json.Unmarshal([]byte(text), &answer)
		if err != nil || answer.Error == nil || answer.Error.Data != nil {
			w.ResponseWriter.WriteHeader(w.held)
			_, _ = w.ResponseWriter.Write([]byte(text))
			return
		}
		// what its types do not take
		if text, code = answer.Error.Message, answer.Error.Code; code == 0 || code == invalidParams {
			text, code = fmt.Sprintf("the parameters of %q are not such as it has", clip(w.message.Method)), invalidParams
		}
	}
	w.Header().Del("Content-Length")
	tell(w.ResponseWriter, w.held, w.message.ID, code,
		refusal(clip(strings.TrimSpace(text)), "docs/reference/mcp.md says what is taken."))
}
