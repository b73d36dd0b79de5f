package seal_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
)

var key = seal.Key{ID: 3, Secret: bytes.Repeat([]byte{7}, 32)}

// The format of a seal is fixed, since functions in the database read it, and seals outlive the process.
func TestFormat(t *testing.T) {
	got := key.Seal(seal.Claims{
		Nonce: 9, PID: 4711, Expires: time.Unix(1700000000, 5), Profile: "p|1",
		Attributes: map[string]string{"user": "u", "odd": "a|b#c=d%e"},
	})
	const want = "v1|3|9|4711|1700000000|p%7C1|odd=a%7Cb%23c%3Dd%25e|user=u#"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
	if strings.Count(got, "#") != 1 || len(got)-strings.Index(got, "#") != 65 {
		t.Errorf("the seal does not end in one # and 64 digits: %s", got)
	}
	signed := key.Sign("p", "SELECT 1")
	if !strings.HasPrefix(signed, "/*pgconsent:v1:") || signed[seal.SignatureLen-2:] != "*/SELECT 1" || seal.SignatureLen != 81 {
		t.Errorf("got %s", signed)
	}
}

// The database computes codes itself, with the whole key: over the whole payload of a seal, or over profile and text,
// each after another word.
func TestCodesCoverTheWholePayload(t *testing.T) {
	code := func(message string) string {
		h := hmac.New(sha256.New, key.Secret)
		h.Write([]byte(message))
		return hex.EncodeToString(h.Sum(nil))
	}
	for _, profile := range []string{"p", "p|1", "a=b#c%d", ""} {
		for _, text := range []string{"SELECT 1", "", "|", "SELECT '|#='", "/*pgconsent:v1:*/"} {
			if got, want := key.Sign(profile, text), "/*pgconsent:v1:"+
				code("stmt|"+strings.NewReplacer("%", "%25", "|", "%7C", "#", "%23", "=", "%3D").Replace(profile)+"|"+text)+"*/"+text; got != want {
				t.Errorf("%q of %q: %s, want %s", text, profile, got, want)
			}
		}
		value := key.Seal(seal.Claims{Nonce: 1, PID: 2, Expires: time.Unix(3, 0), Profile: profile,
			Attributes: map[string]string{"a|b": "c=d", "e": "f"}, Catalog: "7"})
		payload, mac, _ := strings.Cut(value, "#")
		if mac != code("seal|"+payload) || !strings.HasSuffix(payload, "|a%7Cb=c%3Dd|e=f|pgconsent.catalog=7") {
			t.Errorf("%s", value)
		}
	}
	// A key of the wrong length is refused, at any place in the keyring.
	for at := range 3 {
		for _, secret := range [][]byte{nil, {}, []byte("short"), bytes.Repeat([]byte{1}, 31), bytes.Repeat([]byte{1}, 33)} {
			keys := []seal.Key{key, key, key}
			keys[at].Secret = secret
			if _, err := seal.NewKeyring(keys); err == nil {
				t.Errorf("a key of %d bytes at %d", len(secret), at)
			}
		}
	}
	if _, err := seal.NewKeyring([]seal.Key{}); err == nil {
		t.Error("an empty ring")
	}
}

// Any difference in content gives another seal and another signature. A seal never equals a signature.
func TestDifferentContentHasDifferentSeals(t *testing.T) {
	base := seal.Claims{Nonce: 1, PID: 2, Expires: time.Unix(3, 0), Profile: "p", Attributes: map[string]string{"a": "b"}}
	seen := map[string]string{}
	add := func(name, value string) {
		mac := value[strings.IndexAny(value, "#:")+1:]
		if other, ok := seen[mac]; ok {
			t.Errorf("%s and %s are equal", name, other)
		}
		seen[mac] = name
	}
	add("base", key.Seal(base))
	for name, change := range map[string]func(*seal.Claims){
		"nonce":     func(c *seal.Claims) { c.Nonce = 11 },
		"pid":       func(c *seal.Claims) { c.PID = 22 },
		"expires":   func(c *seal.Claims) { c.Expires = time.Unix(33, 0) },
		"profile":   func(c *seal.Claims) { c.Profile = "q" },
		"value":     func(c *seal.Claims) { c.Attributes = map[string]string{"a": "c"} },
		"name":      func(c *seal.Claims) { c.Attributes = map[string]string{"b": "b"} },
		"two":       func(c *seal.Claims) { c.Attributes = map[string]string{"a": "b", "c": ""} },
		"in one":    func(c *seal.Claims) { c.Attributes = map[string]string{"a": "b|c="} },
		"none":      func(c *seal.Claims) { c.Attributes = nil },
		"in profil": func(c *seal.Claims) { c.Attributes, c.Profile = nil, "p|a=b" },
	} {
		c := base
		change(&c)
		add(name, key.Seal(c))
	}
	add("another key", seal.Key{ID: 3, Secret: bytes.Repeat([]byte{8}, 32)}.Seal(base))
	add("signature", key.Sign("p", "a=b"))
	add("signature of another profile", key.Sign("p|a", "=b"))
	add("signature of another text", key.Sign("p", "a=c"))
}

func TestKeyring(t *testing.T) {
	if _, err := seal.NewKeyring(nil); err == nil {
		t.Error("an empty ring")
	}
	if _, err := seal.NewKeyring([]seal.Key{{ID: 1, Secret: []byte("short")}}); err == nil {
		t.Error("a short key")
	}
	old := seal.Key{ID: 1, Secret: bytes.Repeat([]byte{1}, 32)}
	ring, err := seal.NewKeyring([]seal.Key{old, key})
	if err != nil || ring.NewestKey().ID != 3 {
		t.Errorf("%v, %v", ring, err)
	}
}
