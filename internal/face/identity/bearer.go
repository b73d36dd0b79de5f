package identity

import (
	"net/http"
	"strings"
)

// Bearer is the token that a request shows; false: it shows none. Of several headers none counts: who stands between
// may have looked at another.
func Bearer(h http.Header) (string, bool) {
	given := h.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}
