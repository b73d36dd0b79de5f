package console

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/tool/why"
)

// templateFuncs are the functions of the templates.
var templateFuncs = template.FuncMap{
	"date":      dateText,
	"instant":   timeText,
	"machine":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"join":      func(list []string) string { return strings.Join(list, ", ") },
	"everybody": granteeText,
	"granted": func(list []string) string {
		out := make([]string, len(list))
		for i, id := range list {
			out[i] = granteeText(id)
		}
		return strings.Join(out, ", ")
	},
	"category": categoryWord,
	"about":    dsar.CategoryText,
	"event":    func(e string) string { return cmp.Or(eventWords[consent.Event(e)], e) },
	"via":      func(via string) string { return cmp.Or(viaWords[via], via) },
	"party":    func(role string) string { return cmp.Or(partyWords[consent.Role(role)], role) },
	"lower":    strings.ToLower,
	"number":   numberText,
	"many":     pluralText,
	"bytes":    bytesWord,
	"ago":      agoText,
	"short":    func(s string) string { return s[:min(len(s), 12)] },
	"table":    func(name string) string { return strings.TrimPrefix(name, "public.") },
	"key": func(values []why.Value) string {
		var out []string
		for _, v := range values {
			if v.Value == nil {
				out = append(out, v.Column+" is NULL")
			} else {
				out = append(out, *v.Value)
			}
		}
		return strings.Join(out, " ")
	},
	"dict": func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			out[fmt.Sprint(pairs[i])] = pairs[i+1]
		}
		return out
	},
}

// granteeText formats the id of a grantee.
func granteeText(id string) string {
	if id == consent.AnyGrantee {
		return "everybody"
	}
	return id
}

var roleWords = map[identity.Role]string{identity.Subject: "your own data", identity.Admin: "admin",
	identity.Operator: "operator"}

var categoryWords = map[string]string{
	consent.CategoryEssential: "Essential", consent.CategoryBehavioral: "Behaviour",
	consent.CategoryImprovement: "Improvement",
	consent.CategoryStatistical: "Statistics",
}

// categoryWord returns the word for a category of data. A category that the application defines is returned unchanged.
func categoryWord(name string) string {
	top, rest, hasSubcategory := strings.Cut(name, "/")
	word, ok := categoryWords[top]
	switch {
	case !ok:
		return name
	case hasSubcategory:
		return word + ": " + rest
	default:
		return word
	}
}

var streamWords = map[consent.Stream]string{consent.StreamTemporary: "Temporary",
	consent.StreamPartnered: "Partnership",
	consent.StreamAnonymous: "Statistics only"}

var eventWords = map[consent.Event]string{
	consent.EventGiven: "Consent given", consent.EventRenewed: "Consent renewed", consent.EventModified: "Consent changed",
	consent.EventDegraded: "Consent narrowed", consent.EventRefused: "Consent refused",
	consent.EventWithdrawn: "Consent withdrawn",
	consent.EventRevoked:   "Consent revoked by the controller", consent.EventExpired: "Consent expired",
	consent.EventRequested: "Partnership asked for",
	consent.EventApproved:  "Partnership agreed to", consent.EventRejected: "Partnership declined",
	consent.EventDeferred: "Decision put off",
	consent.EventLapsed:   "Request lapsed undecided", consent.EventWarned: "Warned of the expiry",
	consent.EventDeleted:    "Data deleted",
	consent.EventAnonymised: "Data made anonymous", consent.EventReported: "Access report made",
	consent.EventAppointed: "Guardian appointed",
	consent.EventDismissed: "Guardian dismissed", consent.EventErased: "Erased",
}

var partyWords = map[consent.Role]string{
	consent.RoleSubject: "the person", consent.RoleGuardian: "a guardian", consent.RoleAgent: "the agent's side",
	consent.RoleController:  "the controller",
	consent.RoleApplication: "the application", consent.RoleSystem: "the clock",
}

var viaWords = map[string]string{"cli": "the command line", "http": "the HTTP interface", "mcp": "an MCP client",
	"console": "this console", "sweep": "the sweeper"}

// stateWord describes the state of a consent in one or a few words.
func stateWord(c consent.Consent, now time.Time) string {
	switch c.StateAt(now) {
	case consent.StateGiven:
		return "Active"
	case consent.StateRequested:
		return "Asked for"
	case consent.StateRefused:
		return "Refused"
	case consent.StateWithdrawn:
		return "Withdrawn"
	case consent.StateRevoked:
		return "Revoked"
	default:
		return "Expired"
	}
}

// numberText formats a number with a thin space between groups of three digits.
func numberText(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// pluralText formats a number followed by its noun in the singular or plural.
func pluralText(n any, singular, plural string) string {
	if fmt.Sprint(n) == "1" {
		return "1 " + singular
	}
	return numberText(n) + " " + plural
}

func bytesWord(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d MiB", n>>20)
	}
}

// agoText formats the time that has passed from t to now.
func agoText(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "never"
	case d < time.Second:
		return "just now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

// asSentence returns the text with a capital letter at its start and a full stop at its end.
func asSentence(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}
