package dsar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// ReportInput has the collected data from which [Assemble] makes a report.
type ReportInput struct {
	Subject           string
	Database          string
	Now               time.Time
	MadeBy            string // the person who requested the report
	Controller        string
	Contact           string
	Duration          time.Duration // how long a TEMPORARY consent lasts; 0: the default
	InteractionsRenew bool          // the subject's interactions renew a TEMPORARY consent

	CurrentConsents []consent.Record // the newest record of each consent; empty: the registry does not know the subject
	History         []consent.Record // the records of the subject, oldest first
	StatedConsents  []StatedConsent  // the consents that tables of the application state
	Rows            []SubjectRows
	Retrievals      *Collector
	Logs            []Log
}

// Assemble makes the report. If neither the registry nor a table knows the subject, or the subject was erased, it
// returns a *consent.NotFoundError.
func Assemble(m ReportInput) (*Report, error) {
	rows := 0
	for _, r := range m.Rows {
		rows += r.Count
	}
	if len(m.History) == 0 && len(m.CurrentConsents) == 0 && len(m.StatedConsents) == 0 && rows == 0 {
		return nil, consent.NewNotFound()
	}
	r := &Report{
		Version: 1, MadeAt: m.Now.UTC(), MadeBy: m.MadeBy, Database: m.Database, Subject: m.Subject,
		Controller:  Controller{m.Controller, m.Contact},
		LawfulBasis: []Basis{}, Retention: []Retention{}, Recipients: []Recipient{}, Data: []TableData{},
		History: []HistoryEntry{}, Logs: m.Logs,
	}
	if r.Logs == nil {
		r.Logs = []Log{}
	}
	for _, rec := range slices.Backward(m.History) {
		if r.Controller.Name == "" {
			r.Controller.Name = rec.Controller
		}
	}
	if m.Retrievals != nil {
		m.Retrievals.fillReport(r)
	}
	if r.Retrievals.List == nil {
		r.Retrievals.List = []Retrieval{}
	}
	if r.Calls.List == nil {
		r.Calls.List = []InterfaceCall{}
	}
	m.fillConsents(r)
	for _, rows := range m.Rows {
		r.Data = append(r.Data, rows.tableData())
	}
	for _, rec := range m.History {
		r.History = append(r.History, newEntry(rec))
	}
	m.fillSources(r)
	r.Rights = dataSubjectRights(r.Controller)
	r.Limits, r.ToComplete = m.reportLimits(), missingStatements(r.Controller)
	return r, nil
}

// fillConsents fills in what follows from the consents: lawful bases, purposes, categories, and retention.
func (m ReportInput) fillConsents(r *Report) {
	purposes, categories := map[string]bool{}, map[string]bool{}
	for _, rec := range m.History { // collects the purposes and categories of all consents, also of ended ones
		for _, p := range rec.Purposes {
			purposes[p] = false
		}
		for _, c := range rec.Categories {
			categories[c] = false
		}
	}
	var activeTexts []string
	for _, rec := range m.CurrentConsents {
		isActive := rec.IsActiveAt(m.Now)
		r.Active = r.Active || isActive
		r.LawfulBasis = append(r.LawfulBasis, Basis{
			Article: "Article 6(1)(a) GDPR", Text: basisText(rec, m.Now), Active: isActive,
			Consent: Consent{
				Grantee: rec.Grantee, Scope: rec.Scope, State: string(rec.StateAt(m.Now)), DPV: rec.StateAt(m.Now).
						DPVTerm(), Stream: streamOrNil(rec.Stream),
				GivenAt: optionalTime(rec.GivenAt), ExpiresAt: optionalTime(rec.EndsAt()), Record: rec.Number,
			},
		})
		r.Retention = append(r.Retention, m.retention(rec))
		activeTexts = append(activeTexts, describeConsent(rec, m.stateSince(rec), m.Now))
		if !isActive {
			continue
		}
		for _, p := range rec.Purposes {
			purposes[p] = true
		}
		for _, c := range rec.Categories {
			categories[c] = true
		}
	}
	for _, s := range m.StatedConsents {
		r.Active = r.Active || s.Active
		r.LawfulBasis, r.Retention = append(r.LawfulBasis, s.basis()), append(r.Retention, s.retention())
		activeTexts = append(activeTexts, s.describe())
	}
	switch {
	case len(activeTexts) == 0:
		r.ConsentState = "No consent of this person is recorded."
		r.Retention = append(r.Retention, Retention{
			Grantee: consent.AnyGrantee, Scope: consent.AnyScope,
			Period: "No consent sets a period. The controller has to say how long the data are kept."})
	case r.Active:
		r.ConsentState = "Consent is active: " + strings.Join(activeTexts, "; ") + "."
	default:
		r.ConsentState = "No consent is active: " + strings.Join(activeTexts, "; ") + "."
	}
	purposeUses := map[string]uint64{}
	if m.Retrievals != nil {
		purposeUses = m.Retrievals.purposes
	}
	for p := range purposeUses {
		purposes[p] = purposes[p] || false
	}
	r.Purposes, r.Categories = []Purpose{}, []Category{}
	for _, name := range slices.Sorted(maps.Keys(purposes)) {
		r.Purposes = append(r.Purposes, Purpose{name, purposes[name], purposeUses[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(categories)) {
		r.Categories = append(r.Categories, Category{name, CategoryText(name), categories[name]})
	}
}

// CategoryText describes a category of a stream. It returns "" for a category that the application has defined.
func CategoryText(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return categoryTexts[top]
}

// categoryTexts describe the categories that streams have.
var categoryTexts = map[string]string{
	consent.CategoryEssential: "Core functionality: user identification, session management, communication context",
	consent.CategoryBehavioral: "Interaction patterns and preferences: communication style, response preferences, " +
		"interaction frequency",
	consent.CategoryImprovement: "Service enhancement: error patterns, feature usage, performance metrics",
	consent.CategoryStatistical: "Anonymised aggregate data: usage statistics, performance benchmarks, trend analysis",
}

func basisText(rec consent.Record, now time.Time) string {
	switch rec.StateAt(now) {
	case consent.StateGiven:
		return "Consent of the data subject, active"
	case consent.StateRequested:
		return "Asked for, not given: no ground for processing"
	case consent.StateExpired:
		return "Consent of the data subject, until it expired"
	case consent.StateRefused:
		return "Consent was refused: no ground for processing"
	default:
		return "Consent of the data subject, until it was " + string(rec.State)
	}
}

// describeConsent describes the state of a consent in words.
func describeConsent(rec consent.Record, since, now time.Time) string {
	out := string(rec.StateAt(now))
	if rec.Stream != "" {
		out = string(rec.Stream) + " " + out
	}
	if rec.Grantee != consent.AnyGrantee {
		out += " to " + rec.Grantee
	}
	if rec.Scope != consent.AnyScope {
		out += " about " + rec.Scope
	}
	switch {
	case rec.State != consent.StateGiven:
		return out + " since " + Instant(since)
	case rec.ExpiresAt.IsZero():
		return out
	case rec.IsActiveAt(now):
		return out + " until " + Instant(rec.ExpiresAt)
	default:
		return out + " since " + Instant(rec.ExpiresAt)
	}
}

// stateSince returns since when a consent has been in its present state.
func (m ReportInput) stateSince(rec consent.Record) time.Time {
	since := rec.At
	for _, r := range slices.Backward(m.History) {
		if r.Key != rec.Key || r.Number > rec.Number || r.Event == consent.EventAppointed || r.Event == consent.EventDismissed {
			continue
		}
		if r.State != rec.State {
			break
		}
		since = r.At
	}
	return since
}

// Instant writes a time as text.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func (m ReportInput) retention(rec consent.Record) Retention {
	out := Retention{Grantee: rec.Grantee, Scope: rec.Scope, Stream: streamOrNil(rec.Stream)}
	isActive := rec.IsActiveAt(m.Now)
	switch {
	case isActive && rec.Stream == consent.StreamTemporary:
		length := m.Duration
		if length == 0 {
			length = consent.DefaultDuration
		}
		out.Until = optionalTime(rec.ExpiresAt)
		out.Period = "Until the consent expires, then deleted in full."
		if m.InteractionsRenew {
			out.Period = fmt.Sprintf("%d days from the last interaction, then deleted in full.", int(length.Hours()/24))
		}
	case isActive && rec.Stream == consent.StreamPartnered:
		out.Period = "As long as the partnership lasts; no date is set."
	case isActive && rec.Stream == consent.StreamAnonymous:
		out.Period = "Data newer than the consent are used in aggregated statistics only; no date is set. Older data " +
			"become anonymous."
		out.Steps = decaySteps(rec)
		if len(out.Steps) > 0 {
			out.Until = &out.Steps[len(out.Steps)-1].At
		}
	case isActive && !rec.ExpiresAt.IsZero():
		out.Period, out.Until = "Until the consent expires or is withdrawn.", optionalTime(rec.ExpiresAt)
	case isActive:
		out.Period = "Until the consent is withdrawn; no date is set."
	case rec.StateAt(m.Now) == consent.StateRequested:
		out.Period = "A partnership was requested and is not decided: no data are kept for it."
	case rec.StateAt(m.Now) == consent.StateRefused:
		out.Period = "Consent was refused: no data are kept for it."
	default:
		out.Period = "The consent has ended: the data are hidden from agents, and the next sweep deletes or anonymises them."
		out.Until = optionalTime(m.stateSince(rec))
		if rec.State == consent.StateGiven {
			out.Until = optionalTime(rec.ExpiresAt)
		}
		if sweptAt, action := m.sweptData(rec); action != "" {
			out.Period = "The consent has ended: the data that it covered were " + action + " on " + Instant(sweptAt) + "."
		}
	}
	return out
}

// sweptData returns when and how a sweep removed the data of an ended consent; action is "" if no sweep has yet.
func (m ReportInput) sweptData(rec consent.Record) (sweptAt time.Time, action string) {
	for _, r := range slices.Backward(m.History) {
		switch {
		case r.Key != rec.Key || r.Number > rec.Number:
		case r.State == consent.StateGiven && r.Event != consent.EventDeleted && r.Event != consent.EventAnonymised:
			return time.Time{}, ""
		case r.Event == consent.EventDeleted:
			return r.At, "deleted"
		case r.Event == consent.EventAnonymised:
			return r.At, "made anonymous"
		}
	}
	return time.Time{}, ""
}

// decaySteps returns when the older data reach each stage of anonymisation, or nil if no countdown runs.
func decaySteps(rec consent.Record) []Step {
	if rec.DecayFrom.IsZero() {
		return nil
	}
	day := func(n int) time.Time { return rec.DecayFrom.Add(time.Duration(n) * 24 * time.Hour).UTC() }
	return []Step{
		{day(0), "The countdown begins. The context of the relationship is kept."},
		{day(consent.AggregatedFrom), "Behavioural data count in aggregates only."},
		{day(consent.UnidentifiedFrom), "Identity markers are removed."},
		{day(consent.AnonymousFrom), "Everything is anonymous."},
	}
}

func (r SubjectRows) tableData() TableData {
	out := TableData{Table: r.Table.Relation.Name.String(), Rows: r.Count, Key: nonNil(r.Key), Keys: r.Keys, Columns: []string{}}
	for _, c := range r.Table.Relation.Columns {
		out.Columns = append(out.Columns, c.Name)
	}
	if out.Keys == nil {
		out.Keys = [][]string{}
	}
	for _, row := range r.Copy {
		out.Copy = append(out.Copy, json.RawMessage(row))
	}
	return out
}

func newEntry(rec consent.Record) HistoryEntry {
	return HistoryEntry{
		Record: rec.Number, At: rec.At.UTC(), Event: string(rec.Event), Grantee: rec.Grantee, Scope: rec.Scope,
		State: string(rec.State), DPV: rec.State.DPVTerm(),
		Stream: streamOrNil(rec.Stream), Categories: nonNil(rec.Categories), Purposes: nonNil(rec.Purposes),
		GivenAt: optionalTime(rec.GivenAt), ExpiresAt: optionalTime(rec.EndsAt()),
		Grantor: rec.Grantor, ByRole: string(rec.RecordedBy.Role), By: rec.RecordedBy.ID, Via: rec.Via, Reason: rec.Reason,
		Evidence: rec.Evidence, Guardian: rec.Guardian,
		Controller: rec.Controller,
	}
}

// fillSources lists from whom and how the data came, as far as the registry knows.
func (m ReportInput) fillSources(r *Report) {
	r.Sources = []string{}
	ways := map[string]bool{}
	for _, rec := range m.History {
		if rec.Event == consent.EventReported {
			continue
		}
		role := string(rec.RecordedBy.Role)
		if rec.Via != "" {
			role += ", by " + rec.Via
		}
		ways[role] = true
	}
	for _, interfaceName := range slices.Sorted(maps.Keys(ways)) {
		r.Sources = append(r.Sources, "Records of consent: told by the "+interfaceName)
	}
	if len(m.Rows) > 0 {
		r.Sources = append(r.Sources,
			"Rows of tables: written by the application of the controller, who has to say from whom they came where not from you")
	}
}

func dataSubjectRights(c Controller) []Right {
	person := "the controller"
	if c.Name != "" {
		person = c.Name
	}
	if c.Contact != "" {
		person += " (" + c.Contact + ")"
	}
	return []Right{
		{"Article 7(3)", "Withdraw consent", "At any time and as easily as it was given, from " +
			person + ". It takes effect with the next statement of any agent."},
		{"Article 16", "Rectification", "Ask " + person + " to correct what is wrong or complete what is missing."},
		{"Article 17", "Erasure", "Ask " + person +
			" to delete your data and to forget who you were in the records of consent."},
		{"Article 18", "Restriction", "Ask " + person + " to stop processing while a question is open."},
		{"Article 20", "Portability", "Ask " + person + " for your data in a form that machines read."},
		{"Article 21", "Objection", "Object to processing that does not rest on consent."},
		{"Article 77", "Complaint",
			"Complain to a supervisory authority, in particular where you live, where you work, or where the infringement was."},
	}
}

// reportLimits lists what a reader must not conclude from the report.
func (m ReportInput) reportLimits() []string {
	out := []string{
		"The report does not have what the owners of the database have read themselves, past pgconsent.",
		"A statement is called possible if the log does not show whether rows of this person were in its answer. " +
			"There may have been none.",
		"Rows that others than pgconsent have deleted cannot be recognised in older records.",
	}
	if m.Retrievals == nil || len(m.Logs) == 0 {
		out = append(out, "No audit log was read: retrievals are unknown.")
	}
	for _, l := range m.Logs {
		for _, check := range l.Unproved {
			out = append(out, fmt.Sprintf("The audit log %s: %s.", l.Name, check))
		}
		switch {
		case !l.Intact:
			out = append(out, fmt.Sprintf(
				"The audit log %s fails verification: %s. Its records may have been changed.", l.Name, l.Problem))
		case l.First > 1 && l.From != nil:
			out = append(out, fmt.Sprintf(
				"The audit log %s begins at %s: older records were removed after their retention.", l.Name, Instant(*l.From)))
		}
	}
	if len(m.Rows) == 0 {
		out = append(out, "The policy does not name the data subject of any table's rows.")
	}
	return out
}

func missingStatements(c Controller) []string {
	var out []string
	if c.Name == "" {
		out = append(out, "Who the controller is (consent.controller in the configuration)")
	}
	if c.Contact == "" {
		out = append(out, "How the controller, and the data protection officer, can be reached (--contact)")
	}
	return append(out,
		"Whether decisions are made automatically, profiling included, by which logic and with which consequences "+
			"(Article 15(1)(h))",
		"Whether data go to a third country, and the safeguards (Article 15(2))",
		"Grounds for processing besides consent, and recipients besides agents, if there are any")
}
