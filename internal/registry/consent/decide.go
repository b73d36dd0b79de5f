package consent

import (
	"slices"
	"strings"
	"time"
)

// Situation is the state before a command, as far as the decision depends on it.
type Situation struct {
	Consent *Consent // the present consent; nil: nothing was recorded for the command's key
	// the caller is a guardian of the subject; for ActionAppoint and ActionDismiss, the named guardian is one already
	IsGuardian       bool
	PartnershipAsker Party // the party that asked for the pending partnership
}

// Step is a record that a command makes.
type Step struct {
	Event      Event
	Consent    Consent
	RecordedBy Party // the party that makes the record: the system, for effects of time
}

// Decide returns the records that a command makes, in order; none if nothing has to change. ActionErase concerns all
// consents of a subject: the registry calls Decide with ActionRevoke for each, and then records the erasure.
func Decide(s Settings, now time.Time, before Situation, command Command) ([]Step, error) {
	if err := command.Check(); err != nil {
		return nil, err
	}
	d := &decision{Settings: s.withDefaults(), now: now, command: command, partnershipAsker: before.PartnershipAsker,
		isGuardian: before.IsGuardian}
	d.current = Consent{Key: command.Key(), Categories: []string{}, Purposes: []string{}}
	if before.Consent != nil {
		d.hasRecord, d.current = true, clone(*before.Consent)
	}
	if err := d.decide(); err != nil {
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

func (d *decision) decide() error {
	command := d.command
	if err := d.checkParty(); err != nil {
		return err
	}
	switch command.Action {
	case ActionAppoint, ActionDismiss:
		return d.changeGuardian()
	case ActionNoteReport: // a report changes nothing, and does not record an expiry
	case ActionDecide, ActionLapse:
		d.recordExpiry()
	case ActionExpire:
		d.closeRequest()
	default:
		d.recordExpiry()
		d.closeRequest()
	}
	switch command.Action {
	case ActionGrant:
		return d.grant()
	case ActionRevoke, ActionErase:
		return d.revoke()
	case ActionRefuse:
		return d.refuse()
	case ActionUpgrade:
		return d.requestPartnership()
	case ActionDegrade:
		return d.degrade()
	case ActionDecide:
		return d.decidePartnership()
	case ActionInteract:
		d.interact()
		return nil
	case ActionExpire:
		return d.expire()
	case ActionLapse:
		return d.lapse()
	case ActionWarn:
		return d.recordWarning()
	case ActionNoteDeleted, ActionNoteAnonymised, ActionNoteReport:
		return d.recordSweepOrReport()
	default:
		return newValidationError("there is no change of consent called %q", command.Action)
	}
}

// rolesByAction lists the roles for each action. Agents decide, and nothing else.
var rolesByAction = map[Action][]Role{
	ActionGrant:          {RoleSubject, RoleGuardian},
	ActionRevoke:         {RoleSubject, RoleGuardian, RoleController, RoleSystem},
	ActionRefuse:         {RoleSubject, RoleGuardian},
	ActionUpgrade:        {RoleSubject, RoleGuardian},
	ActionDegrade:        {RoleSubject, RoleGuardian},
	ActionDecide:         {RoleAgent},
	ActionInteract:       {RoleSubject, RoleApplication},
	ActionExpire:         {RoleSystem},
	ActionLapse:          {RoleSystem},
	ActionWarn:           {RoleSystem},
	ActionNoteDeleted:    {RoleSystem},
	ActionNoteAnonymised: {RoleSystem},
	ActionNoteReport:     {RoleSubject, RoleGuardian, RoleController},
	ActionAppoint:        {RoleController},
	ActionDismiss:        {RoleController},
	ActionErase:          {RoleSubject, RoleGuardian, RoleController, RoleSystem},
}

// CheckRole returns an error if the party may not make the change in any situation.
func CheckRole(command Command) error {
	roles, ok := rolesByAction[command.Action]
	switch {
	case !ok:
		return newValidationError("there is no change of consent called %q", command.Action)
	case !slices.Contains(roles, command.Caller.Role):
		words := make([]string, len(roles))
		for i, r := range roles {
			words[i] = string(r)
		}
		return newForbiddenError(command.Caller.Role, "%s is for: %s", command.Action, strings.Join(words, ", "))
	case command.Caller.Role == RoleSubject && command.Caller.ID != command.Subject:
		return newForbiddenError(command.Caller.Role, "a subject changes its own consent, and no other")
	}
	return nil
}

// checkParty returns an error if the party may not make the change.
func (d *decision) checkParty() error {
	c := d.command
	if err := CheckRole(c); err != nil {
		return err
	}
	if c.Caller.Role == RoleGuardian && !d.isGuardian {
		return newForbiddenError(c.Caller.Role, "this is not a guardian of the subject")
	}
	return nil
}

// addStep adds a record of the current consent.
func (d *decision) addStep(e Event) {
	recordedBy := d.command.Caller
	switch e {
	case EventExpired, EventLapsed:
		recordedBy = Party{Role: RoleSystem}
	}
	if d.Controller != "" {
		d.current.Controller = d.Controller
	}
	d.hasRecord = true
	d.steps = append(d.steps, Step{e, clone(d.current), recordedBy})
}

// hasStream tells whether the command's key is one of a stream.
func (d *decision) hasStream() bool {
	return d.current.Grantee == AnyGrantee && d.current.Scope == AnyScope
}

// startConsent starts or restarts a consent.
func (d *decision) startConsent(s Stream, categories, purposes []string) {
	d.current.State, d.current.Stream, d.current.Categories, d.current.Purposes = StateGiven, s, categories, purposes
	d.current.GivenAt, d.current.ExpiresAt, d.current.WarnedAt = d.now, time.Time{}, time.Time{}
	if s == StreamTemporary {
		d.current.ExpiresAt = d.now.Add(d.TemporaryDuration)
	}
}

// endConsent ends the consent.
func (d *decision) endConsent(s State, at time.Time) {
	if d.current.Stream != "" && (d.current.State == StateGiven || !d.current.VoidBefore.IsZero()) &&
		at.After(d.current.VoidBefore) {
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
