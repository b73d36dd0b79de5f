// Package access makes the access report to a data subject, for the command line and every API. It collects the
// subject's data from the registry, the audit logs and the tables, records the request, and assembles the report.
//
// Guarantee: it returns nothing before the record of the request is durable. The caller must check who may request the
// report, because the package reads rows that row security hides.
package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/pgrows"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/policy"
)

// ReportSources says where the data of a report come from. The fields Conn and Policy are required.
type ReportSources struct {
	Database string             // the database's name in the configuration
	Conn     *pgx.Conn          // a connection as the owner of the tables
	Policy   *policy.Policy     // the policy of the database
	Registry *registry.Registry // the consent registry; nil: no registry is configured

	// EachLog calls f with each audit log; nil: there are none.
	EachLog  func(ctx context.Context, f func(AuditLog) error) error
	AuditKey string // the path of the key file of the audit, which signs records and commitments
	// OpenReportLog opens the log that records reports, and returns the log's name; nil: reports are not recorded.
	OpenReportLog func(key audit.Key) (log *audit.Log, name string, err error)

	Progress func(log string) func(done, total int64) // may be nil
}

// AuditLog is one audit log.
type AuditLog struct {
	Name            string
	From            audit.Source
	IsOfThisProcess bool   // this process writes the log, with AuditKey
	Anchor          string // the path of its anchor file, if IsOfThisProcess
}

// ReportRequest says about whom the report is, who requested it, and what it must contain.
type ReportRequest struct {
	Subject       string
	RequestedBy   string // the person who requests the report; the subject's own id if the subject does
	Contact       string // how to reach the controller
	Interface     string // how the request came: cli, http, console and so on
	Format        string // json or html
	WithCopy      bool   // the report contains a copy of the rows
	MaxRetrievals int    // how many possible retrievals the report lists at most; 0: all
	OnlyDisplayed bool   // the report is only shown on a page: the audit records the request, but the registry does not
}

// MakeReport makes a report, and returns it after its record is durable. If the person is unknown, it records the
// request nevertheless and returns a *consent.NotFoundError.
func MakeReport(ctx context.Context, from ReportSources, q ReportRequest) (*dsar.Report, error) {
	if err := (consent.Command{Action: consent.ActionNoteReport, Subject: q.Subject}).Check(); err != nil {
		return nil, err
	}
	m := dsar.ReportInput{Subject: q.Subject, Database: from.Database, MadeBy: q.RequestedBy, Contact: q.Contact,
		Now: time.Now()}
	if r := from.Registry; r != nil {
		m.Controller, m.Duration = r.Settings.Controller, r.Settings.TemporaryDuration
		m.InteractionsRenew = !r.Settings.NoRenewal
		var notFound *consent.NotFoundError
		current, now, err := r.CurrentOfSubject(ctx, q.Subject)
		if err != nil && !errors.As(err, &notFound) {
			return nil, err
		}
		m.CurrentConsents, m.Now = current, now
		if m.History, err = r.History(ctx, q.Subject); err != nil && !errors.As(err, &notFound) {
			return nil, err
		}
	}
	tables, consents := dsar.SubjectTables(from.Policy), dsar.ConsentTables(from.Policy)
	behalf := []string{q.Subject}
	var err error
	m.Rows, err = pgrows.ReadRows(ctx, from.Conn, tables, q.Subject, q.WithCopy, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT 'ref:' || ref FROM pgconsent.audit_subject WHERE subject = $1", q.Subject)
		if err != nil {
			return fmt.Errorf("look the person up in the audit: %w", err)
		}
		refs, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("look the person up in the audit: %w", err)
		}
		behalf = append(behalf, refs...)
		m.StatedConsents, err = pgrows.ReadStatedConsents(ctx, tx, consents, q.Subject)
		return err
	})
	if err != nil {
		return nil, err
	}
	key, err := from.readLogs(ctx, q, tables, behalf, &m)
	if err != nil {
		return nil, err
	}
	report, err := dsar.Assemble(m)
	if err != nil {
		var notFound *consent.NotFoundError
		if errors.As(err, &notFound) {
			if e := from.recordRequest(key, audit.SubjectReport{RequestedBy: q.RequestedBy, Database: from.Database,
				LogsIntact: areLogsIntact(m.Logs)}, nil); e != nil {
				return nil, e
			}
		}
		return nil, err
	}
	var about string
	if err := from.Conn.QueryRow(ctx, "SELECT 'ref:' || pgconsent.audit_ref($1)", q.Subject).Scan(&about); err != nil {
		return nil, fmt.Errorf("name the person for the audit: %w", err)
	}
	record := audit.SubjectReport{RequestedBy: q.RequestedBy, Subject: about, Database: from.Database, Format: q.Format,
		HasCopy:      q.WithCopy,
		SubjectKnown: true,
		LogsIntact:   areLogsIntact(m.Logs)}
	if record.RequestedBy == q.Subject {
		record.RequestedBy = about
	}
	for _, l := range m.Logs {
		record.Records += l.Records
	}
	if err := from.recordRequest(key, record, &report.Record); err != nil {
		return nil, err
	}
	if from.Registry != nil && len(m.CurrentConsents) > 0 && !q.OnlyDisplayed {
		first := m.CurrentConsents[0].Key
		party := consent.Party{Role: consent.RoleController, ID: q.RequestedBy}
		if q.RequestedBy == q.Subject {
			party.Role = consent.RoleSubject
		}
		result, err := from.Registry.Execute(ctx, consent.Command{
			Action: consent.ActionNoteReport, Subject: first.Subject, Grantee: first.Grantee, Scope: first.Scope, Caller: party,
			Interface: q.Interface})
		if err != nil {
			return nil, err
		}
		report.Record.Registry = result.RecordNumber
	}
	return report, nil
}

func areLogsIntact(logs []dsar.Log) bool {
	for _, l := range logs {
		if !l.Intact {
			return false
		}
	}
	return true
}

// readLogs scans the audit logs for what agents have read about the subject.
func (from ReportSources) readLogs(ctx context.Context, q ReportRequest, tables []dsar.SubjectTable, behalf []string,
	m *dsar.ReportInput) (audit.Key, error) {
	collector := &dsar.Collector{Rows: m.Rows, OnBehalfOf: behalf, MaxPossible: q.MaxRetrievals}
	m.Retrievals = collector
	for _, rec := range m.History {
		if rec.Event == consent.EventDeleted || rec.Event == consent.EventAnonymised {
			collector.LastDeletion = rec.At
		}
	}
	key, err := audit.LoadKey(from.AuditKey)
	switch {
	case err == nil:
		collector.Commit = key.Committer
	case !errors.Is(err, fs.ErrNotExist):
		return key, err
	}
	byName := map[string][]string{}
	for _, table := range tables {
		for _, name := range table.Names {
			byName[name] = append(byName[name], table.Relation.Name.String())
		}
	}
	if from.EachLog == nil {
		return key, nil
	}
	return key, from.EachLog(ctx, func(log AuditLog) error {
		collector.Log = log.Name
		scan := dsar.LogScan{Source: log.From, Database: from.Database, Tables: byName, SubjectReferences: behalf,
			OnAccess: collector.AddAccess,
			OnCall:   collector.AddCall}
		unproved, err := log.setVerification(key, &scan)
		if err != nil {
			return err
		}
		if from.Progress != nil {
			scan.Progress = from.Progress(log.Name)
		}
		scanned, err := scan.Run(ctx)
		if err != nil {
			return err
		}
		out := scanned.ReportEntry(log.Name)
		out.Unproved = unproved
		m.Logs = append(m.Logs, out)
		return nil
	})
}

// setVerification sets the key and the anchored head against which scan verifies a log of this process. It returns
// which of them are missing. The anchor is read before the log, so it names no record that is written during the scan.
func (log AuditLog) setVerification(key audit.Key, scan *dsar.LogScan) (unproved []string, err error) {
	if !log.IsOfThisProcess {
		return nil, nil
	}
	if scan.Key = key; key.ID() == "" {
		unproved = append(unproved, "without its key it cannot be shown that it was not rewritten")
	}
	head, err := audit.ReadAnchor(log.Anchor, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		unproved = append(unproved, "without its anchor it cannot be shown that the newest records were not cut off")
	case err != nil:
		return nil, err
	case head.Seq > 0:
		scan.Heads = []audit.RecordHead{head}
	}
	return unproved, nil
}

// recordRequest records the request for a report, and returns after the record is durable.
func (from ReportSources) recordRequest(key audit.Key, report audit.SubjectReport,
	auditRecord *dsar.AuditRecord) error {
	if from.OpenReportLog == nil {
		return nil
	}
	var log *audit.Log
	var name string
	var err error
	for attempt := 0; ; attempt++ {
		if log, name, err = from.OpenReportLog(key); err == nil || attempt == 20 || !strings.Contains(err.Error(), "in use") {
			break
		}
		time.Sleep(100 * time.Millisecond) // another process is recording a report
	}
	if err != nil {
		return fmt.Errorf("record that the report was made: %w", err)
	}
	ticket := log.SubjectReport(report)
	refused := ticket.Release()
	if auditRecord != nil && refused == nil {
		*auditRecord = dsar.AuditRecord{Log: name, Seq: ticket.Seq()}
	}
	if err := log.Close(context.Background()); err != nil && refused == nil {
		return fmt.Errorf("record that the report was made: %w", err)
	}
	if refused != nil {
		return refused
	}
	return nil
}
