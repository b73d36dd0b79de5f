package identity

import (
	"net/http"
	"strings"
)

// UserTokenHeader is the header by which an agent shows the token of the user for whom it calls.
const UserTokenHeader = "Pgconsent-Token"

// userSeparator separates an agent's token from that of a user. No header can contain it.
const userSeparator = "\n"

// Bearer returns the token of a request, if it has exactly one, and behind it that of a user for whom the caller acts:
// see [SplitBearer]. With several headers it returns none: a proxy in between may have checked another one.
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

// SplitBearer divides what [Bearer] returns into the caller's own token and the token of a user for whom it acts;
// hasUser is false where it acts for nobody.
func SplitBearer(bearer string) (callerToken, user string, hasUser bool) {
	return strings.Cut(bearer, userSeparator)
}
