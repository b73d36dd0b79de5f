package dsar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/tier"
)

var key = func() audit.Key {
	k, err := audit.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		panic(err)
	}
	return k
}()

var notes = dsar.SubjectTable{
	Relation: &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "notes"}, PrimaryKey: []string{"id"},
		Columns: []catalog.Column{{Name: "id", Type: "integer"}, {Name: "person", Type: "text"}}},
	Links: []dsar.SubjectLink{{Column: "person"}},
	Names: []string{"public.notes", "public.recent"},
}

var tables = map[string][]string{"public.notes": {"public.notes"}, "public.recent": {"public.notes"}}

// loggedStatement is a statement and its outcome.
type loggedStatement struct {
	agent, session, table, verdict, behalf, purpose string
	rows                                            int64
	keys                                            []audit.Keys
	isUnanswered                                    bool // no outcome is recorded
	database                                        string
}

// writeLog writes a log of these statements.
func writeLog(t testing.TB, dir string, statements []loggedStatement) {
	t.Helper()
	startTime := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var calls atomic.Int64 // the log calls the clock from its own goroutine, too
	now := func() time.Time { return startTime.Add(time.Duration(calls.Add(1)) * time.Millisecond) }
	log, err := audit.Open(audit.Config{Dir: dir, Mode: audit.ModeBuffered, Key: key, MaxSegment: 4000, Clock: now, ReleaseTimeout: tier.Patience})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range statements {
		if r.database == "" {
			r.database = "app"
		}
		ticket := log.Decision(audit.Decision{
			Session: r.session, Agent: r.agent, Database: r.database, OnBehalfOf: r.behalf, Purpose: r.purpose, Tag: "SELECT", Verdict: r.verdict,
			Tables: []audit.Table{{Name: r.table}}, Attributes: map[string]string{"verdict": "allow", "name": "public.notes"},
		})
		if !r.isUnanswered && r.verdict == "allow" {
			ticket.RecordOutcome(audit.Outcome{Rows: r.rows, SQLState: "00000", Keys: r.keys})
		}
	}
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func commitKeys(session, table string, keys ...string) audit.Keys {
	out := audit.Keys{Table: table, AreComplete: true}
	for _, k := range keys {
		out.Commitments = append(out.Commitments, key.Commit(session, table, k))
	}
	return out
}

func scanLog(t testing.TB, dir string, c *dsar.Collector) dsar.ScanResult {
	t.Helper()
	c.Log = dir
	report, err := dsar.LogScan{Source: audit.Folder(dir), Database: "app", Tables: tables,
		OnAccess: c.AddAccess}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

var subjectRows = []dsar.SubjectRows{{Table: notes, Key: []string{"id"}, Keys: [][]string{{"1"}, {"2"}}, Count: 2}}

// What the log proves is in the report with exact numbers, or left out. Everything else is in it as possible, with the
// reason.
func TestRecipientsAndRetrievals(t *testing.T) {
	inexact := commitKeys("s1", "public.notes", "1")
	inexact.AreComplete = false
	dir := t.TempDir()
	writeLog(t, dir, []loggedStatement{
		{agent: "a", session: "s1", table: "public.notes", verdict: "allow", rows: 2,
			keys: []audit.Keys{commitKeys("s1", "public.notes", "2", "9")}, behalf: "ref:me", purpose: "{ESSENTIAL,STATISTICAL}"},
		{agent: "a", session: "s1", table: "public.notes", verdict: "allow", rows: 2,
			keys: []audit.Keys{commitKeys("s1", "public.notes", "8", "9")}},
		// a commitment of another session
		{agent: "a", session: "s2", table: "public.notes", verdict: "allow", rows: 1, keys: []audit.Keys{commitKeys("s1", "public.notes", "1")}},
		{agent: "b", session: "s1", table: "public.notes", verdict: "allow", rows: 1, keys: []audit.Keys{inexact}, behalf: "ref:other"},
		{agent: "b", session: "s1", table: "public.recent", verdict: "allow", rows: 3},
		{agent: "b", session: "s1", table: "public.notes", verdict: "allow", rows: 0},
		{agent: "c", session: "s1", table: "public.notes", verdict: "deny", rows: 0},
		{agent: `q"uoted`, session: "s1", table: "public.notes", verdict: "allow", rows: 1}, // JSON escapes must be decoded
		{agent: "c", session: "s1", table: "public.other", verdict: "allow", rows: 5},
		{agent: "c", session: "s1", table: "public.notes", verdict: "allow", rows: 5, database: "other"},
		{agent: "d", session: "s3", table: "public.notes", verdict: "allow", isUnanswered: true},
		{agent: "d", session: "s3", table: "public.recent", verdict: "allow", rows: 1,
			keys: []audit.Keys{commitKeys("s3", "public.recent", "1")}},
	})
	c := &dsar.Collector{Rows: subjectRows, OnBehalfOf: []string{"ref:me"}, Commit: key.Committer}
	report := scanLog(t, dir, c)
	if report.Problem != "" || report.Records == 0 {
		t.Fatalf("%+v", report)
	}
	r, err := dsar.Assemble(dsar.ReportInput{Subject: "me", Database: "app", Now: time.Now(), Rows: subjectRows, Retrievals: c,
		Logs: []dsar.Log{report.ReportEntry("audit")}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range r.Retrievals.List {
		got = append(got, fmt.Sprintf("%s %s %s %v %t %s", x.Agent, x.Certainty, x.Tables[0].Why, x.Tables[0].Keys, x.ForYou, x.Purpose))
	}
	slices.Sort(got)
	want := []string{
		"a exact  [[2]] true ESSENTIAL, STATISTICAL",
		"b possible " + dsar.ReasonNotRecorded + " [] false ",
		"b possible " + dsar.ReasonNotExact + " [] false ",
		"d exact  [[1]] false ",
		"d possible " + dsar.ReasonNotFinished + " [] false ",
		`q"uoted possible ` + dsar.ReasonNotRecorded + " [] false ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(r.Recipients) != 4 || r.Recipients[0].Exact.Number != 1 || r.Recipients[1].Possible.Number != 2 || r.Recipients[2].Days[0].Possible != 1 {
		t.Errorf("%+v", r.Recipients)
	}

	// Retrievals of rows that were deleted since can no longer be identified.
	c = &dsar.Collector{Rows: subjectRows, Commit: key.Committer, LastDeletion: time.Now()}
	scanLog(t, dir, c)
	deleted, _ := dsar.Assemble(dsar.ReportInput{Subject: "me", Rows: subjectRows, Retrievals: c})
	if deleted.Retrievals.Exact != 2 || deleted.Retrievals.Possible != 6 {
		t.Errorf("%+v", deleted.Retrievals)
	}
	// Without the audit's key nothing is exact, and everything is in the report as possible.
	c = &dsar.Collector{Rows: subjectRows, MaxPossible: 2}
	scanLog(t, dir, c)
	keyless, _ := dsar.Assemble(dsar.ReportInput{Subject: "me", Rows: subjectRows, Retrievals: c})
	if keyless.Retrievals.Exact != 0 || keyless.Retrievals.Possible != 8 || keyless.Retrievals.Left != 6 || len(keyless.Retrievals.List) != 2 {
		t.Errorf("%+v", keyless.Retrievals)
	}
}

// A log that was tampered with is still read, and the report says so.
func TestTamperedLog(t *testing.T) {
	for name, tamper := range map[string]func(lines []string) []string{
		"changed": func(l []string) []string {
			l[2] = strings.Replace(l[2], `"time":"2026`, `"time":"2027`, 1)
			return l
		},
		"dropped": func(l []string) []string { return append(slices.Clone(l[:2]), l[3:]...) },
		"swapped": func(l []string) []string { l[1], l[2] = l[2], l[1]; return l },
		"garbage": func(l []string) []string { l[1] = "{}\n"; return l },
		"binary":  func(l []string) []string { l[1] = "\xff\x00\n"; return l },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeLog(t, dir, slices.Repeat([]loggedStatement{{agent: "a", session: "s1", table: "public.notes", verdict: "allow", rows: 1}}, 3))
			path := filepath.Join(dir, "audit-000001.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := slices.Collect(strings.Lines(string(text)))
			if err := os.WriteFile(path, []byte(strings.Join(tamper(lines), "")), 0o600); err != nil {
				t.Fatal(err)
			}
			c := &dsar.Collector{Rows: subjectRows}
			report := scanLog(t, dir, c)
			if report.Problem == "" {
				t.Error("nothing was found")
			}
			r, _ := dsar.Assemble(dsar.ReportInput{Subject: "me", Rows: subjectRows, Retrievals: c,
				Logs: []dsar.Log{report.ReportEntry("audit")}})
			if !strings.Contains(strings.Join(r.Limits, "\n"), "fails verification") || r.Logs[0].Intact {
				t.Errorf("%+v", r.Limits)
			}
		})
	}
}

// Calls of other services are in the report of the person whom they were about. Another person who called is not named.
func TestCalls(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(audit.Config{Dir: dir, Key: key, ReleaseTimeout: tier.Patience})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []audit.Call{
		{CallerName: "ref:me", Role: "subject", Operation: "consent.grant", MayChangeData: true, Subjects: []string{"ref:me"}, Outcome: audit.OutcomeDone},
		{CallerName: "auditor", Role: "admin", Operation: "consent.history", Subjects: []string{"ref:other", "ref:me"}, Outcome: audit.OutcomeDone},
		{CallerName: "auditor", Role: "admin", Operation: "consent.history", Subjects: []string{"ref:other"}, Outcome: audit.OutcomeDone},
		{CallerName: "auditor", Role: "admin", Operation: "consent.audit", AboutEverybody: true, Outcome: audit.OutcomeDone},
		{CallerName: "ref:parent", Role: "subject", Operation: "consent.revoke", Subjects: []string{"ref:me"}, Outcome: audit.OutcomeRefused},
		{CallerName: "auditor", Role: "admin", Operation: "consent.history", Subjects: []string{"ref:me"}, Outcome: audit.OutcomeDone, Database: "other"},
		{CallerName: "ref:me", Role: "subject", Operation: "consent.status", Subjects: []string{"ref:me2"}, Outcome: audit.OutcomeRefused},
	} {
		c.Interface = "http"
		if c.Database == "" {
			c.Database = "app"
		}
		if err := log.Call(c).Release(); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := &dsar.Collector{Log: "audit", OnBehalfOf: []string{"me", "ref:me"}, MaxPossible: 10}
	report, err := dsar.LogScan{Source: audit.Folder(dir), Database: "app", SubjectReferences: c.OnBehalfOf, Key: key, OnAccess: c.AddAccess,
		OnCall: c.AddCall}.Run(t.Context())
	if err != nil || report.Problem != "" {
		t.Fatal(err, report.Problem)
	}
	r, err := dsar.Assemble(dsar.ReportInput{Subject: "me", Rows: subjectRows, Retrievals: c,
		Logs: []dsar.Log{report.ReportEntry("audit")}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range r.Calls.List {
		got = append(got, fmt.Sprintf("%s %s %t %s %t %t %s", x.By, x.Role, x.You, x.Operation, x.Written, x.Everybody, x.Outcome))
	}
	want := []string{" subject true consent.grant true false done",
		"auditor admin false consent.history false false done", "auditor admin false consent.audit false true done",
		" subject false consent.revoke false false refused"}
	if !slices.Equal(got, want) || r.Calls.Number != 4 {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "auditor (admin), consent.history") ||
		strings.Contains(page.String(), "ref:parent") {
		t.Errorf("%v", err)
	}
}

// Without key and anchor, a log that was written again or cut off verifies. The key and the anchor reveal it.
func TestRewrittenOrTruncatedLog(t *testing.T) {
	dir, rewrittenDir := t.TempDir(), t.TempDir()
	statements := slices.Repeat([]loggedStatement{{agent: "a", session: "s1", table: "public.notes", verdict: "allow", rows: 1}}, 4)
	writeLog(t, dir, statements)
	report, err := audit.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	otherKey, err := audit.NewKey(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]audit.Key{"without a key": {}, "with another key": otherKey} {
		log, err := audit.Open(audit.Config{Dir: filepath.Join(rewrittenDir, name), Key: k, ReleaseTimeout: tier.Patience})
		if err != nil {
			t.Fatal(err)
		}
		log.Decision(audit.Decision{Agent: "a"})
		if err := log.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]dsar.LogScan{
		"":                       {Source: audit.Folder(dir), Key: key, Heads: []audit.RecordHead{{Seq: report.LastSeq, Hash: report.LastHash}}},
		"cut off":                {Source: audit.Folder(dir), Key: key, Heads: []audit.RecordHead{{Seq: report.LastSeq + 1, Hash: report.LastHash}}},
		"the anchor names":       {Source: audit.Folder(dir), Key: key, Heads: []audit.RecordHead{{Seq: report.LastSeq - 1, Hash: report.LastHash}}},
		"without the key":        {Source: audit.Folder(filepath.Join(rewrittenDir, "without a key")), Key: key},
		"authenticated with key": {Source: audit.Folder(filepath.Join(rewrittenDir, "with another key")), Key: key},
	} {
		s.Database, s.Tables, s.OnAccess = "app", tables, func(dsar.Access) {}
		scanReport, err := s.Run(t.Context())
		if err != nil || !strings.Contains(scanReport.Problem, name) || name == "" && scanReport.Problem != "" {
			t.Errorf("%s: %q %v", name, scanReport.Problem, err)
		}
	}
}

func at(day int) time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(day) * 24 * time.Hour)
}

// reportInput is the report input for a person whose consent was given, became a partnership, and was perhaps
// withdrawn; now is the day of the report.
func reportInput(now int, withdrawn bool) dsar.ReportInput {
	key := consent.Key{Subject: "ada", Grantee: "*", Scope: "*"}
	givenRecord := consent.Record{Number: 1, At: at(0), Event: consent.EventGiven, Consent: consent.Consent{
		Key: key, State: consent.StateGiven, Stream: consent.StreamTemporary, Categories: []string{
			"ESSENTIAL"}, Purposes: []string{"support"}, GivenAt: at(0), ExpiresAt: at(14), Controller: "Example GmbH"},
		Details: consent.Details{Grantor: "ada", RecordedBy: consent.Party{Role: consent.RoleSubject, ID: "ada"}, Via: "http",
			Reason: "wants help", Evidence: "form 7"}}
	m := dsar.ReportInput{Subject: "ada", Database: "app", Now: at(now), MadeBy: "officer", Controller: "Example GmbH",
		InteractionsRenew: true, Rows: subjectRows, History: []consent.Record{givenRecord}}
	if withdrawn {
		w := givenRecord
		w.Number, w.At, w.Event, w.State, w.Categories, w.Purposes = 2, at(3), consent.EventWithdrawn, consent.StateWithdrawn, nil, nil
		warnedRecord := w
		warnedRecord.Number, warnedRecord.At, warnedRecord.Event = 3, at(5), consent.EventReported
		m.History = append(m.History, w, warnedRecord)
	}
	m.CurrentConsents = m.History[len(m.History)-1:]
	return m
}

// "Validates the user has active consent"; the report is also given if there is none (SYSTEMS 2j).
// seeds/001:151.
func TestSaysWhetherConsentIsActive(t *testing.T) {
	for _, c := range []struct {
		m        dsar.ReportInput
		isActive bool
		wantText string
	}{
		{reportInput(1, false), true, "Consent is active: TEMPORARY given until 2026-01-15 12:00:00 UTC."},
		{reportInput(14, false), false, "No consent is active: TEMPORARY expired since 2026-01-15 12:00:00 UTC."},
		{reportInput(6, true), false, "No consent is active: TEMPORARY withdrawn since 2026-01-04 12:00:00 UTC."},
		{dsar.ReportInput{Subject: "ada", Now: at(1), Rows: subjectRows}, false, "No consent of this person is recorded."},
		{dsar.ReportInput{Subject: "ada", Now: at(1), Rows: subjectRows, StatedConsents: reportText(true)}, true,
			"Consent is active: public.notes says consent granted."},
		{dsar.ReportInput{Subject: "ada", Now: at(1), StatedConsents: reportText(false)}, false, "No consent is active: public.notes says consent granted."},
	} {
		r, err := dsar.Assemble(c.m)
		if err != nil || r.Active != c.isActive || r.ConsentState != c.wantText {
			t.Errorf("%v %t %q, want %t %q", err, r.Active, r.ConsentState, c.isActive, c.wantText)
		}
	}
}

func reportText(isActive bool) []dsar.StatedConsent {
	return []dsar.StatedConsent{{Table: dsar.ConsentTable{Relation: notes.Relation, PersonColumn: "person", StatusColumn: "consent"}, Status: "granted",
		Active: isActive}}
}

// The report predicts no further sweep for data that were swept already.
func TestSweptIsNotSweptAgain(t *testing.T) {
	period := func(m dsar.ReportInput) string {
		t.Helper()
		r, err := dsar.Assemble(m)
		if err != nil || len(r.Retention) != 1 {
			t.Fatalf("%+v %v", r, err)
		}
		return r.Retention[0].Period
	}
	m := reportInput(6, true)
	if got := period(m); !strings.Contains(got, "the next sweep deletes") {
		t.Errorf("before: %s", got)
	}
	for event, want := range map[consent.Event]string{
		consent.EventDeleted: "were deleted on 2026-01-05", consent.EventAnonymised: "were made anonymous on 2026-01-05",
	} {
		m := reportInput(6, true)
		sweptConsent := m.History[1]
		sweptConsent.Number, sweptConsent.At, sweptConsent.Event = 3, at(4), event
		m.History[2].Number = 4
		m.History = slices.Insert(m.History, 2, sweptConsent)
		m.CurrentConsents = m.History[3:]
		if got := period(m); !strings.Contains(got, want) || strings.Contains(got, "next") {
			t.Errorf("after %s: %s", event, got)
		}
		// The swept data belong to a consent before the current one.
		currentConsent, endedConsent := m.History[0], m.History[1]
		currentConsent.Number, endedConsent.Number, currentConsent.At, endedConsent.At = 5, 6, at(5), at(6)
		m.History = append(m.History, currentConsent, endedConsent)
		m.CurrentConsents = m.History[5:]
		if got := period(m); !strings.Contains(got, "the next sweep deletes") {
			t.Errorf("after another consent: %s", got)
		}
	}
}

// "Provides consent history for the audit trail".
// seeds/001:147, 152, 200.
func TestGivesTheHistory(t *testing.T) {
	r, err := dsar.Assemble(reportInput(6, true))
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, e := range r.History {
		events = append(events, fmt.Sprint(e.Record, e.Event, e.State))
	}
	if !slices.Equal(events, []string{"1givengiven", "2withdrawnwithdrawn", "3reportedwithdrawn"}) {
		t.Errorf("%v", events)
	}
	if e := r.History[0]; e.Grantor != "ada" || e.Reason != "wants help" || e.Evidence != "form 7" ||
		e.Via != "http" || e.DPV != "dpv:ConsentGiven" || !e.At.Equal(at(0)) || !e.ExpiresAt.Equal(at(14)) {
		t.Errorf("%+v", e)
	}
}

// "Specifies data retention timelines".
// seeds/001:144, 153.
func TestSaysHowLongDataAreKept(t *testing.T) {
	m := reportInput(1, false)
	r, _ := dsar.Assemble(m)
	if p := r.Retention[0]; p.Period != "14 days from the last interaction, then deleted in full." || !p.Until.Equal(at(14)) {
		t.Errorf("%+v", p)
	}
	rec := &m.CurrentConsents[0]
	rec.Stream, rec.ExpiresAt = consent.StreamPartnered, time.Time{}
	r, _ = dsar.Assemble(m)
	if p := r.Retention[0]; p.Until != nil || !strings.Contains(p.Period, "As long as the partnership lasts") {
		t.Errorf("%+v", p)
	}
	rec.Stream, rec.DecayFrom = consent.StreamAnonymous, at(0)
	r, _ = dsar.Assemble(m)
	p := r.Retention[0]
	if len(p.Steps) != 4 || !p.Steps[1].At.Equal(at(31)) || !p.Steps[2].At.Equal(at(61)) || !p.Steps[3].At.Equal(at(90)) || !p.Until.Equal(at(90)) {
		t.Errorf("%+v", p)
	}
}

// "Lists applicable data categories".
// seeds/001:145, 154.
func TestListsCategories(t *testing.T) {
	r, _ := dsar.Assemble(reportInput(1, false))
	if len(r.Categories) != 1 || !r.Categories[0].Consent ||
		!strings.Contains(r.Categories[0].Text, "user identification") || r.Purposes[0].Name != "support" || !r.Purposes[0].Consent {
		t.Errorf("%+v %+v", r.Categories, r.Purposes)
	}
	r, _ = dsar.Assemble(reportInput(6, true))
	if len(r.Categories) != 1 || r.Categories[0].Consent || r.Purposes[0].Consent {
		t.Errorf("a consent that was withdrawn lists: %+v %+v", r.Categories, r.Purposes)
	}
	if len(r.Data) != 1 || !slices.Equal(r.Data[0].Columns, []string{"id", "person"}) {
		t.Errorf("%+v", r.Data)
	}
}

// "Legal basis for data processing": Article 6(1)(a).
// seeds/001:141-143, 199.
func TestNamesTheLawfulBasis(t *testing.T) {
	r, _ := dsar.Assemble(reportInput(1, false))
	if b := r.LawfulBasis[0]; b.Article != "Article 6(1)(a) GDPR" || !b.Active || b.DPV != "dpv:ConsentGiven" {
		t.Errorf("%+v", b)
	}
	r, _ = dsar.Assemble(reportInput(20, false))
	if b := r.LawfulBasis[0]; b.Active || b.State != "expired" {
		t.Errorf("%+v", b)
	}
}

func TestUnknownSubject(t *testing.T) {
	emptyRows := slices.Clone(subjectRows)
	emptyRows[0].Count, emptyRows[0].Keys = 0, nil
	_, err := dsar.Assemble(dsar.ReportInput{Subject: "nobody", Rows: emptyRows})
	namedError, ok := err.(consent.Named)
	if !ok || namedError.Name() != "ConsentNotFoundError" {
		t.Errorf("%v", err)
	}
}

// The JSON schema in docs is valid for a report with every part, and for one with none.
func TestSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	text, err := os.ReadFile("../../../docs/schema/dsar.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("dsar.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("dsar.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeLog(t, dir, []loggedStatement{
		{agent: "a", session: "s1", table: "public.notes", verdict: "allow", rows: 2,
			keys: []audit.Keys{commitKeys("s1", "public.notes", "2")}, purpose: "support"},
		{agent: "a", session: "s1", table: "public.notes", verdict: "allow", rows: 2},
	})
	fullInput := reportInput(1, false)
	fullInput.Retrievals = &dsar.Collector{Rows: subjectRows, Commit: key.Committer}
	fullInput.Logs = []dsar.Log{scanLog(t, dir, fullInput.Retrievals).ReportEntry("audit")}
	fullInput.Rows = []dsar.SubjectRows{{Table: notes, Key: []string{"id"}, Keys: [][]string{{"1"}}, Count: 1,
		Copy: [][]byte{[]byte(`{"id":1}`)}}}
	decaying := reportInput(1, false)
	decaying.CurrentConsents[0].Stream, decaying.CurrentConsents[0].DecayFrom = consent.StreamAnonymous, at(0)
	for name, m := range map[string]dsar.ReportInput{
		"full": fullInput, "withdrawn": reportInput(6, true), "decaying": decaying, "rows alone": {
			Subject: "x", Rows: subjectRows}, "registry alone": {Subject: "x", History: reportInput(1, false).History}} {
		r, err := dsar.Assemble(m)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := r.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(&out)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		value.(map[string]any)["more"] = 1
		if schema.Validate(value) == nil {
			t.Errorf("%s: the schema takes members that are not the report's", name)
		}
	}
}

// Whatever people wrote appears as text on the page, not as markup.
func TestPageHasNoMarkupOfOthers(t *testing.T) {
	const hostileText = `</title><script>alert(1)</script><img src=x onerror="alert(1)">'"><!-- {{.Subject}} javascript:alert(1)`
	m := reportInput(6, true)
	m.Subject, m.MadeBy, m.Contact, m.Controller, m.Database = hostileText, hostileText, hostileText, hostileText, hostileText
	for i := range m.History {
		h := &m.History[i]
		h.Reason, h.Evidence, h.Grantor, h.Guardian, h.Via, h.RecordedBy.ID, h.Grantee, h.Scope = hostileText, hostileText, hostileText, hostileText,
			hostileText, hostileText, hostileText, hostileText
		h.Categories, h.Purposes = []string{hostileText}, []string{hostileText}
	}
	m.CurrentConsents = m.History[:1]
	dir := t.TempDir()
	writeLog(t, dir, []loggedStatement{{agent: hostileText, session: "s1", table: "public.notes", verdict: "allow", rows: 2,
		purpose: hostileText}})
	m.Retrievals = &dsar.Collector{}
	report := scanLog(t, dir, m.Retrievals)
	report.Problem = hostileText
	m.Logs = []dsar.Log{report.ReportEntry(hostileText)}
	m.Rows = []dsar.SubjectRows{{Table: notes, Key: []string{"id"}, Keys: [][]string{{hostileText}}, Count: 1,
		Copy: [][]byte{[]byte(`{"x": "</pre><script>alert(1)</script>"}`)}}}
	r, err := dsar.Assemble(m)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	html := out.String()
	for _, forbiddenText := range []string{"<script", "<img", "<!-- ", "onerror=\"", "http://", "https://", "url(", "@import"} {
		if strings.Contains(html, forbiddenText) {
			t.Errorf("the page has %s", forbiddenText)
		}
	}
	if n := strings.Count(html, "&lt;script&gt;alert(1)&lt;/script&gt;"); n < 15 {
		t.Errorf("the texts are on the page %d times", n)
	}
	if strings.Count(html, "<title>") != 1 || strings.Count(html, "</title>") != 1 || strings.Count(html, "<h1>") != 1 {
		t.Error("the page is not the one of the template")
	}
	var decodedReport dsar.Report
	var j bytes.Buffer
	if err := r.WriteJSON(&j); err != nil || json.Unmarshal(j.Bytes(), &decodedReport) != nil || decodedReport.Subject != hostileText {
		t.Errorf("%v", err)
	}
}

// The page works with a screen reader: landmarks, one h1, headings in order, tables with captions and headers, a
// language.
func TestPageIsAccessible(t *testing.T) {
	m := reportInput(6, true)
	r, _ := dsar.Assemble(m)
	var out strings.Builder
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	html := out.String()
	for _, want := range []string{`<html lang="en">`, "<header>", "<main ", "<footer>", `<nav aria-label=`,
		`name="viewport"`, "prefers-color-scheme: dark", "@media print", `href="#content"`, "default-src 'none'"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if n := strings.Count(html, "<table"); n == 0 || n != strings.Count(html, "<caption>") || n != strings.Count(html, "<thead>") {
		t.Error("a table has no caption or no headers")
	}
	if strings.Contains(html, "<th>") || strings.Contains(html, "<h3") && !strings.Contains(html, "<h2") {
		t.Error("a header has no scope")
	}
}
