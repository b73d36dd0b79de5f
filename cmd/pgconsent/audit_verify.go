package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pgconsent/pgconsent/audit"
	"github.com/pgconsent/pgconsent/config"
	"github.com/pgconsent/pgconsent/serve"
)

type auditVerifyCmd struct {
	Database string `placeholder:"NAME" help:"The consent registry of this database. Default: of all."`
	Anchor   string `type:"existingfile" placeholder:"FILE" help:"A head of the audit's files that was kept elsewhere: a copy of the anchor, or a line \"SEQ HASH\"."`
}

func (auditVerifyCmd) Help() string {
	return `Walks the chain of the audit's files: its hashes, the codes under the key beside them, the anchored last record, and the one that was
kept elsewhere. Then the consent registry of each database: its hashes, the codes under the key outside the
database, the anchored last record, what policies read, and the triggers, functions and rights that keep records as they are.
It may run beside serve. Exit code 1 if anything is wrong, or cannot be proved.

  pgconsent audit verify
  pgconsent audit verify --anchor /mnt/elsewhere/head
  pgconsent audit verify --json

To tell later that no newest record of the audit's files was cut off, even by somebody who has the anchor, keep the number and hash
that are printed.`
}

// auditFound is what was found of the audit's files.
type auditFound struct {
	Folder   string   `json:"folder"`
	Records  uint64   `json:"records"`
	Segments int      `json:"segments"`
	First    uint64   `json:"first,omitempty"`
	Last     uint64   `json:"last,omitempty"`
	LastHash string   `json:"last_hash,omitempty"`
	Anchored uint64   `json:"anchored,omitempty"`
	Broken   string   `json:"broken,omitempty"`
	Unproved []string `json:"unproved,omitempty"` // what the chain could not be held to
	Notes    []string `json:"notes,omitempty"`
}

// registryFound is what was found of one registry.
type registryFound struct {
	Database string   `json:"database"`
	Records  int      `json:"records"`
	Last     int64    `json:"last"`
	Hash     string   `json:"hash,omitempty"`
	Anchored int64    `json:"anchored"`
	NoAnchor bool     `json:"no_anchor,omitempty"`
	Findings []string `json:"findings"`
}

func (v auditVerifyCmd) Run(s *session) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	databases, err := chosen(c, v.Database)
	if err != nil {
		return err
	}
	files, err := s.verifyFiles(c, v.Anchor)
	if err != nil {
		return err
	}
	sound := files == nil || files.Broken == "" && len(files.Unproved) == 0
	registries := []registryFound{}
	if c.Consent != nil {
		for _, name := range databases {
			found, err := s.verifyRegistry(c, name)
			if err != nil {
				return fmt.Errorf("database %s: %w", name, err)
			}
			sound = sound && len(found.Findings) == 0
			registries = append(registries, found)
		}
	}
	if s.json {
		err = s.print(map[string]any{"sound": sound, "audit": files, "registries": registries})
	} else {
		err = s.tellVerified(files, registries)
	}
	if err == nil && !sound {
		err = errSilent
	}
	return err
}

// verifyFiles walks the audit's chain; nil without one.
func (s *session) verifyFiles(c *config.Config, elsewhere string) (*auditFound, error) {
	if c.Audit.Mode == string(audit.Off) {
		return nil, nil
	}
	against, unproved, err := s.against(c, elsewhere)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.Audit.File); errors.Is(err, fs.ErrNotExist) && len(against.Heads) == 0 {
		return nil, nil
	}
	against.Progress = s.hourglass("verified").report
	report, err := against.Walk(c.Audit.File, nil)
	out := &auditFound{
		Folder: c.Audit.File, Records: report.Records, Segments: report.Segments, First: report.FirstSeq, Last: report.LastSeq, LastHash: report.LastHash,
		Anchored: report.Anchored, Unproved: unproved,
	}
	var broken *audit.Broken
	switch {
	case errors.As(err, &broken):
		out.Broken = broken.Error()
	case errors.Is(err, fs.ErrNotExist) && len(against.Heads) > 0:
		out.Broken = fmt.Sprintf("the folder is gone, and record %d had been written", against.Heads[0].Seq)
	case err != nil:
		return nil, err
	}
	note := func(n int64, format string) {
		if n > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf(format, n))
		}
	}
	note(int64(report.Checkpoints), "%d checkpoints stand for segments whose time was over")
	note(int64(report.Recoveries), "%d times the log went on after a crash, a broken disk, or without its anchor")
	note(report.Torn, "%d bytes after the newest record: one that is being written, or a crash")
	return out, nil
}

func (s *session) verifyRegistry(c *config.Config, database string) (registryFound, error) {
	r, err := serve.Registry(c, database)
	if err != nil {
		return registryFound{}, err
	}
	defer r.Close()
	report, err := r.Verify(s.ctx)
	out := registryFound{Database: database, Records: report.Records, Last: report.Last, Hash: report.Hash, Anchored: report.Anchored, NoAnchor: report.NoAnchor, Findings: []string{}}
	for _, f := range report.Findings {
		out.Findings = append(out.Findings, f.String())
	}
	return out, err
}

func (s *session) tellVerified(files *auditFound, registries []registryFound) error {
	var b strings.Builder
	switch {
	case files == nil:
		b.WriteString("audit: no records\n")
	case files.Broken != "":
		fmt.Fprintf(&b, "audit %s: BROKEN: %s\n  keep it as evidence, and compare it with copies and with the database's own log\n", filepath.Base(files.Folder), files.Broken)
	case files.Records == 0:
		fmt.Fprintf(&b, "audit %s: no records\n", filepath.Base(files.Folder))
	default:
		fmt.Fprintf(&b, "audit %s: %d records hold, %d to %d; last hash %s\n", filepath.Base(files.Folder), files.Records, files.First, files.Last, files.LastHash)
	}
	if files != nil {
		for _, u := range files.Unproved {
			fmt.Fprintf(&b, "  NOT PROVED: %s\n", u)
		}
		for _, n := range files.Notes {
			fmt.Fprintf(&b, "  %s\n", n)
		}
	}
	for _, r := range registries {
		fmt.Fprintf(&b, "consent registry of %s: ", r.Database)
		if len(r.Findings) == 0 {
			fmt.Fprintf(&b, "%d records hold", r.Records)
		} else {
			fmt.Fprintf(&b, "TAMPERED WITH, %d findings in %d records", len(r.Findings), r.Records)
		}
		switch {
		case r.NoAnchor:
			b.WriteString("; there is no anchor, so nobody can say that the newest are there")
		default:
			fmt.Fprintf(&b, "; anchored up to %d", r.Anchored)
		}
		b.WriteString("\n")
		for _, f := range r.Findings {
			fmt.Fprintf(&b, "  %s\n", f)
		}
	}
	_, err := fmt.Fprint(s.out, b.String())
	return err
}
