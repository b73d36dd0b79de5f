package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

type consentStatusCmd struct{ subjectFlags }

func (consentStatusCmd) Help() string {
	return `Shows each consent of the subject: that of a stream, and those to grantees and about scopes. A consent that the clock has ended
is shown as expired, whether that is recorded or not. Exit code 1 if there is none.

  pgconsent consent status ada
  pgconsent consent status ada --json`
}

// statusJSON is a consent in JSON output, with the time of its last record.
type statusJSON struct {
	consentJSON
	Record       int64     `json:"record"`
	Event        string    `json:"event"`
	LastModified time.Time `json:"last_modified"`
}

func (c consentStatusCmd) Run(s *session) error {
	id, err := c.subject()
	if err != nil {
		return err
	}
	r, err := s.openRegistry(c.Database)
	if err != nil {
		return err
	}
	defer r.Close()
	records, now, err := r.CurrentOfSubject(s.ctx, id)
	if err != nil {
		return err
	}
	out := make([]statusJSON, len(records))
	for i, rec := range records {
		out[i] = statusJSON{newConsentJSON(rec.Consent, now), rec.Number, string(rec.Event), rec.At}
	}
	if s.jsonOutput {
		return s.printJSON(out)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for i, rec := range records {
		if i > 0 {
			fmt.Fprintln(w)
		}
		line := func(name, value string) {
			if value != "" {
				fmt.Fprintf(w, "%s\t%s\n", name, value)
			}
		}
		line("subject", rec.Subject)
		line("state", string(rec.StateAt(now)))
		line("stream", string(rec.Stream))
		line("categories", strings.Join(rec.Categories, ", "))
		line("purposes", strings.Join(rec.Purposes, ", "))
		if rec.Stream == "" {
			line("grantee", rec.Grantee)
			line("scope", rec.Scope)
		}
		line("given", formatOptionalTime(rec.GivenAt))
		if rec.State == consent.StateGiven {
			line("expires", firstOf(formatOptionalTime(rec.ExpiresAt), "never"))
		}
		if rec.IsPendingAt(now) {
			line("asked for", fmt.Sprintf("%s (%s), to be decided until %s", consent.StreamPartnered,
				strings.Join(rec.RequestedCategories, ", "), formatTime(rec.DueAt)))
		}
		if !rec.DecayFrom.IsZero() {
			line("decay", fmt.Sprintf("%s, day %d since %s", rec.DecayStageAt(now), rec.DecayDays(now),
				formatTime(rec.DecayFrom)))
		}
		line("controller", rec.Controller)
		line("last change", fmt.Sprintf("%s, record %d, %s", rec.Event, rec.Number, formatTime(rec.At)))
	}
	return w.Flush()
}

func formatOptionalTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t)
}

// firstOf returns a, or b if a is empty.
func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

type consentHistoryCmd struct{ subjectFlags }

func (consentHistoryCmd) Help() string {
	return `Prints every record of the subject, the oldest first: the event, ` +
		`the consent after it, on whose behalf, who had it recorded, and why.

  pgconsent consent history ada
  pgconsent consent history ada --json`
}

// recordJSON is a record of the registry in JSON output.
type recordJSON struct {
	Record int64     `json:"record"`
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	consentJSON
	Grantor  string        `json:"grantor,omitempty"`
	By       consent.Party `json:"by"`
	Via      string        `json:"via,omitempty"`
	Guardian string        `json:"guardian,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Evidence string        `json:"evidence,omitempty"`
}

func (h consentHistoryCmd) Run(s *session) error {
	id, err := h.subject()
	if err != nil {
		return err
	}
	r, err := s.openRegistry(h.Database)
	if err != nil {
		return err
	}
	defer r.Close()
	records, err := r.History(s.ctx, id)
	if err != nil {
		return err
	}
	if s.jsonOutput {
		out := make([]recordJSON, len(records))
		for i, rec := range records {
			out[i] = recordJSON{rec.Number, rec.At, string(rec.Event), newConsentJSON(rec.Consent, rec.At), rec.Grantor,
				rec.RecordedBy,
				rec.Via, rec.Guardian, rec.Reason, rec.Evidence}
		}
		return s.printJSON(out)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "record\tat\tevent\tconsent after it\tby\treason")
	for _, rec := range records {
		replacement := string(rec.RecordedBy.Role)
		if rec.RecordedBy.ID != "" && rec.RecordedBy.ID != rec.Subject {
			replacement += " " + rec.RecordedBy.ID
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", rec.Number, formatTime(rec.At), rec.Event,
			describeConsent(rec.Consent, rec.At), replacement, joinLines(rec.Reason))
	}
	return w.Flush()
}

// joinLines puts a text on one line, for a line of a table. Anybody may have written the text.
func joinLines(text string) string { return strings.Join(strings.Fields(text), " ") }

type consentPendingCmd struct {
	Database string `placeholder:"NAME" help:"The database. Default: the only one."`
}

func (p consentPendingCmd) Run(s *session) error {
	r, err := s.openRegistry(p.Database)
	if err != nil {
		return err
	}
	defer r.Close()
	questions, err := r.PendingPartnerships(s.ctx)
	if err != nil {
		return err
	}
	if s.jsonOutput {
		type pendingQuestion struct {
			Subject    string    `json:"subject"`
			Categories []string  `json:"categories"`
			DueAt      time.Time `json:"due_at"`
		}
		out := []pendingQuestion{}
		for _, q := range questions {
			out = append(out, pendingQuestion{q.Subject, q.Categories, q.DueAt.UTC()})
		}
		return s.printJSON(out)
	}
	if len(questions) == 0 {
		_, err := fmt.Fprintln(s.out, "nothing is asked for")
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "subject\tcategories\tto be decided until")
	for _, q := range questions {
		fmt.Fprintf(w, "%s\t%s\t%s\n", q.Subject, strings.Join(q.Categories, ", "), formatTime(q.DueAt))
	}
	return w.Flush()
}
