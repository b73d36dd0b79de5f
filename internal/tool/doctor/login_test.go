package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/test/tier"
)

func bySocket(db *pgtest.DB) doctor.Upstream {
	return doctor.Upstream{Network: "unix", Address: filepath.Join(db.SocketDir, fmt.Sprintf(".s.PGSQL.%d", db.Port)), Database: db.Name}
}

func byTCP(db *pgtest.DB) doctor.Upstream {
	return doctor.Upstream{Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", db.Port), Database: db.Name}
}

// The doctor tries logins without and with a wrong password. A password in the environment must not change the result.
func TestLogins(t *testing.T) {
	tier.All(t)
	db := migratedDatabase(t)
	s := subject(t, db)
	dba := db.Connect(t, "postgres")
	currentUser, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, dba,
		`CREATE ROLE app LOGIN PASSWORD 'known'; CREATE ROLE mover LOGIN REPLICATION PASSWORD 'known'; CREATE ROLE walled LOGIN PASSWORD 'known'`)
	t.Cleanup(func() { _, _ = pgtestExec(db, "DROP ROLE app, mover, walled") })
	if _, err := dba.Exec(t.Context(), `CREATE ROLE "`+currentUser.Username+`" LOGIN`); err == nil {
		t.Cleanup(func() { _, _ = pgtestExec(db, `DROP ROLE "`+currentUser.Username+`"`) })
	}
	passwordFile := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(passwordFile, []byte("*:*:*:*:known\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSFILE", passwordFile)
	t.Setenv("PGPASSWORD", "known")

	const passwordRules = "local all postgres trust\nhost all all all scram-sha-256\nhost replication all all scram-sha-256\n"
	for name, c := range map[string]struct {
		hba      string
		upstream doctor.Upstream
		owner    string
		want     string // the unsafe finding; "" if there is none
	}{
		"scram by TCP":                   {passwordRules, byTCP(db), "app", ""},
		"scram by socket":                {passwordRules + "local all all scram-sha-256\n", bySocket(db), "app", ""},
		"a role that does not exist":     {passwordRules, byTCP(db), "nobody", ""},
		"rejected":                       {passwordRules + "local all all reject\n", bySocket(db), "app", ""},
		"no line":                        {passwordRules, bySocket(db), "app", ""},
		"trust by socket":                {passwordRules + "local all all trust\n", bySocket(db), "app", "owner_login"},
		"trust by TCP":                   {"host all app all trust\n" + passwordRules, byTCP(db), "app", "owner_login"},
		"trust, and then refused":        {passwordRules + "local all all trust\n", bySocket(db), "nobody", "owner_login"},
		"trust for another":              {"host all walled all trust\n" + passwordRules, byTCP(db), "app", ""},
		"peer of another user":           {passwordRules + "local all all peer\n", bySocket(db), "app", ""},
		"peer of ours":                   {passwordRules + "local all all peer\n", bySocket(db), currentUser.Username, "owner_login"},
		"peer by a map":                  {passwordRules + "local all all peer map=loose\n", bySocket(db), "app", "owner_login"},
		"trust for replication":          {"host replication all all trust\n" + passwordRules, byTCP(db), "mover", "owner_replication"},
		"that and no right to replicate": {"host replication all all trust\n" + passwordRules, byTCP(db), "app", ""},
		"trust for replication by socket": {passwordRules + "local all all scram-sha-256\nlocal replication all trust\n",
			bySocket(db), "mover", "owner_replication"},
	} {
		t.Run(name, func(t *testing.T) {
			configure(t, db, c.hba)
			found, err := doctor.CheckLogins(t.Context(), c.upstream, []string{c.owner}, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.Severity == doctor.SeverityUnsafe && f.ID != c.want || f.Severity != doctor.SeverityOK && f.Fix == "" {
					t.Errorf("found %+v", f)
				}
			}
			if c.want != "" && !has(found, c.want, doctor.SeverityUnsafe) {
				t.Errorf("no unsafe finding %s in %v", c.want, found)
			}
			if c.want == "" && !has(found, "owner_login", doctor.SeverityOK) {
				t.Errorf("no finding that all is well in %v", found)
			}
		})
	}

	t.Run("the agent and control roles", func(t *testing.T) {
		configure(t, db, "host all pgconsent_agent,pgconsent_control all trust\n"+passwordRules)
		found, err := doctor.CheckLogins(t.Context(), byTCP(db), []string{"app"}, s)
		if err != nil || doctor.UnsafeError(found) != nil || !has(found, "agent_login", doctor.SeverityWarning) || !has(found, "control_login",
			doctor.SeverityWarning) {
			t.Errorf("%v %v", found, err)
		}
	})
	t.Run("the fix", func(t *testing.T) {
		configure(t, db, "local   \""+db.Name+"\"   \"app\"   scram-sha-256\n"+passwordRules+"local all all trust\n")
		found, err := doctor.CheckLogins(t.Context(), bySocket(db), []string{"app"}, s)
		if err != nil || doctor.UnsafeError(found) != nil {
			t.Errorf("%v %v", found, err)
		}
	})
}

// configure replaces the server's pg_hba.conf until the test ends.
func configure(t *testing.T, db *pgtest.DB, hba string) {
	t.Helper()
	dba := db.Connect(t, "postgres")
	var file, ident string
	if err := dba.QueryRow(t.Context(), "SELECT current_setting('hba_file'), current_setting('ident_file')").Scan(&file, &ident); err != nil {
		t.Fatal(err)
	}
	replace := func(file, text string) {
		oldText, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.WriteFile(file, oldText, 0o600); err != nil {
				t.Error(err)
			}
		})
	}
	reload := func() {
		t.Helper()
		var before, after time.Time
		ctx := context.Background()
		if err := dba.QueryRow(ctx, "SELECT pg_conf_load_time() FROM pg_reload_conf()").Scan(&before); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(tier.Patience); time.Now().Before(end) && !after.After(before); time.Sleep(5 * time.Millisecond) {
			if err := dba.QueryRow(ctx, "SELECT pg_conf_load_time()").Scan(&after); err != nil {
				t.Error(err)
				return
			}
		}
	}
	t.Cleanup(reload) // runs after the files are restored
	replace(file, "local all postgres trust\n"+hba)
	replace(ident, "loose /^.*$ app\n")
	reload()
}

// A server that does not answer, or not yet, does not count as one that refuses a login.
func TestLoginsCannotBeTried(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	for name, serverBytes := range map[string]string{
		"a server that starts":      "E\x00\x00\x00\x19SFATAL\x00C57P03\x00Mlater\x00\x00",
		"one that hangs up":         "",
		"something else altogether": "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a message without end":     "R\x7f\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				_, _ = c.Read(make([]byte, 1024))
				_, _ = c.Write([]byte(serverBytes))
			}()
			found, err := doctor.CheckLogins(t.Context(), doctor.Upstream{Network: "tcp", Address: l.Addr().String(), Database: db.Name}, []string{"app"}, s)
			if err == nil {
				t.Errorf("no error but %v", found)
			}
			var pg *pgconn.PgError
			if errors.As(err, &pg) != (name == "a server that starts") || pg != nil && pg.Code != "57P03" {
				t.Errorf("the error is %v", err)
			}
		})
	}
	_, err := doctor.CheckLogins(t.Context(), doctor.Upstream{Network: "unix", Address: filepath.Join(t.TempDir(), "none")}, []string{"app"}, s)
	if err == nil {
		t.Error("a server that is not there was tried")
	}
}
