package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

type dsarCmd struct {
	Subject    string   `required:"" placeholder:"ID" help:"The person, as the application knows them. Ids match whole."`
	Database   string   `placeholder:"NAME" help:"The database. Default: the only one."`
	Format     string   `enum:",json,html" default:"" help:"json or html. Default: as the name of --out ends."`
	Out        string   `placeholder:"FILE" help:"Write the report to a file that only you can read. What was there is replaced."`
	Data       bool     `help:"With a copy of the person's rows (Article 15(3)). Read it before you send it: rows may name other persons too."`
	Audit      []string `placeholder:"FOLDER" help:"An audit folder to read besides: that of another proxy. May be given several times."`
	Retrievals int      `default:"10000" placeholder:"N" help:"List at most this many retrievals that may have held rows of the person; all are counted. 0: all. Default: 10000."`
	By         string   `placeholder:"NAME" help:"Who asks, for the record. Default: your login."`
	Contact    string   `placeholder:"TEXT" help:"How the controller can be reached, for the report."`
}

func (dsarCmd) Help() string {
	return `The report has what Article 15 of the GDPR asks for: the controller, the grounds, ` +
		`purposes and categories, how long data are kept, who
had them and when, where they come from, the person's rights, and every record of their consent, whether it is active or not.

Which agents had rows of the person is exact where the audit has the rows' keys (audit: { keys: true } in the policy); elsewhere
the report says what may have been, and why nobody can say. Rows are found by what the policy says of whose they are; it logs in
as roles.migrate and reads keys only, unless --data asks for the rows.

  pgconsent dsar --subject ada                      a summary
  pgconsent dsar --subject ada --out ada.html       a page to read, print or send
  pgconsent dsar --subject ada --json               the whole report as JSON, as docs/schema/dsar.json says it
  pgconsent dsar --subject ada --data --out ada.json

That a report was made is recorded in the folder of the audit with -reports behind its name, and in the registry of consents, before
anything is handed out. Exit code 1 if nothing is known of the person, or if a log that was read does not hold.`
}

func (d dsarCmd) Run(s *session) error {
	if err := d.validateFlags(s); err != nil {
		return err
	}
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	names, err := chooseDatabases(c, d.Database)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return usageError{errors.New("the configuration has several databases: say which with --database")}
	}
	if err := (consent.Command{Action: consent.ActionNoteReport, Subject: d.Subject}).Check(); err != nil {
		return err
	}
	var report *dsar.Report
	if err := s.forEachDatabase(c, names[0], asMigrate, func(t targetDatabase) (err error) {
		report, err = d.assembleReport(s, c, t)
		return err
	}); err != nil {
		var namedErr consent.Named
		if errors.As(err, &namedErr) { // the error is about the person, and not about the database
			return namedErr
		}
		return err
	}
	if err := d.writeReport(s, report); err != nil {
		return err
	}
	isIntact := true
	for _, l := range report.Logs {
		if !l.Intact {
			isIntact = false
			fmt.Fprintf(s.err,
				"pgconsent: the audit log %s fails verification: %s. The report says so. pgconsent audit verify tells "+
					"more.\n", l.Name, l.Problem)
		}
	}
	if !isIntact {
		return errSilent
	}
	return nil
}

func (d *dsarCmd) validateFlags(s *session) error {
	switch {
	case d.Retrievals < 0:
		return usageError{errors.New("--retrievals takes a number, or 0 for all")}
	case d.Format != "" || d.Out == "":
	case strings.HasSuffix(d.Out, ".html"), strings.HasSuffix(d.Out, ".htm"):
		d.Format = "html"
	case strings.HasSuffix(d.Out, ".json"):
		d.Format = "json"
	default:
		return usageError{errors.New("--out ends in neither .html nor .json: say which with --format")}
	}
	if s.jsonOutput && d.Out == "" {
		if d.Format == "html" {
			return usageError{errors.New("--json and --format html do not go together")}
		}
		d.Format = "json"
	}
	if d.Out != "" {
		if info, err := os.Stat(filepath.Dir(d.Out)); err != nil || !info.IsDir() {
			return usageError{fmt.Errorf("there is no folder %s", filepath.Dir(d.Out))}
		}
		if info, err := os.Lstat(d.Out); err == nil && !info.Mode().IsRegular() {
			return usageError{fmt.Errorf("%s is not a file", d.Out)}
		}
	}
	if d.By == "" {
		if u, err := user.Current(); err == nil {
			d.By = u.Username
		}
	}
	return nil
}

// assembleReport assembles the report, and records in the audit that somebody asked for it.
func (d dsarCmd) assembleReport(s *session, c *config.Config, t targetDatabase) (*dsar.Report, error) {
	policyBuild, err := s.compile(t)
	if err != nil {
		return nil, err
	}
	sources := serve.AccessSources(c, t.name, d.Audit)
	sources.Conn, sources.Policy, sources.Progress = t.conn, policyBuild.policy, s.readProgress
	if c.Consent != nil {
		if sources.Registry, err = serve.OpenRegistry(c, t.name); err != nil {
			return nil, err
		}
		defer sources.Registry.Close()
	}
	return access.MakeReport(s.ctx, sources, access.ReportRequest{
		Subject: d.Subject, RequestedBy: d.By, Contact: d.Contact, Interface: "cli", Format: d.Format, WithCopy: d.Data,
		MaxRetrievals: d.Retrievals})
}

// readProgress returns a function that shows from time to time how much of a folder has been read.
func (s *session) readProgress(label string) func(done, total int64) {
	start := time.Now()
	lastReport := start
	return func(done, total int64) {
		now := time.Now()
		if total == 0 || now.Sub(lastReport) < time.Second {
			return
		}
		lastReport = now
		fmt.Fprintf(s.err, "reading %s: %d %%\n", label, done*100/total)
	}
}

// writeReport writes the report to a file or to stdout.
func (d dsarCmd) writeReport(s *session, r *dsar.Report) error {
	writeFormat := r.WriteJSON
	if d.Format == "html" {
		writeFormat = r.WriteHTML
	}
	if d.Out == "" {
		if d.Format != "" {
			return writeFormat(s.out)
		}
		return printSummary(s.out, r)
	}
	if err := writePrivateFile(d.Out, writeFormat); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"out": d.Out, "format": d.Format, "consent_active": r.Active,
			"exact": r.Retrievals.Exact, "possible": r.Retrievals.Possible, "record": r.Record})
	}
	if err := printSummary(s.out, r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "\nwritten to %s\n", d.Out)
	return err
}

// writePrivateFile writes a file that only its owner can read. After an error there is no file.
func writePrivateFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".pgconsent-*") // CreateTemp makes the file with mode 0600
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write the report: %w", err)
		}
	}()
	err = write(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// printSummary prints a summary of the report, in a few lines.
func printSummary(out io.Writer, r *dsar.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, joinLines(value)) }
	line("subject", r.Subject)
	line("controller", firstOf(r.Controller.Name, "not recorded"))
	line("consent", r.ConsentState)
	var categories, purposes []string
	for _, c := range r.Categories {
		if c.Consent {
			categories = append(categories, c.Name)
		}
	}
	for _, p := range r.Purposes {
		if p.Consent {
			purposes = append(purposes, p.Name)
		}
	}
	line("categories", firstOf(strings.Join(categories, ", "), "none"))
	line("purposes", firstOf(strings.Join(purposes, ", "), "none"))
	for _, p := range r.Retention {
		line("kept", p.Period)
	}
	for _, t := range r.Data {
		line("rows", fmt.Sprintf("%d in %s", t.Rows, t.Table))
	}
	for _, recipient := range r.Recipients {
		text := fmt.Sprintf("%s: %d exact, %d possible", recipient.Agent, recipient.Exact.Number, recipient.Possible.Number)
		if recipient.Exact.Last != nil {
			text += ", last exact " + formatTime(*recipient.Exact.Last)
		} else if recipient.Possible.Last != nil {
			text += ", last possible " + formatTime(*recipient.Possible.Last)
		}
		line("recipient", text)
	}
	if len(r.Recipients) == 0 {
		line("recipient", "none, as far as the logs cover")
	}
	line("history", fmt.Sprintf("%d records", len(r.History)))
	if r.Record.Seq > 0 {
		line("recorded", fmt.Sprintf("record %d in %s", r.Record.Seq, r.Record.Log))
	}
	return w.Flush()
}
