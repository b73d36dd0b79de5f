package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

type consentCmd struct {
	Status      consentStatusCmd      `cmd:"" help:"What a subject's consents are now."`
	Grant       consentGrantCmd       `cmd:"" help:"Record that a subject consents."`
	Revoke      consentRevokeCmd      `cmd:"" help:"Withdraw a consent; it takes effect before the command returns."`
	Refuse      consentRefuseCmd      `cmd:"" help:"Record that a subject was asked and said no."`
	Upgrade     consentUpgradeCmd     `cmd:"" help:"Ask for a partnership, which the agent's side decides about."`
	Pending     consentPendingCmd     `cmd:"" help:"Partnerships that wait for a decision."`
	Decide      consentDecideCmd      `cmd:"" help:"Approve, decline or defer a partnership, for the agent's side."`
	Degrade     consentDegradeCmd     `cmd:"" help:"Go to TEMPORARY or ANONYMOUS, at once."`
	Interaction consentInteractionCmd `cmd:"" help:"Report that the subject has interacted, which gives or renews TEMPORARY."`
	Guardian    consentGuardianCmd    `cmd:"" help:"Guardians, who act for a subject."`
	History     consentHistoryCmd     `cmd:"" help:"Every record of a subject."`
	Erase       consentEraseCmd       `cmd:"" help:"End every consent of a subject and forget who it was."`
	RotateKey   consentRotateKeyCmd   `cmd:"" help:"Change the key outside the database for a new one."`
}

func (consentCmd) Help() string {
	return `Consents are records in the database, appended and never changed. A change is active when the
command returns: agents' next statements follow it.

Streams: TEMPORARY expires and is renewed by the subject's interactions; PARTNERED lasts, and needs both sides; ANONYMOUS
counts in statistics only. Without a stream a consent is to one grantee, or about one scope.

  pgconsent consent grant ada --stream TEMPORARY
  pgconsent consent upgrade ada --reason "we work together"
  pgconsent consent decide ada TASK_COMPLETE --agent chat
  pgconsent consent degrade ada --to ANONYMOUS
  pgconsent consent revoke ada
  pgconsent consent grant dog:bella --grantee si:vet --scope ctx:bella_health --guardian human:sean
  pgconsent consent history ada --json

The command line speaks for whom it names: who can run it could write the database as well. Each record says that it came
this way.`
}

// subjectFlags are the flags of all commands about one subject.
type subjectFlags struct {
	ID       string `arg:"" optional:"" name:"subject" help:"The subject, as the application knows them. Ids match whole."`
	Subject  string `name:"subject" placeholder:"ID" help:"The same, as a flag: for ids that begin with a dash."`
	Database string `placeholder:"NAME" help:"The database. Default: the only one."`
}

// subject returns the subject that the flags name.
func (w subjectFlags) subject() (string, error) {
	switch {
	case w.ID != "" && w.Subject != "" && w.ID != w.Subject:
		return "", usageError{errors.New("the subject is named twice")}
	case w.ID+w.Subject == "":
		return "", usageError{errors.New("which subject? pgconsent consent … ID")}
	case w.ID != "":
		return w.ID, nil
	default:
		return w.Subject, nil
	}
}

// targetFlags are the flags of consents that are not about a stream.
type targetFlags struct {
	Grantee string `placeholder:"ID" help:"To whom. Default: everybody."`
	Scope   string `placeholder:"SCOPE" help:"About what: table:NAME, row:TABLE:KEY or ctx:NAME. Default: everything."`
}

// reasonFlags are the flags that explain a change.
type reasonFlags struct {
	Guardian string `placeholder:"ID" help:"The guardian who acts for the subject."`
	Reason   string `placeholder:"TEXT" help:"Why. Sealed in the record."`
	Evidence string `placeholder:"TEXT" help:"What proves it: a form, a recording, a message. Sealed in the record."`
	Request  string `placeholder:"KEY" help:"A key of your choice: the same change with the same key is done once."`
}

func (w reasonFlags) fillCommand(c *consent.Command) {
	c.Reason, c.Evidence, c.RequestKey, c.Interface = w.Reason, w.Evidence, w.Request, "cli"
	c.Caller = consent.Party{Role: consent.RoleSubject, ID: c.Subject}
	if w.Guardian != "" {
		c.Caller = consent.Party{Role: consent.RoleGuardian, ID: w.Guardian}
	}
}

// openRegistry opens the consent registry in a database.
func (s *session) openRegistry(database string) (*registry.Registry, error) {
	c, err := s.loadConfig()
	if err != nil {
		return nil, err
	}
	if database == "" {
		databaseNames := slices.Sorted(maps.Keys(c.Databases))
		if len(databaseNames) != 1 {
			return nil, usageError{fmt.Errorf("the configuration has several databases: choose with --database: %s",
				strings.Join(databaseNames, ", "))}
		}
		database = databaseNames[0]
	}
	if _, err := chooseDatabases(c, database); err != nil {
		return nil, err
	}
	return serve.OpenRegistry(c, database)
}

// makeChange makes a change in the registry and prints the result.
func (s *session) makeChange(database string, c consent.Command) error {
	r, err := s.openRegistry(database)
	if err != nil {
		return err
	}
	defer r.Close()
	out, err := r.Execute(s.ctx, c)
	if err != nil {
		return err
	}
	if out.Tampered != nil {
		fmt.Fprintf(s.err, "pgconsent: it is done, but %v\n", out.Tampered)
	}
	if s.jsonOutput {
		return s.printJSON(newChangeJSON(out))
	}
	line := "nothing is recorded"
	if out.Consent.State != "" {
		line = describeConsent(out.Consent, out.RecordedAt)
	}
	switch {
	case out.RecordNumber == 0:
		line += "; it was so before"
	case out.IsRepeated:
		line += fmt.Sprintf("; record %d, made before", out.RecordNumber)
	default:
		line += fmt.Sprintf("; record %d", out.RecordNumber)
	}
	_, err = fmt.Fprintf(s.out, "%s: %s\n", c.Subject, line)
	return err
}

// describeConsent describes in one line the state of a consent at the time now.
func describeConsent(c consent.Consent, now time.Time) string {
	line := string(c.StateAt(now))
	if c.Stream != "" && c.State != consent.StateRequested {
		line += " " + string(c.Stream)
	}
	if len(c.Categories) > 0 {
		line += " (" + strings.Join(c.Categories, ", ") + ")"
	}
	if c.Grantee != consent.AnyGrantee && c.Grantee != "" {
		line += " to " + c.Grantee
	}
	if c.Scope != consent.AnyScope && c.Scope != "" {
		line += " about " + c.Scope
	}
	if c.State == consent.StateGiven && !c.ExpiresAt.IsZero() {
		line += " until " + formatTime(c.ExpiresAt)
	}
	if c.IsPendingAt(now) {
		line += "; partnership asked for, to be decided until " + formatTime(c.DueAt)
	}
	return line
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// consentJSON is a consent in JSON output. Times that are not set are null.
type consentJSON struct {
	Subject    string     `json:"subject"`
	Grantee    string     `json:"grantee"`
	Scope      string     `json:"scope"`
	State      string     `json:"state"`
	DPV        string     `json:"dpv"`
	Active     bool       `json:"active"`
	Stream     *string    `json:"stream"`
	Categories []string   `json:"categories"`
	Purposes   []string   `json:"purposes"`
	GrantedAt  *time.Time `json:"granted_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	Asked      []string   `json:"asked,omitempty"`
	DueAt      *time.Time `json:"due_at,omitempty"`
	DecayFrom  *time.Time `json:"decay_from,omitempty"`
	Decay      string     `json:"decay,omitempty"`
	Controller string     `json:"controller,omitempty"`
}

func newConsentJSON(c consent.Consent, now time.Time) consentJSON {
	timeOrNull := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	out := consentJSON{
		Subject: c.Subject, Grantee: c.Grantee, Scope: c.Scope, State: string(c.StateAt(now)), DPV: c.StateAt(now).
				DPVTerm(), Active: c.IsActiveAt(now),
		Categories: c.Categories, Purposes: c.Purposes, GrantedAt: timeOrNull(c.GivenAt), ExpiresAt: timeOrNull(c.EndsAt()),
		Asked: c.RequestedCategories, DueAt: timeOrNull(c.DueAt),
		DecayFrom: timeOrNull(c.DecayFrom), Decay: string(c.DecayStageAt(now)), Controller: c.Controller,
	}
	if c.Stream != "" {
		out.Stream = (*string)(&c.Stream)
	}
	if out.Categories == nil {
		out.Categories = []string{}
	}
	if out.Purposes == nil {
		out.Purposes = []string{}
	}
	return out
}

// changeJSON is the result of a change in JSON output.
type changeJSON struct {
	*consentJSON
	Record   int64     `json:"record"` // the number of the record; 0: nothing has changed
	At       time.Time `json:"at"`
	Repeated bool      `json:"repeated"`
}

func newChangeJSON(r registry.Result) changeJSON {
	out := changeJSON{Record: r.RecordNumber, At: r.RecordedAt.UTC(), Repeated: r.IsRepeated}
	if r.Consent.State != "" {
		c := newConsentJSON(r.Consent, r.RecordedAt)
		out.consentJSON = &c
	}
	return out
}
