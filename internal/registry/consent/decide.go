package consent

import (
	"slices"
	"strings"
	"time"
)

// Situation is what [Decide] needs to know about the state before a command.
type Situation struct {
	Consent *Consent // the consent with the command's key; nil: it has no record
	// the caller is a guardian of the subject; for ActionAppoint and ActionDismiss: the person whom the command names is a
	// guardian already
	IsGuardian       bool
	PartnershipAsker Party // who requested the partnership that is not decided yet
}

// Step is one of the records that a command makes.
type Step struct {
	Event      Event
	Consent    Consent
	RecordedBy Party // who makes the record; RoleSystem if only time has passed
}

// Decide returns the records that a command makes, in order. It returns none if nothing has to change. ActionErase ends
// all consents of a subject: the registry calls Decide with ActionRevoke for each consent, and then records the
// erasure.
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

// decision computes the steps of one command.
type decision struct {
	Settings
	now              time.Time
	command          Command
	partnershipAsker Party
	isGuardian       bool

	hasRecord bool    // the consent has a record
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
	case ActionNoteReport: // a report changes nothing, so it does not record an expiry either
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

// rolesByAction lists which roles may carry out each action. Agents may only decide about partnerships.
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

// CheckRole returns an error if the caller's role may never carry out the action.
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

// checkParty returns an error if the caller may not carry out the action on this consent.
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

// addStep adds a step with the consent as it is now.
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

// hasStream reports whether the command's key is that of a consent with a stream: any grantee, any scope.
func (d *decision) hasStream() bool {
	return d.current.Grantee == AnyGrantee && d.current.Scope == AnyScope
}

// startConsent gives the consent now, and sets its expiry if the stream has one.
func (d *decision) startConsent(s Stream, categories, purposes []string) {
	d.current.State, d.current.Stream, d.current.Categories, d.current.Purposes = StateGiven, s, categories, purposes
	d.current.GivenAt, d.current.ExpiresAt, d.current.WarnedAt = d.now, time.Time{}, time.Time{}
	if s == StreamTemporary {
		d.current.ExpiresAt = d.now.Add(d.TemporaryDuration)
	}
}

// endConsent ends the consent at a time, with the given state.
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
