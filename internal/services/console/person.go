package console

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/tool/why"
)

// Pages for data subjects. A change takes one click; the page after it says what has changed and how to undo it.

// consentView is a consent as a page shows it.
type consentView struct {
	consent.Consent
	Now          time.Time
	State        string
	Active       bool
	Title        string // names the grantee and the scope
	Kind         string // the kind of relationship
	Until        time.Time
	Pending      bool
	Decay        int // number of days since the countdown to anonymity began
	Number       int64
	CanGiveAgain bool // the consent has ended, and the page offers to give it again
	Streamless   bool
}

func newConsentView(c consent.Consent, now time.Time) consentView {
	s := consentView{Consent: c, Now: now, State: stateWord(c, now), Active: c.IsActiveAt(now), Until: c.ExpiresAt,
		Pending: c.IsPendingAt(now), Streamless: c.Stream == ""}
	s.Kind = streamWords[c.Stream]
	s.Title = "Everybody"
	switch {
	case c.Stream != "" && c.Grantee == consent.AnyGrantee:
		s.Title = "Agents of this service"
	case c.Grantee != consent.AnyGrantee:
		s.Title = c.Grantee
	}
	if s.Active && c.Stream == consent.StreamAnonymous {
		s.Decay = c.DecayDays(now)
	}
	s.CanGiveAgain = !s.Active && c.State != consent.StateRequested
	return s
}

// personView has the data of a page about a person.
type personView struct {
	Subject           string
	Known             bool
	Active            bool
	Counted           bool         // the person's data are only counted in statistics
	MainConsent       *consentView // the relationship, which the page shows first
	Consents          []consentView
	Now               time.Time
	AgentViews        []agentView
	VisibilityProblem *problemText // why the console cannot say who may see the person's data; nil: it can
	History           []consent.Record
	Rows              []dsar.SubjectRows
	Agents            []string
	CanAskPartnership bool // the person can ask for a partnership
	CanReduce         bool // the person can reduce the consent to statistics
	CanBeTemporary    bool // the person can change the relationship back to TEMPORARY
	SeveralActive     bool // several consents are active
	Own               bool // the page shows the data of the signed-in user
	RegistryUnused    bool // no rule of the policy reads the consent registry
	Remaining         int

	Guardians []string    // the person's guardians
	Wards     []wardEntry // the persons whose guardian this person is
	Handle    string      // on the page about a ward: the handle that stands for the ward's id
	Kinds     []string    // kinds of data that the person can choose for a consent
	Parties   []string    // parties that the person can choose for a consent
}

// HasRows reports whether the page has keys of rows of the person, about which the user can ask.
func (p personView) HasRows() bool {
	return slices.ContainsFunc(p.Rows, func(r dsar.SubjectRows) bool { return len(r.Keys) > 0 })
}

// agentView is what one agent may see of the person's data.
type agentView struct {
	why.Visibility
	Visible, Rows, Counted int64
	Observed               bool
}

// missingPartProblem logs why a part of a page cannot be made, and returns the text that the page shows in its place.
func (o *Console) missingPartProblem(part string, err error) *problemText {
	status, p, _, _ := describeError(err)
	if status >= 500 && status != http.StatusNotImplemented {
		o.Log.Error("console: a part of a page", "part", part, "error", err)
	}
	return &p
}

func (o *Console) agentViews(c *request, subject string) ([]agentView, *problemText) {
	visibilities, err := o.Service.Visibility(c, c.caller, subject)
	if err != nil {
		return nil, o.missingPartProblem("consent.sight", err)
	}
	var out []agentView
	for _, s := range visibilities {
		view := agentView{Visibility: s}
		for _, t := range s.Tables {
			view.Visible, view.Rows, view.Counted = view.Visible+t.Visible, view.Rows+t.Rows, view.Counted+t.Counted
			view.Observed = view.Observed || t.Observed
		}
		out = append(out, view)
	}
	slices.SortStableFunc(out, func(a, b agentView) int { return int(min(1, max(-1, b.Visible-a.Visible))) })
	return out, nil
}

// addConsents reads the person's consents and adds them to the page. It is no error if the registry does not know the
// person.
func (o *Console) addConsents(c *request, p *personView) error {
	consents, err := o.Service.Consents(c, c.caller, p.Subject)
	var notFound *consent.NotFoundError
	if err != nil && !errors.As(err, &notFound) {
		return err
	}
	p.fillConsents(o.Now(), consents)
	return nil
}

// fillConsents adds the given consents of the person to the page.
func (p *personView) fillConsents(now time.Time, consents []operations.ConsentStatus) {
	p.Known, p.Now = len(consents) > 0, now
	activeCount := 0
	for _, s := range consents {
		st := newConsentView(s.Consent, s.Now)
		st.Number, p.Now = s.Number, s.Now
		if st.Active {
			activeCount++
		}
		if p.MainConsent == nil && s.Grantee == consent.AnyGrantee && s.Scope == consent.AnyScope {
			mainConsent := st
			p.MainConsent = &mainConsent
		}
		p.Consents = append(p.Consents, st)
	}
	p.Active, p.SeveralActive = activeCount > 0, activeCount > 1
	p.Counted = activeCount == 1 && p.MainConsent != nil && p.MainConsent.Active &&
		p.MainConsent.Stream == consent.StreamAnonymous
	var stream consent.Stream
	isPending := false
	streamless := false
	if p.MainConsent != nil {
		if p.MainConsent.Active {
			stream = p.MainConsent.Stream
		}
		isPending, streamless = p.MainConsent.Pending, p.MainConsent.Streamless
	}
	p.CanAskPartnership = !isPending && !streamless && stream != consent.StreamPartnered
	p.CanReduce = stream == consent.StreamTemporary || stream == consent.StreamPartnered
	p.CanBeTemporary = stream == consent.StreamPartnered
}

func (o *Console) showOwnData(c *request) (answer, error) {
	p := personView{Subject: c.caller.Subject, Own: true, RegistryUnused: !o.Service.ReadsRegistry(c.caller)}
	if err := o.addConsents(c, &p); err != nil {
		return answer{}, err
	}
	if err := o.fillGuardians(c, &p); err != nil {
		return answer{}, err
	}
	p.Kinds = categoriesForParty
	for name := range o.Service.Agents(c.caller.Database) {
		p.Parties = append(p.Parties, name)
	}
	slices.Sort(p.Parties)
	p.AgentViews, p.VisibilityProblem = o.agentViews(c, p.Subject)
	return answer{template: "me", title: "Who may see your data", data: p}, nil
}

func (o *Console) showHistory(c *request) (answer, error) {
	p := personView{Subject: c.caller.Subject, Own: true}
	records, err := o.Service.History(c, c.caller, p.Subject)
	var notFound *consent.NotFoundError
	if err != nil && !errors.As(err, &notFound) {
		return answer{}, err
	}
	slices.Reverse(records)
	p.History = records
	return answer{template: "history", title: "Records of your consent", data: p}, nil
}

// retrievalsPage has the data of the page about who has seen the subject's data.
type retrievalsPage struct {
	*dsar.Report
	Newest []dsar.Retrieval
	Older  int
}

// maxRetrievals is the number of single retrievals on the page; the report lists more.
const maxRetrievals = 100

func (o *Console) showRetrievals(c *request) (answer, error) {
	r, err := o.Service.Report(c, c.caller, access.ReportRequest{Interface: "console", MaxRetrievals: maxRetrievals,
		OnlyDisplayed: true})
	var notFound *consent.NotFoundError
	if errors.As(err, &notFound) {
		return answer{template: "seen", title: "Who has seen your data", data: retrievalsPage{}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	p := retrievalsPage{Report: r, Newest: slices.Clone(r.Retrievals.List)}
	slices.Reverse(p.Newest)
	p.Older = max(0, len(p.Newest)-maxRetrievals)
	p.Newest = p.Newest[:len(p.Newest)-p.Older]
	p.Older += int(r.Retrievals.Left)
	return answer{template: "seen", title: "Who has seen your data", data: p}, nil
}

// executeCommand runs a command on a consent of the signed-in subject. The form may name grantee and scope.
func (o *Console) executeCommand(c *request, command consent.Command) (operations.ConsentChange, error) {
	command.Subject, command.Interface = c.caller.Subject, "console"
	if g := c.form.Get("grantee"); g != "" {
		command.Grantee = g
	}
	if s := c.form.Get("scope"); s != "" {
		command.Scope = s
	}
	return o.Service.Change(c, c.caller, command)
}

// giveAgainNote is the end of the message after a withdrawal.
const giveAgainNote = " You can give it again below, with one click. The new consent is for new data: it does not bring back " +
	"what this withdrawal has hidden."

func (o *Console) withdrawConsent(c *request) (answer, error) {
	if c.form.Get("all") != "" {
		consents, err := o.Service.Consents(c, c.caller, c.caller.Subject)
		if err != nil {
			return answer{}, err
		}
		for _, s := range consents {
			if !s.IsActiveAt(s.Now) && !s.IsPendingAt(s.Now) {
				continue
			}
			if _, err := o.Service.Change(c, c.caller,
				consent.Command{Action: consent.ActionRevoke, Subject: s.Subject, Grantee: s.Grantee, Scope: s.Scope,
					Interface: "console"}); err != nil {
				return answer{}, err
			}
		}
		c.session.setFlash(flash{"done", "Every consent is withdrawn",
			"From their next statement on, no agent sees your data by your consent." + giveAgainNote})
		return answer{redirectPath: "me"}, nil
	}
	change, err := o.executeCommand(c, consent.Command{Action: consent.ActionRevoke})
	if err != nil {
		return answer{}, err
	}
	if change.RecordNumber == 0 {
		c.session.setFlash(flash{"note", "This was withdrawn before", "Nothing has changed."})
	} else {
		c.session.setFlash(flash{"done", "Your consent is withdrawn",
			"From their next statement on, agents see nothing by this consent." + giveAgainNote})
	}
	return answer{redirectPath: "me"}, nil
}

// giveConsentAgain gives a consent that has ended again, with the same grantee, scope and purposes. A consent with a
// stream becomes TEMPORARY, unless it was ANONYMOUS.
func (o *Console) giveConsentAgain(c *request) (answer, error) {
	command := consent.Command{Action: consent.ActionGrant, Stream: consent.StreamTemporary}
	key := consent.Command{Subject: c.caller.Subject, Grantee: c.form.Get("grantee"), Scope: c.form.Get("scope")}.Key()
	records, err := o.Service.History(c, c.caller, c.caller.Subject)
	var notFound *consent.NotFoundError
	if err != nil && !errors.As(err, &notFound) {
		return answer{}, err
	}
	var before *consent.Record
	for i := range records {
		if records[i].Key == key && records[i].State == consent.StateGiven {
			before = &records[i]
		}
	}
	relationship := key.Grantee == consent.AnyGrantee && key.Scope == consent.AnyScope
	switch {
	case before == nil && !relationship:
		return answer{}, consent.NewNotFound()
	case before == nil:
	case before.Stream == "":
		command.Stream, command.Categories, command.Purposes = "", before.Categories, before.Purposes
		if !before.ExpiresAt.IsZero() {
			command.Duration = before.ExpiresAt.Sub(before.GivenAt)
		}
	case before.Stream == consent.StreamAnonymous:
		command.Stream, command.Purposes = consent.StreamAnonymous, before.Purposes
	default:
		command.Purposes = before.Purposes
	}
	change, err := o.executeCommand(c, command)
	if err != nil {
		return answer{}, err
	}
	text := "It is active from now on."
	if !change.Consent.ExpiresAt.IsZero() {
		text = "It is active from now on, until " + dateText(change.Consent.ExpiresAt) + " unless it is renewed."
	}
	c.session.setFlash(flash{"done", "You have given your consent", text + " You can withdraw it at any time, with one click."})
	return answer{redirectPath: "me"}, nil
}

// reduceConsent changes the relationship to a stream by which agents see less.
func (o *Console) reduceConsent(c *request) (answer, error) {
	stream := consent.Stream(c.form.Get("to"))
	if _, err := o.executeCommand(c, consent.Command{Action: consent.ActionDegrade, Stream: stream}); err != nil {
		return answer{}, err
	}
	text := "Agents see only what is essential. What the partnership has shown is hidden at once."
	if stream == consent.StreamAnonymous {
		text = "Agents no longer see your single data. New data are counted in statistics of groups only; older " +
			"data become anonymous step by step, within 90 days."
	}
	c.session.setFlash(flash{"done", "Agents see less of you from now on",
		text + " You can also withdraw completely, or ask for a partnership again; data that were removed do not come back."})
	return answer{redirectPath: "me"}, nil
}

func (o *Console) askForPartnership(c *request) (answer, error) {
	change, err := o.executeCommand(c, consent.Command{Action: consent.ActionUpgrade, Reason: c.form.Get("reason")})
	if err != nil {
		return answer{}, err
	}
	text := "The agent's side decides. Until then nothing changes."
	if change.Task != nil {
		text = "The agent's side decides, until " + timeText(change.Task.DueAt) +
			"; after that the request lapses. Until then nothing changes."
	}
	c.session.setFlash(flash{"done", "You have asked for a partnership",
		text + " Withdrawing your consent also withdraws the request."})
	return answer{redirectPath: "me"}, nil
}

// sendReport sends the report to the data subject as a file to download.
func (o *Console) sendReport(c *request) (answer, error) {
	format := c.form.Get("format")
	if format != "html" && format != "json" {
		return answer{}, errUnreadableForm
	}
	r, err := o.Service.Report(c, c.caller, access.ReportRequest{Interface: "console", Format: format,
		MaxRetrievals: 10_000})
	if err != nil {
		return answer{}, err
	}
	var b bytes.Buffer
	f := &attachment{name: "access-report.html", kind: "text/html; charset=utf-8"}
	writeReport := r.WriteHTML
	if format == "json" {
		f.name, f.kind, writeReport = "access-report.json", "application/json", r.WriteJSON
	}
	if err := writeReport(&b); err != nil {
		return answer{}, err
	}
	f.body = b.Bytes()
	return answer{file: f}, nil
}
