package consent

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/property"
)

var startTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func subject(id string) Party { return Party{RoleSubject, id} }

// history executes commands at given times, and has the resulting consent.
type history struct {
	t        testing.TB
	settings Settings
	now      time.Time
	consent  *Consent
	asker    Party
	events   []Event
}

func (h *history) do(command Command) error {
	if command.Subject == "" {
		command.Subject = "ada"
	}
	if command.Caller.Role == "" {
		command.Caller = subject(command.Subject)
	}
	steps, err := Decide(h.settings, h.now, Situation{Consent: h.consent, PartnershipAsker: h.asker}, command)
	for _, s := range steps {
		after := s.Consent
		h.consent = &after
		h.events = append(h.events, s.Event)
		if s.Event == EventRequested {
			h.asker = command.Caller
		}
	}
	return err
}

func (h *history) must(c Command) {
	h.t.Helper()
	if err := h.do(c); err != nil {
		h.t.Fatalf("%s: %v", c.Action, err)
	}
}

func (h *history) later(d time.Duration) *history { h.now = h.now.Add(d); return h }

func begin(t testing.TB) *history { return &history{t: t, now: startTime} }

var agent = Party{RoleAgent, "chat"}

func partnered(t testing.TB) *history {
	h := begin(t)
	h.must(Command{Action: ActionInteract})
	h.must(Command{Action: ActionUpgrade})
	h.must(Command{Action: ActionDecide, Caller: agent, Decision: DecisionApprove})
	return h
}

// "Downgrade Protocol", and SYSTEMS.md 2 d: between streams, only these moves are possible.
// seeds/001:81-85.
func TestMovesBetweenStreams(t *testing.T) {
	start := map[Stream]func() *history{
		StreamTemporary: func() *history {
			h := begin(t)
			h.must(Command{Action: ActionGrant, Stream: StreamTemporary})
			return h
		},
		StreamPartnered: func() *history { return partnered(t) },
		StreamAnonymous: func() *history {
			h := begin(t)
			h.must(Command{Action: ActionGrant, Stream: StreamAnonymous})
			return h
		},
	}
	isAllowedMove := map[[2]Stream]bool{{StreamPartnered, StreamTemporary}: true, {StreamPartnered, StreamAnonymous}: true,
		{StreamTemporary, StreamAnonymous}: true}
	for fromStream, make := range start {
		for _, toStream := range append(Streams, "OTHER", "") {
			h := make()
			err := h.do(Command{Action: ActionDegrade, Stream: toStream})
			if isAllowedMove[[2]Stream{fromStream, toStream}] {
				if err != nil || h.consent.Stream != toStream || h.consent.State != StateGiven {
					t.Errorf("%s to %s: %v %+v", fromStream, toStream, err, h.consent)
				}
			} else if !errors.As(err, new(*ValidationError)) {
				t.Errorf("%s to %q: %v, want a ValidationError", fromStream, toStream, err)
			}
		}
	}
	h := start[StreamAnonymous]()
	if err := h.do(Command{Action: ActionGrant, Stream: StreamTemporary}); !errors.As(err, new(*ValidationError)) {
		t.Errorf("ANONYMOUS to TEMPORARY by a grant: %v", err)
	}
}

// "Consent Streams": the duration and the categories of each stream.
// seeds/001:23-28, 30-35, 37-41, 230-233.
func TestStreams(t *testing.T) {
	h := begin(t)
	h.must(Command{Action: ActionInteract})
	if want := startTime.Add(14 * day); !h.consent.ExpiresAt.Equal(want) || !slices.Equal(h.consent.Categories, []string{CategoryEssential}) {
		t.Errorf("%+v", h.consent)
	}
	h.later(5 * day).must(Command{Action: ActionInteract})
	if want := startTime.Add(19 * day); !h.consent.ExpiresAt.Equal(want) || !h.consent.GivenAt.Equal(startTime) ||
		h.events[1] != EventRenewed {
		t.Errorf("%+v %v", h.consent, h.events)
	}
	// A consent ends exactly at its expiry. An interaction after that makes a new consent, which does not cover older
	// data.
	h.later(14 * day)
	if h.consent.IsActiveAt(h.now) || h.consent.StateAt(h.now) != StateExpired || !h.consent.IsActiveAt(h.now.Add(-time.Microsecond)) {
		t.Error("it does not expire at its instant")
	}
	if err := h.do(Command{Action: ActionDegrade, Stream: StreamAnonymous}); !errors.As(err, new(*ExpiredError)) {
		t.Errorf("%v, want an ExpiredError", err)
	}
	h.must(Command{Action: ActionInteract})
	if !slices.Equal(h.events[2:], []Event{EventExpired, EventGiven}) || !h.consent.VoidBefore.Equal(startTime.Add(19*day)) || !h.consent.GivenAt.Equal(h.now) {
		t.Errorf("%v %+v", h.events, h.consent)
	}
	p := partnered(t)
	if !p.consent.ExpiresAt.IsZero() || !slices.Equal(p.consent.Categories,
		[]string{CategoryEssential, CategoryBehavioral, CategoryImprovement}) {
		t.Errorf("%+v", p.consent)
	}
	p.must(Command{Action: ActionDegrade, Stream: StreamAnonymous})
	if !p.consent.ExpiresAt.IsZero() || !slices.Equal(p.consent.Categories, []string{CategoryStatistical}) ||
		!p.consent.DecayFrom.Equal(p.now) {
		t.Errorf("%+v", p.consent)
	}
	// With these settings, consent must be explicit and an interaction does not renew it.
	e := begin(t)
	e.settings = Settings{RequireExplicit: true, NoRenewal: true}
	e.must(Command{Action: ActionInteract})
	if e.consent != nil {
		t.Errorf("an interaction gives %+v", e.consent)
	}
	e.must(Command{Action: ActionGrant, Stream: StreamTemporary})
	e.later(day).must(Command{Action: ActionInteract})
	if !e.consent.ExpiresAt.Equal(startTime.Add(14 * day)) {
		t.Error("an interaction renews")
	}
	e.later(14 * day).must(Command{Action: ActionInteract})
	if e.consent.State != StateExpired {
		t.Errorf("an interaction gives %+v", e.consent)
	}
}

// "Bilateral Partnership Protocol".
// seeds/001:30-35, 69-78.
func TestPartnership(t *testing.T) {
	requestPartnership := func() *history {
		h := begin(t)
		h.must(Command{Action: ActionInteract})
		h.must(Command{Action: ActionUpgrade})
		return h
	}
	h := requestPartnership()
	if h.consent.State != StateGiven || h.consent.Stream != StreamTemporary || !h.consent.DueAt.Equal(startTime.Add(48*time.Hour)) {
		t.Errorf("%+v", h.consent)
	}
	for _, party := range []Party{subject("ada"), {RoleController, "legal"}, {RoleSystem, ""}, {RoleApplication, "app"},
		{RoleGuardian, "eve"}, {RoleAgent, "ada"}} {
		if err := h.do(Command{Action: ActionDecide, Caller: party, Decision: DecisionApprove}); !errors.As(err, new(*ForbiddenError)) {
			t.Errorf("%v decides: %v", party, err)
		}
	}
	if err := h.do(Command{Action: ActionUpgrade, Caller: agent}); !errors.As(err, new(*ForbiddenError)) {
		t.Errorf("an agent asks: %v", err)
	}
	dueTime := h.consent.DueAt
	h.later(time.Hour).must(Command{Action: ActionDecide, Caller: agent, Decision: DecisionDefer})
	if !h.consent.DueAt.Equal(dueTime) || h.consent.RequestedCategories == nil {
		t.Errorf("a deferral keeps the deadline: %+v", h.consent)
	}
	h.must(Command{Action: ActionDecide, Caller: agent, Decision: DecisionReject})
	if h.consent.Stream != StreamTemporary || h.consent.State != StateGiven || h.consent.RequestedCategories != nil {
		t.Errorf("%+v", h.consent)
	}
	l := requestPartnership().later(48 * time.Hour)
	if err := l.do(Command{Action: ActionDecide, Caller: agent, Decision: DecisionApprove}); !errors.As(err, new(*ExpiredError)) {
		t.Errorf("after 48 hours: %v", err)
	}
	l.must(Command{Action: ActionLapse, Caller: Party{Role: RoleSystem}})
	if l.consent.RequestedCategories != nil || l.consent.Stream != StreamTemporary || l.events[len(l.events)-1] != EventLapsed {
		t.Errorf("%+v", l.consent)
	}
	// A subject may consent to fewer categories than the stream has, never to more.
	f := begin(t)
	f.must(Command{Action: ActionGrant, Stream: StreamPartnered, Categories: []string{CategoryEssential, "BEHAVIORAL/style"}})
	if f.consent.State != StateRequested || f.consent.IsActiveAt(f.now) {
		t.Errorf("%+v", f.consent)
	}
	f.must(Command{Action: ActionDecide, Caller: agent, Decision: DecisionApprove})
	if PathsCover(f.consent.Categories, CategoryBehavioral) || !PathsCover(f.consent.Categories, "BEHAVIORAL/style") ||
		PathsCover(f.consent.Categories, CategoryImprovement) {
		t.Errorf("%v", f.consent.Categories)
	}
	if err := f.do(Command{Action: ActionUpgrade, Categories: []string{CategoryStatistical}}); !errors.As(err, new(*ValidationError)) {
		t.Errorf("%v", err)
	}
	f.must(Command{Action: ActionUpgrade, Categories: []string{CategoryEssential}})
	if !slices.Equal(f.consent.Categories, []string{CategoryEssential}) || f.consent.RequestedCategories != nil {
		t.Errorf("less needs nobody: %+v", f.consent)
	}
	f.must(Command{Action: ActionUpgrade})
	if f.consent.RequestedCategories == nil || PathsCover(f.consent.Categories, CategoryBehavioral) {
		t.Errorf("more is asked for: %+v", f.consent)
	}
}

// If a consent expires while a partnership is requested, data from before the expiry stays void after the approval.
func TestExpiryBeforeADecisionCounts(t *testing.T) {
	h := begin(t)
	h.settings.TemporaryDuration = day
	h.must(Command{Action: ActionGrant, Stream: StreamTemporary})
	h.must(Command{Action: ActionUpgrade})
	h.later(day + time.Hour).must(Command{Action: ActionDecide, Caller: agent, Decision: DecisionApprove})
	if h.consent.Stream != StreamPartnered || !h.consent.VoidBefore.Equal(startTime.Add(day)) {
		t.Errorf("%+v", h.consent)
	}
}

// "Decay Protocol": the periods of days 0-30, 31-60, 61-90, and the end at day 90. SYSTEMS.md 2 e.
// seeds/001:163-168, 425.
func TestDecay(t *testing.T) {
	for days, want := range map[int]DecayStage{0: DecayContextKept, 30: DecayContextKept, 31: DecayAggregated, 60: DecayAggregated,
		61: DecayUnidentified, 89: DecayUnidentified, 90: DecayAnonymous, 1000: DecayAnonymous} {
		if got := DecayAfter(days); got != want {
			t.Errorf("day %d: %s, want %s", days, got, want)
		}
	}
	h := partnered(t)
	h.must(Command{Action: ActionDegrade, Stream: StreamAnonymous})
	leftAt := h.now
	h.later(40*day + 23*time.Hour)
	if h.consent.DecayDays(h.now) != 40 {
		t.Errorf("%d full days", h.consent.DecayDays(h.now))
	}
	// A new partnership stops the countdown and stores how far it went. When the partnership ends, the countdown begins
	// at 0 again.
	h.must(Command{Action: ActionUpgrade})
	h.must(Command{Action: ActionDecide, Caller: agent, Decision: DecisionApprove})
	if !h.consent.DecayFrom.IsZero() || h.consent.DecayedDays != 40 || !h.consent.DecayedBefore.Equal(leftAt) {
		t.Errorf("%+v", h.consent)
	}
	h.later(day).must(Command{Action: ActionDegrade, Stream: StreamAnonymous})
	if h.consent.DecayDays(h.now) != 0 || h.consent.DecayedDays != 40 {
		t.Errorf("%+v", h.consent)
	}
	withoutDecay := partnered(t)
	withoutDecay.settings.NoDecay = true
	withoutDecay.must(Command{Action: ActionDegrade, Stream: StreamAnonymous})
	if withoutDecay.consent.DecayStageAt(withoutDecay.now) != DecayAnonymous {
		t.Errorf("%+v", withoutDecay.consent)
	}
}

// What a countdown has removed stays removed, even if a later countdown is stopped earlier.
func TestDecayNeverGoesBack(t *testing.T) {
	h := partnered(t)
	for _, c := range []struct{ days, want int }{{40, 40}, {5, 40}, {70, 70}, {69, 70}} {
		h.later(day).must(Command{Action: ActionDegrade, Stream: StreamAnonymous})
		h.later(time.Duration(c.days) * day).must(Command{Action: ActionUpgrade})
		h.must(Command{Action: ActionDecide, Caller: agent, Decision: DecisionApprove})
		if h.consent.DecayedDays != c.want {
			t.Errorf("a countdown of %d days: decayed by %d, want %d", c.days, h.consent.DecayedDays, c.want)
		}
	}
}

// Only the subject's own interaction renews a consent, and no interaction ends a withdrawal (SYSTEMS.md 2 n).
// seeds/001:193-196.
func TestInteractions(t *testing.T) {
	h := begin(t)
	if err := h.do(Command{Action: ActionInteract, Caller: agent}); !errors.As(err, new(*ForbiddenError)) {
		t.Errorf("an agent renews: %v", err)
	}
	for _, end := range []Command{{Action: ActionRevoke}, {Action: ActionRevoke, Caller: Party{RoleController, "legal"}}} {
		h := begin(t)
		h.must(Command{Action: ActionGrant, Stream: StreamTemporary})
		h.must(end)
		state := h.consent.State
		h.must(Command{Action: ActionInteract})
		if h.consent.State != state || h.consent.IsActiveAt(h.now) {
			t.Errorf("%+v", h.consent)
		}
	}
	r := begin(t)
	r.must(Command{Action: ActionRefuse})
	r.must(Command{Action: ActionInteract})
	if r.consent.State != StateRefused {
		t.Errorf("%+v", r.consent)
	}
}

// The states tell whether the subject withdrew or refused, the controller revoked, or the consent expired.
// seeds/001:200.
func TestStatesDiffer(t *testing.T) {
	seenStates := map[string]bool{}
	for _, s := range States {
		if seenStates[s.DPVTerm()] || s.DPVTerm() == "dpv:ConsentUnknown" {
			t.Errorf("%s is %s", s, s.DPVTerm())
		}
		seenStates[s.DPVTerm()] = true
	}
}

// GDPR, Article 7(3): a subject withdraws consent in one step and from every state. Withdrawing requires nothing that
// granting did not: no further name, no reason, and nobody's agreement. seeds/001:200.
func TestWithdrawingIsAsEasyAsGranting(t *testing.T) {
	for name, newGivenHistory := range map[string]func(t testing.TB) *history{
		"TEMPORARY": func(t testing.TB) *history {
			h := begin(t)
			h.must(Command{Action: ActionGrant, Stream: StreamTemporary})
			return h
		},
		"an interaction": func(t testing.TB) *history { h := begin(t); h.must(Command{Action: ActionInteract}); return h },
		"PARTNERED":      func(t testing.TB) *history { return partnered(t) },
		"ANONYMOUS": func(t testing.TB) *history {
			h := begin(t)
			h.must(Command{Action: ActionGrant, Stream: StreamAnonymous})
			return h
		},
		"asked for": func(t testing.TB) *history {
			h := begin(t)
			h.must(Command{Action: ActionGrant, Stream: StreamPartnered})
			return h
		},
		"asked for more": func(t testing.TB) *history {
			h := begin(t)
			h.must(Command{Action: ActionInteract})
			h.must(Command{Action: ActionUpgrade})
			return h
		},
		"decaying": func(t testing.TB) *history {
			h := partnered(t)
			h.must(Command{Action: ActionDegrade, Stream: StreamAnonymous})
			return h.later(40 * day)
		},
		"with a deadline": func(t testing.TB) *history {
			h := partnered(t)
			h.must(Command{Action: ActionDegrade, Stream: StreamTemporary})
			return h
		},
	} {
		h := newGivenHistory(t)
		before := len(h.events)
		h.must(Command{Action: ActionRevoke})
		if h.consent.State != StateWithdrawn || h.consent.IsActiveAt(h.now) || len(h.events) != before+1 ||
			h.consent.RequestedCategories != nil ||
			!h.consent.GivenAt.IsZero() && !h.consent.VoidBefore.Equal(h.now) {
			t.Errorf("%s: %v %+v", name, h.events[before:], h.consent)
		}
	}
	otherConsent := Command{Subject: "ada", Grantee: "si:vet", Scope: "ctx:health"}
	h := begin(t)
	grant, revoke := otherConsent, otherConsent
	grant.Action, grant.Purposes, grant.Categories, grant.Evidence = ActionGrant, []string{"care"}, []string{"health"}, "form 7"
	revoke.Action = ActionRevoke
	h.must(grant)
	h.must(revoke)
	if h.consent.State != StateWithdrawn || h.consent.IsActiveAt(h.now) {
		t.Errorf("%+v", h.consent)
	}
}

// Each reason for a refusal has an error type of its own.
// seeds/001:218-221.
func TestErrorsAreNamed(t *testing.T) {
	for name, err := range map[string]error{
		"ConsentNotFoundError": NewNotFound(), "ConsentValidationError": newValidationError("x"), "ConsentExpiredError": newExpiredError("x"),
		"ConsentForbiddenError": newForbiddenError(RoleAgent, "x"), "ConsentConflictError": NewConflict(), "ConsentClockError": NewClock(),
	} {
		var namedError Named
		var e *sqlstate.Error
		if !errors.As(err, &namedError) || namedError.Name() != name || !errors.As(err, &e) || e.Message == "" || e.Hint == "" && name != "ConsentValidationError" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// For random commands in any order, the guarantees of the package hold.
func TestDecideProperties(t *testing.T) {
	roles := []Role{RoleSubject, RoleSubject, RoleSubject, RoleGuardian, RoleAgent, RoleController, RoleApplication, RoleSystem, "other"}
	actions := []Action{ActionGrant, ActionGrant, ActionRevoke, ActionRefuse, ActionUpgrade, ActionUpgrade, ActionDegrade, ActionDecide, ActionDecide,
		ActionInteract, ActionExpire, ActionLapse, ActionWarn, ActionNoteDeleted, ActionNoteAnonymised, ActionNoteReport, ActionAppoint, ActionDismiss, ActionErase,
		"other"}
	categories := []string{CategoryEssential, CategoryBehavioral, CategoryImprovement, CategoryStatistical, "ESSENTIAL/id", "BEHAVIORAL/style", "own"}
	walk := func(t *rapid.T) {
		s := Settings{
			RequireExplicit: rapid.Bool().Draw(t, "explicit"), NoRenewal: rapid.Bool().Draw(t, "norenewal"), NoDecay: rapid.Bool().Draw(t, "nodecay"),
			TemporaryDuration: rapid.SampledFrom([]time.Duration{0, day}).Draw(t, "duration"),
		}
		now := startTime
		var consent *Consent
		var asker Party
		key := rapid.SampledFrom([]Key{{}, {}, {}, {Grantee: "bob"}, {Scope: "table:notes"}}).Draw(t, "key")
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 60, 24 * 60, 5 * 24 * 60, 40 * 24 * 60}).Draw(t, "minutes")) * time.Minute)
			role := rapid.SampledFrom(roles).Draw(t, "role")
			command := Command{
				Action: rapid.SampledFrom(actions).Draw(t,
					"do"), Subject: "ada", Grantee: key.Grantee, Scope: key.Scope,
				Stream:     rapid.SampledFrom(append(Streams, StreamTemporary, "", "other")).Draw(t, "stream"),
				Categories: rapid.SliceOfN(rapid.SampledFrom(categories), 0, 3).Draw(t, "categories"),
				Decision:   rapid.SampledFrom([]Decision{DecisionApprove, DecisionApprove, DecisionReject, DecisionDefer, "other"}).Draw(t, "decision"),
				Caller:     Party{role, rapid.SampledFrom([]string{"ada", "ada", "bob", "chat"}).Draw(t, "by")},
				Duration:   time.Duration(rapid.SampledFrom([]int{0, 0, 0, 9}).Draw(t, "days")) * day,
				Guardian:   rapid.SampledFrom([]string{"bob", "*", "ada"}).Draw(t, "whom"),
			}
			if role != RoleSubject && command.Caller.ID == "ada" && rapid.Bool().Draw(t, "else") {
				command.Caller.ID = "chat"
			}
			if consent != nil && consent.RequestedCategories != nil && rapid.Bool().Draw(t, "answer") {
				command.Action, command.Decision = ActionDecide, rapid.SampledFrom([]Decision{DecisionApprove, DecisionApprove, DecisionReject}).Draw(t, "so")
			}
			if permittedRoles := rolesByAction[command.Action]; len(permittedRoles) > 0 &&
				rapid.IntRange(0, 3).Draw(t, "meant") > 0 { // so that more commands are permitted
				role = rapid.SampledFrom(permittedRoles).Draw(t, "entitled")
				command.Caller = Party{role, map[bool]string{true: "ada", false: rapid.SampledFrom([]string{"chat", "chat", "bob"}).Draw(t, "party")}[role == RoleSubject]}
			}
			if rapid.Bool().Draw(t, "for purposes") {
				command.Purposes = []string{"care"}
			}
			guardian := rapid.Bool().Draw(t, "guardian")
			var before *Consent
			if consent != nil {
				copyBefore := clone(*consent)
				before = &copyBefore
			}
			steps, err := Decide(s, now, Situation{consent, guardian, asker}, command)
			if !reflect.DeepEqual(before, consent) {
				t.Fatal("what was given was touched")
			}
			var namedError Named
			if err != nil && (!errors.As(err, &namedError) || len(steps) > 0) {
				t.Fatalf("%T %v with %d steps", err, err, len(steps))
			}
			if !isEntitled(command, guardian) && err == nil {
				t.Fatalf("%+v may %s: guardian %v", command.Caller, command.Action, guardian)
			}
			if command.Action == ActionRevoke && command.Caller == subject("ada") {
				if err != nil && !errors.As(err, new(*NotFoundError)) {
					t.Fatalf("a withdrawal is refused: %v", err)
				}
			}
			if command.Action == ActionAppoint || command.Action == ActionDismiss { // these do not change consents
				if err == nil && (command.Guardian != "bob" || (len(steps) > 0) != (guardian == (command.Action == ActionDismiss))) {
					t.Fatalf("%s %s where guardian is %v: %v", command.Action, command.Guardian, guardian, steps)
				}
				continue
			}
			from := consent
			for _, step := range steps {
				checkGuarantees(t, s, now, from, step, command)
				if step.Event == EventApproved && (command.Caller.ID == asker.ID || command.Caller.ID == "ada") {
					t.Fatalf("%s asked, and %s decided", asker.ID, command.Caller.ID)
				}
				after := step.Consent
				from = &after
				if step.Event == EventRequested {
					asker = command.Caller
				}
			}
			consent = from
			if err == nil && (command.Action == ActionRevoke || command.Action == ActionRefuse || command.Action == ActionErase) && consent.IsActiveAt(now) {
				t.Fatalf("after %s something is in force: %+v", command.Action, consent)
			}
			if err == nil && role == RoleAgent && command.Action != ActionDecide {
				t.Fatalf("an agent may %s", command.Action)
			}
			// If one of these commands is decided again with the same current time, it changes nothing more.
			switch repeatedSteps, err := Decide(s, now, Situation{consent, guardian, asker}, command); {
			case err != nil:
			case command.Action == ActionGrant, command.Action == ActionRevoke, command.Action == ActionRefuse, command.Action == ActionInteract,
				command.Action == ActionWarn,
				command.Action == ActionExpire, command.Action == ActionLapse:
				if len(repeatedSteps) > 0 {
					t.Fatalf("%s twice makes %v: %+v", command.Action, repeatedSteps[0].Event, consent)
				}
			}
		}
	}
	property.CheckMore(t, 20, walk) // long enough for guarantees that need several steps
}

// isEntitled returns whether a caller may give the command. Nobody may act for another person, except for the roles
// listed here.
func isEntitled(c Command, guardian bool) bool {
	rolesByPermission := map[Action]string{
		ActionGrant: "subject guardian", ActionRefuse: "subject guardian", ActionUpgrade: "subject guardian", ActionDegrade: "subject guardian",
		ActionDecide: "agent",
		ActionRevoke: "subject guardian controller system", ActionErase: "subject guardian controller system", ActionNoteReport: "subject guardian controller",
		ActionInteract: "subject application", ActionExpire: "system", ActionLapse: "system", ActionWarn: "system", ActionNoteDeleted: "system",
		ActionNoteAnonymised: "system", ActionAppoint: "controller", ActionDismiss: "controller",
	}
	return slices.Contains(strings.Fields(rolesByPermission[c.Action]), string(c.Caller.Role)) &&
		(c.Caller.Role != RoleSubject || c.Caller.ID == c.Subject) && (c.Caller.Role != RoleGuardian || guardian)
}

// checkGuarantees checks that a step keeps the guarantees.
func checkGuarantees(t *rapid.T, s Settings, now time.Time, before *Consent, step Step, command Command) {
	after := step.Consent
	if after.State != StateGiven && len(after.Categories)+len(after.Purposes) > 0 {
		t.Fatalf("%s lists %v", after.State, after.Categories)
	}
	if after.State == StateGiven && after.Stream != "" {
		for _, category := range after.Categories {
			if !PathsCover(after.Stream.AllowedCategories(), category) {
				t.Fatalf("%s lists %s", after.Stream, category)
			}
		}
		if len(after.Categories) == 0 {
			t.Fatalf("%s lists nothing", after.Stream)
		}
		if after.ExpiresAt.IsZero() == (after.Stream == StreamTemporary) {
			t.Fatalf("%s expires at %v", after.Stream, after.ExpiresAt)
		}
	}
	wasPartnered := before != nil && before.State == StateGiven && before.Stream == StreamPartnered
	if after.State == StateGiven && after.Stream == StreamPartnered {
		switch {
		case step.Event == EventApproved && command.Caller.Role == RoleAgent && before != nil && before.IsPendingAt(now):
		case !wasPartnered || !pathsCoverAll(before.Categories, after.Categories):
			t.Fatalf("%s made a partnership, or a wider one: %+v", step.Event, after)
		}
	}
	if before != nil && before.State == StateGiven && after.State == StateGiven && after.ExpiresAt.After(before.ExpiresAt) && !before.ExpiresAt.IsZero() {
		if step.RecordedBy.Role != RoleSubject && step.RecordedBy.Role != RoleGuardian &&
			step.RecordedBy.Role != RoleApplication {
			t.Fatalf("%s renewed by %s", step.Event, step.RecordedBy.Role)
		}
		if s.NoRenewal && command.Action == ActionInteract {
			t.Fatal("an interaction renewed")
		}
	}
	if before != nil {
		if after.VoidBefore.Before(before.VoidBefore) || after.DecayedDays < before.DecayedDays || after.DecayedBefore.Before(before.DecayedBefore) {
			t.Fatalf("%s brings something back: %+v", step.Event, after)
		}
		if (before.State == StateWithdrawn || before.State == StateRevoked || before.State == StateRefused) && after.State == StateGiven &&
			command.Action == ActionInteract {
			t.Fatal("an interaction overrode a withdrawal")
		}
	}
	if after.Stream != "" && (after.Grantee != AnyGrantee || after.Scope != AnyScope) {
		t.Fatalf("%s to %s about %s", after.Stream, after.Grantee, after.Scope)
	}
	if after.State != StateGiven && !after.DecayFrom.IsZero() {
		t.Fatalf("%s, and the countdown goes on", after.State)
	}
	switch after.State {
	case StateWithdrawn, StateRevoked, StateRefused:
		if step.Event != EventDeleted && step.Event != EventAnonymised && step.Event != EventReported &&
			step.Event != EventRequested && after.RequestedCategories != nil {
			t.Fatalf("%s, and a question waits", after.State)
		}
	}
	if before != nil {
		checkMove(t, s, now, *before, step, command)
	}
	if command.Duration != 0 && after.Stream == "" && (step.Event == EventGiven || step.Event == EventModified) &&
		!after.ExpiresAt.Equal(now.Add(command.Duration)) {
		t.Fatalf("for %v, and expires at %v", command.Duration, after.ExpiresAt)
	}
	if (after.RequestedCategories == nil) != after.DueAt.IsZero() {
		t.Fatalf("a question without a deadline, or the other way: %+v", after)
	}
	if (step.Event == EventExpired || step.Event == EventLapsed) && step.RecordedBy.Role != RoleSystem {
		t.Fatalf("%s by %s", step.Event, step.RecordedBy.Role)
	}
	if s.RequireExplicit && command.Action == ActionInteract && step.Event == EventGiven {
		t.Fatal("an interaction gave a consent that has to be explicit")
	}
}

// checkMove checks the guarantees about a step and the state before it.
func checkMove(t *rapid.T, s Settings, now time.Time, before Consent, step Step, command Command) {
	after := step.Consent
	isReport := step.Event == EventReported // a report changes nothing
	switch {
	case (before.Stream == "") != (after.Stream == ""):
		t.Fatalf("from %q to %q", before.Stream, after.Stream)
	case before.State == StateGiven && !before.IsActiveAt(now) && step.Event != EventExpired && step.Event != EventLapsed &&
		!isReport:
		t.Fatalf("%s of what has expired", step.Event)
	case before.RequestedCategories != nil && !before.IsPendingAt(now) && step.Event != EventLapsed &&
		step.Event != EventExpired && !isReport:
		t.Fatalf("%s, and a question nobody has decided in time waits", step.Event)
	case step.Event == EventRejected && after.State == StateRequested, step.Event == EventLapsed && after.State == StateRequested:
		t.Fatalf("%s, and still asked for", step.Event)
	case (step.Event == EventWithdrawn) != (after.State == StateWithdrawn &&
		before.State != StateWithdrawn), step.Event == EventWithdrawn && command.Caller.Role != RoleSubject && command.Caller.Role != RoleGuardian:
		t.Fatalf("%s by %s: %s", step.Event, command.Caller.Role, after.State)
	case step.Event == EventRevoked && (command.Caller.Role == RoleSubject || command.Caller.Role == RoleGuardian):
		t.Fatalf("revoked by %s", command.Caller.Role)
	case command.Action == ActionInteract && before.State != StateGiven && after.State == StateGiven && before.State != StateExpired &&
		!before.VoidBefore.IsZero():
		t.Fatal("an interaction gave anew what had ended")
	case before.State != StateGiven && after.State == StateGiven && step.Event != EventApproved && len(command.Purposes) == 0 && len(after.Purposes) > 0:
		t.Fatalf("for %v, of what had ended", after.Purposes)
	}
	endTime := now // the data before this time must be void
	if step.Event == EventExpired {
		endTime = before.ExpiresAt
	}
	if after.Stream != "" && after.State != StateGiven &&
		(before.State == StateGiven || step.Event == EventWithdrawn || step.Event == EventRevoked || step.Event == EventRefused && !before.VoidBefore.IsZero()) {
		if before.State == StateGiven && after.VoidBefore.Before(endTime) || !before.VoidBefore.IsZero() && after.VoidBefore.Before(endTime) {
			t.Fatalf("%s at %v, and void is what is older than %v", step.Event, endTime, after.VoidBefore)
		}
	}
	if before.State != StateGiven || after.State != StateGiven || before.Stream == after.Stream {
		return
	}
	// Data that was removed before the move must stay removed.
	removedDays := before.DecayDays(now)
	switch {
	case before.Stream == StreamAnonymous && before.DecayFrom.IsZero():
		removedDays = AnonymousFrom
	case after.Stream == StreamTemporary:
		removedDays = AggregatedFrom
	}
	switch {
	case after.Stream == StreamAnonymous && after.DecayFrom.IsZero() != s.NoDecay:
		t.Fatalf("ANONYMOUS, and the countdown began at %v", after.DecayFrom)
	case after.Stream != StreamAnonymous && (!after.DecayFrom.IsZero() || after.DecayedDays < removedDays):
		t.Fatalf("from %s to %s: %d days, not %d", before.Stream, after.Stream, after.DecayedDays, removedDays)
	case removedDays > 0 && after.Stream != StreamAnonymous && before.DecayFrom.IsZero() && !after.DecayedBefore.Equal(now):
		t.Fatalf("from %s to %s: removed of what is older than %v", before.Stream, after.Stream, after.DecayedBefore)
	}
}

// Paths are trees: a category covers itself and everything below it, and nothing else.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		granted []string
		wanted  string
		want    bool
	}{
		{[]string{"a"}, "a", true}, {[]string{"a"}, "a/b", true}, {[]string{"a"}, "a/b/c", true}, {
			[]string{"a/b"}, "a", false}, {[]string{"a/b"}, "a/c", false},
		{[]string{"a"}, "ab", false}, {[]string{"a"}, "ab/c", false}, {nil, "a", false}, {[]string{"A"}, "a", false}, {[]string{""}, "a", false},
	} {
		if got := PathsCover(c.granted, c.wanted); got != c.want {
			t.Errorf("%v covers %s: %t", c.granted, c.wanted, got)
		}
	}
}

func TestBadInput(t *testing.T) {
	long := string(make([]byte, maxIDBytes+1))
	for _, command := range []Command{
		{Action: ActionGrant}, {Action: ActionGrant, Subject: "*"}, {Action: ActionGrant, Subject: "a\x00b"}, {Action: ActionGrant, Subject: "a\nb"}, {
			Action: ActionGrant, Subject: "\xff"}, {Action: ActionGrant, Subject: long},
		{Action: ActionGrant, Subject: "a", Scope: "rows"}, {Action: ActionGrant, Subject: "a", Scope: "row:"}, {
			Action: ActionGrant, Subject: "a", Grantee: "\xc3\x28"}, {Action: ActionGrant, Subject: "a", Duration: -1},
		{Action: ActionGrant, Subject: "a", Reason: "\x00"}, {Action: ActionGrant, Subject: "a", Evidence: "\xff"}, {Action: ActionGrant, Subject: "a",
			Categories: []string{"a b"}},
		{Action: ActionGrant, Subject: "a", Categories: []string{""}}, {Action: ActionGrant, Subject: "a", Purposes: []string{"a//b"}}, {
			Action: ActionGrant, Subject: "a", Purposes: []string{"'; DROP"}},
		{Action: "drop", Subject: "a"}, {Action: ActionAppoint, Subject: "a", Caller: Party{RoleController, "x"}}, {
			Action: ActionAppoint, Subject: "a", Guardian: "a", Caller: Party{RoleController, "x"}},
	} {
		if command.Caller.Role == "" {
			command.Caller = subject(command.Subject)
		}
		if _, err := Decide(Settings{}, startTime, Situation{}, command); !errors.As(err, new(*ValidationError)) {
			t.Errorf("%+v: %v", command, err)
		}
	}
	for _, id := range []string{`'; DROP TABLE people; --`, `{"$ne": null}`, "ünï cödé 🐕", "a b", "-", "0", "null", "*x"} {
		if _, err := Decide(Settings{}, startTime, Situation{}, Command{Action: ActionGrant, Subject: id, Stream: StreamTemporary, Caller: subject(id)}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}
