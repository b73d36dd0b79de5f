package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
)

// typed passes answers on, and makes errors of the protocol of those that the SDK words as text.
type typed struct {
	http.ResponseWriter
	id json.RawMessage

	began bool
	held  int // the status of a text that is held back; 0: none is
	text  strings.Builder
}

// WriteHeader implements http.ResponseWriter.
func (w *typed) WriteHeader(status int) {
	if w.began {
		return
	}
	w.began = true
	if status >= 400 && !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		w.held = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *typed) Write(p []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	if w.held != 0 {
		return w.text.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// done sends what was held back.
func (w *typed) done() {
	if w.held == 0 {
		return
	}
	w.Header().Del("Content-Length")
	code := invalidRequest
	if w.held == http.StatusNotFound {
		code = noSession
	}
	tell(w.ResponseWriter, w.held, w.id, code, refusal(clip(strings.TrimSpace(w.text.String())), "docs/mcp.md says what is taken."))
}
