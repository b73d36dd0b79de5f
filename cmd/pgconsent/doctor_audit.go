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
	// roomFor is how many segments there should be room for, and roomDays for how long at the rate until now.
	roomFor  = 4
	roomDays = 7
	// leastRoom is what a file system has at least that takes records for some minutes.
	leastRoom = 1 << 20
	// farBehind is how many records an anchor may be behind while serve writes.
	farBehind = 10000
)

// checkup collects what the doctor says of the audit.
type checkup struct {
	ctx   context.Context
	c     *config.Config
	found []doctor.Finding
}

func (u *checkup) say(severity doctor.Severity, fix, format string, args ...any) {
	u.found = append(u.found, doctor.Finding{ID: "audit", Severity: severity, What: fmt.Sprintf(format, args...), Fix: fix})
}

// lookAtAudit looks at where the records of the audit are: whether they can be written, how long they can, who else can
// read them, and whether the chain ends as it was anchored. What every record says is for audit verify.
func lookAtAudit(ctx context.Context, c *config.Config) []doctor.Finding {
	u := &checkup{ctx: ctx, c: c}
	switch {
	case c.Audit.Mode == string(audit.Off):
		u.say(doctor.Warning, "audit: { mode: strict, file: audit/ }",
			"there is no audit: nobody can tell afterwards what agents have read")
		return u.found
	case c.Audit.Sink == config.SinkDatabase:
		u.database()
	default:
		u.folder(c.Audit.File)
		u.room(c.Audit)
	}
	key := u.key()
	ends, sound := u.chain(c.Audit, key, "the audit")
	u.chain(c.Audit.Reports(), key, "the log of reports about persons")
	if reports := c.Audit.Reports().File; c.Audit.Sink != config.SinkDatabase && exists(reports) {
		u.folder(reports)
	}
	if sound && len(u.found) == 0 {
		if ends.Records == 0 {
			u.say(doctor.OK, "", "the audit has no record yet; it can be written")
		} else {
			u.say(doctor.OK, "", "the audit can be written, and ends as it was anchored: record %d, of %s",
				ends.Head.Seq, ends.Newest.UTC().Format(time.RFC3339))
		}
	}
	return u.found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// folder looks at who can read and change the files of a log, and whether this user can write them.
func (u *checkup) folder(folder string) {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist): // serve makes it
		return
	case err != nil:
		u.say(doctor.Warning, "Run pgconsent doctor as the user that serve runs as.",
			"the folder of the audit cannot be looked at: %v", err)
		return
	case !info.IsDir():
		u.say(doctor.Unsafe, "audit.file is a folder: name another one.",
			"%s is no folder: serve cannot write records there", folder)
		return
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		u.say(doctor.Warning, "chmod 700 "+folder,
			"others than the owner can get into %s, which has records of who read what (mode %04o)", folder, mode)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		u.say(doctor.Warning, "Run pgconsent doctor as the user that serve runs as.",
			"the folder of the audit cannot be read: %v", err)
		return
	}
	for _, file := range files {
		if info, err := file.Info(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			u.say(doctor.Warning, "chmod 600 "+folder+"/*", "others than the owner can read or write %s (mode %04o)",
				filepath.Join(folder, file.Name()), info.Mode().Perm())
			break
		}
	}
	const writes = 2 // W_OK
	if err := syscall.Access(folder, writes); err != nil {
		u.say(doctor.Unsafe,
			"Make it writable for the user that serve runs as; or run pgconsent doctor as that user, if it is.",
			"records cannot be written to %s: %v", folder, err)
	}
}

// room looks at how much more can be written.
func (u *checkup) room(a config.Audit) {
	at := a.File
	for !exists(at) && filepath.Dir(at) != at {
		at = filepath.Dir(at)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(at, &disk); err != nil {
		u.say(doctor.Warning, "Run pgconsent doctor as the user that serve runs as.",
			"it cannot be told how much room %s has: %v", at, err)
		return
	}
	free := int64(disk.Bavail) * int64(disk.Bsize)
	const more = "Make room, or keep the records on a larger disk (audit.file), or set audit.retention: without " +
		"room agents are refused."
	segment, _, _ := a.Sizes()
	switch {
	case disk.Files > 0 && disk.Ffree < 2*roomFor:
		u.say(doctor.Unsafe, "Remove files, or keep the records on another disk (audit.file).",
			"the disk of the audit has room for %d files more", disk.Ffree)
	case free < leastRoom:
		u.say(doctor.Unsafe, more, "the disk of the audit is full: %s are left for %s", bytesText(free), a.File)
	case free < roomFor*segment:
		u.say(doctor.Warning, more,
			"the disk of the audit has %s left for %s, which is less than %d segments (audit.rotate.size)",
			bytesText(free), a.File, roomFor)
	default:
		u.rate(a, free, more)
	}
}

// rate reckons from what was written until now.
func (u *checkup) rate(a config.Audit, free int64, fix string) {
	var written int64
	segments, err := audit.Folder(a.File).Segments()
	if err != nil {
		return
	}
	for _, n := range segments {
		written += audit.Folder(a.File).Size(n)
	}
	ends, err := audit.ReadEnds(audit.Folder(a.File), audit.Key{}, audit.Head{})
	span := ends.Newest.Sub(ends.Oldest)
	_, _, keeps := a.Sizes()
	if err != nil || span < 24*time.Hour || keeps > 0 && span > keeps {
		return // one whose old records go does not grow any more
	}
	if days := float64(free) / (float64(written) / span.Hours() * 24); days < roomDays {
		u.say(doctor.Warning, fix,
			"at the rate until now the disk of the audit is full in %.1f days: %s are left, %s a day are written",
			days, bytesText(free), bytesText(int64(float64(written)/span.Hours()*24)))
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

// database looks whether it takes a record.
func (u *checkup) database() {
	a := u.c.Audit
	if err := serve.TryAudit(u.ctx, u.c, a); err != nil {
		u.say(doctor.Unsafe,
			"Agents are refused until it takes records. If pgconsent.audit_append is missing or not allowed, run "+
				"pgconsent migrate; the server's log says more.",
			"database %s takes no record of the audit: %s", a.Database, strings.TrimPrefix(message(err), "audit: "))
		return
	}
	loose, err := serve.AuditGuards(u.ctx, u.c, a)
	if err != nil {
		u.say(doctor.Warning, "Run pgconsent migrate.",
			"it could not be looked at what keeps the records as they are: %s", message(err))
	}
	for _, l := range loose {
		u.say(doctor.Warning,
			"Run pgconsent audit verify, which tells whether somebody used it; then put it back as superuser: "+
				"ALTER TABLE … ENABLE ALWAYS TRIGGER, or DROP what was added.", "%s", l)
	}
}

// key loads that of the records.
func (u *checkup) key() audit.Key {
	key, err := audit.LoadKey(u.c.Audit.Key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.say(doctor.Unsafe, "serve does not start with it. Put back what was there, with mode 0600.", "%v", err)
	}
	return key
}

// chain looks at the ends of one.
func (u *checkup) chain(a config.Audit, key audit.Key, what string) (ends audit.Ends, sound bool) {
	const verify = "Keep the records as evidence and run pgconsent audit verify, which says where (docs/reference/audit.md)."
	before := len(u.found)
	anchored, err := audit.ReadAnchor(a.Anchor, key)
	unanchored := errors.Is(err, fs.ErrNotExist)
	if err != nil && !unanchored {
		u.say(doctor.Unsafe, verify, "%v", err)
	}
	if info, err := os.Stat(a.Anchor); err == nil && info.Mode().Perm()&0o022 != 0 {
		u.say(doctor.Warning, "chmod 600 "+a.Anchor, "others than the owner can write the anchor %s (mode %04o)",
			a.Anchor, info.Mode().Perm())
	}
	err = serve.AuditSource(u.ctx, u.c, a, false, func(from audit.Source) (err error) {
		ends, err = audit.ReadEnds(from, key, anchored)
		return err
	})
	var broken *audit.ChainError
	switch {
	case errors.As(err, &broken):
		u.say(doctor.Unsafe, verify, "%s is not as it was written, and serve does not go on with it: %v", what, broken)
		return ends, false
	case err != nil && a.Sink == config.SinkDatabase && len(u.found) > 0: // said already
		return ends, false
	case err != nil:
		u.say(doctor.Warning, "Run pgconsent doctor as the user that serve runs as.", "%s cannot be read: %s", what, message(err))
		return ends, false
	case ends.Records == 0:
		return ends, len(u.found) == before
	}
	if key.ID() == "" && !exists(a.Key) {
		u.say(doctor.Unsafe, "Put the key back: serve does not make another one for records that need it.",
			"the key %s of %s is missing", a.Key, what)
	}
	if unanchored {
		u.say(doctor.Warning,
			"Put the anchor back from your copy; serve begins a new one otherwise, and says so in the chain.",
			"nothing anchors the newest records of %s: nobody could tell if they were cut off", what)
	} else if ends.Head.Seq > anchored.Seq+farBehind {
		u.say(doctor.Warning, "Look into the log of serve, which says why the anchor cannot be written.",
			"the anchor of %s names record %d, and record %d is the newest: newer ones could be cut off", what,
			anchored.Seq, ends.Head.Seq)
	}
	// What the first segment has is not newer than the begin of the second; serve looks once an hour, when it writes.
	if _, _, keeps := a.Sizes(); keeps > 0 {
		oldest := ends.SecondSegment
		if a.Sink == config.SinkDatabase {
			oldest = ends.Oldest
		}
		if over := ends.Newest.Sub(oldest) - keeps; !oldest.IsZero() && over > 24*time.Hour {
			u.say(doctor.Warning, "Look into the log of serve, which says why they are not removed.",
				"%s has records whose time (audit.retention) was over for %s when it was last written", what, over.Round(time.Hour))
		}
	}
	return ends, len(u.found) == before
}
