package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// These tests make tokens byte by byte, as an attacker would.

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// signer returns the signature of the first two parts of a token.
type signer func(text string) []byte

func signed(header, claims string, sign signer) string {
	text := encoded(header) + "." + encoded(claims)
	return text + "." + encoded(string(sign(text)))
}

func byRSA(key *rsa.PrivateKey) signer {
	return func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		out, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return out
	}
}

func byEC(key *ecdsa.PrivateKey, sum func([]byte) []byte) signer {
	return func(text string) []byte {
		r, s, err := ecdsa.Sign(rand.Reader, key, sum([]byte(text)))
		if err != nil {
			panic(err)
		}
		size := (key.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
	}
}

func sha256Of(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] }
func sha384Of(b []byte) []byte { sum := sha512.Sum384(b); return sum[:] }

func byHMAC(secret []byte) signer {
	return func(text string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
}

func unsigned(string) []byte { return nil }

// keyOf returns a public key as a JWK, as a provider publishes it.
func keyOf(id string, public any, extraMembers string) string {
	b := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	out := ""
	switch k := public.(type) {
	case *rsa.PublicKey:
		out = fmt.Sprintf(`{"kty":"RSA","n":%q,"e":%q`, b(k.N), b(big.NewInt(int64(k.E))))
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			panic(err)
		}
		half := len(point) / 2
		out = fmt.Sprintf(`{"kty":"EC","crv":%q,"x":%q,"y":%q`, k.Params().Name, encoded(string(point[1:1+half])), encoded(string(point[1+half:])))
	case ed25519.PublicKey:
		out = fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q`, encoded(string(k)))
	}
	if id != "" {
		out += fmt.Sprintf(`,"kid":%q`, id)
	}
	return out + extraMembers + "}"
}

// forger has a provider's private keys, a verifier of tokens, and a clock.
type forger struct {
	*testing.T
	v      *JWT
	config *config.Config
	path   string
	now    time.Time
	rsa    *rsa.PrivateKey
	ec     *ecdsa.PrivateKey
}

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{T: t, path: filepath.Join(t.TempDir(), "jwks.json"), now: time.Unix(1_800_000_000, 0)}
	var err error
	if f.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if f.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	f.config = jwtConfig(f.path)
	f.config.JWT.Algorithms = []string{"RS256", "ES256", "ES384", "EdDSA"}
	f.publish(keyOf("r", &f.rsa.PublicKey, ""), keyOf("e", &f.ec.PublicKey, ""))
	return f
}

// publish replaces the provider's public keys, and makes a new verifier, which has read no keys.
func (f *forger) publish(keys ...string) {
	f.Helper()
	if err := os.WriteFile(f.path, []byte(`{"keys":[`+strings.Join(keys, ",")+`]}`), 0o644); err != nil {
		f.Fatal(err)
	}
	f.v = NewJWT(func() *config.Config { return f.config })
	f.v.now = func() time.Time { return f.now }
}

// claims returns the claims of an agent's token as JSON. extraClaims come first.
func (f *forger) claims(extraClaims string) string {
	return fmt.Sprintf(
		`{%s"iss":"https://id.test","aud":"pgconsent","sub":"alice","role":"agent","agent":"robot","uid":"u1","exp":%d,"iat":%d}`,
		extraClaims, f.now.Unix()+300, f.now.Unix())
}

// replaced returns the same claims with another value for one claim.
func (f *forger) replaced(claim, value string) string {
	f.Helper()
	var claimsByName map[string]json.RawMessage
	if err := json.Unmarshal([]byte(f.claims("")), &claimsByName); err != nil {
		f.Fatal(err)
	}
	claimsByName[claim] = json.RawMessage(value)
	text, err := json.Marshal(claimsByName)
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

// takes checks that a token is accepted, as a bearer token and as a password; refuses checks that it is not.
func (f *forger) takes(description, token string) Caller {
	f.Helper()
	c, err := f.v.Verify(f.Context(), token)
	if err != nil {
		f.Errorf("%s: refused: %v", description, cause(err))
	}
	return c
}

func (f *forger) refuses(description, token string) {
	f.Helper()
	caller, err := f.v.Verify(f.Context(), token)
	var e *sqlstate.Error
	if !errors.As(err, &e) || e.Code != sqlstate.InvalidAuthorization ||
		e.Message != NewRefusal(nil).(*sqlstate.Error).Message || caller.Role != "" || caller.Claims != nil {
		f.Errorf("%s: %+v, %v", description, caller, err)
		return
	}
	if claims, until, err := f.v.VerifyAgent(f.Context(), token, "robot", "app"); err == nil || claims != nil {
		f.Errorf("%s as a password: %v until %v", description, claims, until)
	}
	// The cause, which is logged, contains no part of the token.
	reason := cause(err)
	for _, tokenPart := range append(strings.Split(token, "."), "alice", "u1", "mallory") {
		if len(tokenPart) > 1 && strings.Contains(reason, tokenPart) {
			f.Errorf("%s: the log is told %q", description, reason)
		}
	}
}

func cause(err error) string {
	for {
		wrapper, ok := err.(interface{ Unwrap() error })
		if !ok || wrapper.Unwrap() == nil {
			return err.Error()
		}
		err = wrapper.Unwrap()
	}
}

const (
	headerRSA = `{"alg":"RS256","kid":"r","typ":"JWT"}`
	headerEC  = `{"alg":"ES256","kid":"e","typ":"JWT"}`
)

func TestForgedSignatures(t *testing.T) {
	f := newForger(t)
	caller := f.takes("RSA", signed(headerRSA, f.claims(""), byRSA(f.rsa)))
	if caller.Agent != "robot" || caller.Claims["user"] != "u1" {
		t.Fatalf("%+v", caller)
	}
	f.takes("EC", signed(headerEC, f.claims(""), byEC(f.ec, sha256Of)))
	f.takes("several audiences", signed(headerEC, f.replaced("aud", `["x","pgconsent"]`), byEC(f.ec, sha256Of)))

	der, err := x509.MarshalPKIXPublicKey(&f.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]byte{
		"PKCS 1": x509.MarshalPKCS1PublicKey(&f.rsa.PublicKey), "DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		"the modulus": f.rsa.N.Bytes(), "the JWK": []byte(keyOf("r", &f.rsa.PublicKey, "")), "nothing": nil,
	}
	for description, secret := range secrets {
		for _, kid := range []string{`,"kid":"r"`, `,"kid":"e"`, ``} {
			f.refuses("HS256 with "+description, signed(`{"alg":"HS256"`+kid+`}`, f.claims(""), byHMAC(secret)))
		}
	}
	for _, alg := range []string{`"none"`, `"None"`, `"NONE"`, `"nOnE"`, `""`, `null`, `0`, `["RS256"]`, `"HS256"`,
		`"rs256"`, `"RS256 "`, `"RS512"`, `"PS256"`, `"ES256K"`, `"dir"`, `"RS256\u0000"`} {
		for _, sign := range []signer{unsigned, byRSA(f.rsa), byHMAC(der)} {
			f.refuses("alg "+alg, signed(`{"alg":`+alg+`,"kid":"r"}`, f.claims(""), sign))
		}
	}
	// A valid signature is refused if the configuration does not list its algorithm.
	for _, algorithm := range f.config.JWT.Algorithms {
		f.config.JWT.Algorithms = []string{algorithm}
		for alg, token := range map[string]string{
			"RS256": signed(headerRSA, f.claims(""), byRSA(f.rsa)), "ES256": signed(headerEC, f.claims(""), byEC(f.ec, sha256Of))} {
			if alg == algorithm {
				f.takes(alg+", the only one", token)
			} else {
				f.refuses(alg+" where "+algorithm+" is named", token)
			}
		}
	}
	f.config.JWT.Algorithms = []string{"RS256", "ES256", "ES384", "EdDSA"}

	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signByOtherKey := byRSA(otherKey)
	headerWithKey := keyOf("r", &otherKey.PublicKey, "")
	for description, header := range map[string]string{
		"a foreign key": headerRSA, "an embedded key": `{"alg":"RS256","kid":"r","jwk":` + headerWithKey +
			`}`, "an embedded key alone": `{"alg":"RS256","jwk":` + headerWithKey + `}`,
		"an address of keys":          `{"alg":"RS256","kid":"r","jku":"https://evil.test/keys"}`,
		"an address of a certificate": `{"alg":"RS256","kid":"r","x5u":"https://evil.test/c.pem"}`,
		"a certificate":               `{"alg":"RS256","kid":"r","x5c":["MIIB"],"x5t":"abc"}`, "the other's algorithm": `{"alg":"RS256","kid":"e"}`,
		"no kid": `{"alg":"RS256"}`, "an empty kid": `{"alg":"RS256","kid":""}`,
		"a path": `{"alg":"RS256","kid":"../../../../dev/null"}`, "a path of the keys": `{"alg":"RS256","kid":` + quoted(f.path) + `}`,
		"a statement": `{"alg":"RS256","kid":"r' UNION SELECT 'x"}`, "a number": `{"alg":"RS256","kid":1}`,
		"a list": `{"alg":"RS256","kid":["r"]}`, "null": `{"alg":"RS256","kid":null}`, "another case": `{"alg":"RS256","kid":"R"}`,
		"a longer id": `{"alg":"RS256","kid":"r\u0000"}`, "a very long id": `{"alg":"RS256","kid":"` + strings.Repeat("r", 4000) + `"}`,
	} {
		f.refuses(description, signed(header, f.claims(""), signByOtherKey))
		if strings.HasPrefix(header, `{"alg":"RS256","kid":"r"`) { // other members are ignored
			f.takes(description+", signed by the provider", signed(header, f.claims(""), byRSA(f.rsa)))
		} else {
			f.refuses(description+", signed by the provider", signed(header, f.claims(""), byRSA(f.rsa)))
		}
	}
	for description, header := range map[string]string{
		"crit":            `{"alg":"RS256","kid":"r","crit":["exp"],"exp":1}`,
		"crit of nothing": `{"alg":"RS256","kid":"r","crit":[]}`,
		"crit null":       `{"alg":"RS256","kid":"r","crit":null}`, "crit b64": `{"alg":"RS256","kid":"r","crit":["b64"],"b64":true}`,
		"b64": `{"alg":"RS256","kid":"r","b64":false}`, "b64 true": `{"alg":"RS256","kid":"r","b64":true}`,
		"alg twice": `{"alg":"none","kid":"r","alg":"RS256"}`, "kid twice": `{"alg":"RS256","kid":"e","kid":"r"}`,
		"alg twice, escaped": `{"alg":"RS256","\u0061lg":"none","kid":"r"}`, "no header": `{}`, "a list": `[]`,
		"null": `null`, "a text": `"RS256"`, "no JSON": `alg=RS256`, "two values": headerRSA + headerRSA,
		"a BOM": "\ufeff" + headerRSA, "not UTF-8": `{"alg":"RS256","kid":"r","x":"` +
			"\xff" + `"}`, "deep": `{"alg":"RS256","kid":"r","x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
	} {
		f.refuses(description, signed(header, f.claims(""), byRSA(f.rsa)))
	}
	// Invalid signatures.
	zeros := func(n int) signer { return func(string) []byte { return make([]byte, n) } }
	for n, header := range map[int]string{0: headerEC, 1: headerEC, 63: headerEC, 64: headerEC, 65: headerEC,
		132: headerEC, 256: headerRSA, 255: headerRSA, 257: headerRSA} {
		f.refuses("zeros", signed(header, f.claims(""), zeros(n)))
	}
	f.refuses("DER in place of two numbers", signed(headerEC, f.claims(""), func(text string) []byte {
		out, err := ecdsa.SignASN1(rand.Reader, f.ec, sha256Of([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}))
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

// A token is accepted in one spelling only.
func TestOtherSpellingsOfTokens(t *testing.T) {
	f := newForger(t)
	token := signed(headerRSA, f.claims(""), byRSA(f.rsa))
	parts := strings.Split(token, ".")
	f.takes("as it is", token)
	lastCharacter := parts[2][len(parts[2])-1]
	alphabet := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	nextCharacter := string(alphabet[strings.IndexByte(alphabet, lastCharacter)|1]) // the last four bits of 256 bytes in base64 carry no data
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	for description, otherSpelling := range map[string]string{
		"padding": parts[0] + "." + parts[1] + "." + parts[2] + "==", "padding in front": parts[0] + "==." +
			parts[1] + "." + parts[2], "the standard alphabet": parts[0] + "." + parts[1] + "." +
			base64.RawStdEncoding.EncodeToString(signature) + "+",
		"bits that mean nothing": parts[0] + "." + parts[1] + "." + parts[2][:len(parts[2])-1] +
			nextCharacter, "a line break": parts[0] + "." + parts[1] + "." + parts[2][:9] + "\n" +
			parts[2][9:], "a line break in the claims": parts[0] + "." + parts[1][:9] + "\r\n" + parts[1][9:] + "." + parts[2],
		"a space": token[:9] + " " + token[9:], "a space behind": token + " ", "a line break behind": token +
			"\n", "another part": token + "." + parts[2], "an empty part": token +
			".", "without a signature": parts[0] + "." + parts[1] + ".", "without claims": parts[0] + ".." + parts[2], "a NUL": token + "\x00",
		"five parts": "a.b.c.d.e", "JSON": `{"payload":"` + parts[1] + `","signatures":[{"protected":"` + parts[0] +
			`","signature":"` + parts[2] + `"}]}`, "nothing": "", "dots": "..", "many dots": strings.Repeat(".", 8000),
		"huge": parts[0] + "." + strings.Repeat("A", 1<<20) +
			"." + parts[2], "within another": signed(`{"alg":"RS256","kid":"r","cty":"JWT"}`, token, byRSA(f.rsa)),
	} {
		f.refuses(description, otherSpelling)
	}
}

func TestForgedClaims(t *testing.T) {
	f := newForger(t)
	checkRefused := func(description, claims string) {
		t.Helper()
		f.refuses(description, signed(headerRSA, claims, byRSA(f.rsa)))
	}
	takes := func(description, claims string) Caller {
		t.Helper()
		return f.takes(description, signed(headerRSA, claims, byRSA(f.rsa)))
	}
	for description, extraClaims := range map[string]string{"role": `"role":"subject",`, "sub": `"sub":"mallory",`,
		"exp": `"exp":9999999999,`, "uid": `"uid":"u2",`, "uid, escaped": `"\u0075id":"u2",`, "within": `"x":{"a":1,"a":2},`} {
		checkRefused(description+" twice", f.claims(extraClaims))
	}
	for claim, values := range map[string][]string{
		"iss":      {`"https://evil.test"`, `["https://id.test"]`, `null`, `1`, `"https://id.test/"`, `"HTTPS://ID.TEST"`, `""`},
		"aud":      {`"other"`, `[]`, `["other"]`, `null`, `1`, `{"pgconsent":true}`, `[["pgconsent"]]`, `"pgconsent "`, `"PGCONSENT"`, `["pgconsent", 1]`},
		"sub":      {`null`, `""`, `1`, `["alice"]`, `{}`},
		"role":     {`null`, `"admin"`, `"Agent"`, `"agent "`, `["agent"]`, `true`, `"system"`, `"operator"`, `""`},
		"agent":    {`null`, `["robot"]`, `"ROBOT"`, `"chat"`, `"nobody"`, `1`, `""`},
		"database": {`null`, `"other"`, `1`, `["app"]`, `"APP"`},
		"uid":      {`null`, `true`, `{"a":1}`, `1.5`, `1e3`, `1.0`, `-0`, `[["a"]]`, `[null]`, `[true]`, `[1.5]`, `"{u1,u2}"`, `" {u1} "`},
		"exp": {`null`, `"9999999999"`, `"2099-01-01T00:00:00Z"`, `true`, `[9999999999]`, `1e300`, `-1`,
			`0`, `9223372036854775807`, `92233720368547758070`},
		"nbf": {`null`, `"0"`, fmt.Sprint(f.now.Unix() + 61), `1e300`, `true`},
		"iat": {`null`, `"0"`, fmt.Sprint(f.now.Unix() + 61), `[]`},
	} {
		for _, value := range values {
			checkRefused(claim+" "+value, f.replaced(claim, value))
		}
	}
	checkRefused("another case of exp", strings.Replace(f.claims(""), `"exp"`, `"EXP"`, 1))
	checkRefused("a list", `[`+f.claims("")+`]`)
	checkRefused("a text", quoted(f.claims("")))
	checkRefused("nothing", `null`)
	checkRefused("no claims", `{}`)
	for _, value := range []string{`9007199254740993`, `"9007199254740993"`, `-9007199254740993`, `123456789012345678901234567890`} {
		if got := takes("a long number", f.replaced("uid", value)); got.Claims["user"] != strings.Trim(value, `"`) {
			t.Errorf("%s is read as %s", value, got.Claims["user"])
		}
	}
	if got := takes("a list", f.replaced("cats", `["a,b", "", "NULL", 7, "{x}"]`)); got.Claims["categories"] != `{"a,b","","NULL","7","{x}"}` {
		t.Errorf("a list is read as %s", got.Claims["categories"])
	}

	// Times are compared to the second, with a tolerance of one minute.
	claimsAt := func(shift time.Duration, claims string) string {
		t.Helper()
		startedAt := f.now
		defer func() { f.now = startedAt }()
		f.now = f.now.Add(shift)
		if _, err := f.v.Verify(t.Context(), signed(headerRSA, claims, byRSA(f.rsa))); err != nil {
			return "refused"
		}
		return "taken"
	}
	expires := f.claims("") // expires in 300 seconds
	claimsWithNotBefore := f.replaced("nbf", fmt.Sprint(f.now.Unix()+600))
	claimsWithNotBefore = strings.Replace(claimsWithNotBefore, fmt.Sprint(f.now.Unix()+300), fmt.Sprint(f.now.Unix()+9000), 1)
	for _, timeCase := range []struct {
		shift  time.Duration
		claims string
		want   string
	}{
		{359 * time.Second, expires, "taken"}, {360 * time.Second, expires, "refused"}, {361 * time.Second, expires, "refused"},
		{539 * time.Second, claimsWithNotBefore, "refused"}, {540 * time.Second, claimsWithNotBefore, "taken"}, {541 * time.Second,
			claimsWithNotBefore, "taken"},
	} {
		if got := claimsAt(timeCase.shift, timeCase.claims); got != timeCase.want {
			t.Errorf("after %v: %s, want %s", timeCase.shift, got, timeCase.want)
		}
	}
}

// Keys of a provider that are too weak, of the wrong type, or ambiguous are not used.
func TestKeysOfAProvider(t *testing.T) {
	f := newForger(t)
	shortKey, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	second, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	wideKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claims := f.claims("")
	firstKey, secondKey := keyOf("k", &f.rsa.PublicKey, ""), keyOf("k", &second.PublicKey, "")
	header := func(alg string) string { return `{"alg":"` + alg + `","kid":"k"}` }
	signedToken := signed(header("RS256"), claims, byRSA(f.rsa))

	f.publish(keyOf("k", &shortKey.PublicKey, ""))
	f.refuses("a short key", signed(header("RS256"), claims, byRSA(shortKey)))
	f.publish(keyOf("k", &wideKey.PublicKey, ""))
	f.refuses("ES256 by P-384", signed(header("ES256"), claims, byEC(wideKey, sha256Of)))
	f.refuses("ES256 by P-384, and its sum", signed(header("ES256"), claims, byEC(wideKey, sha384Of)))
	f.takes("ES384", signed(header("ES384"), claims, byEC(wideKey, sha384Of)))
	f.publish(keyOf("k", &f.ec.PublicKey, ""))
	f.refuses("ES384 by P-256", signed(header("ES384"), claims, byEC(f.ec, sha384Of)))
	f.publish(keyOf("k", public, ""))
	byEd := func(text string) []byte { return ed25519.Sign(edwards, []byte(text)) }
	f.takes("EdDSA", signed(header("EdDSA"), claims, byEd))
	f.refuses("EdDSA as RSA", signed(header("RS256"), claims, byEd))
	f.publish(strings.Replace(keyOf("k", public, ""), "Ed25519", "X25519", 1))
	f.refuses("a key to agree by", signed(header("EdDSA"), claims, byEd))

	// Two keys with the same id are refused if both could verify the token. If their types differ, the matching key is
	// used.
	f.publish(firstKey, secondKey)
	f.refuses("one of two", signedToken)
	f.refuses("the other of two", signed(header("RS256"), claims, byRSA(second)))
	f.publish(firstKey, keyOf("k", &f.ec.PublicKey, ""))
	f.takes("RSA beside EC", signedToken)
	f.takes("EC beside RSA", signed(header("ES256"), claims, byEC(f.ec, sha256Of)))
	f.publish(firstKey, strings.Replace(secondKey, `"kid":"k"`, `"kid":"l"`, 1))
	f.refuses("no kid, two keys", signed(`{"alg":"RS256"}`, claims, byRSA(f.rsa)))
	f.takes("kid, two keys", signedToken)
	f.publish(keyOf("", &f.rsa.PublicKey, ""))
	f.takes("no kid, one key", signed(`{"alg":"RS256"}`, claims, byRSA(f.rsa)))
	f.refuses("a kid, a key without", signedToken)

	// A key is used only if the purpose that it declares allows verification.
	for extraMembers, isAccepted := range map[string]bool{
		`,"use":"sig"`: true, `,"use":"enc"`: false, `,"alg":"RS256"`: true, `,"alg":"RS512"`: false,
		`,"alg":"RSA-OAEP"`: false, `,"key_ops":["verify"]`: true, `,"key_ops":["encrypt"]`: false, `,"x5u":"https://evil.test"`: true,
	} {
		f.publish(keyOf("k", &f.rsa.PublicKey, extraMembers))
		if isAccepted {
			f.takes(extraMembers, signedToken)
		} else {
			f.refuses(extraMembers, signedToken)
		}
	}
	// The verifier ignores secrets, private keys and keys of unknown types in the set, and uses the other keys.
	f.publish(`{"kty":"oct","kid":"k","k":"` + encoded("secret") + `"}`)
	f.refuses("a secret", signed(header("HS256"), claims, byHMAC([]byte("secret"))))
	d, err := f.ec.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	f.publish(keyOf("k", &f.ec.PublicKey, `,"d":"`+base64.RawURLEncoding.EncodeToString(d)+`"`))
	f.refuses("a private key", signed(header("ES256"), claims, byEC(f.ec, sha256Of)))
	f.publish(`{"kty":"AKP","alg":"ML-DSA-99","kid":"x","pub":"AAAA"}`,
		`{"kty":"EC","crv":"P-999","kid":"y","x":"AA","y":"AA"}`, `{"kty":"RSA","kid":"z"}`, firstKey)
	f.takes("beside unknown ones", signedToken)
	f.refuses("an unknown one", signed(`{"alg":"RS256","kid":"z"}`, claims, byRSA(f.rsa)))
	for description, text := range map[string]string{"none": `{"keys":[]}`, "null": `{"keys":null}`, "HTML": `<html>`,
		"nothing": ``, "an object": `{}`, "a list": `[` + firstKey + `]`, "cut": `{"keys":[` +
			firstKey, "a point that is not on the curve": `{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"AQ","y":"AQ"}]}`} {
		f.publish(firstKey)
		if err := os.WriteFile(f.path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f.refuses("keys: "+description, signedToken)
	}
}

// If the provider is slow, redirects, or sends too much or nothing, tokens with unknown keys are refused, and tokens
// with known keys are accepted without waiting.
func TestProviderFailures(t *testing.T) {
	f := newForger(t)
	keySetText := `{"keys":[` + keyOf("r", &f.rsa.PublicKey, "") + `]}`
	var handler atomic.Value // holds an http.HandlerFunc; an earlier one may still run after it was replaced
	var goodHandler http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(keySetText)) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().(http.HandlerFunc)(w, r) }))
	defer server.Close()
	otherServer := httptest.NewServer(goodHandler)
	defer otherServer.Close()
	f.config.JWT.JWKS = server.URL
	t.Cleanup(func() { keysClient.Timeout = keysTimeout })
	testDone := make(chan struct{})
	defer close(testDone)
	startVerifier := func() {
		f.v = NewJWT(func() *config.Config { return f.config })
		f.v.now = func() time.Time { return f.now }
	}
	token := func(id string) string {
		return signed(`{"alg":"RS256","kid":"`+id+`"}`, f.claims(""), byRSA(f.rsa))
	}
	for description, h := range map[string]http.HandlerFunc{
		"it redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, otherServer.URL, http.StatusFound) },
		"it is huge": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.TrimSuffix(keySetText, "]}") + strings.Repeat(" ", maxKeysBytes) + "]}"))
		},
		"it is down":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"it hangs up":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"it says 404":   func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404); goodHandler(w, r) },
		"it says HTML":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<!doctype html>")) },
		"it is silent":  func(http.ResponseWriter, *http.Request) { <-testDone },
		"it has no key": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
	} {
		handler.Store(h)
		if keysClient.Timeout = time.Minute; description == "it is silent" {
			keysClient.Timeout = 100 * time.Millisecond
		}
		startVerifier()
		f.refuses(description, token("r"))
		if _, err := f.v.Verify(t.Context(), token("r")); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: it is told as a call that took too long", description)
		}
		handler.Store(goodHandler)
		keysClient.Timeout = time.Minute
		f.now = f.now.Add(keysRetryPause)
		f.takes(description+", and is mended", token("r"))
	}

	// While the provider does not answer a request because of an unknown key, a token with a known key is accepted.
	startVerifier()
	f.takes("at first", token("r"))
	requestArrived, mayAnswer := make(chan struct{}), make(chan struct{})
	handler.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { close(requestArrived); <-mayAnswer; goodHandler(w, r) }))
	f.now = f.now.Add(keysRetryPause)
	verifyResult := make(chan error)
	unknownKeyToken := token("x")
	go func() { _, err := f.v.Verify(t.Context(), unknownKeyToken); verifyResult <- err }()
	<-requestArrived
	f.takes("while it is asked", token("r"))
	select {
	case err := <-verifyResult:
		t.Errorf("who names an unknown key is answered before the provider: %v", err)
	default:
	}
	close(mayAnswer)
	if err := <-verifyResult; err == nil {
		t.Error("an unknown key is taken")
	}

	// Many tokens with unknown keys do not cause a request each.
	var requestCount atomic.Int64
	handler.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requestCount.Add(1); goodHandler(w, r) }))
	startVerifier()
	for i := range 20 {
		f.refuses("an unknown key", token(fmt.Sprint("x", i)))
		f.takes("a known one between", token("r"))
		f.now = f.now.Add(keysRetryPause / 25)
	}
	if n := requestCount.Load(); n != 1 {
		t.Errorf("the provider was asked %d times within %v", n, keysRetryPause)
	}
}
