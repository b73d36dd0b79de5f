package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// provider is an identity provider that signs tokens.
type provider struct {
	t          *testing.T
	key        jwk.Key
	privateKey any
	name       string
}

func newProvider(t *testing.T, name string) *provider {
	t.Helper()
	privateKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return importKey(t, name, privateKey)
}

func importKey(t *testing.T, name string, privateKey any) *provider {
	t.Helper()
	key, err := jwk.Import(privateKey)
	if err != nil {
		t.Fatal(err)
	}
	_ = key.Set(jwk.KeyIDKey, name)
	return &provider{t, key, privateKey, name}
}

func keySet(t *testing.T, providers ...*provider) []byte {
	t.Helper()
	jwkSet := jwk.NewSet()
	for _, p := range providers {
		public, err := p.key.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		_ = jwkSet.AddKey(public)
	}
	text, err := json.Marshal(jwkSet)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sign returns a token with the default claims, except for the given changes.
func (p *provider) sign(algorithm jwa.SignatureAlgorithm, key any, change map[string]any) string {
	p.t.Helper()
	now := time.Now().Unix()
	claims := map[string]any{"iss": "https://id.test", "aud": []string{"pgconsent"}, "sub": "alice", "role": "subject", "exp": now + 300, "iat": now}
	for name, value := range change {
		if value == nil {
			delete(claims, name)
		} else {
			claims[name] = value
		}
	}
	text, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	headers := jws.NewHeaders()
	_ = headers.Set(jws.KeyIDKey, p.name)
	signedToken, err := jws.Sign(text, jws.WithKey(algorithm, key, jws.WithProtectedHeaders(headers)))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(signedToken)
}

func (p *provider) token(change map[string]any) string {
	return p.sign(jwa.ES256(), p.privateKey, change)
}

func jwtConfig(source string) *config.Config {
	c := one()
	c.Agents["robot"] = &config.Agent{Database: "app", Auth: "jwt"}
	c.JWT = &config.JWT{
		Issuer: "https://id.test", Audience: "pgconsent", JWKS: source, Algorithms: []string{
			"ES256", "RS256"}, Skew: "60s", Roles: []string{"subject", "agent"},
		Claims: config.JWTClaims{Role: "role", Subject: "sub", Agent: "agent", Database: "database",
			Attributes: map[string]string{"user": "uid", "categories": "cats", "level": "level"}},
	}
	return c
}

func TestJWT(t *testing.T) {
	p, foreignProvider := newProvider(t, "first"), newProvider(t, "first")
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(path, keySet(t, p), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg := jwtConfig(path)
	v := NewJWT(func() *config.Config { return cfg })
	got, err := v.Verify(t.Context(), p.token(nil))
	if err != nil || got.Role != Subject || got.Subject != "alice" || got.Database != "app" ||
		strings.Contains(got.Name, "alice") || got.ExpiresAt.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err = v.Verify(t.Context(), p.token(map[string]any{"role": "agent", "agent": "robot", "uid": "u1", "cats": []string{"A", `b"c\`}, "level": 7}))
	if err != nil || got.Agent != "robot" || got.Claims["user"] != "u1" || got.Claims["categories"] != `{"A","b\"c\\"}` || got.Claims["level"] != "7" {
		t.Fatalf("%+v, %v", got, err)
	}
	// The name of a caller in records and sessions is different for different subjects. It does not contain their ids, and
	// its length is limited.
	names, longText := map[string]bool{}, strings.Repeat("x", 100)
	for _, subject := range []string{"alice", "bob", longText + "1", longText + "2", "alice"} {
		got, err := v.Verify(t.Context(), p.token(map[string]any{"role": "agent", "agent": "robot", "sub": subject}))
		if err != nil || strings.Contains(got.Name, subject) || !strings.HasPrefix(got.Name, "jwt ") {
			t.Errorf("%+v, %v", got, err)
		}
		names[got.Name] = true
	}
	if len(names) != 4 {
		t.Errorf("four bearers have the names %v", names)
	}
	now := time.Now().Unix()
	// Times within the tolerance are accepted.
	for name, change := range map[string]map[string]any{
		"just expired": {"exp": now - 30}, "not quite yet": {"nbf": now + 30}, "one audience of several": {"aud": []string{"x", "pgconsent"}}} {
		if _, err := v.Verify(t.Context(), p.token(change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	public, err := x509.MarshalPKIXPublicKey(&p.privateKey.(*ecdsa.PrivateKey).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	unsignedToken := func(header, body string) string {
		e := base64.RawURLEncoding.EncodeToString
		return e([]byte(header)) + "." + e([]byte(body)) + "."
	}
	parts := strings.Split(p.token(nil), ".")
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	admin := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), "alice", "mallory", 1)))
	for name, token := range map[string]string{
		"foreign key":              foreignProvider.token(nil),
		"expired":                  p.token(map[string]any{"exp": now - 120}),
		"no expiry":                p.token(map[string]any{"exp": nil}),
		"not yet":                  p.token(map[string]any{"nbf": now + 600}),
		"issued later":             p.token(map[string]any{"iat": now + 600}),
		"another audience":         p.token(map[string]any{"aud": "other"}),
		"no audience":              p.token(map[string]any{"aud": nil}),
		"another issuer":           p.token(map[string]any{"iss": "https://evil.test"}),
		"no issuer":                p.token(map[string]any{"iss": nil}),
		"no sub":                   p.token(map[string]any{"sub": nil}),
		"no role":                  p.token(map[string]any{"role": nil}),
		"a role it may not give":   p.token(map[string]any{"role": "admin"}),
		"several roles":            p.token(map[string]any{"role": []string{"subject", "admin"}}),
		"everybody":                p.token(map[string]any{"sub": "*"}),
		"no agent":                 p.token(map[string]any{"role": "agent"}),
		"an agent with password":   p.token(map[string]any{"role": "agent", "agent": "chat"}),
		"another database":         p.token(map[string]any{"database": "other"}),
		"an object for attribute":  p.token(map[string]any{"role": "agent", "agent": "robot", "uid": map[string]any{"a": 1}}),
		"a list in a list":         p.token(map[string]any{"role": "agent", "agent": "robot", "cats": []any{[]string{"A"}}}),
		"a fraction":               p.token(map[string]any{"role": "agent", "agent": "robot", "level": 1.5}),
		"alg none":                 unsignedToken(`{"alg":"none","kid":"first"}`, string(body)),
		"alg None":                 unsignedToken(`{"alg":"None"}`, string(body)),
		"no alg":                   unsignedToken(`{}`, string(body)),
		"HMAC with the public key": p.sign(jwa.HS256(), public, nil),
		"RSA for EC":               (&provider{t, nil, rsaKey, "first"}).sign(jwa.RS256(), rsaKey, nil),
		"algorithm off the list":   (&provider{t, nil, rsaKey, "first"}).sign(jwa.PS256(), rsaKey, nil),
		"another body":             parts[0] + "." + admin + "." + parts[2],
		"no signature":             parts[0] + "." + parts[1] + ".",
		"cut":                      p.token(nil)[:60],
		"long":                     p.token(map[string]any{"x": strings.Repeat("x", 10_000)}),
		"JSON form":                `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"nothing":                  "",
		"dots":                     "..",
	} {
		got, err := v.Verify(t.Context(), token)
		var e *sqlstate.Error
		if err == nil || !errors.As(err, &e) || e.Code != sqlstate.InvalidAuthorization || e.Message != NewRefusal(nil).(*sqlstate.Error).Message {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// An agent's token is not accepted for another agent or for a subject, and a subject's token is not accepted for an
	// agent.
	robot := p.token(map[string]any{"role": "agent", "agent": "robot", "uid": "u1"})
	if claims, until, err := v.VerifyAgent(t.Context(), robot, "robot", "app"); err != nil || claims["user"] != "u1" ||
		until.IsZero() {
		t.Error(claims, err)
	}
	for _, problems := range []struct{ token, agent, database string }{
		{robot, "chat", "app"}, {robot, "robot", "other"}, {p.token(nil), "robot", "app"}, {"", "robot", "app"}} {
		if _, _, err := v.VerifyAgent(t.Context(), problems.token, problems.agent, problems.database); err == nil {
			t.Errorf("taken for %s on %s", problems.agent, problems.database)
		}
	}
}

// The provider replaces its keys.
func TestRotation(t *testing.T) {
	first, second := newProvider(t, "first"), newProvider(t, "second")
	var text atomic.Value
	var requestCount atomic.Int32
	text.Store(keySet(t, first))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requestCount.Add(1)
		if b := text.Load().([]byte); b != nil {
			_, _ = w.Write(b)
			return
		}
		http.Error(w, "down", http.StatusBadGateway)
	}))
	defer server.Close()
	cfg := jwtConfig(server.URL)
	v := NewJWT(func() *config.Config { return cfg })
	now := time.Now()
	v.now = func() time.Time { return now }
	isAccepted := func(p *provider) bool {
		_, err := v.Verify(context.Background(), p.sign(jwa.ES256(), p.privateKey, map[string]any{"exp": now.Unix() + 300, "iat": now.Unix()}))
		return err == nil
	}
	for range 20 {
		if !isAccepted(first) || isAccepted(second) {
			t.Fatal("the first key")
		}
	}
	if n := requestCount.Load(); n != 1 {
		t.Errorf("the keys were asked for %d times", n)
	}
	text.Store(keySet(t, first, second))
	now = now.Add(keysRetryPause + time.Second)
	if !isAccepted(second) || !isAccepted(first) {
		t.Error("a new key is not asked for")
	}
	text.Store(keySet(t, second))
	now = now.Add(keysRefreshAge + time.Second)
	if isAccepted(first) || !isAccepted(second) {
		t.Error("a key that is gone is still taken")
	}
	text.Store([]byte(nil))
	now = now.Add(keysRefreshAge + time.Second)
	if !isAccepted(second) {
		t.Error("a provider that is down for a moment locks everybody out")
	}
	now = now.Add(keysMaxAge)
	if isAccepted(second) {
		t.Error("keys that nobody could ask for in an hour are taken")
	}
}
