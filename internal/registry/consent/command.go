package consent

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Action is what a command does.
type Action string

// The actions.
const (
	Grant             Action = "grant"      // give, modify or renew; PARTNERED asks
	Revoke            Action = "revoke"     // withdraw, by the subject or a guardian; revoke, by the controller or the system
	Refuse            Action = "refuse"     // the subject says no
	Upgrade           Action = "upgrade"    // ask for a partnership
	Degrade           Action = "degrade"    // to TEMPORARY or ANONYMOUS
	DecidePartnership Action = "decide"     // whether it comes about
	Interact          Action = "interact"   // the subject has done something
	Expire            Action = "expire"     // record that the clock has ended it
	Lapse             Action = "lapse"      // record that nobody decided in time
	Warn              Action = "warn"       // record that the subject was warned
	Deleted           Action = "deleted"    // record that data were deleted
	Anonymised        Action = "anonymised" // record that data were anonymised
	Report            Action = "report"     // record that a report about the subject was made
	Appoint           Action = "appoint"    // a guardian
	Dismiss           Action = "dismiss"    // a guardian
	Erase             Action = "erase"      // forget the subject
)

// Decision is what the agent's side says about a partnership.
type Decision string

// The decisions, by the seed's names.
const (
	TaskComplete Decision = "TASK_COMPLETE"
	Reject       Decision = "REJECT"
	Defer        Decision = "DEFER"
)

// Command asks for a change.
type Command struct {
	Do         Action
	Subject    string
	Grantee    string // "": Everybody
	Scope      string // "": Everything
	Stream     Stream // of Grant and Degrade
	Categories []string
	Purposes   []string
	For        time.Duration // of a grant without stream; 0: it does not expire
	Decision   Decision
	Guardian   string // of Appoint and Dismiss

	By       Party
	Via      string
	Reason   string
	Evidence string

	// Request is a key of the caller's choice: a command sent again with the same key is done once. "": none.
	Request string
}

// Key of the consent that the command is about.
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

// The longest that is taken.
const (
	longestID   = 512
	longestText = 10_000
)

var scopePattern = regexp.MustCompile(`^(table|row|ctx):.`)

// Check refuses what could not be meant, whatever holds. Ids are data: quotes, braces and spaces are as good as letters.
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
	case c.For < 0:
		return invalid("a consent cannot last less than no time")
	case c.For > 100*365*day:
		return invalid("a consent of more than 100 years is one that does not expire: leave the duration out")
	}
	for _, text := range []struct{ what, value string }{
		{"reason", c.Reason}, {"evidence", c.Evidence}, {"key of the request", c.Request}, {"channel", c.Via}} {
		switch {
		case !utf8.ValidString(text.value) || strings.ContainsRune(text.value, 0):
			return invalid("the %s is not UTF-8 text", text.what)
		case len(text.value) > longestText:
			return invalid("the %s is longer than %d bytes", text.what, longestText)
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
	case len(id) > longestID:
		return invalid("the %s is longer than %d bytes", what, longestID)
	case strings.IndexFunc(id, unicode.IsControl) >= 0:
		return invalid("the %s has a control character", what)
	}
	return nil
}
