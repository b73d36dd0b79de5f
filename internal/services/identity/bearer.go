package identity

import (
	"net/http"
	"strings"
)

// UserTokenHeader is the header in which an agent sends the token of the user for whom it calls.
const UserTokenHeader = "Pgconsent-Token"

// userSeparator separates the agent's token from the user's token. A header cannot contain this character.
const userSeparator = "\n"

// Bearer returns the bearer token of a request, followed by the token of the user for whom the caller acts, if there is
// one: see [SplitBearer]. It returns false if there is no Authorization header or several: an HTTP proxy in between may
// have checked another one.
func Bearer(h http.Header) (string, bool) {
	headers := h.Values("Authorization")
	if len(headers) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	switch users := h.Values(UserTokenHeader); len(users) {
	case 0:
	case 1:
		token += userSeparator + strings.TrimSpace(users[0])
	default:
		return "", false
	}
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// SplitBearer divides what [Bearer] returns into the caller's own token and the token of the user for whom the caller
// acts. hasUser is false if there is no user's token.
func SplitBearer(bearer string) (callerToken, user string, hasUser bool) {
	return strings.Cut(bearer, userSeparator)
}
