package identity

import (
	"net/http"
	"strings"
)

// Bearer returns the token of a request, if it has exactly one. With several headers it returns none: a proxy in
// between may have checked another one.
func Bearer(h http.Header) (string, bool) {
	given := h.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}
