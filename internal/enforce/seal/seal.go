// Package seal makes the sealed session: the one setting by which the database knows for whom a connection speaks, and
// the signature by which it knows that a statement's text is the proxy's own.
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
	// Setting is the setting that carries the seal.
	Setting = "pgconsent.seal"

	// TTL is how long a seal is valid. The database refuses one that claims more than twice as long.
	TTL = 60 * time.Second

	// SignatureLen is the length of the comment that Sign puts in front of a text, in bytes and characters.
	SignatureLen = len(signatureStart) + 2*sha256.Size + len(signatureEnd)

	version        = "v1"
	aloneField     = "pgconsent.alone" // no attribute's name: these have no dot
	catalogField   = "pgconsent.catalog"
	signatureStart = "/*pgconsent:v1:"
	signatureEnd   = "*/"
)

// Key is one of the keys in pgconsent.keys.
type Key struct {
	ID     int
	Secret []byte
}

// Claims are the content of a seal. Nothing of it is checked here: the policy says which values an attribute may have.
type Claims struct {
	Nonce      uint32
	PID        uint32 // the id of the server process of the session
	Expires    time.Time
	Profile    string
	Attributes map[string]string
	// Alone tells that the server process serves no other session with the plans that it has made: plans that are kept may
	// hold the verified seal.
	Alone bool
	// the version of the catalogs that the session's statements are decided under; "": left out, and not compared
	Catalog string
}

// Seal returns the value of the setting. It is a secret: never logged.
func (k Key) Seal(c Claims) string {
	var b strings.Builder
	b.WriteString(version)
	for _, field := range []string{
		strconv.Itoa(k.ID),
		strconv.FormatUint(uint64(c.Nonce), 10),
		strconv.FormatUint(uint64(c.PID), 10),
		strconv.FormatInt(c.Expires.Unix(), 10),
		escape(c.Profile),
	} {
		b.WriteByte('|')
		b.WriteString(field)
	}
	for _, field := range Fields(c.Attributes) {
		b.WriteByte('|')
		b.WriteString(field)
	}
	if c.Alone {
		b.WriteString("|" + aloneField + "=1")
	}
	if c.Catalog != "" { // the last field, as current_catalog reads it
		b.WriteString("|" + catalogField + "=" + escape(c.Catalog))
	}
	payload := b.String()
	return payload + "#" + k.mac("seal|"+payload)
}

// Fields are the attributes as a seal has them, in order. Some functions of the database take them in place of a seal
// from the control role.
func Fields(attributes map[string]string) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		out = append(out, Field(name, attributes[name]))
	}
	return out
}

// Field is one attribute as a seal has it.
func Field(name, value string) string { return escape(name) + "=" + escape(value) }

// Sign returns the text with its signature in front. The database accepts the signature only in a session whose seal
// has the same profile.
func (k Key) Sign(profile, text string) string {
	return signatureStart + k.mac("stmt|"+escape(profile)+"|"+text) + signatureEnd + text
}

func (k Key) mac(message string) string {
	h := hmac.New(sha256.New, k.Secret)
	h.Write([]byte(message))
	return hex.EncodeToString(h.Sum(nil))
}

// escape keeps a value from being read as the seal's own separators.
func escape(value string) string { return escaper.Replace(value) }

var escaper = strings.NewReplacer("%", "%25", "|", "%7C", "#", "%23", "=", "%3D")
