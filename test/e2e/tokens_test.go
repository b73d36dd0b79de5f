package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/test/demos"
	"github.com/pgconsent/pgconsent/test/tier"
)

// provider is an identity provider with its key.
type provider struct {
	t    testing.TB
	name string
	key  *ecdsa.PrivateKey
}

func newProvider(t testing.TB, name string) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &provider{t, name, key}
}

// publishKeys writes the public keys of identity providers to a file.
func publishKeys(t testing.TB, path string, providers ...*provider) {
	t.Helper()
	keySet := jwk.NewSet()
	for _, p := range providers {
		publicKey, err := jwk.Import(p.key.Public())
		if err != nil {
			t.Fatal(err)
		}
		_ = publicKey.Set(jwk.KeyIDKey, p.name)
		_ = keySet.AddKey(publicKey)
	}
	text, err := json.Marshal(keySet)
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// token returns a signed token: the usual claims of an agent, with some changed.
func (p *provider) token(changedClaims map[string]any) string {
	p.t.Helper()
	now := time.Now().Unix()
	claims := map[string]any{"iss": "https://id.test", "aud": "pgconsent", "sub": "somebody", "role": "agent",
		"agent": "robot", "tenant": user1, "exp": now + 3600, "iat": now}
	maps.Copy(claims, changedClaims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	headers := jws.NewHeaders()
	_ = headers.Set(jws.KeyIDKey, p.name)
	signedToken, err := jws.Sign(text, jws.WithKey(jwa.ES256(), p.key, jws.WithProtectedHeaders(headers)))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(signedToken)
}

// writeSelfSigned writes a self-signed certificate for this machine, and its key.
func writeSelfSigned(t testing.TB, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	privateKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{
			"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().
				Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, privateKey.Public(), privateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(privateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, pool = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(text)
	for path, content := range map[string][]byte{cert: text, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pool
}

// remoteProxy is a running service that other machines could reach, and that accepts the tokens of a provider.
type remoteProxy struct {
	testing.TB
	config        *config.Config
	caPath        string
	plainAddress  string // address without TLS
	tlsParameters string // host=… port=…
	baseURL       string
	client        *http.Client
	keysPath      string // path of the provider's keys
	owner         *pgx.Conn
}

// startRemoteProxy starts the service of a demo again, reachable from other machines.
func startRemoteProxy(t *testing.T, name string) *remoteProxy {
	t.Helper()
	r := demos.StartDemo(t, name)
	path := filepath.Join(r.Dir, "pgconsent.yaml")
	encoded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^(\s*listen:) .*$`).ReplaceAllString(string(encoded), "$1 0.0.0.0:0")
	text = strings.Replace(text, "\nagents:\n", "\nagents:\n  robot: { database: "+name+", auth: jwt }\n  other: { database: "+name+", auth: jwt }\n"+
		"  backend: { database: "+name+", auth: jwt, acts_for: { attributes: [user], by: jwt, claims: { user: tenant } } }\n", 1)
	a := &remoteProxy{TB: t, keysPath: filepath.Join(r.Dir, "jwks.json")}
	text += "jwt: { issuer: https://id.test, audience: pgconsent, jwks: " + a.keysPath +
		", skew: 0s, roles: [subject, agent, operator], claims: { attributes: { user: tenant } } }\n"
	configFile := filepath.Join(r.Dir, "abroad.yaml")
	write := func(text string) {
		if err := os.WriteFile(configFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Without TLS the configuration is refused, since other machines could connect.
	write(text)
	if _, err := config.Load(configFile); err == nil ||
		!strings.Contains(err.Error(), "without tls pgconsent listens on loopback") ||
		!strings.Contains(err.Error(), "without tls http listens on loopback") {
		t.Fatalf("off loopback without TLS: %v", err)
	}
	cert, key, pool := writeSelfSigned(t, r.Dir)
	write(text + "tls: { cert: " + cert + ", key: " + key + " }\n")
	if a.config, err = config.Load(configFile); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	service, err := serve.New(t.Context(), serve.Options{Config: a.config, Log: slog.New(slog.DiscardHandler), DrainTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	serveErr := make(chan error, 1)
	go func() { serveErr <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-serveErr; err != nil {
			t.Error(err)
		}
	})
	_, port, _ := net.SplitHostPort(service.Address().String())
	_, httpPort, _ := net.SplitHostPort(service.HTTPAddress().String())
	a.caPath, a.plainAddress = cert, "127.0.0.1:"+port
	a.tlsParameters = fmt.Sprintf("host=localhost hostaddr=127.0.0.1 port=%s dbname=%s sslmode=verify-full sslrootcert=%s", port, name, cert)
	a.baseURL = "https://localhost:" + httpPort
	a.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+httpPort)
		},
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(a.client.CloseIdleConnections)
	db := a.config.Databases[name]
	dsn, err := a.config.ConnString(db, db.Roles.Migrate, db.Secrets.Migrate)
	if err != nil {
		t.Fatal(err)
	}
	if a.owner, err = pgx.Connect(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.owner.Close(context.Background()) })
	return a
}

// connect logs in with a password.
func (a *remoteProxy) connect(agent, password string) (*pgx.Conn, error) {
	a.Helper()
	c, err := pgx.ParseConfig(strings.Replace(a.tlsParameters, "hostaddr=127.0.0.1 ", "", 1))
	if err != nil {
		a.Fatal(err)
	}
	c.User, c.Password, c.RuntimeParams = agent, password, map[string]string{}
	c.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	conn, err := pgx.ConnectConfig(context.Background(), c)
	if err == nil {
		a.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// call sends a request with a bearer token.
func (a *remoteProxy) call(method, path, token string, body ...string) (*http.Response, string) {
	a.Helper()
	request, err := http.NewRequest(method, a.baseURL+path, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		a.Fatal(err)
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.Fatal(err)
	}
	return response, string(text)
}

// bearerTransport is an HTTP transport that sends a bearer token.
type bearerTransport struct {
	token string
	next  http.RoundTripper
	user  string // the token of the user that the caller represents; "": the caller acts for itself
}

// RoundTrip implements http.RoundTripper.
func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	if b.user != "" {
		r.Header.Set("Pgconsent-Token", b.user)
	}
	return b.next.RoundTrip(r)
}

// messageOf returns the message of a server's error.
func messageOf(err error) string {
	var pgError *pgconn.PgError
	if errors.As(err, &pgError) {
		return pgError.Message + pgError.Detail + pgError.Hint
	}
	return fmt.Sprint(err)
}

// A person with a token of the provider sees what the token's claims allow, over SQL, HTTP and MCP alike. Nobody else
// can log in, and no token is sent over the network unencrypted.
func TestTokensOfAProvider(t *testing.T) {
	tier.All(t)
	a := startRemoteProxy(t, "memberintel")
	firstProvider, secondProvider, untrustedProvider := newProvider(t, "first"), newProvider(t, "second"), newProvider(t, "first")
	publishKeys(t, a.keysPath, firstProvider)
	entitledRows := func(tenant string) (n int) {
		if err := a.owner.QueryRow(t.Context(), "SELECT count(*) FROM brain_entries WHERE tenant_id IN ('global', $1)", tenant).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const countQuery = "SELECT count(*) FROM brain_entries"
	visibleRows := func(conn *pgx.Conn) (n int) {
		if err := conn.QueryRow(t.Context(), countQuery).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if entitledRows(user1) == entitledRows(user2) {
		t.Fatal("two users have as many rows: the test tells nothing")
	}

	// The clients are pgx and psql.
	for _, tenant := range []string{user1, user2, "nobody"} {
		conn, err := a.connect("robot", firstProvider.token(map[string]any{"tenant": tenant}))
		if err != nil {
			t.Fatal(err)
		}
		if got := visibleRows(conn); got != entitledRows(tenant) {
			t.Errorf("%s sees %d rows, want %d", tenant, got, entitledRows(tenant))
		}
		command := exec.Command("psql", "-XAtqc", countQuery, a.tlsParameters+" user=robot")
		command.Env = append(os.Environ(), "PGPASSWORD="+firstProvider.token(map[string]any{"tenant": tenant}))
		if output, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(output)) != fmt.Sprint(entitledRows(tenant)) {
			t.Errorf("psql as %s: %s, %v", tenant, output, err)
		}
	}

	// A token with as many claims as allowed is accepted. A larger one is refused with that reason, by each client.
	paddedToken := func(bytes int) string {
		token := ""
		for pad := bytes*3/4 - 600; len(token) < bytes; pad += max(1, (bytes-len(token))*3/4-2) {
			token = firstProvider.token(map[string]any{"tenant": user1, "groups": strings.Repeat("g", pad)})
		}
		return token
	}
	if conn, err := a.connect("robot", paddedToken(8<<10-3)); err != nil || visibleRows(conn) != entitledRows(user1) {
		t.Errorf("a token of 8 KiB: %v", err)
	}
	for _, size := range []int{9 << 10, 20 << 10, 60 << 10} {
		statement := paddedToken(size)
		if _, err := a.connect("robot", statement); codeOf(err) != "28P01" ||
			!strings.Contains(messageOf(err), "may have 8 KiB: have the provider put fewer claims into it") {
			t.Errorf("a token of %d bytes: %v", len(statement), err)
		}
		command := exec.Command("psql", "-XAtqc", countQuery, a.tlsParameters+" user=robot")
		command.Env = append(os.Environ(), "PGPASSWORD="+statement)
		if output, err := command.CombinedOutput(); err == nil || !strings.Contains(string(output), "may have 8 KiB") {
			t.Errorf("psql with a token of %d bytes: %s", len(statement), output)
		}
	}

	// Every invalid token gets the same error as a wrong password.
	now := time.Now().Unix()
	unsignedToken := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"first"}`)) + "." + strings.Split(firstProvider.token(nil), ".")[1] + "."
	_, wrongPasswordErr := a.connect("advisor", "no password")
	ordinaryError := codeOf(wrongPasswordErr) + " " + strings.ReplaceAll(messageOf(wrongPasswordErr), "advisor", "robot")
	refusedTokens := map[string]string{
		"expired": firstProvider.token(map[string]any{"exp": now - 5}),
		"not yet": firstProvider.token(map[string]any{"nbf": now + 600}), "no expiry": firstProvider.token(map[string]any{"exp": nil}),
		"another audience": firstProvider.token(map[string]any{"aud": "other"}),
		"another issuer":   firstProvider.token(map[string]any{"iss": "https://evil.test"}), "a foreign key": untrustedProvider.token(nil),
		"an unknown key": secondProvider.token(nil), "no signature": unsignedToken,
		"another agent's": firstProvider.token(map[string]any{"agent": "other"}), "an agent with a password": firstProvider.token(map[string]any{"agent": "advisor"}),
		"a subject's":            firstProvider.token(map[string]any{"role": "subject"}),
		"a role it may not give": firstProvider.token(map[string]any{"role": "admin"}), "nothing": "-",
	}
	for description, token := range refusedTokens {
		_, err := a.connect("robot", token)
		if got := codeOf(err) + " " + messageOf(err); got != ordinaryError {
			t.Errorf("%s: %s, want %s", description, got, ordinaryError)
		}
		if description == "another agent's" || description == "a subject's" {
			continue // a service token for a user, over HTTP
		}
		if response, _ := a.call("GET", "/v1/consent/status", token); response.StatusCode != 401 {
			t.Errorf("%s: HTTP %d", description, response.StatusCode)
		}
	}
	if _, err := a.connect("robot", firstProvider.token(map[string]any{"tenant": nil})); codeOf(err) != "28000" {
		t.Errorf("a token without the claim: %v", err)
	}
	if conn, err := a.connect("robot", firstProvider.token(map[string]any{"tenant": []string{user1, user2}})); err == nil &&
		visibleRows(conn) != entitledRows("nobody") {
		t.Error("a list of tenants is a tenant")
	}

	// Without TLS the server does not ask for a password.
	plainConn, err := net.Dial("tcp", a.plainAddress)
	if err != nil {
		t.Fatal(err)
	}
	defer plainConn.Close()
	_ = plainConn.SetDeadline(time.Now().Add(tier.Patience))
	startup, err := (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber,
		Parameters: map[string]string{"user": "robot", "database": "memberintel"}}).Encode(nil)
	if err == nil {
		_, err = plainConn.Write(startup)
	}
	answer, e := io.ReadAll(plainConn)
	if err != nil || e != nil || !bytes.HasPrefix(answer, []byte{'E'}) || !bytes.Contains(answer, []byte("an encrypted connection is required")) {
		t.Errorf("without TLS: %q, %v %v", answer, err, e)
	}

	// A session ends when its token expires.
	for lifetime := time.Duration(4); ; lifetime *= 3 { // until the machine is fast enough to log in before the expiry
		deadline := time.Now().Add(lifetime * time.Second)
		conn, err := a.connect("robot", firstProvider.token(map[string]any{"exp": deadline.Unix()}))
		if err == nil {
			_, err = conn.Exec(t.Context(), countQuery)
		}
		if err != nil {
			if lifetime > 300 {
				t.Fatal(err)
			}
			continue
		}
		for err == nil {
			time.Sleep(100 * time.Millisecond)
			if _, err = conn.Exec(t.Context(), countQuery); err == nil && time.Since(deadline) > tier.Patience {
				t.Fatal("a session outlives its token")
			}
		}
		if endedAt := time.Now(); endedAt.Before(deadline.Truncate(time.Second)) || codeOf(err) != "57P01" && !conn.IsClosed() {
			t.Errorf("the session ended at %v, the token at %v: %v", endedAt, deadline, err)
		}
		break
	}

	// The same token over HTTP.
	ownToken, otherToken := firstProvider.token(nil), firstProvider.token(map[string]any{"tenant": user2})
	var id string
	if err := a.owner.QueryRow(t.Context(), "SELECT id FROM brain_entries WHERE tenant_id = $1 LIMIT 1", user1).Scan(&id); err != nil {
		t.Fatal(err)
	}
	const sourcesPath = "/api/v1/brain/sources/"
	if response, text := a.call("GET", sourcesPath+id, ownToken); response.StatusCode != 200 || response.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("a source: %d %s", response.StatusCode, text)
	}
	hiddenResponse, text := a.call("GET", sourcesPath+id, otherToken)
	absentResponse, absentText := a.call("GET", sourcesPath+"00000000-0000-4000-8000-000000000000", otherToken)
	if hiddenResponse.StatusCode != 404 || absentResponse.StatusCode != 404 || text != absentText {
		t.Errorf("another's source: %d %s, %d %s", hiddenResponse.StatusCode, text, absentResponse.StatusCode, absentText)
	}
	// A token for a user's consents, and what the agent of that user then sees.
	if response, text := a.call("POST", "/v1/consent/grant",
		firstProvider.token(map[string]any{"role": "subject",
			"sub": user2}), `{"stream":"TEMPORARY"}`); response.StatusCode != 200 || !strings.Contains(text, user2) {
		t.Errorf("a user consents: %d %s", response.StatusCode, text)
	}
	// The same token over MCP.
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: a.baseURL + "/mcp",
			HTTPClient: &http.Client{Transport: bearerTransport{token: otherToken, next: a.client.Transport}}, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "query", Arguments: map[string]any{"sql": countQuery}})
	if err != nil || result.IsError || memberAt(result.StructuredContent, "rows") == nil ||
		fmt.Sprint(memberAt(result.StructuredContent, "rows")) != fmt.Sprintf("[[%d]]", entitledRows(user2)) {
		t.Errorf("over MCP: %v, %v", result, err)
	}
	result, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "consent_status", Arguments: map[string]any{}})
	if err != nil || result.IsError || memberAt(result.StructuredContent, "user_id") != user2 {
		t.Errorf("the consents of the token's own user: %v, %v", result, err)
	}
	result, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "consent_status", Arguments: map[string]any{"user_id": user1}})
	if err != nil || !result.IsError {
		t.Errorf("the consents of another user: %v, %v", result, err)
	}

	// Other services over the network.
	if response, text := a.call("GET", "/console/login", ""); response.StatusCode != 200 ||
		!strings.Contains(strings.Join(response.Header.Values("Set-Cookie"), ";"), "Secure") {
		t.Errorf("the console: %d %v %.200s", response.StatusCode, response.Header, text)
	}
	for path, want := range map[string]map[string]int{
		"/metrics": {"": 401, ownToken: 401, firstProvider.token(map[string]any{"role": "operator"}): 200}, "/healthz": {
			"": 200}, "/openapi.json": {"": 200}, "/v1/consent/pending": {"": 401, ownToken: 200},
	} {
		for token, status := range want {
			if response, text := a.call("GET", path, token); response.StatusCode != status {
				t.Errorf("%s: %d %.300s, want %d", path, response.StatusCode, text, status)
			}
		}
	}
	if response, err := http.Get("http" + strings.TrimPrefix(a.baseURL, "https") + "/openapi.json"); err == nil {
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != 400 || bytes.Contains(text, []byte("openapi")) {
			t.Errorf("in the clear: %d %s", response.StatusCode, text)
		}
	}

	// After the provider changes its key, new tokens are accepted at once, and old ones no longer.
	openConn, err := a.connect("robot", firstProvider.token(nil))
	if err != nil {
		t.Fatal(err)
	}
	publishKeys(t, a.keysPath, secondProvider)
	if _, err := a.connect("robot", secondProvider.token(nil)); err != nil {
		t.Errorf("a token of the new key: %v", err)
	}
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err := a.connect("robot", firstProvider.token(nil)); codeOf(err) == "28P01" {
			break
		}
		if time.Now().After(deadline) {
			t.Error("a token of a key that is gone is taken")
			break
		}
	}
	visibleRows(openConn) // an open session stays until its token expires

	// After the agent is disabled, its tokens are refused.
	if err := config.DisableWithoutPassword(a.config.Credentials, "robot", config.AuthToken); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err := openConn.Exec(t.Context(), "SELECT 1"); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the session of a disabled agent goes on")
		}
	}
	if _, err := a.connect("robot", secondProvider.token(nil)); codeOf(err)+" "+messageOf(err) != ordinaryError {
		t.Errorf("a disabled agent: %v", err)
	}
	if response, _ := a.call("GET", "/v1/consent/pending", secondProvider.token(nil)); response.StatusCode != 401 {
		t.Errorf("a disabled agent over HTTP: %d", response.StatusCode)
	}
	if conn, err := a.connect("other", secondProvider.token(map[string]any{"agent": "other"})); err != nil {
		t.Error(err)
	} else {
		visibleRows(conn)
	}
	if err := config.EnableWithoutPassword(a.config.Credentials, "robot"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err := a.connect("robot", secondProvider.token(nil)); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an agent that is enabled again cannot log in")
		}
	}
}
