package consent

import (
	"slices"
	"strings"
	"time"
)

// Situation is the state before a command, as far as the decision depends on it.
type Situation struct {
	Consent *Consent // the present consent; nil: nothing was recorded for the command's key
	// the command's party is a guardian of the subject; for Appoint and Dismiss, the named party is
	IsGuardian       bool
	PartnershipAsker Party // the party that asked for the pending partnership
}

// Step is a record that a command makes.
type Step struct {
	Event      Event
	Consent    Consent
	RecordedBy Party // the party that makes the record: the system, for effects of time
}

// Decide returns the records that a command makes, in order; none if nothing has to change. Erase concerns all consents
// of a subject: the store calls Decide with Revoke for each and then records the erasure.
func Decide(s Settings, now time.Time, before Situation, c Command) ([]Step, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	d := &decision{Settings: s.withDefaults(), now: now, command: c, partnershipAsker: before.PartnershipAsker,
		isGuardian: before.IsGuardian}
	d.current = Consent{Key: c.Key(), Categories: []string{}, Purposes: []string{}}
	if before.Consent != nil {
		d.hasRecord, d.current = true, clone(*before.Consent)
	}
	if err := d.run(); err != nil {
		return nil, err
	}
	return d.steps, nil
}

// decision carries out a command in steps.
type decision struct {
	Settings
	now              time.Time
	command          Command
	partnershipAsker Party
	isGuardian       bool

	hasRecord bool    // there is a record
	current   Consent // the consent after the steps so far
	steps     []Step
}

func (d *decision) run() error {
	c := d.command
	if err := d.checkParty(); err != nil {
		return err
	}
	switch c.Do {
	case Appoint, Dismiss:
		return d.changeGuardian()
	case Report: // a report changes nothing, and does not record an expiry
	case DecidePartnership, Lapse:
		d.recordExpiry()
	case Expire:
		d.closeRequest()
	default:
		d.recordExpiry()
		d.closeRequest()
	}
	switch c.Do {
	case Grant:
		return d.grant()
	case Revoke, Erase:
		return d.revoke()
	case Refuse:
		return d.refuse()
	case Upgrade:
		return d.requestPartnership()
	case Degrade:
		return d.degrade()
	case DecidePartnership:
		return d.decidePartnership()
	case Interact:
		d.interact()
		return nil
	case Expire:
		return d.expire()
	case Lapse:
		return d.lapse()
	case Warn:
		return d.recordWarning()
	case Deleted, Anonymised, Report:
		return d.recordNote()
	default:
		return invalid("there is no change of consent called %q", c.Do)
	}
}

// rolesByAction lists the roles for each action. Agents decide, and nothing else.
var rolesByAction = map[Action][]Role{
	Grant:             {RoleSubject, RoleGuardian},
	Revoke:            {RoleSubject, RoleGuardian, RoleController, RoleSystem},
	Refuse:            {RoleSubject, RoleGuardian},
	Upgrade:           {RoleSubject, RoleGuardian},
	Degrade:           {RoleSubject, RoleGuardian},
	DecidePartnership: {RoleAgent},
	Interact:          {RoleSubject, RoleApplication},
	Expire:            {RoleSystem},
	Lapse:             {RoleSystem},
	Warn:              {RoleSystem},
	Deleted:           {RoleSystem},
	Anonymised:        {RoleSystem},
	Report:            {RoleSubject, RoleGuardian, RoleController},
	Appoint:           {RoleController},
	Dismiss:           {RoleController},
	Erase:             {RoleSubject, RoleGuardian, RoleController, RoleSystem},
}

// CheckRole returns an error if the party may not make the change in any situation.
func CheckRole(c Command) error {
	roles, ok := rolesByAction[c.Do]
	switch {
	case !ok:
		return invalid("there is no change of consent called %q", c.Do)
	case !slices.Contains(roles, c.By.Role):
		words := make([]string, len(roles))
		for i, r := range roles {
			words[i] = string(r)
		}
		return forbidden(c.By.Role, "%s is for: %s", c.Do, strings.Join(words, ", "))
	case c.By.Role == RoleSubject && c.By.ID != c.Subject:
		return forbidden(c.By.Role, "a subject changes its own consent, and no other")
	}
	return nil
}

// checkParty returns an error if the party may not make the change.
func (d *decision) checkParty() error {
	c := d.command
	if err := CheckRole(c); err != nil {
		return err
	}
	if c.By.Role == RoleGuardian && !d.isGuardian {
		return forbidden(c.By.Role, "this is not a guardian of the subject")
	}
	return nil
}

// addStep adds a record of the current consent.
func (d *decision) addStep(e Event) {
	by := d.command.By
	switch e {
	case EventExpired, EventLapsed:
		by = Party{Role: RoleSystem}
	}
	if d.Controller != "" {
		d.current.Controller = d.Controller
	}
	d.hasRecord = true
	d.steps = append(d.steps, Step{e, clone(d.current), by})
}

// isOfStream tells whether the command's key is one of a stream.
func (d *decision) isOfStream() bool {
	return d.current.Grantee == Everybody && d.current.Scope == Everything
}

// startConsent starts or restarts a consent.
func (d *decision) startConsent(s Stream, categories, purposes []string) {
	d.current.State, d.current.Stream, d.current.Categories, d.current.Purposes = Given, s, categories, purposes
	d.current.GivenAt, d.current.ExpiresAt, d.current.WarnedAt = d.now, time.Time{}, time.Time{}
	if s == Temporary {
		d.current.ExpiresAt = d.now.Add(d.Duration)
	}
}

// endConsent ends the consent.
func (d *decision) endConsent(s State, at time.Time) {
	if d.current.Stream != "" && (d.current.State == Given || !d.current.VoidBefore.IsZero()) && at.After(d.current.VoidBefore) {
		d.current.VoidBefore = at
	}
	d.current.State, d.current.Categories, d.current.Purposes = s, []string{}, []string{}
	d.current.DecayFrom, d.current.WarnedAt = time.Time{}, time.Time{}
}

func (d *decision) clearRequest() { d.current.RequestedCategories, d.current.DueAt = nil, time.Time{} }

func clone(c Consent) Consent {
	c.Categories, c.Purposes, c.RequestedCategories = slices.Clone(c.Categories), slices.Clone(c.Purposes), slices.Clone(c.RequestedCategories)
	return c
}
