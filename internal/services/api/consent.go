package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
)

const tagConsent = "consent"

// ConsentStatus is the state of a user's relationship, as the API sends it.
type ConsentStatus struct {
	UserID       string       `json:"user_id"`
	Stream       string       `json:"stream,omitempty" enum:"TEMPORARY,PARTNERED,ANONYMOUS" doc:"Left out of a consent without stream."`
	Categories   []string     `json:"categories" doc:"The categories of the active consent; empty if there is none."`
	GrantedAt    *time.Time   `json:"granted_at" doc:"Null where nothing was granted."`
	ExpiresAt    *time.Time   `json:"expires_at" doc:"Null where nothing expires, and where the consent was ended."`
	LastModified *time.Time   `json:"last_modified" doc:"When the last record was made; null where nothing is recorded."`
	State        string       `json:"state" enum:"none,requested,given,refused,withdrawn,revoked,expired" doc:"In the words of the Data Privacy Vocabulary; none: nothing is recorded."`
	Active       bool         `json:"active" doc:"Whether it is a ground for processing now."`
	Purposes     []string     `json:"purposes"`
	Decay        string       `json:"decay,omitempty" enum:"kept,aggregated,unidentified,anonymous" doc:"How far older data have been anonymised."`
	Task         *ConsentTask `json:"task,omitempty" doc:"The requested partnership that waits for a decision."`
}

// ConsentTask is a requested partnership that waits for the agent's side.
type ConsentTask struct {
	ID         string    `json:"id"`
	UserID     string    `json:"user_id"`
	Stream     string    `json:"stream" enum:"PARTNERED"`
	Categories []string  `json:"categories"`
	Status     string    `json:"status" enum:"pending"`
	DueAt      time.Time `json:"due_at" doc:"The deadline of the decision; then the request lapses."`
	Decisions  []string  `json:"decisions" doc:"The possible decisions."`
}

// ConsentChange is the API's answer to a change of a consent.
type ConsentChange struct {
	ConsentStatus
	Record   int64 `json:"record" doc:"The number of the new record; 0: nothing had to be changed."`
	Repeated bool  `json:"repeated" doc:"A call with the same key has made this change before."`
}

// ConsentGrant is one consent of a user.
type ConsentGrant struct {
	ConsentStatus
	Grantee string `json:"grantee" doc:"The grantee; *: everybody."`
	Scope   string `json:"scope" doc:"What the consent is about; *: everything."`
}

// ConsentEvent is a record of the consent registry, as the API sends it.
type ConsentEvent struct {
	ConsentGrant
	Record    int64     `json:"record"`
	Timestamp time.Time `json:"timestamp"`
	Event     string    `json:"event"`
	Grantor   string    `json:"grantor,omitempty" doc:"Who decided: the user or a guardian."`
	By        ByWhom    `json:"by" doc:"The caller who had it recorded."`
	Via       string    `json:"via,omitempty"`
	Guardian  string    `json:"guardian,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Evidence  string    `json:"evidence,omitempty"`
	Erased    bool      `json:"erased" doc:"The user was erased and cannot be identified any more."`
}

// ByWhom is the party that changed a consent.
type ByWhom struct {
	Role string `json:"role"`
	ID   string `json:"id,omitempty"`
}

func consentStatus(c consent.Consent, now, modified time.Time, task *operations.PartnershipTask) ConsentStatus {
	out := ConsentStatus{
		UserID: c.Subject, Stream: string(c.Stream), Categories: c.Categories, Purposes: c.Purposes,
		GrantedAt: timeOrNil(c.GivenAt), ExpiresAt: timeOrNil(c.EndsAt()),
		LastModified: timeOrNil(modified), State: string(c.StateAt(now)), Active: c.IsActiveAt(now),
		Decay: string(c.DecayStageAt(now)),
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

func consentTask(t operations.PartnershipTask) ConsentTask {
	return ConsentTask{ID: t.ID, UserID: t.Subject, Stream: string(consent.StreamPartnered), Categories: t.Categories,
		Status: "pending", DueAt: t.DueAt.UTC(),
		Decisions: []string{string(consent.DecisionApprove), string(consent.DecisionReject), string(consent.DecisionDefer)}}
}

func consentEvent(r consent.Record) ConsentEvent {
	e := ConsentEvent{
		ConsentGrant: ConsentGrant{ConsentStatus: consentStatus(r.Consent, r.At, r.At, nil), Grantee: r.Grantee, Scope: r.Scope},
		Record:       r.Number, Timestamp: r.At.UTC(), Event: string(r.Event), Grantor: r.Grantor, By: ByWhom{
			string(r.RecordedBy.Role), r.RecordedBy.ID}, Via: r.Via, Guardian: r.Guardian,
		Reason: r.Reason, Evidence: r.Evidence, Erased: r.Erased,
	}
	return e
}

// timeOrNil returns nil for the zero time, and otherwise the time in UTC.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// UserQuery names the user that a call is about.
type UserQuery struct {
	UserID string `query:"user_id" minLength:"1" maxLength:"512" doc:"The user. Default: the caller, if that is a user."`
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

// PageQuery has the parameters of a list in pages.
type PageQuery struct {
	After int64 `query:"after" minimum:"0" default:"0" doc:"Only records with a greater number."`
	Limit int   `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many at most."`
}

// UserIDField is the part of a body that names the user.
type UserIDField struct {
	UserID string `json:"user_id,omitempty" minLength:"1" maxLength:"512" doc:"The user. Default: the caller, if that is a user."`
}

// ReasonField is the part of a body that gives a reason.
type ReasonField struct {
	Reason string `json:"reason,omitempty" maxLength:"10000" doc:"Sealed in the record."`
}

type grantRequest struct {
	Idempotent
	Body struct {
		UserIDField
		Stream       string   `json:"stream,omitempty" enum:"TEMPORARY,PARTNERED,ANONYMOUS" doc:"TEMPORARY, ANONYMOUS, or PARTNERED, which needs the agent's approval. Left out: a consent to a grantee or about a scope."`
		Categories   []string `json:"categories,omitempty" maxItems:"100" doc:"Fewer than the stream allows, never more. Default: all of them."`
		Purposes     []string `json:"purposes,omitempty" maxItems:"100"`
		Grantee      string   `json:"grantee,omitempty" minLength:"1" maxLength:"512" doc:"The grantee of a consent without a stream. Default: everybody."`
		Scope        string   `json:"scope,omitempty" minLength:"1" maxLength:"512" doc:"The scope of a consent without a stream: table:NAME, row:TABLE:KEY or ctx:NAME. Default: everything."`
		DurationDays int      `json:"duration_days,omitempty" minimum:"1" maximum:"36500" doc:"How long a consent without a stream lasts. Default: until it is withdrawn."`
		Evidence     string   `json:"evidence,omitempty" maxLength:"10000" doc:"What proves it. Sealed in the record."`
		ReasonField
	}
}

type revokeRequest struct {
	Idempotent
	Body *struct {
		UserIDField
		Grantee string `json:"grantee,omitempty" minLength:"1" maxLength:"512" doc:"The grantee of a consent without a stream."`
		Scope   string `json:"scope,omitempty" minLength:"1" maxLength:"512" doc:"The scope of a consent without a stream."`
		ReasonField
	} `required:"false"`
}

type userRequest struct {
	Idempotent
	Body *struct {
		UserIDField
		ReasonField
	} `required:"false"`
}

// consentCommand returns the command that the request stands for.
func (r *userRequest) consentCommand(action consent.Action) consent.Command {
	c := consent.Command{Action: action, RequestKey: r.Key}
	if r.Body != nil {
		c.Subject, c.Reason = r.Body.UserID, r.Body.Reason
	}
	return c
}

type upgradeRequest struct {
	Idempotent
	Body *struct {
		UserIDField
		Categories []string `json:"categories,omitempty" maxItems:"100" doc:"Default: ESSENTIAL, BEHAVIORAL, IMPROVEMENT."`
		ReasonField
	} `required:"false"`
}

type degradeRequest struct {
	Idempotent
	Body struct {
		UserIDField
		TargetStream string `json:"target_stream" enum:"TEMPORARY,ANONYMOUS" doc:"TEMPORARY or ANONYMOUS."`
		ReasonField
	}
}

type decideRequest struct {
	Idempotent
	Body struct {
		UserID   string `json:"user_id" minLength:"1" maxLength:"512" doc:"The user who has asked."`
		Decision string `json:"decision" enum:"TASK_COMPLETE,REJECT,DEFER" doc:"TASK_COMPLETE, REJECT or DEFER."`
		ReasonField
	}
}

// The roles that may call the operations. Package operations and package consent check them again.
var (
	readRoles   = []identity.Role{identity.Subject, identity.Admin, identity.System}
	changeRoles = []identity.Role{identity.Subject}
)

func addConsentOperations(s *Server) {
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
	addOperation(s, get(Operation{ID: "consent-status", Path: "/v1/consent/status", Roles: readRoles,
		Errors: []int{http.StatusGone}, Summary: "The state of a consent",
		Description: "The stream and categories that a user has consented to. 404 ConsentNotFoundError where " +
			"there is none, 410 ConsentExpiredError, with the consent, where it has expired."}),
		s.consentStatus)
	addOperation(s, get(Operation{ID: "consent-grants", Path: "/v1/consent/grants", Roles: readRoles, Summary: "All consents of a user",
		Description: "The relationship, and the consents to grantees and about scopes, in any state."}), s.listGrants)
	addOperation(s, post(Operation{ID: "consent-grant", Path: "/v1/consent/grant", Roles: changeRoles,
		Summary:       "Grant or change a consent",
		OtherStatuses: map[int]string{http.StatusAccepted: "The agent's side has to decide: task has the deadline."},
		Description: "For a partnership the answer is 202 with the task; the present consent stays until the decision. " +
			"Granting again renews TEMPORARY."}), s.grant)
	addOperation(s, post(Operation{ID: "consent-revoke", Path: "/v1/consent/revoke",
		Roles: []identity.Role{identity.Subject, identity.System}, Summary: "Revoke a consent, and begin to delete the data",
		Description: "From the answer on, no new statement shows rows by this consent. A second revocation " +
			"changes nothing."}), s.revoke)
	addOperation(s, post(Operation{ID: "consent-erase", Path: "/v1/consent/erase",
		Roles: []identity.Role{identity.Subject, identity.System}, Summary: "Revoke everything and forget the user",
		Description: "Ends every consent of the user and destroys the key that opens their records. It cannot be " +
			"taken back."}), s.erase)
	addOperation(s, post(Operation{ID: "consent-refuse", Path: "/v1/consent/refuse", Roles: changeRoles, Summary: "Say no",
		Description: "Records that the user was asked and refused."}),
		func(ctx context.Context, c *Call, in *userRequest) (*changeAnswer, error) {
			return s.executeCommand(ctx, c, in.consentCommand(consent.ActionRefuse))
		})
	addOperation(s, post(Operation{ID: "consent-upgrade", Path: "/v1/consent/upgrade", Roles: changeRoles,
		Summary: "Ask for a partnership", Status: http.StatusAccepted,
		Description: "The agent's side decides before the deadline in task, or the request lapses."}),
		func(ctx context.Context, c *Call, in *upgradeRequest) (*changeAnswer, error) {
			command := consent.Command{Action: consent.ActionUpgrade, RequestKey: in.Key}
			if b := in.Body; b != nil {
				command.Subject, command.Categories, command.Reason = b.UserID, b.Categories, b.Reason
			}
			return s.executeCommand(ctx, c, command)
		})
	addOperation(s, post(Operation{ID: "consent-degrade", Path: "/v1/consent/degrade", Roles: changeRoles,
		Summary: "Change to a stream that shows less",
		Description: "PARTNERED becomes TEMPORARY or ANONYMOUS, TEMPORARY becomes ANONYMOUS, at once; nobody " +
			"is asked."}), func(ctx context.Context, c *Call, in *degradeRequest) (*changeAnswer, error) {
		return s.executeCommand(ctx, c, consent.Command{Action: consent.ActionDegrade, Subject: in.Body.UserID,
			Stream: consent.Stream(in.Body.TargetStream), Reason: in.Body.Reason, RequestKey: in.Key})
	})
	addOperation(s, post(Operation{ID: "consent-interaction", Path: "/v1/consent/interactions",
		Roles: []identity.Role{identity.Subject, identity.System}, Summary: "Report an interaction of the user",
		Description: "The first interaction gives TEMPORARY, unless consent must be explicit; later ones renew " +
			"it. Statements of agents never do this."}),
		func(ctx context.Context, c *Call, in *userRequest) (*changeAnswer, error) {
			return s.executeCommand(ctx, c, in.consentCommand(consent.ActionInteract))
		})
	addOperation(s, post(Operation{ID: "consent-expire", Path: "/v1/consent/expire", Roles: []identity.Role{identity.System},
		Summary:     "Record that a consent has expired",
		Description: "Rows are hidden at the time of expiry without this record. 422 if nothing has expired."}),
		func(ctx context.Context, c *Call, in *userRequest) (*changeAnswer, error) {
			return s.executeCommand(ctx, c, in.consentCommand(consent.ActionExpire))
		})
	addOperation(s, post(Operation{ID: "consent-decide", Path: "/v1/consent/decide", Roles: []identity.Role{identity.Agent},
		Summary: "Decide about a partnership",
		Description: "TASK_COMPLETE makes it, REJECT declines it, DEFER leaves it open until the same time. The " +
			"user who asked cannot decide."}), func(ctx context.Context, c *Call, in *decideRequest) (*changeAnswer, error) {
		return s.executeCommand(ctx, c, consent.Command{Action: consent.ActionDecide, Subject: in.Body.UserID,
			Decision: consent.Decision(in.Body.Decision), Reason: in.Body.Reason, RequestKey: in.Key})
	})
	addOperation(s, get(Operation{ID: "consent-pending", Path: "/v1/consent/pending",
		Roles: []identity.Role{identity.Agent, identity.Admin}, AboutEverybody: true, Summary: "Partnerships to decide",
		Description: "Requests of users that wait for a decision."}), s.pendingPartnerships)
	addOperation(s, get(Operation{ID: "consent-history", Path: "/v1/consent/history",
		Roles: []identity.Role{identity.Subject, identity.Admin}, Summary: "The records of a user",
		Description: "Every record of the user's consents, in pages."}), s.consentHistory)
	addOperation(s, get(Operation{ID: "consent-audit", Path: "/v1/consent/audit", Roles: []identity.Role{identity.Admin},
		Summary:     "The history of consents",
		Description: "Every record, of one user or of all, in pages."}), s.consentAudit)
}

// consentStatus handles the request for the state of a user's relationship.
func (s *Server) consentStatus(ctx context.Context, c *Call, in *UserQuery) (*statusAnswer, error) {
	st, err := s.Service.Status(ctx, c.Caller, in.UserID)
	c.auditSubjects = aboutIDs(c, in.UserID)
	if err != nil {
		p := problemOf(err)
		var expiredErr *consent.ExpiredError
		if errors.As(err, &expiredErr) {
			now := consentStatus(st.Consent, st.Now, st.At, nil)
			p.Consent = &now
		}
		return nil, p
	}
	return &statusAnswer{consentStatus(st.Consent, st.Now, st.At, st.OpenTask())}, nil
}

// aboutIDs adds the person that a call is about to the ids for its audit record: the caller if it is a subject, and
// otherwise the requested user.
func aboutIDs(c *Call, requestedID string) []string {
	if c.Caller.Role == identity.Subject {
		requestedID = c.Caller.Subject
	}
	return append(c.auditSubjects, requestedID)
}

// listGrants handles the request for the consents of a user.
func (s *Server) listGrants(ctx context.Context, c *Call, in *UserQuery) (*grantsAnswer, error) {
	c.auditSubjects = aboutIDs(c, in.UserID)
	consents, err := s.Service.Consents(ctx, c.Caller, in.UserID)
	if err != nil {
		return nil, err
	}
	out := &grantsAnswer{}
	out.Body.Consents = make([]ConsentGrant, len(consents))
	for i, st := range consents {
		out.Body.UserID = st.Subject
		out.Body.Consents[i] = ConsentGrant{consentStatus(st.Consent, st.Now, st.At, st.OpenTask()), st.Grantee, st.Scope}
	}
	return out, nil
}

// executeCommand changes a consent and returns the answer to the request.
func (s *Server) executeCommand(ctx context.Context, c *Call, command consent.Command) (*changeAnswer, error) {
	command.Interface = "http"
	c.auditSubjects = aboutIDs(c, command.Subject)
	change, err := s.Service.Change(ctx, c.Caller, command)
	if err != nil {
		return nil, err
	}
	out := &changeAnswer{Status: http.StatusOK, Body: ConsentChange{Record: change.RecordNumber,
		Repeated: change.IsRepeated}}
	out.Body.ConsentStatus = consentStatus(change.Consent, change.RecordedAt, change.RecordedAt, change.Task)
	if out.Body.UserID == "" { // Nothing was recorded, so that the registry returned no user.
		out.Body.UserID, out.Body.LastModified = aboutIDs(&Call{Caller: c.Caller}, command.Subject)[0], nil
	}
	if change.Task != nil && (command.Action == consent.ActionUpgrade || command.Action == consent.ActionGrant) {
		out.Status = http.StatusAccepted
	}
	return out, nil
}

// grant handles the request to give a consent.
func (s *Server) grant(ctx context.Context, c *Call, in *grantRequest) (*changeAnswer, error) {
	b := in.Body
	command := consent.Command{
		Action: consent.ActionGrant, Subject: b.UserID, Grantee: b.Grantee, Scope: b.Scope, Stream: consent.Stream(b.Stream),
		Categories: b.Categories, Purposes: b.Purposes,
		Duration: time.Duration(b.DurationDays) * 24 * time.Hour, Reason: b.Reason, Evidence: b.Evidence, RequestKey: in.Key,
	}
	if b.Stream == "" && b.Grantee == "" && b.Scope == "" && len(b.Categories) == 0 && len(b.Purposes) == 0 {
		return nil, consent.NewValidation(
			"to what does the user consent? Name a stream, or a grantee, a scope, categories or purposes")
	}
	return s.executeCommand(ctx, c, command)
}

// revoke handles the request to withdraw a consent.
func (s *Server) revoke(ctx context.Context, c *Call, in *revokeRequest) (*changeAnswer, error) {
	command := consent.Command{Action: consent.ActionRevoke, RequestKey: in.Key}
	if b := in.Body; b != nil {
		command.Subject, command.Grantee, command.Scope, command.Reason = b.UserID, b.Grantee, b.Scope, b.Reason
	}
	return s.executeCommand(ctx, c, command)
}

// erase handles the request to remove a user's records from the registry.
func (s *Server) erase(ctx context.Context, c *Call, in *userRequest) (*erasedAnswer, error) {
	command := in.consentCommand(consent.ActionErase)
	command.Interface = "http"
	// The audit record of the call has no id of the person, who is erased.
	change, err := s.Service.Change(ctx, c.Caller, command)
	if err != nil {
		return nil, err
	}
	out := &erasedAnswer{}
	out.Body.Erased, out.Body.Record, out.Body.At = true, change.RecordNumber, change.RecordedAt.UTC()
	return out, nil
}

// pendingPartnerships handles the request for the partnerships that wait for a decision.
func (s *Server) pendingPartnerships(ctx context.Context, c *Call, _ *struct{}) (*tasksAnswer, error) {
	tasks, err := s.Service.PendingPartnerships(ctx, c.Caller)
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
	PageQuery
}

// consentHistory handles the request for a page of a user's records.
func (s *Server) consentHistory(ctx context.Context, c *Call, in *historyQuery) (*eventsAnswer, error) {
	c.auditSubjects = aboutIDs(c, in.UserID)
	records, err := s.Service.History(ctx, c.Caller, in.UserID)
	if err != nil {
		return nil, err
	}
	return eventsPage(records, in.PageQuery), nil
}

// eventsPage returns those of the records that are on the requested page.
func eventsPage(records []consent.Record, page PageQuery) *eventsAnswer {
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
		return s.consentHistory(ctx, c, in)
	}
	c.aboutEverybody = true
	records, err := s.Service.Records(ctx, c.Caller, in.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return eventsPage(records, in.PageQuery), nil
}
