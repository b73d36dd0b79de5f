package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// sourcesPath is the path below which the API serves sources if the policy does not name a path.
const sourcesPath = "/v1/sources/"

// serveSource answers a request for the full text of a row. It returns false if the request is not one. The paths are
// not in /openapi.json, because they come from the policy, which may change while the process runs.
func (s *Server) serveSource(a *bufferedAnswer, r *http.Request) bool {
	call := r.Context().Value(callKey{}).(*Call)
	var p *policy.Policy
	if db := s.Service.Databases[call.Caller.Database]; db != nil && db.Policy != nil {
		p = db.Policy()
	}
	path := r.URL.EscapedPath()
	escapedPath, isSourcePath := strings.CutPrefix(path, sourcesPath)
	if p != nil && p.Sources() != nil {
		if rest, ok := strings.CutPrefix(path, p.Sources().Path); ok {
			escapedPath, isSourcePath = rest, true
		}
	}
	if !isSourcePath {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		call.operation = "source.get"
		a.Header().Set("Allow", "GET, HEAD")
		newProblem(http.StatusMethodNotAllowed, unknownMethodError()).write(a)
		return true
	}
	call.operation = "source.get"
	a.Header().Set("Cache-Control", "private")
	if p == nil || p.Sources() == nil {
		problemOf(operations.NewNoSourceError()).write(a)
		return true
	}
	id, err := url.PathUnescape(escapedPath)
	if err != nil || strings.Contains(escapedPath, "/") {
		id = "" // an invalid id gets the same answer as one that does not exist
	}
	out, err := s.Service.ReadSource(r.Context(), call.Caller, p.Sources(), id)
	if err != nil {
		if e := sqlstate.AsError(err); e.Code == sqlstate.LimitExceeded {
			a.Header().Set("Retry-After", retryAfter(e.Hint))
		}
		problemOf(err).write(a)
		return true
	}
	var b bytes.Buffer
	text := func(v any) {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // a text and null can always be encoded
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('{')
	for i, name := range out.Names {
		text(name)
		b.WriteByte(':')
		text(out.Values[i])
		b.WriteByte(',')
	}
	b.WriteString(`"body":`)
	text(out.Body)
	b.WriteString("}\n")
	a.Header().Set("Content-Type", "application/json")
	_, _ = a.Write(b.Bytes())
	return true
}

var retryHint = regexp.MustCompile(`Try again in ([0-9]{1,6}) second`)

// retryAfter returns the number of seconds after which the limit allows another call. It takes the number from the hint
// of the limit's error.
func retryAfter(hint string) string {
	if m := retryHint.FindStringSubmatch(hint); m != nil {
		return m[1]
	}
	return "60"
}
