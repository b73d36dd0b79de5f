package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// openWithKeyFile returns a registry and the path of its key file.
func openWithKeyFile(t *testing.T, db *pgtest.DB) (r *Registry, key string) {
	t.Helper()
	key = filepath.Join(t.TempDir(), "consent.key")
	if _, err := MakeKey(key); err != nil {
		t.Fatal(err)
	}
	return openKeyed(t, db, key, filepath.Join(filepath.Dir(key), "consent.anchor")), key
}

func openKeyed(t *testing.T, db *pgtest.DB, key, anchor string) *Registry {
	t.Helper()
	keys, err := LoadKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	return openWithKeys(t, db, defaults, keys, anchor)
}

// addPeople adds people of every kind to a registry: with a guardian, with a grantee, with a withdrawal, and one who is
// erased.
func addPeople(t *testing.T, r *Registry, n int) {
	t.Helper()
	for i := range n {
		mustExecute(t, r, grant(fmt.Sprintf("p%d", i), consent.StreamTemporary))
	}
	mustExecute(t, r, consent.Command{Action: consent.ActionAppoint, Subject: "dog", Guardian: "sean",
		Caller: consent.Party{Role: consent.RoleController, ID: "c"}})
	mustExecute(t, r, consent.Command{Action: consent.ActionGrant, Subject: "dog", Grantee: "vet", Scope: "ctx:health",
		Caller: consent.Party{Role: consent.RoleGuardian, ID: "sean"}})
	mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "p0", Caller: subject("p0")})
	mustExecute(t, r, consent.Command{Action: consent.ActionErase, Subject: "p1", Caller: subject("p1")})
}

// recordedState returns the data that must stay the same: pseudonyms, and people's histories.
func recordedState(t *testing.T, r *Registry, conn *pgx.Conn) string {
	t.Helper()
	var out string
	if err := conn.QueryRow(t.Context(),
		"SELECT string_agg(subject || '=' || pgconsent.pseudonym(subject, subject), ' ' ORDER BY subject) FROM pgconsent.subject").Scan(&out); err != nil {
		t.Fatal(err)
	}
	for _, subjectID := range []string{"p0", "p2", "dog"} {
		history, err := r.History(t.Context(), subjectID)
		if err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintf("\n%+v", history)
	}
	return out
}

// After the key is changed, records, pseudonyms and erasures are the same, and the registry verifies. The old key is no
// longer needed.
func TestRekey(t *testing.T) {
	db := database(t)
	runningRegistry, key := openWithKeyFile(t, db) // a proxy that runs all the time
	conn := db.Connect(t, "postgres")
	addPeople(t, runningRegistry, 5)
	before := recordedState(t, runningRegistry, conn)
	oldKeyText, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for round := int32(2); round <= 3; round++ {
		if err := errors.Join(AddNextKey(key), AddNextKey(key)); err != nil {
			t.Fatal(err)
		}
		if f, err := ReadKeyFile(key); err != nil || f.SigningKey != round-1 || f.NextKey != round || len(f.OlderKeys) != 0 {
			t.Fatalf("%+v, %v", f, err)
		}
		mustExecute(t, runningRegistry, grant(fmt.Sprintf("with a key that is not used yet %d", round), consent.StreamTemporary))
		if o, err := runningRegistry.OlderKeyUse(t.Context()); err != nil || !o.IsZero() {
			t.Fatalf("a key that is not used leaves %+v, %v", o, err)
		}
		if err := UseNextKey(key); err != nil {
			t.Fatal(err)
		}
		mustExecute(t, runningRegistry, grant(fmt.Sprintf("with the new key %d", round), consent.StreamTemporary))
		requireVerified(t, runningRegistry)
		r := openKeyed(t, db, key, runningRegistry.Anchor)
		var in *KeyInUseError
		if err := RetireOlderKeys(t.Context(), key, []*Registry{r}); !errors.As(err, &in) || in.Use.Subjects == 0 || in.Use.Records == 0 {
			t.Fatalf("a key that is needed was given up: %v", err)
		}
		remaining := 0
		if err := r.Rekey(t.Context(), func(doneCount, totalCount int) { remaining = totalCount - doneCount }); err != nil || remaining != 0 {
			t.Fatal(err, remaining)
		}
		requireVerified(t, runningRegistry)
		if err := RetireOlderKeys(t.Context(), key, []*Registry{r}); err != nil {
			t.Fatal(err)
		}
		if f, err := ReadKeyFile(key); err != nil || f.SigningKey != round || len(f.OlderKeys) != 0 || f.NextKey != 0 {
			t.Fatalf("%+v, %v", f, err)
		}
		mustExecute(t, runningRegistry, grant(fmt.Sprintf("after it %d", round), consent.StreamTemporary))
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(key); err != nil || strings.Contains(string(text),
		strings.Fields(string(oldKeyText[len(keyFileHeader):]))[1]) {
		t.Errorf("the old key is in the file: %v", err)
	}
	registryWithNewKey := openKeyed(t, db, key, runningRegistry.Anchor)
	requireVerified(t, registryWithNewKey)
	after := recordedState(t, registryWithNewKey, conn)
	pseudonyms := strings.SplitN(before, "\n", 2)
	for _, p := range strings.Fields(pseudonyms[0]) {
		if !strings.Contains(after, p) {
			t.Errorf("the pseudonym %s is another one", p)
		}
	}
	if !strings.HasSuffix(after, pseudonyms[1]) {
		t.Errorf("what is told of people is another\n%s\nwas\n%s", after, pseudonyms[1])
	}
	if _, err := registryWithNewKey.History(t.Context(), "p1"); !errors.As(err, new(*consent.NotFoundError)) {
		t.Errorf("who was erased is there again: %v", err)
	}
	mustExecute(t, registryWithNewKey, consent.Command{Action: consent.ActionErase, Subject: "p2", Caller: subject("p2")})
	var remainingKeys int
	if err := conn.QueryRow(t.Context(),
		"SELECT count(*) FROM pgconsent.subject WHERE erased_at IS NOT NULL AND (key IS NOT NULL OR pseudonym_key IS "+
			"NOT NULL)").Scan(&remainingKeys); err != nil || remainingKeys != 0 {
		t.Errorf("%d who were erased have something left: %v", remainingKeys, err)
	}
	requireVerified(t, registryWithNewKey)
	// With the old key alone, nothing in the registry can be read.
	oldKey := filepath.Join(t.TempDir(), "old.key")
	if err := os.WriteFile(oldKey, oldKeyText, 0o600); err != nil {
		t.Fatal(err)
	}
	registryWithOldKey := openKeyed(t, db, oldKey, filepath.Join(t.TempDir(), "anchor"))
	if _, err := registryWithOldKey.History(t.Context(), "p0"); !errors.As(err, new(*TamperedError)) {
		t.Errorf("the old key opens a history: %v", err)
	}
}

// After a rekey, Verify also finds tampering with the new codes and the subjects' new keys.
func TestTamperingAfterRekey(t *testing.T) {
	db := database(t)
	r, key := openWithKeyFile(t, db)
	addPeople(t, r, 3)
	if err := errors.Join(AddNextKey(key), UseNextKey(key), r.Rekey(t.Context(), nil), RetireOlderKeys(t.Context(), key, []*Registry{r})); err != nil {
		t.Fatal(err)
	}
	r = openKeyed(t, db, key, r.Anchor)
	requireVerified(t, r)
	conn := db.Connect(t, "postgres")
	for _, change := range []string{
		"DELETE FROM pgconsent.consent_code WHERE number = 2",
		"TRUNCATE pgconsent.consent_code",
		"UPDATE pgconsent.consent_code SET code = sha256(code) WHERE number = 1",
		"UPDATE pgconsent.consent_code SET code_kid = 1 WHERE number = 1",
		"UPDATE pgconsent.consent_code AS c SET code = o.code FROM pgconsent.consent_code AS o WHERE c.number = 1 AND o.number = 2",
		"UPDATE pgconsent.subject SET pseudonym_key = sha256(key) WHERE subject = 'p0'",
		"UPDATE pgconsent.subject SET pseudonym_key = NULL WHERE subject = 'p0'",
		"UPDATE pgconsent.subject AS s SET pseudonym_key = o.pseudonym_key FROM pgconsent.subject AS o WHERE s.subject = 'p0' AND o.subject = 'p2'",
		"UPDATE pgconsent.subject SET key = '\\x00000001' || substr(key, 5) WHERE subject = 'p0'",
		"ALTER TABLE pgconsent.consent_code DROP CONSTRAINT consent_code_pkey CASCADE",
		"GRANT INSERT ON pgconsent.consent_code TO PUBLIC",
	} {
		func() {
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			for _, sql := range []string{"SET LOCAL session_replication_role = replica",
				"ALTER TABLE pgconsent.subject DISABLE TRIGGER USER", change,
				"ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER USER", "SET LOCAL search_path = pg_catalog"} {
				if sql = strings.Replace(sql, "ENABLE ALWAYS TRIGGER USER",
					"ENABLE ALWAYS TRIGGER pgconsent_forget, ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE "+
						"ALWAYS TRIGGER pgconsent_refuse_truncate, ENABLE ALWAYS TRIGGER pgconsent_sweep, ENABLE ALWAYS TRIGGER zz_pgconsent_audit", 1); true {
					if _, err := tx.Exec(t.Context(), sql); err != nil {
						t.Fatalf("%s: %v", sql, err)
					}
				}
			}
			x, err := readExport(t.Context(), tx)
			if err != nil {
				t.Fatal(err)
			}
			now, err := readStructure(t.Context(), tx, "pgconsent_control")
			if err != nil {
				t.Fatal(err)
			}
			if found := append(Check(x, r.Keys, nil), compareStructure(now)...); len(found) == 0 {
				t.Errorf("not found: %s", change)
			}
		}()
	}
	// A plain UPDATE cannot replace a subject's key.
	for _, change := range []string{"key = key", "key = sha256(key)", "pseudonym_key = NULL",
		"key = '\\x00000009' || substr(key, 5)", "key = '\\x00000001' || substr(key, 5)", "subject = 'x'"} {
		if _, err := conn.Exec(t.Context(), "UPDATE pgconsent.subject SET "+
			change+" WHERE subject = 'p0'"); change != "key = '\\x00000009' || substr(key, 5)" && err == nil {
			t.Errorf("a plain UPDATE passes: %s", change)
		}
	}
}

// rekeyVariable is an environment variable that makes this test's process change the key until it is killed.
const rekeyVariable = "PGCONSENT_REKEY"

// The rekeying process is killed at any moment, while others change consents and erase. The next run completes the
// rekey.
func TestKillWhileItRekeys(t *testing.T) {
	tier.All(t)
	if key := os.Getenv(rekeyVariable); key != "" {
		cfg, err := pgx.ParseConfig(os.Getenv(rekeyVariable + "_DSN"))
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(AddNextKey(key), UseNextKey(key))
		keys, e := LoadKeys(key)
		if err = errors.Join(err, e); err != nil {
			t.Fatal(err)
		}
		r, err := Open(Config{Connect: cfg, Database: "app", Keys: keys, Anchor: filepath.Join(filepath.Dir(key), "consent.anchor")})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Rekey(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := RetireOlderKeys(t.Context(), key, []*Registry{r}); err != nil {
			t.Fatal(err)
		}
		return
	}
	db := database(t)
	runningRegistry, key := openWithKeyFile(t, db)
	addPeople(t, runningRegistry, 60)
	conn := db.Connect(t, "postgres")
	pseudonym := func() (out string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT pgconsent.pseudonym('p0', 'x')").Scan(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before, erased, finished := pseudonym(), 2, 0
	for round := 0; round < 12 || finished == 0; round++ {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), rekeyVariable+"="+key, rekeyVariable+"_DSN="+db.DSN("pgconsent_control", ""))
		var output strings.Builder
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		exitResult := make(chan error, 1)
		go func() { exitResult <- cmd.Wait() }()
		killTimer := time.After(time.Duration(20+37*round) * time.Millisecond)
		if round >= 12 {
			killTimer = nil
		}
		for i, running2 := 0, true; running2; i++ {
			select {
			case err := <-exitResult:
				if err == nil {
					finished++
				} else if killTimer == nil {
					t.Fatalf("%v\n%s", err, output.String())
				}
				running2 = false
			case <-killTimer:
				_ = cmd.Process.Kill()
			default:
				mustExecute(t, runningRegistry, grant(fmt.Sprintf("r%d.%d", round, i), consent.StreamTemporary))
				if i == 1 && erased < 50 {
					mustExecute(t, runningRegistry, consent.Command{Action: consent.ActionErase, Subject: fmt.Sprintf("p%d", erased),
						Caller: subject(fmt.Sprintf("p%d", erased))})
					erased++
				}
			}
		}
		requireVerified(t, runningRegistry)
		if got := pseudonym(); got != before {
			t.Fatalf("round %d: a pseudonym changed", round)
		}
	}
	requireVerified(t, openKeyed(t, db, key, runningRegistry.Anchor))
	var pendingCount int
	if err := conn.QueryRow(t.Context(),
		"SELECT count(*) FROM pgconsent.subject WHERE subject = 'p1' OR erased_at IS NOT NULL AND key IS NOT NULL").Scan(&pendingCount); err != nil ||
		pendingCount != 0 {
		t.Errorf("%d who were erased are there again: %v", pendingCount, err)
	}
}
