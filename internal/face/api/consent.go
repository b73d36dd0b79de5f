package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/face/operations"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

const tagConsent = "consent"

// ConsentStatus is where the relationship of a user stands.
type ConsentStatus struct {
	UserID       string       `json:"user_id"`
	Stream       string       `json:"stream,omitempty" enum:"TEMPORARY,PARTNERED,ANONYMOUS" doc:"Left out of a consent without stream."`
	Categories   []string     `json:"categories" doc:"Of what is in force; empty where nothing is."`
	GrantedAt    *time.Time   `json:"granted_at" doc:"Null where nothing was granted."`
	ExpiresAt    *time.Time   `json:"expires_at" doc:"Null where nothing expires."`
	LastModified *time.Time   `json:"last_modified" doc:"When the last record was made; null where nothing is recorded."`
	State        string       `json:"state" enum:"none,requested,given,refused,withdrawn,revoked,expired" doc:"In the words of the Data Privacy Vocabulary; none: nothing is recorded."`
	Active       bool         `json:"active" doc:"Whether it is a ground for processing now."`
	Purposes     []string     `json:"purposes"`
	Decay        string       `json:"decay,omitempty" enum:"kept,aggregated,unidentified,anonymous" doc:"How far older data have gone on their way to anonymity."`
	Task         *ConsentTask `json:"task,omitempty" doc:"The partnership that is asked for and not decided yet."`
}

// ConsentTask is a partnership that waits for the agent's side.
type ConsentTask struct {
	ID         string    `json:"id"`
	UserID     string    `json:"user_id"`
	Stream     string    `json:"stream" enum:"PARTNERED"`
	Categories []string  `json:"categories"`
	Status     string    `json:"status" enum:"pending"`
	DueAt      time.Time `json:"due_at" doc:"Until when it can be decided. Then it lapses."`
	Decisions  []string  `json:"decisions" doc:"What the agent's side can decide."`
}

// ConsentChange is what became of a change.
type ConsentChange struct {
	ConsentStatus
	Record   int64 `json:"record" doc:"The number of the record that was made; 0: it was so before."`
	Repeated bool  `json:"repeated" doc:"It was done before, by a call with the same key."`
}

// ConsentGrant is one consent of a user.
type ConsentGrant struct {
	ConsentStatus
	Grantee string `json:"grantee" doc:"To whom; *: to everybody."`
	Scope   string `json:"scope" doc:"About what; *: everything."`
}

// ConsentEvent is a record of the registry.
type ConsentEvent struct {
	ConsentGrant
	Record    int64     `json:"record"`
	Timestamp time.Time `json:"timestamp"`
	Event     string    `json:"event"`
	Grantor   string    `json:"grantor,omitempty" doc:"Whose will it is: the user or a guardian."`
	By        ByWhom    `json:"by" doc:"Who had it recorded."`
	Via       string    `json:"via,omitempty"`
	Guardian  string    `json:"guardian,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Evidence  string    `json:"evidence,omitempty"`
	Erased    bool      `json:"erased" doc:"The user was erased: nobody can read who it was."`
}

// ByWhom is a party.
type ByWhom struct {
	Role string `json:"role"`
	ID   string `json:"id,omitempty"`
}

func consentStatus(c consent.Consent, now, modified time.Time, task *operations.Task) ConsentStatus {
	out := ConsentStatus{
		UserID: c.Subject, Stream: string(c.Stream), Categories: c.Categories, Purposes: c.Purposes,
		GrantedAt: timeOrNil(c.GivenAt), ExpiresAt: timeOrNil(c.ExpiresAt),
		LastModified: timeOrNil(modified), State: string(c.StateAt(now)), Active: c.ActiveAt(now), Decay: string(c.Decay(now)),
	}
	if out.State == "" {
		out.State = "none"
	}
	if out.Categories == nil || !out.Active {
		out.Categories = []string{}
	}
	if out.Purposes == nil || !out.Active {
		out.Purposes = []string{}
	}
	if task != nil {
		t := consentTask(*task)
		out.Task = &t
	}
	return out
}

func consentTask(t operations.Task) ConsentTask {
	return ConsentTask{ID: t.ID, UserID: t.Subject, Stream: string(consent.Partnered), Categories: t.Categories,
		Status: "pending", DueAt: t.DueAt.UTC(),
		Decisions: []string{string(consent.TaskComplete), string(consent.Reject), string(consent.Defer)}}
}

func consentEvent(r consent.Record) ConsentEvent {
	e := ConsentEvent{
		ConsentGrant: ConsentGrant{ConsentStatus: consentStatus(r.Consent, r.At, r.At, nil), Grantee: r.Grantee, Scope: r.Scope},
		Record:       r.Number, Timestamp: r.At.UTC(), Event: string(r.Event), Grantor: r.Grantor, By: ByWhom{
			string(r.By.Role), r.By.ID}, Via: r.Via, Guardian: r.Guardian,
		Reason: r.Reason, Evidence: r.Evidence, Erased: r.Erased,
	}
	return e
}

// timeOrNil is null for a time that is not set.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// UserQuery is the user that is asked about.
type UserQuery struct {
	UserID string `query:"user_id" minLength:"1" maxLength:"512" doc:"Whose. Default: the caller's own, if that is a user."`
}

type (
	statusAnswer struct{ Body ConsentStatus }
	changeAnswer struct {
		Status int
		Body   ConsentChange
	}
	grantsAnswer struct {
		Body struct {
			UserID   string         `json:"user_id"`
			Consents []ConsentGrant `json:"consents"`
		}
	}
	eventsAnswer struct {
		Body struct {
			Events []ConsentEvent `json:"events" doc:"Oldest first."`
			Next   *int64         `json:"next" doc:"The value of after for the next page; null: this is the last."`
		}
	}
	tasksAnswer struct {
		Body struct {
			Tasks []ConsentTask `json:"tasks" doc:"The most urgent first."`
		}
	}
	erasedAnswer struct {
		Body struct {
			Erased bool      `json:"erased"`
			Record int64     `json:"record"`
			At     time.Time `json:"at"`
		}
	}
)

// Paged is how a list is asked for.
type Paged struct {
	After int64 `query:"after" minimum:"0" default:"0" doc:"Only records with a greater number."`
	Limit int   `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many at most."`
}

// Whose is the part of a body that says whose consent it is.
type Whose struct {
	UserID string `json:"user_id,omitempty" minLength:"1" maxLength:"512" doc:"Whose. Default: the caller's own, if that is a user."`
}

// Why is the part of a body that explains.
type Why struct {
	Reason string `json:"reason,omitempty" maxLength:"10000" doc:"Sealed in the record."`
}

type grantRequest struct {
	Idempotent
	Body struct {
		Whose
		Stream       string   `json:"stream,omitempty" enum:"TEMPORARY,PARTNERED,ANONYMOUS" doc:"TEMPORARY, ANONYMOUS, or PARTNERED, which asks the agent's side. Left out: a consent to a grantee or about a scope."`
		Categories   []string `json:"categories,omitempty" maxItems:"100" doc:"Fewer than the stream allows, never more. Default: all of them."`
		Purposes     []string `json:"purposes,omitempty" maxItems:"100"`
		Grantee      string   `json:"grantee,omitempty" minLength:"1" maxLength:"512" doc:"To whom, of a consent without stream. Default: everybody."`
		Scope        string   `json:"scope,omitempty" minLength:"1" maxLength:"512" doc:"About what, likewise: table:NAME, row:TABLE:KEY or ctx:NAME. Default: everything."`
		DurationDays int      `json:"duration_days,omitempty" minimum:"1" maximum:"36500" doc:"How long a consent without stream lasts. Default: until it is withdrawn."`
		Evidence     string   `json:"evidence,omitempty" maxLength:"10000" doc:"What proves it. Sealed in the record."`
		Why
	}
}

type revokeRequest struct {
	Idempotent
	Body *struct {
		Whose
		Grantee string `json:"grantee,omitempty" minLength:"1" maxLength:"512" doc:"Of a consent without stream: to whom."`
		Scope   string `json:"scope,omitempty" minLength:"1" maxLength:"512" doc:"Likewise: about what."`
		Why
	} `required:"false"`
}

type userRequest struct {
	Idempotent
	Body *struct {
		Whose
		Why
	} `required:"false"`
}

// command is the part that it gives.
func (r *userRequest) command(do consent.Action) consent.Command {
	c := consent.Command{Do: do, Request: r.Key}
	if r.Body != nil {
		c.Subject, c.Reason = r.Body.UserID, r.Body.Reason
	}
	return c
}

type upgradeRequest struct {
	Idempotent
	Body *struct {
		Whose
		Categories []string `json:"categories,omitempty" maxItems:"100" doc:"Default: ESSENTIAL, BEHAVIORAL, IMPROVEMENT."`
		Why
	} `required:"false"`
}

type degradeRequest struct {
	Idempotent
	Body struct {
		Whose
		TargetStream string `json:"target_stream" enum:"TEMPORARY,ANONYMOUS" doc:"TEMPORARY or ANONYMOUS."`
		Why
	}
}

type decideRequest struct {
	Idempotent
	Body struct {
		UserID   string `json:"user_id" minLength:"1" maxLength:"512" doc:"Who asks."`
		Decision string `json:"decision" enum:"TASK_COMPLETE,REJECT,DEFER" doc:"TASK_COMPLETE, REJECT or DEFER."`
		Why
	}
}

// The roles, as packages operations and consent have them.
var (
	readRoles   = []identity.Role{identity.Subject, identity.Admin, identity.System}
	changeRoles = []identity.Role{identity.Subject}
)

func consentResource(s *Server) {
	get := func(o Operation) Operation {
		o.Method, o.Tag = http.MethodGet, tagConsent
		o.Errors = append(o.Errors, http.StatusNotFound)
		return o
	}
	post := func(o Operation) Operation {
		o.Method, o.Tag, o.Writes = http.MethodPost, tagConsent, true
		o.Errors = append(o.Errors, http.StatusNotFound, http.StatusConflict, http.StatusGone)
		return o
	}
	add(s, get(Operation{ID: "consent-status", Path: "/v1/consent/status", Roles: readRoles,
		Errors: []int{http.StatusGone}, Summary: "Where a consent stands",
		Description: "The stream and categories that a user has consented to. 404 ConsentNotFoundError where " +
			"there is none, 410 ConsentExpiredError, with the consent, where it has expired."}),
		s.status)
	add(s, get(Operation{ID: "consent-grants", Path: "/v1/consent/grants", Roles: readRoles, Summary: "All consents of a user",
		Description: "The relationship and the consents to grantees and about scopes, whatever their state."}), s.grants)
	add(s, post(Operation{ID: "consent-grant", Path: "/v1/consent/grant", Roles: changeRoles,
		Summary: "Grant or change a consent",
		Also:    map[int]string{http.StatusAccepted: "The agent's side has to agree: task says until when."},
		Description: "A partnership is asked for: 202 and the task; what held before holds until it is decided. " +
			"Granting again renews TEMPORARY."}), s.grant)
	add(s, post(Operation{ID: "consent-revoke", Path: "/v1/consent/revoke",
		Roles: []identity.Role{identity.Subject, identity.System}, Summary: "Revoke a consent, and begin to delete the data",
		Description: "When it is answered, no statement that starts shows what the consent has shown. Revoking " +
			"twice does it once."}), s.revoke)
	add(s, post(Operation{ID: "consent-erase", Path: "/v1/consent/erase",
		Roles: []identity.Role{identity.Subject, identity.System}, Summary: "Revoke everything and forget the user",
		Description: "Ends every consent of the user and destroys the key that opens their records. It cannot be " +
			"taken back."}), s.erase)
	add(s, post(Operation{ID: "consent-refuse", Path: "/v1/consent/refuse", Roles: changeRoles, Summary: "Say no",
		Description: "Records that the user was asked and refused."}),
		func(ctx context.Context, c *Call, in *userRequest) (*changeAnswer, error) {
			return s.change(ctx, c, in.command(consent.Refuse))
		})
	add(s, post(Operation{ID: "consent-upgrade", Path: "/v1/consent/upgrade", Roles: changeRoles,
		Summary: "Ask for a partnership", Status: http.StatusAccepted,
		Description: "The agent's side decides, or it lapses: task says until when."}),
		func(ctx context.Context, c *Call, in *upgradeRequest) (*changeAnswer, error) {
			command := consent.Command{Do: consent.Upgrade, Request: in.Key}
			if b := in.Body; b != nil {
				command.Subject, command.Categories, command.Reason = b.UserID, b.Categories, b.Reason
			}
			return s.change(ctx, c, command)
		})
	add(s, post(Operation{ID: "consent-degrade", Path: "/v1/consent/degrade", Roles: changeRoles,
		Summary: "Go to a stream that shows less",
		Description: "PARTNERED becomes TEMPORARY or ANONYMOUS, TEMPORARY becomes ANONYMOUS, at once; nobody " +
			"is asked."}), func(ctx context.Context, c *Call, in *degradeRequest) (*changeAnswer, error) {
		return s.change(ctx, c, consent.Command{Do: consent.Degrade, Subject: in.Body.UserID,
			Stream: consent.Stream(in.Body.TargetStream), Reason: in.Body.Reason, Request: in.Key})
	})
	add(s, post(Operation{ID: "consent-interaction", Path: "/v1/consent/interactions",
		Roles: []identity.Role{identity.Subject, identity.System}, Summary: "The user has done something",
		Description: "The first interaction gives TEMPORARY, unless consent has to be explicit; later ones renew " +
			"it. Nothing that an agent sends does this."}),
		func(ctx context.Context, c *Call, in *userRequest) (*changeAnswer, error) {
			return s.change(ctx, c, in.command(consent.Interact))
		})
	add(s, post(Operation{ID: "consent-expire", Path: "/v1/consent/expire", Roles: []identity.Role{identity.System},
		Summary:     "Record that a consent has expired",
		Description: "What has expired is hidden from then on by itself; this records it. 422 where nothing has."}),
		func(ctx context.Context, c *Call, in *userRequest) (*changeAnswer, error) {
			return s.change(ctx, c, in.command(consent.Expire))
		})
	add(s, post(Operation{ID: "consent-decide", Path: "/v1/consent/decide", Roles: []identity.Role{identity.Agent},
		Summary: "Decide about a partnership",
		Description: "TASK_COMPLETE makes it, REJECT declines it, DEFER leaves it open until the same time. Who " +
			"asks does not decide."}), func(ctx context.Context, c *Call, in *decideRequest) (*changeAnswer, error) {
		return s.change(ctx, c, consent.Command{Do: consent.DecidePartnership, Subject: in.Body.UserID,
			Decision: consent.Decision(in.Body.Decision), Reason: in.Body.Reason, Request: in.Key})
	})
	add(s, get(Operation{ID: "consent-pending", Path: "/v1/consent/pending",
		Roles: []identity.Role{identity.Agent, identity.Admin}, Everybody: true, Summary: "Partnerships to decide",
		Description: "What users have asked for and nobody has decided."}), s.pending)
	add(s, get(Operation{ID: "consent-history", Path: "/v1/consent/history",
		Roles: []identity.Role{identity.Subject, identity.Admin}, Summary: "The records of a user",
		Description: "Every record of the user's consents, in pages."}), s.history)
	add(s, get(Operation{ID: "consent-audit", Path: "/v1/consent/audit", Roles: []identity.Role{identity.Admin},
		Summary:     "The history of consents",
		Description: "Every record, of one user or of all, in pages."}), s.consentAudit)
}

func (s *Server) status(ctx context.Context, c *Call, in *UserQuery) (*statusAnswer, error) {
	st, err := s.Service.Status(ctx, c.Caller, in.UserID)
	c.about = aboutIDs(c, in.UserID)
	if err != nil {
		p := problem(err)
		var expired *consent.ExpiredError
		if errors.As(err, &expired) {
			now := consentStatus(st.Consent, st.Now, st.At, nil)
			p.Consent = &now
		}
		return nil, p
	}
	return &statusAnswer{consentStatus(st.Consent, st.Now, st.At, st.Open())}, nil
}

// aboutIDs is whom a call is about: nobody else than the caller, if that is a user.
func aboutIDs(c *Call, named string) []string {
	if c.Caller.Role == identity.Subject {
		named = c.Caller.Subject
	}
	return append(c.about, named)
}

func (s *Server) grants(ctx context.Context, c *Call, in *UserQuery) (*grantsAnswer, error) {
	c.about = aboutIDs(c, in.UserID)
	all, err := s.Service.Consents(ctx, c.Caller, in.UserID)
	if err != nil {
		return nil, err
	}
	out := &grantsAnswer{}
	out.Body.Consents = make([]ConsentGrant, len(all))
	for i, st := range all {
		out.Body.UserID = st.Subject
		out.Body.Consents[i] = ConsentGrant{consentStatus(st.Consent, st.Now, st.At, st.Open()), st.Grantee, st.Scope}
	}
	return out, nil
}

// change does a command, and answers what came of it.
func (s *Server) change(ctx context.Context, c *Call, command consent.Command) (*changeAnswer, error) {
	command.Via = "http"
	c.about = aboutIDs(c, command.Subject)
	done, err := s.Service.Change(ctx, c.Caller, command)
	if err != nil {
		return nil, err
	}
	out := &changeAnswer{Status: http.StatusOK, Body: ConsentChange{Record: done.Number, Repeated: done.Repeated}}
	out.Body.ConsentStatus = consentStatus(done.Consent, done.At, done.At, done.Task)
	if out.Body.UserID == "" { // nothing is recorded
		out.Body.UserID, out.Body.LastModified = aboutIDs(&Call{Caller: c.Caller}, command.Subject)[0], nil
	}
	if done.Task != nil && (command.Do == consent.Upgrade || command.Do == consent.Grant) {
		out.Status = http.StatusAccepted
	}
	return out, nil
}

func (s *Server) grant(ctx context.Context, c *Call, in *grantRequest) (*changeAnswer, error) {
	b := in.Body
	command := consent.Command{
		Do: consent.Grant, Subject: b.UserID, Grantee: b.Grantee, Scope: b.Scope, Stream: consent.Stream(b.Stream),
		Categories: b.Categories, Purposes: b.Purposes,
		For: time.Duration(b.DurationDays) * 24 * time.Hour, Reason: b.Reason, Evidence: b.Evidence, Request: in.Key,
	}
	if b.Stream == "" && b.Grantee == "" && b.Scope == "" && len(b.Categories) == 0 && len(b.Purposes) == 0 {
		return nil, consent.NewValidation(
			"to what does the user consent? Name a stream, or a grantee, a scope, categories or purposes")
	}
	return s.change(ctx, c, command)
}

func (s *Server) revoke(ctx context.Context, c *Call, in *revokeRequest) (*changeAnswer, error) {
	command := consent.Command{Do: consent.Revoke, Request: in.Key}
	if b := in.Body; b != nil {
		command.Subject, command.Grantee, command.Scope, command.Reason = b.UserID, b.Grantee, b.Scope, b.Reason
	}
	return s.change(ctx, c, command)
}

func (s *Server) erase(ctx context.Context, c *Call, in *userRequest) (*erasedAnswer, error) {
	command := in.command(consent.Erase)
	command.Via = "http"
	done, err := s.Service.Change(ctx, c.Caller, command) // the record of the call names nobody: who it was is forgotten
	if err != nil {
		return nil, err
	}
	out := &erasedAnswer{}
	out.Body.Erased, out.Body.Record, out.Body.At = true, done.Number, done.At.UTC()
	return out, nil
}

func (s *Server) pending(ctx context.Context, c *Call, _ *struct{}) (*tasksAnswer, error) {
	tasks, err := s.Service.Pending(ctx, c.Caller)
	if err != nil {
		return nil, err
	}
	out := &tasksAnswer{}
	out.Body.Tasks = make([]ConsentTask, len(tasks))
	for i, t := range tasks {
		out.Body.Tasks[i] = consentTask(t)
	}
	return out, nil
}

type historyQuery struct {
	UserQuery
	Paged
}

func (s *Server) history(ctx context.Context, c *Call, in *historyQuery) (*eventsAnswer, error) {
	c.about = aboutIDs(c, in.UserID)
	records, err := s.Service.History(ctx, c.Caller, in.UserID)
	if err != nil {
		return nil, err
	}
	return pageOf(records, in.Paged), nil
}

// pageOf are the page of records that was asked for, of all there are.
func pageOf(records []consent.Record, page Paged) *eventsAnswer {
	out := &eventsAnswer{}
	out.Body.Events = []ConsentEvent{}
	for _, r := range records {
		if r.Number <= page.After {
			continue
		}
		if len(out.Body.Events) == page.Limit {
			out.Body.Next = &out.Body.Events[page.Limit-1].Record
			break
		}
		out.Body.Events = append(out.Body.Events, consentEvent(r))
	}
	return out
}

func (s *Server) consentAudit(ctx context.Context, c *Call, in *historyQuery) (*eventsAnswer, error) {
	if in.UserID != "" {
		return s.history(ctx, c, in)
	}
	c.everybody = true
	records, err := s.Service.Records(ctx, c.Caller, in.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return pageOf(records, in.Paged), nil
}
