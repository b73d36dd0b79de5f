package seal

import (
	"strconv"
	"strings"
	"time"
)

// RepresentedUser says for which user a session acts. The proxy puts it, signed, into a setting of the session. So it
// ends as PostgreSQL ends a setting: with the transaction, with the rollback to a savepoint, or with the session.
//
// It is written
//
//	v1|kid|session|expires|name=value|…#hmac
//
// where expires is in seconds since 1970, or infinity, and hmac is computed as for a seal, over "act|" and the part
// before the '#'. The database accepts it only in a session whose seal has the same session id.
type RepresentedUser struct {
	Session string // id of the session for which the value was made, see Claims.RepresentingSession
	// transactions that begin after Expires do not have the attributes; zero: they last as long as the session
	Expires    time.Time
	Attributes map[string]string // attributes that the user gives the session
}

// SealRepresentedUser returns the signed value of the setting for this user. Equal users give equal values. The value
// is secret and must never be logged.
func (k Key) SealRepresentedUser(a RepresentedUser) string {
	expires := "infinity"
	if !a.Expires.IsZero() {
		expires = strconv.FormatInt(a.Expires.Unix(), 10)
	}
	fields := append([]string{formatVersion, strconv.Itoa(k.ID), escapeSeparators(a.Session), expires},
		AttributeFields(a.Attributes)...)
	payload := strings.Join(fields, "|")
	return payload + "#" + k.hmacHex("act|"+payload)
}

// ParseRepresentedUser parses a value that [Key.SealRepresentedUser] has made. It does not verify the signature.
func ParseRepresentedUser(value string) (a RepresentedUser, ok bool) {
	payload, _, ok := strings.Cut(value, "#")
	fields := strings.Split(payload, "|")
	if !ok || len(fields) < 4 || fields[0] != formatVersion {
		return RepresentedUser{}, false
	}
	a.Session, a.Attributes = separatorUnescaper.Replace(fields[2]), map[string]string{}
	if fields[3] != "infinity" {
		seconds, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return RepresentedUser{}, false
		}
		a.Expires = time.Unix(seconds, 0)
	}
	for _, field := range fields[4:] {
		name, value, ok := strings.Cut(field, "=")
		if !ok {
			return RepresentedUser{}, false
		}
		a.Attributes[separatorUnescaper.Replace(name)] = separatorUnescaper.Replace(value)
	}
	return a, true
}

var separatorUnescaper = strings.NewReplacer("%25", "%", "%7C", "|", "%23", "#", "%3D", "=")
