package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// plainErrorWriter passes the SDK's answers to the client. It holds back errors, so that writeWithheld can send them as
// errors of JSON-RPC with an SQLSTATE.
type plainErrorWriter struct {
	http.ResponseWriter
	message jsonRPCMessage

	hasBegun       bool
	withheldStatus int // HTTP status of an error that is held back in text; 0: none is
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

// errorPrefixBytes is the length of the beginning of an answer in which the member "error" is searched for. Only the
// id, which is not longer than 200 bytes, may come before it.
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

// writeWithheld sends the error that was held back as an error of JSON-RPC.
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
		// The SDK has refused the parameters because they do not fit its types.
		if text, code = answer.Error.Message, answer.Error.Code; code == 0 || code == invalidParams {
			text, code = fmt.Sprintf("the parameters of %q are not such as it has", truncateText(w.message.Method)), invalidParams
		}
	}
	w.Header().Del("Content-Length")
	writeError(w.ResponseWriter, w.withheldStatus, w.message.ID, code,
		newRefusal(truncateText(strings.TrimSpace(text)), "docs/reference/mcp.md says what is taken."))
}
