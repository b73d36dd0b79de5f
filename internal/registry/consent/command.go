package consent

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Action is what a command does to a consent.
type Action string

// The actions.
const (
	Grant             Action = "grant"      // give, modify or renew; with PARTNERED a request
	Revoke            Action = "revoke"     // withdraw (subject, guardian) or revoke (controller, system)
	Refuse            Action = "refuse"     // record that the subject has refused
	Upgrade           Action = "upgrade"    // request a partnership
	Degrade           Action = "degrade"    // change to TEMPORARY or ANONYMOUS
	DecidePartnership Action = "decide"     // approve, decline or defer a partnership
	Interact          Action = "interact"   // record an interaction of the subject
	Expire            Action = "expire"     // record that a consent has expired
	Lapse             Action = "lapse"      // record that a request has lapsed
	Warn              Action = "warn"       // record that the subject was warned
	Deleted           Action = "deleted"    // record that data were deleted
	Anonymised        Action = "anonymised" // record that data were anonymised
	Report            Action = "report"     // record that a report about the subject was made
	Appoint           Action = "appoint"    // appoint a guardian
	Dismiss           Action = "dismiss"    // dismiss a guardian
	Erase             Action = "erase"      // forget the subject
)

// Decision is the decision of the agent's side about a partnership.
type Decision string

// The decisions, by the names of the consent protocol.
const (
	TaskComplete Decision = "TASK_COMPLETE"
	Reject       Decision = "REJECT"
	Defer        Decision = "DEFER"
)

// Command asks for a change of a consent.
type Command struct {
	Do         Action
	Subject    string
	Grantee    string // the grantee; "": Everybody
	Scope      string // the scope; "": Everything
	Stream     Stream // the new stream of Grant and Degrade
	Categories []string
	Purposes   []string
	Duration   time.Duration `json:"For"` // how long a grant without a stream lasts; 0: it does not expire
	Decision   Decision
	Guardian   string // the guardian whom Appoint and Dismiss are about

	By       Party
	Via      string
	Reason   string
	Evidence string

	// Request is a key that the caller chooses: a command that is repeated with the same key is carried out only once. "":
	// there is none.
	Request string
}

// Key returns the key of the consent that the command is about.
func (c Command) Key() Key {
	k := Key{c.Subject, c.Grantee, c.Scope}
	if k.Grantee == "" {
		k.Grantee = Everybody
	}
	if k.Scope == "" {
		k.Scope = Everything
	}
	return k
}

// Limits of ids and texts, in bytes.
const (
	maxIDBytes   = 512
	maxTextBytes = 10_000
)

var scopePattern = regexp.MustCompile(`^(table|row|ctx):.`)

// Check returns an error for a command that makes no sense in any state. Ids are data: they may have quotes, braces and
// spaces.
func (c Command) Check() error {
	k := c.Key()
	for _, id := range []struct{ what, value string }{{"subject", k.Subject}, {"grantee", k.Grantee}, {"scope", k.Scope}} {
		if err := checkID(id.what, id.value); err != nil {
			return err
		}
	}
	if c.Guardian != "" {
		if err := checkID("guardian", c.Guardian); err != nil {
			return err
		}
	}
	if c.By.ID != "" {
		if err := checkID("party", c.By.ID); err != nil {
			return err
		}
	}
	switch {
	case k.Subject == Everybody:
		return invalid("the subject of a consent is one person, not %q", Everybody)
	case k.Scope != Everything && !scopePattern.MatchString(k.Scope):
		return invalid("a scope is %q, or table:NAME, row:TABLE:KEY or ctx:NAME", Everything)
	case c.Duration < 0:
		return invalid("a consent cannot last less than no time")
	case c.Duration > 100*365*day:
		return invalid("a consent cannot last more than 100 years: leave the duration out if it does not expire")
	}
	for _, text := range []struct{ what, value string }{
		{"reason", c.Reason}, {"evidence", c.Evidence}, {"key of the request", c.Request}, {"channel", c.Via}} {
		switch {
		case !utf8.ValidString(text.value) || strings.ContainsRune(text.value, 0):
			return invalid("the %s is not UTF-8 text", text.what)
		case len(text.value) > maxTextBytes:
			return invalid("the %s is longer than %d bytes", text.what, maxTextBytes)
		}
	}
	if err := checkPaths("category", c.Categories); err != nil {
		return err
	}
	return checkPaths("purpose", c.Purposes)
}

func checkID(what, id string) error {
	switch {
	case id == "":
		return invalid("the %s is missing", what)
	case !utf8.ValidString(id):
		return invalid("the %s is not UTF-8 text", what)
	case len(id) > maxIDBytes:
		return invalid("the %s is longer than %d bytes", what, maxIDBytes)
	case strings.IndexFunc(id, unicode.IsControl) >= 0:
		return invalid("the %s has a control character", what)
	}
	return nil
}
