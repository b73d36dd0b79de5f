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
	ActionGrant          Action = "grant"      // gives, modifies or renews a consent, or requests a partnership
	ActionRevoke         Action = "revoke"     // ends a consent; called withdrawal if the subject or a guardian does it
	ActionRefuse         Action = "refuse"     // records that the subject was asked and refused
	ActionUpgrade        Action = "upgrade"    // the subject requests a partnership
	ActionDegrade        Action = "degrade"    // the subject changes to TEMPORARY or ANONYMOUS, which allow less
	ActionDecide         Action = "decide"     // an agent approves, declines or defers a requested partnership
	ActionInteract       Action = "interact"   // records an interaction of the subject with the agent
	ActionExpire         Action = "expire"     // records that a consent has expired
	ActionLapse          Action = "lapse"      // records that nobody decided about a requested partnership in time
	ActionWarn           Action = "warn"       // records that the subject was warned of an expiry
	ActionNoteDeleted    Action = "deleted"    // records that data were deleted
	ActionNoteAnonymised Action = "anonymised" // records that data were anonymised
	ActionNoteReport     Action = "report"     // records that an access report about the subject was made
	ActionAppoint        Action = "appoint"    // appoints a guardian
	ActionDismiss        Action = "dismiss"    // dismisses a guardian
	ActionErase          Action = "erase"      // ends all consents and destroys the subject's name and key
)

// Decision is an agent's answer to the request for a partnership.
type Decision string

// The decisions have the names that the consent protocol gives them.
const (
	DecisionApprove Decision = "TASK_COMPLETE"
	DecisionReject  Decision = "REJECT"
	DecisionDefer   Decision = "DEFER"
)

// Command asks for a change of a consent.
type Command struct {
	Action     Action `json:"Do"`
	Subject    string
	Grantee    string // to whom the consent is given; "": AnyGrantee
	Scope      string // what the consent is about; "": AnyScope
	Stream     Stream // the new stream of ActionGrant and ActionDegrade
	Categories []string
	Purposes   []string
	Duration   time.Duration `json:"For"` // how long a consent without a stream lasts; 0: it does not expire
	Decision   Decision
	Guardian   string // the guardian whom ActionAppoint or ActionDismiss names

	Caller    Party  `json:"By"`
	Interface string `json:"Via"`
	Reason    string
	Evidence  string

	// RequestKey is a key that the caller chooses; "": none. If the command is sent again with the same key, it is carried
	// out only once.
	RequestKey string `json:"Request"`
}

// Key returns the key of the consent that the command is about.
func (c Command) Key() Key {
	k := Key{c.Subject, c.Grantee, c.Scope}
	if k.Grantee == "" {
		k.Grantee = AnyGrantee
	}
	if k.Scope == "" {
		k.Scope = AnyScope
	}
	return k
}

// Limits of ids and texts, in bytes.
const (
	maxIDBytes   = 512
	maxTextBytes = 10_000
)

var scopePattern = regexp.MustCompile(`^(table|row|ctx):.`)

// Check returns an error if the command makes no sense whatever the state is. Ids may have any characters, such as
// quotes, braces and spaces.
func (c Command) Check() error {
	k := c.Key()
	for _, id := range []struct{ label, value string }{{"subject", k.Subject}, {"grantee", k.Grantee},
		{"scope", k.Scope}} {
		if err := checkID(id.label, id.value); err != nil {
			return err
		}
	}
	if c.Guardian != "" {
		if err := checkID("guardian", c.Guardian); err != nil {
			return err
		}
	}
	if c.Caller.ID != "" {
		if err := checkID("party", c.Caller.ID); err != nil {
			return err
		}
	}
	switch {
	case k.Subject == AnyGrantee:
		return newValidationError("the subject of a consent is one person, not %q", AnyGrantee)
	case k.Scope != AnyScope && !scopePattern.MatchString(k.Scope):
		return newValidationError("a scope is %q, or table:NAME, row:TABLE:KEY or ctx:NAME", AnyScope)
	case c.Duration < 0:
		return newValidationError("a consent cannot last less than no time")
	case c.Duration > 100*365*day:
		return newValidationError("a consent cannot last more than 100 years: leave the duration out if it does not expire")
	}
	for _, text := range []struct{ label, value string }{
		{"reason", c.Reason}, {"evidence", c.Evidence}, {"key of the request", c.RequestKey}, {"channel", c.Interface}} {
		switch {
		case !utf8.ValidString(text.value) || strings.ContainsRune(text.value, 0):
			return newValidationError("the %s is not UTF-8 text", text.label)
		case len(text.value) > maxTextBytes:
			return newValidationError("the %s is longer than %d bytes", text.label, maxTextBytes)
		}
	}
	if err := checkPaths("category", c.Categories); err != nil {
		return err
	}
	return checkPaths("purpose", c.Purposes)
}

func checkID(label, id string) error {
	switch {
	case id == "":
		return newValidationError("the %s is missing", label)
	case !utf8.ValidString(id):
		return newValidationError("the %s is not UTF-8 text", label)
	case len(id) > maxIDBytes:
		return newValidationError("the %s is longer than %d bytes", label, maxIDBytes)
	case strings.IndexFunc(id, unicode.IsControl) >= 0:
		return newValidationError("the %s has a control character", label)
	}
	return nil
}
