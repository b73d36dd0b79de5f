// Package seal makes seals and signatures. A seal is the value of a setting. It tells the database which attributes and
// rights a connection has. A signature tells the database that the proxy wrote a statement's text.
//
// Only a holder of the key can make seals and signatures that the database accepts (functions attr, sealed and
// text_is_signed of schema pgconsent_signed). A seal is valid for one server process and for a short time. A signature
// is valid for one text and one profile, and only under a valid seal of that profile made with the same key.
//
// A seal is
//
//	v1|kid|nonce|pid|expires|profile|name=value|…#hmac
//
// where expires is in seconds since 1970 and hmac is HMAC-SHA256 in hex over "seal|" and the part before the '#'. A
// signature is HMAC-SHA256 over "stmt|", the profile, "|" and the text. The proxy sends it in a comment before the
// text. Because of the two prefixes, a signature is never valid as a seal.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// Setting is the name of the session setting that holds the seal.
	Setting = "pgconsent.seal"

	// SealLifetime is how long a seal is valid. The database refuses a seal whose expiry is more than twice as far away.
	SealLifetime = 60 * time.Second

	// SignatureLen is the length of the comment that [Key.Sign] puts in front of a text, in bytes and characters.
	SignatureLen = len(signatureStart) + 2*sha256.Size + len(signatureEnd)

	formatVersion = "v1"
	// the field that says Claims.OwnProcess; its name has a dot, which no attribute's name has
	ownProcessField = "pgconsent.alone"
	// the field with Claims.RepresentingSession; its name has a dot, too
	representingSessionField = "pgconsent.acts"
	// the field with Claims.Catalog; its name has a dot, too
	catalogField   = "pgconsent.catalog"
	signatureStart = "/*pgconsent:v1:"
	signatureEnd   = "*/"
)

// Key is one of the keys in the table pgconsent.keys.
type Key struct {
	ID     int
	Secret []byte
}

// Claims are the content of a seal. This package does not check the attributes' values, which the policy restricts.
type Claims struct {
	Nonce      uint32
	PID        uint32 // process id of the session's server process
	Expires    time.Time
	Profile    string
	Attributes map[string]string
	// RepresentingSession is the id of a session that may act for others: a [RepresentedUser] of this session is accepted
	// under the seal. "": the session may not act for others.
	RepresentingSession string
	// OwnProcess says that no other session uses the plans that this server process has made. So cached plans may contain
	// the verified seal.
	OwnProcess bool
	// Catalog is the version of the catalogs for which the session's statements are decided. "": the seal has none, and
	// the database does not compare it.
	Catalog string
}

// Seal returns the seal with these claims, as a value for [Setting]. The seal is secret and must never be logged.
func (k Key) Seal(c Claims) string {
	var b strings.Builder
	b.WriteString(formatVersion)
	for _, field := range []string{
		strconv.Itoa(k.ID),
		strconv.FormatUint(uint64(c.Nonce), 10),
		strconv.FormatUint(uint64(c.PID), 10),
		strconv.FormatInt(c.Expires.Unix(), 10),
		escapeSeparators(c.Profile),
	} {
		b.WriteByte('|')
		b.WriteString(field)
	}
	for _, field := range AttributeFields(c.Attributes) {
		b.WriteByte('|')
		b.WriteString(field)
	}
	if c.RepresentingSession != "" {
		b.WriteString("|" + representingSessionField + "=" + escapeSeparators(c.RepresentingSession))
	}
	if c.OwnProcess {
		b.WriteString("|" + ownProcessField + "=1")
	}
	if c.Catalog != "" { // it must be the last field: the function current_catalog of the database reads it there
		b.WriteString("|" + catalogField + "=" + escapeSeparators(c.Catalog))
	}
	payload := b.String()
	return payload + "#" + k.hmacHex("seal|"+payload)
}

// AttributeFields returns attributes in the form that they have in a seal, ordered by name. Some functions of the
// database take these fields from the control role in place of a seal.
func AttributeFields(attributes map[string]string) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		out = append(out, AttributeField(name, attributes[name]))
	}
	return out
}

// AttributeField returns one attribute in the form that it has in a seal.
func AttributeField(name, value string) string {
	return escapeSeparators(name) + "=" + escapeSeparators(value)
}

// Sign returns the text with its signature in front. The database accepts the signature only in a session whose seal
// has the same profile.
func (k Key) Sign(profile, text string) string {
	return signatureStart + k.hmacHex("stmt|"+escapeSeparators(profile)+"|"+text) + signatureEnd + text
}

func (k Key) hmacHex(message string) string {
	h := hmac.New(sha256.New, k.Secret)
	h.Write([]byte(message))
	return hex.EncodeToString(h.Sum(nil))
}

// escapeSeparators replaces the characters of a value that separate the parts of a seal.
func escapeSeparators(value string) string { return separatorEscaper.Replace(value) }

var separatorEscaper = strings.NewReplacer("%", "%25", "|", "%7C", "#", "%23", "=", "%3D")
