package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

type auditVerifyCmd struct {
	Database string `placeholder:"NAME" help:"The consent registry of this database. Default: of all."`
	Anchor   string `type:"existingfile" placeholder:"FILE" help:"A head of the audit that was kept elsewhere: a copy of the anchor, or a line \"SEQ HASH\"."`
}

func (auditVerifyCmd) Help() string {
	return `Walks the chain of the audit: its hashes, the codes under the key beside them, the anchored last record, and the one that was
kept elsewhere; and the chain of the reports about persons. ` +
		`Then the consent registry of each database: its hashes, the codes under the key outside the
database, the anchored last record, what policies read, and the triggers, functions and rights that keep records as they are.
It may run beside serve. Exit code 1 if anything is wrong, or cannot be proved.

  pgconsent audit verify
  pgconsent audit verify --anchor /mnt/elsewhere/head
  pgconsent audit verify --json

To tell later that no newest record of the audit was cut off, even by somebody who has the anchor, keep the number and hash
that are printed.`
}

// auditResult is the result of verifying one log.
type auditResult struct {
	Folder   string   `json:"folder,omitempty"`
	Database string   `json:"database,omitempty"` // the database with the records; "": they are in a folder
	Chain    string   `json:"chain,omitempty"`
	Records  uint64   `json:"records"`
	Segments int      `json:"segments"`
	First    uint64   `json:"first,omitempty"`
	Last     uint64   `json:"last,omitempty"`
	LastHash string   `json:"last_hash,omitempty"`
	Anchored uint64   `json:"anchored,omitempty"`
	Broken   string   `json:"broken,omitempty"`
	Unproved []string `json:"unproved,omitempty"` // the checks that could not be made
	Notes    []string `json:"notes,omitempty"`

	name string
}

// registryResult is the result of verifying one consent registry.
type registryResult struct {
	Database string   `json:"database"`
	Records  int      `json:"records"`
	Last     int64    `json:"last"`
	Hash     string   `json:"hash,omitempty"`
	Anchored int64    `json:"anchored"`
	NoAnchor bool     `json:"no_anchor,omitempty"`
	Findings []string `json:"findings"`
}

func (v auditVerifyCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	databases, err := chooseDatabases(c, v.Database)
	if err != nil {
		return err
	}
	files, err := s.verifyLog(c, c.Audit, v.Anchor)
	if err != nil {
		return err
	}
	reports, err := s.verifyLog(c, c.Audit.ReportLog(), "")
	if err != nil {
		return err
	}
	isSound := files.ok() && reports.ok()
	registries := []registryResult{}
	if c.Consent != nil {
		for _, name := range databases {
			registryReport, err := s.verifyRegistry(c, name)
			if err != nil {
				return fmt.Errorf("database %s: %w", name, err)
			}
			isSound = isSound && len(registryReport.Findings) == 0
			registries = append(registries, registryReport)
		}
	}
	if s.jsonOutput {
		err = s.printJSON(map[string]any{"sound": isSound, "audit": files, "reports": reports, "registries": registries})
	} else {
		err = s.printVerified(files, reports, registries)
	}
	if err == nil && !isSound {
		err = errSilent
	}
	return err
}

// ok tells whether the audit is intact, or was not verified at all.
func (f *auditResult) ok() bool { return f == nil || f.Broken == "" && len(f.Unproved) == 0 }

// verifyLog verifies the log of statements or the log of reports. The result is nil if the log does not exist.
func (s *session) verifyLog(c *config.Config, log config.Audit, extraAnchor string) (*auditResult, error) {
	if c.Audit.Mode == string(audit.ModeOff) {
		return nil, nil
	}
	options, unprovedChecks, err := s.verifyOptions(log, extraAnchor)
	if err != nil {
		return nil, err
	}
	if log.Sink != config.SinkDatabase && len(options.Heads) == 0 {
		if _, err := os.Stat(log.File); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	options.Progress = s.newProgress("verified").report
	out := &auditResult{Folder: log.File, name: logName(log), Unproved: unprovedChecks}
	if log.Sink == config.SinkDatabase {
		out.Folder, out.Database, out.Chain = "", log.Database, log.Chain
	}
	var report audit.Report
	err = s.withAuditSource(c, log, func(source audit.Source) (err error) {
		report, err = options.Read(source, nil)
		return err
	})
	out.Records, out.Segments, out.First, out.Last, out.LastHash, out.Anchored = report.Records, report.Segments,
		report.FirstSeq, report.LastSeq, report.LastHash, report.AnchoredRecord
	var chainError *audit.ChainError
	switch {
	case errors.As(err, &chainError):
		out.Broken = chainError.Error()
	case errors.Is(err, fs.ErrNotExist) && len(options.Heads) > 0:
		out.Broken = fmt.Sprintf("the folder is gone, and record %d had been written", options.Heads[0].Seq)
	case err != nil:
		return nil, err
	}
	if log.Sink == config.SinkDatabase {
		if report.Records == 0 && len(options.Heads) == 0 {
			return nil, nil
		}
		missingGuards, err := serve.MissingAuditGuards(s.ctx, c, log)
		if err != nil {
			return nil, err
		}
		out.Unproved = append(out.Unproved, missingGuards...)
	}
	addNote := func(n int64, format string) {
		if n > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf(format, n))
		}
	}
	addNote(int64(report.Checkpoints), "%d checkpoints stand for records that were removed after audit.retention")
	addNote(int64(report.Recoveries),
		"%d times the log continued after a crash, after a failed write or without its anchor")
	for _, t := range report.Removed {
		out.Notes = append(out.Notes, t.String())
	}
	addNote(report.TornBytes,
		"%d bytes after the newest record: a record that is being written, or one that a crash cut off")
	return out, nil
}

func (s *session) verifyRegistry(c *config.Config, database string) (registryResult, error) {
	r, err := serve.OpenRegistry(c, database)
	if err != nil {
		return registryResult{}, err
	}
	defer r.Close()
	report, err := r.Verify(s.ctx)
	out := registryResult{Database: database, Records: report.Records, Last: report.LastRecord, Hash: report.LastHash,
		Anchored: report.AnchoredRecord, NoAnchor: report.NoAnchor, Findings: []string{}}
	for _, f := range report.Findings {
		out.Findings = append(out.Findings, f.String())
	}
	return out, err
}

func (s *session) printVerified(files, reports *auditResult, registries []registryResult) error {
	var b strings.Builder
	if files == nil {
		b.WriteString("audit: no records\n")
	}
	for i, f := range []*auditResult{files, reports} {
		label := []string{"audit", "reports"}[i]
		switch {
		case f == nil:
			continue
		case f.Broken != "":
			fmt.Fprintf(&b,
				"%s %s: BROKEN: %s\n  keep it as evidence, and compare it with copies and with the database's "+
					"own log\n", label, f.name, f.Broken)
		case f.Records == 0:
			fmt.Fprintf(&b, "%s %s: no records\n", label, f.name)
		default:
			fmt.Fprintf(&b, "%s %s: %d records hold, %d to %d; last hash %s\n", label, f.name, f.Records, f.First, f.Last,
				f.LastHash)
		}
		for _, u := range f.Unproved {
			fmt.Fprintf(&b, "  NOT PROVED: %s\n", u)
		}
		for _, n := range f.Notes {
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
