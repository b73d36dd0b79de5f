package policytest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/test/tier"
)

const openPolicy = "version: 1\ntables: { notes: { rows: open } }\n"

// runFolder runs the tests in a folder with these files, on the package's server.
func runFolder(t *testing.T, files map[string]string, o Options) Report {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewServerOn(t.Context(), dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r, err := Run(t.Context(), s, filepath.Join(dir, FileName), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reportText returns a report as it is printed.
func reportText(r Report) string {
	var b bytes.Buffer
	p := Printer{Out: &b}
	for _, result := range r.Results {
		p.PrintTest(result)
	}
	p.PrintFile(r)
	return b.String()
}

// The output of pg_dump for psql is accepted as a schema. It may have psql commands, rows, and roles and settings that
// this server lacks.
func TestPlainDump(t *testing.T) {
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	release := pgtest.Lock(t, "roles")
	if _, err := super.Exec(t.Context(), `CREATE ROLE "dumped Owner"; CREATE ROLE dumped_reader;
CREATE SCHEMA extensions;
CREATE EXTENSION pg_trgm WITH SCHEMA extensions;
CREATE TABLE notes (id integer PRIMARY KEY, body text DEFAULT E'it''s \\' || ';');
CREATE INDEX ON notes USING gin (body extensions.gin_trgm_ops);
CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $x$
SELECT '
\restrict inside' || $$ GRANT
GRANT x TO nobody;
$$ $x$;
INSERT INTO notes VALUES (1, E'one\n\\restrict x\n\\.'), (2, 'two; three');
ALTER TABLE notes OWNER TO "dumped Owner";
ALTER FUNCTION f() OWNER TO dumped_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE "dumped Owner" GRANT SELECT ON TABLES TO dumped_reader;
GRANT SELECT ON notes TO dumped_reader WITH GRANT OPTION; GRANT USAGE ON SCHEMA extensions TO PUBLIC`); err != nil {
		t.Fatal(err)
	}
	dump := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(pgtest.Binaries().Dir, "pg_dump"), append(args,
			"-h", db.SocketDir, "-p", strconv.Itoa(db.Port), "-U", "postgres", db.Name)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	plainDump, dumpWithCreate := dump(), dump("-C")
	environment := []string{"PGHOST=" + db.SocketDir, "PGPORT=" + strconv.Itoa(db.Port), "PGUSER=postgres", "PGDATABASE=" + db.Name}
	liveSchema, err := DumpSchema(t.Context(), environment)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := super.Exec(t.Context(), `DROP OWNED BY "dumped Owner"; DROP OWNED BY dumped_reader; DROP ROLE dumped_reader, "dumped Owner"`); err != nil {
		t.Fatal(err)
	}
	release()
	const tests = `
callers: { chat: {} }
tests:
  - name: rows
    as: chat
    then:
      - { query: "SELECT body FROM notes WHERE id = 1", value: "one\n\\restrict x\n\\." }
      - { query: "SELECT id FROM notes WHERE body LIKE '%%three%%'", rows: [ [2] ] }
      - { as: %s, query: "SELECT id FROM notes WHERE extensions.similarity(body, 'two') > 0.1", rows: [ [2] ] }
      - { as: owner, query: "SELECT strpos(f(), E'\n\\\\restrict inside GRANT\nGRANT x TO nobody;')", value: 1 }
`
	for name, text := range map[string]string{
		"plain": plainDump, "with its database": dumpWithCreate,
		"of other versions": "\\restrict abc\nSET a_later_setting = 0;\n\\encoding UTF8\n" + plainDump + "\\unrestrict abc\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := runFolder(t, map[string]string{"policy.yaml": openPolicy, "schema.sql": text, FileName: "version: 1" + fmt.Sprintf(tests, "chat")}, Options{})
			if !r.HasPassed() || len(r.Results) != 1 {
				t.Errorf("%s\n%s", reportText(r), text)
			}
		})
	}
	t.Run("of a database in use", func(t *testing.T) {
		givenRows := "given: \"INSERT INTO notes VALUES (1, E'one\\\\n\\\\\\\\restrict x\\\\n\\\\\\\\.'), (2, 'two; three')\""
		r := runFolder(t, map[string]string{"policy.yaml": openPolicy, FileName: "version: 1\ndatabase: app\n" + givenRows + fmt.Sprintf(tests, "owner")},
			Options{Dump: func(context.Context, string) (Schema, error) { return liveSchema, nil }})
		if !r.HasPassed() || len(r.Results) != 1 {
			t.Errorf("%s\n%s\n%s", reportText(r), liveSchema.Extensions, liveSchema.SQL)
		}
	})
	t.Run("extensions by the administrator", func(t *testing.T) {
		r := runFolder(t, map[string]string{"policy.yaml": openPolicy,
			"extensions.sql": "CREATE SCHEMA extensions;\nCREATE EXTENSION pg_trgm WITH SCHEMA extensions;\n",
			"schema.sql":     regexp.MustCompile(`(?m)^(CREATE|COMMENT ON) (SCHEMA|EXTENSION) .*;$`).ReplaceAllString(plainDump, ""),
			FileName:         "version: 1" + fmt.Sprintf(tests, "owner")}, Options{})
		if !r.HasPassed() || len(r.Results) != 1 {
			t.Error(reportText(r))
		}
	})
}

// The position of an error is that in the file, even after parts that were left out.
func TestErrorPositionInADump(t *testing.T) {
	r := runFolder(t, map[string]string{"policy.yaml": openPolicy,
		"schema.sql": "\\restrict é\nCREATE TABLE notes (id integer);\nCOPY notes (id) FROM stdin;\n1\n\\.\n\nSELEC 'ü';\n",
		FileName:     "version: 1\ncallers: { chat: {} }\ntests: [ { name: a, as: chat, then: { sees: { notes: 1 } } } ]\n"}, Options{})
	if len(r.Problems) != 1 || !strings.Contains(r.Problems.Error(), `schema.sql:7:1: syntax error at or near "SELEC"`) {
		t.Errorf("%v", r.Problems)
	}
}

// Each sslmode works here if it works with psql. If none works, the error contains the server's reason.
func TestTLSModes(t *testing.T) {
	tier.All(t)
	admin := superuser(t)
	verifier, err := config.NewVerifier("secret")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE ROLE tls_ci LOGIN CREATEDB CREATEROLE PASSWORD '" + verifier + "'")
	t.Cleanup(func() { exec("DROP ROLE tls_ci") })
	tryMode := func(mode, wantError string) {
		t.Helper()
		s, err := NewServerOn(t.Context(), fmt.Sprintf("host=127.0.0.1 port=%d user=tls_ci password=secret dbname=postgres %s", pgtest.TCPPort(), mode))
		var r Report
		if err == nil {
			r, err = Run(t.Context(), s, filepath.Join("testdata", "small", FileName), Options{TestNames: regexp.MustCompile("the other tenant")})
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if wantError == "" && (err != nil || !r.HasPassed() || len(r.Results) != 1) || wantError != "" &&
			(err == nil || !strings.Contains(err.Error(), wantError)) {
			t.Errorf("%s: %v %+v", mode, err, r)
		}
	}
	tryMode("", "")
	tryMode("sslmode=prefer", "")
	tryMode("sslmode=allow", "")
	tryMode("sslmode=disable", "")
	tryMode("sslmode=require", "refused TLS")
	tryMode("sslmode=prefer password=wrong", "password authentication failed")

	ca := serverTLS(t, admin)
	tryMode("", "")
	tryMode("sslmode=allow", "")
	tryMode("sslmode=require", "")
	tryMode("sslmode=verify-full sslrootcert="+ca, "")
	tryMode("sslmode=verify-full", "certificate")

	hba := func(command string) {
		exec("COPY (SELECT WHERE false) TO PROGRAM 'umask 077; " + command + "'")
		exec("SELECT pg_reload_conf()")
	}
	hba(`cp pg_hba.conf hba.saved; (echo "local all all trust"; echo "host all tls_ci all scram-sha-256"; echo "host all all all reject") > pg_hba.conf`)
	t.Cleanup(func() { hba("mv hba.saved pg_hba.conf") })
	for rules := 0; rules != 3; time.Sleep(20 * time.Millisecond) {
		if err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_hba_file_rules").Scan(&rules); err != nil {
			t.Fatal(err)
		}
	}
	tryMode("", "rejects connection")
}

// serverTLS enables TLS on the server, and returns the path of the certificate.
func serverTLS(t *testing.T, admin *pgx.Conn) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, text := range map[string][]byte{"server.crt": certificate, "server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if _, err := admin.Exec(t.Context(), fmt.Sprintf("COPY (SELECT pg_catalog.regexp_split_to_table('%s', '\n')) TO PROGRAM 'umask 077; cat > %s'",
			strings.TrimSpace(string(text)), file)); err != nil {
			t.Fatal(err)
		}
	}
	setSetting := func(sql string) {
		for _, statement := range []string{sql, "SELECT pg_reload_conf()"} {
			if _, err := admin.Exec(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	}
	setSetting("ALTER SYSTEM SET ssl = on")
	t.Cleanup(func() { setSetting("ALTER SYSTEM RESET ssl") })
	for sslSetting := ""; sslSetting != "on"; time.Sleep(20 * time.Millisecond) {
		if err := admin.QueryRow(t.Context(), "SHOW ssl").Scan(&sslSetting); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
