package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pgconsent/pgconsent/audit"
	"github.com/pgconsent/pgconsent/config"
	"github.com/pgconsent/pgconsent/serve"
)

type auditVerifyCmd struct {
	Database string `placeholder:"NAME" help:"The consent registry of this database. Default: of all."`
}

func (auditVerifyCmd) Help() string {
	return `Walks the chain of the audit's files, and the consent registry of each database: its hashes, the codes under the key outside the
database, the anchored last record, what policies read, and the triggers, functions and rights that keep records as they are.
Exit code 1 if anything is wrong.

  pgconsent audit verify
  pgconsent audit verify --json

To tell later that no newest record of the audit's files was cut off, keep the hash that is printed.`
}

// auditFound is what was found of the audit's files.
type auditFound struct {
	Folder   string `json:"folder"`
	Records  uint64 `json:"records"`
	Segments int    `json:"segments"`
	LastHash string `json:"last_hash,omitempty"`
	Broken   string `json:"broken,omitempty"`
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
	files, err := verifyFiles(c)
	if err != nil {
		return err
	}
	sound := files == nil || files.Broken == ""
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
func verifyFiles(c *config.Config) (*auditFound, error) {
	if _, err := os.Stat(c.Audit.File); c.Audit.Mode == "off" || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	report, err := audit.Verify(c.Audit.File)
	out := &auditFound{Folder: c.Audit.File, Records: report.Records, Segments: report.Segments, LastHash: report.LastHash}
	var broken *audit.Broken
	if errors.As(err, &broken) {
		out.Broken, err = broken.Error(), nil
	}
	return out, err
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
		fmt.Fprintf(&b, "audit %s: %s\n", filepath.Base(files.Folder), files.Broken)
	default:
		fmt.Fprintf(&b, "audit %s: %d records hold; last hash %s\n", filepath.Base(files.Folder), files.Records, files.LastHash)
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
