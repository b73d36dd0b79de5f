package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/test/tier"
)

// checkAuditFindings compares the doctor's findings about the audit with the expected texts, one for each finding.
func checkAuditFindings(t *testing.T, file, situation string, want ...string) {
	t.Helper()
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range checkAudit(t.Context(), c) {
		lines = append(lines, fmt.Sprintf("%s: %s", f.Severity, f.Problem))
		if f.Severity != doctor.SeverityOK && f.Fix == "" {
			t.Errorf("%s: no fix for: %s", situation, f.Problem)
		}
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(lines, "\n"), w) {
			t.Errorf("%s: no %q in\n%s", situation, w, strings.Join(lines, "\n"))
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%s: %d lines, want %d:\n%s", situation, len(lines), len(want), strings.Join(lines, "\n"))
	}
}

// The doctor checks the files of the audit: who can read them, the free space, and whether they end with the anchored
// record.
func TestDoctorChecksAuditFiles(t *testing.T) {
	tier.All(t)
	i := installDatabase(t)
	if out, stderr, _ := call(t, "", "doctor", "-c", i.config); !strings.Contains(out, "all databases\n  warning  audit: there is no audit") {
		t.Errorf("without an audit: %s%s", out, stderr)
	}
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(i.config, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	auditedConfig := bytes.Replace(text, []byte(`audit: { mode: "off" }`), []byte("audit: { file: audit/ }"), 1)
	write(auditedConfig)
	checkAuditFindings(t, i.config, "before the first start", "ok: the audit has no record yet")
	folder, anchor, keyFile := filepath.Join(i.dir(), "audit"), filepath.Join(i.dir(), "audit.anchor"), filepath.Join(i.dir(), "audit.key")
	key, err := audit.EnsureKey(keyFile, audit.Folder(folder))
	if err != nil {
		t.Fatal(err)
	}
	// Records of ten days, in segments of one or two days.
	now := time.Now().Add(-20 * 24 * time.Hour)
	for day := range 10 {
		l, err := audit.Open(audit.Config{Dir: folder, Key: key, AnchorFile: anchor, MaxSegment: 1, ReleaseTimeout: time.Hour,
			Clock: func() time.Time { return now.Add(time.Duration(day) * 24 * time.Hour) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Decision(audit.Decision{Session: fmt.Sprint(day), Verdict: "allow"}).Release(); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const wantOK = "ok: the audit can be written, and ends as it was anchored: record 10"
	checkAuditFindings(t, i.config, "records", wantOK)

	mustDo := func(f func() error) {
		t.Helper()
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	segment := filepath.Join(folder, "audit-000010.jsonl")
	for _, c := range []struct {
		situation               string
		breakAudit, repairAudit func() error
		want                    []string
	}{
		{"others may enter", func() error { return os.Chmod(folder, 0o755) },
			func() error { return os.Chmod(folder, 0o700) }, []string{"warning: others than the owner can get into "}},
		{"others may read", func() error { return os.Chmod(segment, 0o640) },
			func() error { return os.Chmod(segment, 0o600) }, []string{"warning: others than the owner can read or write "}},
		{"others may read the key", func() error { return os.Chmod(keyFile, 0o644) },
			func() error { return os.Chmod(keyFile, 0o600) }, []string{"unsafe: audit key: "}},
		{"others may write the anchor", func() error { return os.Chmod(anchor, 0o666) },
			func() error { return os.Chmod(anchor, 0o600) }, []string{"warning: others than the owner can write the anchor"}},
		{"no key", func() error { return os.Rename(keyFile, keyFile+".away") },
			func() error { return os.Rename(keyFile+".away", keyFile) }, []string{"unsafe: the key "}},
		{"no anchor", func() error { return os.Rename(anchor, anchor+".away") },
			func() error { return os.Rename(anchor+".away", anchor) }, []string{"warning: nothing anchors the newest records"}},
		{"cut off", func() error { return os.Rename(segment, segment+".away") }, func() error { return os.Rename(segment+".away", segment) },
			[]string{"unsafe: the audit is not as it was written, and serve does not go on with it: "}},
		{"changed", func() error { return alterFile(segment, `"allow"`, `"deny"`) }, func() error { return alterFile(segment, `"deny"`, `"allow"`) },
			[]string{"unsafe: the audit is not as it was written, and serve does not go on with it: "}},
		{"gone", func() error { return os.Rename(folder, folder+".away") }, func() error { return os.Rename(folder+".away", folder) },
			[]string{"unsafe: the audit is not as it was written, and serve does not go on with it: "}},
		{"a file in its place", func() error {
			write(bytes.Replace(auditedConfig, []byte("file: audit/"), []byte("file: policy.yaml, key: audit.key"), 1))
			return nil
		},
			func() error { write(auditedConfig); return nil }, []string{"unsafe: ", "warning: the audit cannot be read"}},
		{"too much is kept", func() error {
			write(bytes.Replace(auditedConfig, []byte("file: audit/"), []byte("file: audit/, retention: 2d"), 1))
			return nil
		}, func() error { write(auditedConfig); return nil }, []string{"warning: the audit has records whose time (audit.retention) was over for 144h0m0s"}},
		{"segments are larger than the disk", func() error {
			write(bytes.Replace(auditedConfig, []byte("file: audit/"), []byte("file: audit/, rotate: { size: 1000000GiB }"), 1))
			return nil
		}, func() error { write(auditedConfig); return nil }, []string{"warning: the disk of the audit has "}},
	} {
		mustDo(c.breakAudit)
		checkAuditFindings(t, i.config, c.situation, c.want...)
		mustDo(c.repairAudit)
	}
	checkAuditFindings(t, i.config, "after all that", wantOK)
}

func alterFile(path, from, to string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600)
}

// The doctor reports a disk that is full or read-only.
func TestDoctorChecksAuditDisk(t *testing.T) {
	tier.All(t)
	i, disk, _ := installOnDisk(t)
	for _, c := range []struct{ situation, mount, want string }{
		{"full", "mount -t tmpfs -o size=512k tmpfs " + disk, "UNSAFE   audit: the disk of the audit is full"},
		{"little room", "mount -t tmpfs -o size=2m tmpfs " + disk, "ok       audit: "}, // four segments of 64 KiB
		{"no more files", "mount -t tmpfs -o size=8m,nr_inodes=5 tmpfs " + disk, "UNSAFE   audit: the disk of the audit has room for "},
		{"read-only", "mount -t tmpfs tmpfs " + disk + " && mkdir -m 700 " + disk + "/audit && mount -o remount,ro " +
			disk, "UNSAFE   audit: records cannot be written to "},
	} {
		cmd := exec.Command("unshare", "-m", "sh", "-c", c.mount+` && exec "$0" "$@"`, os.Args[0], "doctor", "-c", i.config)
		cmd.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), c.want) {
			t.Errorf("%s: no %q in\n%s", c.situation, c.want, out)
		}
	}
}

// The doctor has the database insert a record, which is rolled back.
func TestDoctorChecksAuditDatabase(t *testing.T) {
	tier.All(t)
	i := installAudit(t)
	checkAuditFindings(t, i.config, "before the first start", "ok: the audit has no record yet")
	_, address := i.startServe(t)
	queryInt(t, connect(t, i.dsn("chat", address)), "SELECT count(*) FROM memories")
	const wantOK = "ok: the audit can be written, and ends as it was anchored: record "
	checkAuditFindings(t, i.config, "beside serve", wantOK)
	if n := queryInt(t, i.db.Connect(t, "postgres"), "SELECT count(*) FROM pgconsent.audit_record WHERE chain <> 'here'"); n != 0 {
		t.Errorf("the doctor left %d records", n)
	}
	i.exec(t, "ALTER TABLE pgconsent.audit_record DISABLE TRIGGER pgconsent_refuse")
	checkAuditFindings(t, i.config, "a trigger is off", "warning: audit_record: the trigger pgconsent_refuse")
	i.exec(t, "ALTER TABLE pgconsent.audit_record ENABLE ALWAYS TRIGGER pgconsent_refuse; REVOKE EXECUTE ON "+
		"FUNCTION pgconsent.audit_append FROM pgconsent_control")
	checkAuditFindings(t, i.config, "a right is gone", "unsafe: database app takes no record of the audit: ")
	i.exec(t, "GRANT EXECUTE ON FUNCTION pgconsent.audit_append TO pgconsent_control")
	i.exec(t, "ALTER ROLE pgconsent_control SET default_transaction_read_only = on")
	checkAuditFindings(t, i.config, "read-only", "unsafe: database app takes no record of the audit: ")
	i.exec(t, "ALTER ROLE pgconsent_control RESET default_transaction_read_only")

	lockTx, err := i.db.Connect(t, "postgres").Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockTx.Exec(t.Context(), "LOCK pgconsent.audit_record IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	checkAuditFindings(t, i.config, "locked", "unsafe: database app takes no record of the audit: pgconsent.audit_record is locked")
	if err := lockTx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkAuditFindings(t, i.config, "after all that", wantOK)
}
