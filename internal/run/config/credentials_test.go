package config

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// PostgreSQL computes the same SCRAM verifier for the same password and salt, also for passwords that SASLprep changes
// or refuses. PostgreSQL accepts this package's verifiers.
func TestVerifierIsPostgreSQLs(t *testing.T) {
	ctx := context.Background()
	db := pgtest.Database(t)
	admin := db.Connect(t, "postgres")
	pgtest.Lock(t, "roles")
	for i, password := range []string{"simple", "with space $ : ,", "Ünïcödé", "non\u00a0breaking", "Ⅸ roman",
		"tab\tcontrol", strings.Repeat("long", 60)} {
		role := "verifier_test_" + string(rune('a'+i))
		if _, err := admin.Exec(ctx, "CREATE ROLE "+role+" LOGIN PASSWORD '"+password+"'"); err != nil {
			t.Fatal(err)
		}
		var serverVerifier string
		if err := admin.QueryRow(ctx, "SELECT rolpassword FROM pg_authid WHERE rolname = $1", role).Scan(&serverVerifier); err != nil {
			t.Fatal(err)
		}
		c, err := ParseVerifier(serverVerifier)
		if err != nil {
			t.Fatal(err)
		}
		if ownVerifier, err := formatVerifier(password, []byte(c.Salt)); err != nil || ownVerifier != serverVerifier {
			t.Errorf("%q: another verifier than PostgreSQL's (%v)", password, err)
		}
		v, err := NewVerifier(password)
		if err != nil {
			t.Fatal(err)
		}
		var storedVerifier string
		if _, err := admin.Exec(ctx, "ALTER ROLE "+role+" PASSWORD '"+v+"'"); err != nil {
			t.Fatal(err)
		}
		if err := admin.QueryRow(ctx, "SELECT rolpassword FROM pg_authid WHERE rolname = $1", role).Scan(&storedVerifier); err != nil ||
			storedVerifier != v {
			t.Errorf("%q: stored as another verifier (%v)", password, err)
		}
		if _, err := admin.Exec(ctx, "DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	}
}

func TestParseVerifierRefuses(t *testing.T) {
	validVerifier, err := NewVerifier("x")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{
		"empty": "", "md5": "md5c4ca4238a0b923820dcc509a6f75849b", "plain": "secret",
		"few iterations": strings.Replace(validVerifier, "$4096:", "$1:", 1), "huge": strings.Replace(validVerifier, "$4096:", "$99999999999:",
			1),
		"no server key": validVerifier[:strings.LastIndex(validVerifier,
			":")], "short key": validVerifier[:len(validVerifier)-8], "trailing": validVerifier +
			"x", "no salt": "SCRAM-SHA-256$4096:$" + strings.SplitN(validVerifier, "$", 3)[2],
	} {
		if _, err := ParseVerifier(s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMockIsStableAndLooksReal(t *testing.T) {
	a, b, c := MockCredentials([]byte("k"), "u"), MockCredentials([]byte("k"), "u"), MockCredentials([]byte("k"), "v")
	if a.Salt != b.Salt || string(a.StoredKey) != string(b.StoredKey) || a.Salt == c.Salt ||
		MockCredentials([]byte("l"), "u").Salt == a.Salt {
		t.Error("a mock must depend on key and user alone")
	}
	if len(a.Salt) != saltBytes || a.Iters != scramIterations || len(a.StoredKey) != 32 || len(a.ServerKey) != 32 ||
		string(a.StoredKey) == string(a.ServerKey) {
		t.Error("a mock can be told from a credential")
	}
}

func add(t *testing.T, path, name, password string) string {
	t.Helper()
	v, err := NewVerifier(password)
	if err != nil {
		t.Fatal(err)
	}
	if err := SetCredential(path, Credential{Name: name, Verifier: v}); err != nil {
		t.Fatal(err)
	}
	return v
}

// login runs a SCRAM exchange with the verifier that c has for the name, and returns whether it succeeds.
func login(t *testing.T, c *Credentials, name, password string) bool {
	t.Helper()
	credentials, ok := c.Verifier(name)
	if !ok {
		return false
	}
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		t.Fatal(err)
	}
	server, err := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) { return credentials, nil })
	if err != nil {
		t.Fatal(err)
	}
	cc, sc := client.NewConversation(), server.NewConversation()
	m, err := cc.Step("")
	for err == nil && !sc.Done() {
		if m, err = sc.Step(m); err == nil {
			m, err = cc.Step(m)
		}
	}
	return err == nil && sc.Valid()
}

func TestSetDisableAndEnableCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents.scram")
	c, err := OpenCredentials(path)
	if err != nil {
		t.Fatalf("a file that is not there: %v", err)
	}
	if _, ok := c.Verifier("a"); ok {
		t.Error("no file, but a login")
	}
	add(t, path, "a", "one")
	add(t, path, "b", "two")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if !login(t, c, "a", "one") || login(t, c, "a", "two") || !login(t, c, "b", "two") {
		t.Error("logins do not match passwords")
	}
	add(t, path, "a", "new")
	if err := DisableCredential(path, "b"); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if !login(t, c, "a", "new") || login(t, c, "a", "one") || login(t, c, "b", "two") {
		t.Error("a changed password or a disabled login is not in force")
	}
	if err := DisableCredential(path, "nobody"); err == nil {
		t.Error("an agent without login was disabled")
	}
	if err := DisableWithoutPassword(path, "robot", AuthToken); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err != nil || !c.IsDisabled("robot") || !c.IsDisabled("b") || c.IsDisabled("a") {
		t.Errorf("whose tokens are not taken: %v", err)
	}
	if err := EnableWithoutPassword(path, "robot"); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err != nil || c.IsDisabled("robot") || !login(t, c, "a", "new") {
		t.Errorf("whose tokens are taken again: %v", err)
	}
	if err := DisableWithoutPassword(path, "holder", AuthCertificate); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err != nil || !c.IsDisabled("holder") {
		t.Errorf("whose certificate is not taken: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err == nil || !login(t, c, "a", "new") {
		t.Errorf("a file that others can read: %v", err)
	}
}

func TestReadCredentialsRefuses(t *testing.T) {
	v, err := NewVerifier("x")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"one word": "a\n", "password": "a secret\n",
		"twice": "a " + v + "\na " + v + "\n", "name": "a/b " + v + "\n"} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCredentials(path); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCredentialsAreWrittenBesideEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents.scram")
	v, err := NewVerifier("x")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := SetCredential(path, Credential{Name: "agent" + string(rune('a'+i)), Verifier: v}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if credentials, err := ReadCredentials(path); err != nil || len(credentials) != 20 {
		t.Errorf("%d lines, %v", len(credentials), err)
	}
}

func TestWatchFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents.scram")
	c, err := OpenCredentials(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	changed, done := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(done)
		c.Watch(ctx, slog.New(slog.DiscardHandler), func() { changed <- struct{}{} })
	}()
	defer func() { cancel(); <-done }()
	for _, password := range []string{"one", "two"} {
		add(t, path, "a", password)
		// A change may be reported more than once, so that a report may be about the previous change.
		for timeout := time.After(tier.Patience); !login(t, c, "a", password); {
			select {
			case <-changed:
			case <-timeout:
				t.Fatalf("the password %s is not in force", password)
			}
		}
	}
}

// pgx parses the connection string that ConnString returns, for any password.
func TestConnString(t *testing.T) {
	for _, password := range []string{"simple", `it's \ "quoted" = x`, " spaces ", "ünï"} {
		t.Setenv("PGCONSENT_TEST_PW", password)
		cfg := &Config{Upstream: Upstream{Host: "/var/run/my pg", Port: 77, TLS: "disable"}}
		s, err := cfg.ConnString(&Database{Name: "a b"}, `o'role`, "PGCONSENT_TEST_PW")
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.ParseConfig(s)
		if err != nil {
			t.Fatal(err)
		}
		if got.Password != password || got.User != `o'role` || got.Database != "a b" ||
			got.Host != "/var/run/my pg" || got.Port != 77 || got.TLSConfig != nil {
			t.Errorf("%q reads back as %q, %q, %q, %q", password, got.Password, got.User, got.Database, got.Host)
		}
	}
}
