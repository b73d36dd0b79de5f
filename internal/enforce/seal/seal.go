// Package seal makes seals and signatures. A seal is a setting that tells the database for whom a connection speaks. A
// signature tells it that a statement's text is the proxy's own.
//
// Only a holder of the key can make a seal or a signature that the database accepts (functions attr, sealed and vetted
// of schema pgconsent_signed). A seal is valid for one server process and for a short time. A signature is valid for
// one text and one profile, and only under a valid seal of that profile made with the same key.
//
// A seal is
//
//	v1|kid|nonce|pid|expires|profile|name=value|…#hmac
//
// where expires is in seconds of the epoch and hmac is HMAC-SHA256 in hex over "seal|" and the part before the '#'. A
// signature is HMAC-SHA256 over "stmt|", the profile, "|" and the text, and is sent in a comment before the text. The
// two prefixes keep a signature from being valid as a seal.
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

	// SealLifetime is how long a seal is valid. The database refuses a seal that says it is valid for more than twice as
	// long.
	SealLifetime = 60 * time.Second

	// SignatureLen is the length of the comment that [Key.Sign] puts in front of a text, in bytes and characters.
	SignatureLen = len(signatureStart) + 2*sha256.Size + len(signatureEnd)

	formatVersion = "v1"
	// the name of the field of a session that is alone, which has a dot, as no attribute's name has
	ownProcessField = "pgconsent.alone"
	// the name of the field for the session that may act for others, which has a dot, too
	representingSessionField = "pgconsent.acts"
	// the name of the field for the catalog's version, which has a dot, too
	catalogField   = "pgconsent.catalog"
	signatureStart = "/*pgconsent:v1:"
	signatureEnd   = "*/"
)

// Key is one of the keys in the table pgconsent.keys.
type Key struct {
	ID     int
	Secret []byte
}

// Claims are the content of a seal. Their values are not checked here: the policy says which values an attribute may
// have.
type Claims struct {
	Nonce      uint32
	PID        uint32 // the id of the session's server process
	Expires    time.Time
	Profile    string
	Attributes map[string]string
	// RepresentingSession names the session where it may act for others: an [RepresentedUser] of this session counts under
	// the seal. "": it may not.
	RepresentingSession string
	// OwnProcess tells that the server process serves no other session with the plans that it has made: plans that are
	// kept may hold the verified seal.
	OwnProcess bool
	// the version of the catalogs under which the session's statements are decided; "": it is left out, and the database
	// does not compare it
	Catalog string
}

// Seal returns the seal with these claims, as the value of the setting. It is secret and must never be logged.
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
	if c.Catalog != "" { // the last field, as current_catalog reads it
		b.WriteString("|" + catalogField + "=" + escapeSeparators(c.Catalog))
	}
	payload := b.String()
	return payload + "#" + k.hmacHex("seal|"+payload)
}

// AttributeFields returns the attributes in the form that they have in a seal, in order. Some functions of the database
// take these fields from the control role in place of a seal.
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

// escapeSeparators replaces the characters in a value that would be read as separators of the seal.
func escapeSeparators(value string) string { return separatorEscaper.Replace(value) }

var separatorEscaper = strings.NewReplacer("%", "%25", "|", "%7C", "#", "%23", "=", "%3D")
