package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// plainErrorWriter passes answers of the SDK to the client, and turns its plain-text errors into protocol errors with
// data.
type plainErrorWriter struct {
	http.ResponseWriter
	message jsonRPCMessage

	hasBegun       bool
	withheldStatus int // HTTP status of a plain text that is withheld; 0: no text is
	text           strings.Builder
}

// WriteHeader implements http.ResponseWriter.
func (w *plainErrorWriter) WriteHeader(status int) {
	if w.hasBegun {
		return
	}
	w.hasBegun = true
	if status >= 400 {
		w.withheldStatus = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// errorPrefixBytes is within how many bytes an answer shows that it is an error: the longest id may come before.
const errorPrefixBytes = 300

// Write implements http.ResponseWriter.
func (w *plainErrorWriter) Write(p []byte) (int, error) {
	if !w.hasBegun {
		if bytes.Contains(p[:min(len(p), errorPrefixBytes)], []byte(`"error":`)) {
			w.hasBegun, w.withheldStatus = true, http.StatusOK
		} else {
			w.WriteHeader(http.StatusOK)
		}
	}
	if w.withheldStatus != 0 {
		return w.text.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// writeWithheld sends the text that was withheld, as a protocol error.
func (w *plainErrorWriter) writeWithheld() {
	if w.withheldStatus == 0 {
		return
	}
	text, code := w.text.String(), invalidRequest
	if w.withheldStatus == http.StatusNotFound {
		code = sessionNotFound
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
			w.ResponseWriter.WriteHeader(w.withheldStatus)
			_, _ = w.ResponseWriter.Write([]byte(text))
			return
		}
		// The SDK refuses arguments that its types do not take.
		if text, code = answer.Error.Message, answer.Error.Code; code == 0 || code == invalidParams {
			text, code = fmt.Sprintf("the parameters of %q are not such as it has", truncateText(w.message.Method)), invalidParams
		}
	}
	w.Header().Del("Content-Length")
	writeError(w.ResponseWriter, w.withheldStatus, w.message.ID, code,
		newRefusal(truncateText(strings.TrimSpace(text)), "docs/reference/mcp.md says what is taken."))
}
