package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

const (
	// freeSegments and freeDays say how much free disk space a log needs: enough for this number of segments, and for the
	// records of this number of days at the present rate.
	freeSegments = 4
	freeDays     = 7
	// minFreeBytes is the free disk space below which doctor reports the disk as full. Audit records use it up within
	// minutes.
	minFreeBytes = 1 << 20
	// maxAnchorLag is the largest number of records that may be newer than the anchor while serve writes.
	maxAnchorLag = 10000
)

// auditCheck collects the findings about the audit.
type auditCheck struct {
	ctx      context.Context
	c        *config.Config
	findings []doctor.Finding
}

func (u *auditCheck) add(severity doctor.Severity, fix, format string, args ...any) {
	u.findings = append(u.findings, doctor.Finding{ID: "audit", Severity: severity, Problem: fmt.Sprintf(format, args...),
		Fix: fix})
}

// checkAudit checks whether audit records can be written and for how long, and who else can read them. It also checks
// whether the chain of records contains the anchored record at its end. "audit verify" verifies every single record.
func checkAudit(ctx context.Context, c *config.Config) []doctor.Finding {
	u := &auditCheck{ctx: ctx, c: c}
	switch {
	case c.Audit.Mode == string(audit.ModeOff):
		u.add(doctor.SeverityWarning, "audit: { mode: strict, file: audit/ }",
			"there is no audit: nobody can tell afterwards what agents have read")
		return u.findings
	case c.Audit.Sink == config.SinkDatabase:
		u.checkDatabase()
	default:
		u.checkFolder(c.Audit.File)
		u.checkFreeSpace(c.Audit)
	}
	key := u.loadKey()
	chainEnds, isSound := u.checkChain(c.Audit, key, "the audit")
	u.checkChain(c.Audit.ReportLog(), key, "the log of reports about persons")
	if reports := c.Audit.ReportLog().File; c.Audit.Sink != config.SinkDatabase && fileExists(reports) {
		u.checkFolder(reports)
	}
	if isSound && len(u.findings) == 0 {
		if chainEnds.Records == 0 {
			u.add(doctor.SeverityOK, "", "the audit has no record yet; it can be written")
		} else {
			u.add(doctor.SeverityOK, "", "the audit can be written, and ends as it was anchored: record %d, of %s",
				chainEnds.NewestHead.Seq, chainEnds.NewestTime.UTC().Format(time.RFC3339))
		}
	}
	return u.findings
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkFolder checks who can read and change the files of a log, and whether this user can write them.
func (u *auditCheck) checkFolder(folder string) {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist): // serve will create the folder
		return
	case err != nil:
		u.add(doctor.SeverityWarning, "Run pgconsent doctor as the user that serve runs as.",
			"the folder of the audit cannot be looked at: %v", err)
		return
	case !info.IsDir():
		u.add(doctor.SeverityUnsafe, "audit.file must be a folder: name another one.",
			"%s is not a folder: serve cannot write records there", folder)
		return
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		u.add(doctor.SeverityWarning, "chmod 700 "+folder,
			"others than the owner can get into %s, which has records of who read what (mode %04o)", folder, mode)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		u.add(doctor.SeverityWarning, "Run pgconsent doctor as the user that serve runs as.",
			"the folder of the audit cannot be read: %v", err)
		return
	}
	for _, file := range files {
		if info, err := file.Info(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			u.add(doctor.SeverityWarning, "chmod 600 "+folder+"/*",
				"others than the owner can read or write %s (mode %04o)",
				filepath.Join(folder, file.Name()), info.Mode().Perm())
			break
		}
	}
	const writeAccess = 2 // W_OK of access(2)
	if err := syscall.Access(folder, writeAccess); err != nil {
		u.add(doctor.SeverityUnsafe,
			"Make it writable for the user that serve runs as; or run pgconsent doctor as that user, if it is.",
			"records cannot be written to %s: %v", folder, err)
	}
}

// checkFreeSpace checks whether the disk has enough free space for records.
func (u *auditCheck) checkFreeSpace(a config.Audit) {
	diskPath := a.File
	for !fileExists(diskPath) && filepath.Dir(diskPath) != diskPath {
		diskPath = filepath.Dir(diskPath)
	}
	var diskStats syscall.Statfs_t
	if err := syscall.Statfs(diskPath, &diskStats); err != nil {
		u.add(doctor.SeverityWarning, "Run pgconsent doctor as the user that serve runs as.",
			"it cannot be told how much room %s has: %v", diskPath, err)
		return
	}
	freeBytes := int64(diskStats.Bavail) * int64(diskStats.Bsize)
	const roomHint = "Make room, or keep the records on a larger disk (audit.file), or set audit.retention: without " +
		"room agents are refused."
	segment, _, _ := a.SegmentBounds()
	switch {
	case diskStats.Files > 0 && diskStats.Ffree < 2*freeSegments:
		u.add(doctor.SeverityUnsafe, "Remove files, or keep the records on another disk (audit.file).",
			"the disk of the audit has room for %d files more", diskStats.Ffree)
	case freeBytes < minFreeBytes:
		u.add(doctor.SeverityUnsafe, roomHint, "the disk of the audit is full: %s are left for %s", bytesText(freeBytes),
			a.File)
	case freeBytes < freeSegments*segment:
		u.add(doctor.SeverityWarning, roomHint,
			"the disk of the audit has %s left for %s, which is less than %d segments (audit.rotate.size)",
			bytesText(freeBytes), a.File, freeSegments)
	default:
		u.checkFillRate(a, freeBytes, roomHint)
	}
}

// checkFillRate estimates when the disk will be full, from the rate at which records were written so far.
func (u *auditCheck) checkFillRate(a config.Audit, freeBytes int64, fix string) {
	var writtenBytes int64
	segments, err := audit.Folder(a.File).Segments()
	if err != nil {
		return
	}
	for _, n := range segments {
		writtenBytes += audit.Folder(a.File).Size(n)
	}
	chainEnds, err := audit.ReadEnds(audit.Folder(a.File), audit.Key{}, audit.RecordHead{})
	recordedTime := chainEnds.NewestTime.Sub(chainEnds.OldestTime)
	_, _, retention := a.SegmentBounds()
	if err != nil || recordedTime < 24*time.Hour || retention > 0 && recordedTime > retention {
		return // expired records are already being removed, so the log does not grow any more
	}
	if daysLeft := float64(freeBytes) / (float64(writtenBytes) / recordedTime.Hours() * 24); daysLeft < freeDays {
		u.add(doctor.SeverityWarning, fix,
			"at the rate until now the disk of the audit is full in %.1f days: %s are left, %s a day are written",
			daysLeft, bytesText(freeBytes), bytesText(int64(float64(writtenBytes)/recordedTime.Hours()*24)))
	}
}

func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// checkDatabase checks whether the database accepts a record.
func (u *auditCheck) checkDatabase() {
	a := u.c.Audit
	if err := serve.TryAudit(u.ctx, u.c, a); err != nil {
		u.add(doctor.SeverityUnsafe,
			"Agents are refused until it takes records. If pgconsent.audit_append is missing or not allowed, run "+
				"pgconsent migrate; the server's log says more.",
			"database %s takes no record of the audit: %s", a.Database, strings.TrimPrefix(errorText(err), "audit: "))
		return
	}
	missingGuards, err := serve.MissingAuditGuards(u.ctx, u.c, a)
	if err != nil {
		u.add(doctor.SeverityWarning, "Run pgconsent migrate.",
			"it could not be looked at what keeps the records as they are: %s", errorText(err))
	}
	for _, l := range missingGuards {
		u.add(doctor.SeverityWarning,
			"Run pgconsent audit verify, which tells whether somebody used it; then put it back as superuser: "+
				"ALTER TABLE … ENABLE ALWAYS TRIGGER, or DROP what was added.", "%s", l)
	}
}

// loadKey loads the key with which the records are authenticated.
func (u *auditCheck) loadKey() audit.Key {
	key, err := audit.LoadKey(u.c.Audit.Key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.add(doctor.SeverityUnsafe, "serve does not start with it. Put back what was there, with mode 0600.", "%v", err)
	}
	return key
}

// checkChain checks the oldest and the newest records of a log's chain.
func (u *auditCheck) checkChain(a config.Audit, key audit.Key, label string) (chainEnds audit.ChainEnds, isSound bool) {
	const brokenChainFix = "Keep the records as evidence and run pgconsent audit verify, which says where (docs/reference/audit.md)."
	countBefore := len(u.findings)
	anchoredHead, err := audit.ReadAnchor(a.Anchor, key)
	isUnanchored := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isUnanchored {
		u.add(doctor.SeverityUnsafe, brokenChainFix, "%v", err)
	}
	if info, err := os.Stat(a.Anchor); err == nil && info.Mode().Perm()&0o022 != 0 {
		u.add(doctor.SeverityWarning, "chmod 600 "+a.Anchor, "others than the owner can write the anchor %s (mode %04o)",
			a.Anchor, info.Mode().Perm())
	}
	err = serve.AuditSource(u.ctx, u.c, a, false, func(source audit.Source) (err error) {
		chainEnds, err = audit.ReadEnds(source, key, anchoredHead)
		return err
	})
	var chainError *audit.ChainError
	switch {
	case errors.As(err, &chainError):
		u.add(doctor.SeverityUnsafe, brokenChainFix, "%s is not as it was written, and serve does not go on with it: %v", label,
			chainError)
		return chainEnds, false
	case err != nil && a.Sink == config.SinkDatabase && len(u.findings) > 0: // the error was reported already
		return chainEnds, false
	case err != nil:
		u.add(doctor.SeverityWarning, "Run pgconsent doctor as the user that serve runs as.", "%s cannot be read: %s", label,
			errorText(err))
		return chainEnds, false
	case chainEnds.Records == 0:
		return chainEnds, len(u.findings) == countBefore
	}
	if key.ID() == "" && !fileExists(a.Key) {
		u.add(doctor.SeverityUnsafe, "Put the key back: serve does not make another one for records that need it.",
			"the key %s of %s is missing", a.Key, label)
	}
	if isUnanchored {
		u.add(doctor.SeverityWarning,
			"Put the anchor back from your copy; serve begins a new one otherwise, and says so in the chain.",
			"nothing anchors the newest records of %s: nobody could tell if they were cut off", label)
	} else if chainEnds.NewestHead.Seq > anchoredHead.Seq+maxAnchorLag {
		u.add(doctor.SeverityWarning, "Look into the log of serve, which says why the anchor cannot be written.",
			"the anchor of %s names record %d, and record %d is the newest: newer ones could be cut off", label,
			anchoredHead.Seq, chainEnds.NewestHead.Seq)
	}
	// Every record of the first segment is older than the second segment. While serve writes, it removes expired segments
	// once an hour.
	if _, _, retention := a.SegmentBounds(); retention > 0 {
		oldestTime := chainEnds.SecondSegmentTime
		if a.Sink == config.SinkDatabase {
			oldestTime = chainEnds.OldestTime
		}
		if overdueTime := chainEnds.NewestTime.Sub(oldestTime) - retention; !oldestTime.IsZero() &&
			overdueTime > 24*time.Hour {
			u.add(doctor.SeverityWarning, "Look into the log of serve, which says why they are not removed.",
				"%s has records whose time (audit.retention) was over for %s when it was last written", label,
				overdueTime.Round(time.Hour))
		}
	}
	return chainEnds, len(u.findings) == countBefore
}
