package mcp

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// relationship is a subject's relationship with their other consents. Its members have the same names as in the answer
// of GET /v1/consent/status.
type relationship struct {
	UserID       string   `json:"user_id"`
	State        string   `json:"state" jsonschema:"requested, given, refused, withdrawn, revoked or expired. Only given lets anything show, until expires_at."`
	Stream       string   `json:"stream,omitempty" jsonschema:"TEMPORARY (14 days), PARTNERED (until it is ended) or ANONYMOUS (only in statistics)"`
	Categories   []string `json:"categories" jsonschema:"the categories of data that may be used"`
	Purposes     []string `json:"purposes,omitempty"`
	GrantedAt    *string  `json:"granted_at" jsonschema:"RFC 3339, or null"`
	ExpiresAt    *string  `json:"expires_at" jsonschema:"RFC 3339; null where nothing expires"`
	LastModified *string  `json:"last_modified" jsonschema:"RFC 3339"`

	Task   *partnershipTask `json:"task,omitempty" jsonschema:"a requested partnership that waits for a decision"`
	Grants []scopedConsent  `json:"grants,omitempty" jsonschema:"consents to single grantees or about single scopes"`
}

// partnershipTask is a requested partnership. Its members have the same names as over HTTP.
type partnershipTask struct {
	ID         string   `json:"id"`
	UserID     string   `json:"user_id" jsonschema:"the user who asks"`
	Stream     string   `json:"stream"`
	Categories []string `json:"categories" jsonschema:"the categories of data that may be used in the partnership"`
	Status     string   `json:"status"`
	DueAt      *string  `json:"due_at" jsonschema:"RFC 3339; then it lapses"`
	Decisions  []string `json:"decisions" jsonschema:"the possible decisions"`
}

func newTask(t *operations.PartnershipTask) *partnershipTask {
	if t == nil {
		return nil
	}
	return &partnershipTask{ID: t.ID, UserID: t.Subject, Stream: string(consent.StreamPartnered), Categories: t.Categories,
		Status: "pending",
		DueAt:  timestampText(t.DueAt), Decisions: []string{string(consent.DecisionApprove), string(consent.DecisionReject),
			string(consent.DecisionDefer)}}
}

type scopedConsent struct {
	Grantee    string   `json:"grantee" jsonschema:"the grantee; * is everybody"`
	Scope      string   `json:"scope" jsonschema:"the scope; * is everything"`
	State      string   `json:"state"`
	Categories []string `json:"categories,omitempty"`
	Purposes   []string `json:"purposes,omitempty"`
	GrantedAt  *string  `json:"granted_at"`
	ExpiresAt  *string  `json:"expires_at"`
}

// consentChange is the result of a change of consent.
type consentChange struct {
	UserID       string           `json:"user_id"`
	State        string           `json:"state" jsonschema:"the state after the change"`
	Stream       string           `json:"stream,omitempty"`
	Categories   []string         `json:"categories,omitempty"`
	Purposes     []string         `json:"purposes,omitempty"`
	Grantee      string           `json:"grantee,omitempty"`
	Scope        string           `json:"scope,omitempty"`
	GrantedAt    *string          `json:"granted_at"`
	ExpiresAt    *string          `json:"expires_at"`
	LastModified *string          `json:"last_modified"`
	Task         *partnershipTask `json:"task,omitempty" jsonschema:"a requested partnership that waits for the agent's side; nothing has changed yet"`
	Record       int64            `json:"record" jsonschema:"the number of the newest record; 0 if nothing had to be changed"`
}

type userInput struct {
	UserID string `json:"user_id,omitempty" jsonschema:"the user; left out: the user of this session"`
}

type upgradeInput struct {
	UserID  string `json:"user_id" jsonschema:"the user who asks: the one of this session, or one whose guardian they are"`
	Reason  string `json:"reason" jsonschema:"why they want a partnership, in their own words; kept in the record"`
	Request string `json:"request,omitempty" jsonschema:"a key of your choice: a repeated call with the same key makes the change only once"`
}

type degradeInput struct {
	UserID       string `json:"user_id" jsonschema:"the user who asks: the one of this session, or one whose guardian they are"`
	TargetStream string `json:"target_stream" jsonschema:"TEMPORARY: behavioural data and improvements go at once. ANONYMOUS: only statistics remain."`
	Request      string `json:"request,omitempty" jsonschema:"a key of your choice: a repeated call with the same key makes the change only once"`
}

type grantInput struct {
	UserID     string   `json:"user_id,omitempty" jsonschema:"the user who consents; left out: the user of this session"`
	Stream     string   `json:"stream,omitempty" jsonschema:"a relationship with everybody. TEMPORARY and ANONYMOUS are given at once, PARTNERED requests a partnership. Leave it out to consent to one grantee or scope."`
	Grantee    string   `json:"grantee,omitempty" jsonschema:"without stream: the grantee, such as si:vet; left out: everybody"`
	Scope      string   `json:"scope,omitempty" jsonschema:"without stream: the scope, such as ctx:bella_health, table:NAME or row:TABLE:KEY; left out: everything"`
	Categories []string `json:"categories,omitempty" jsonschema:"the categories of data that may be used; with a stream at most those it allows, which are the default: TEMPORARY ESSENTIAL; PARTNERED ESSENTIAL, BEHAVIORAL, IMPROVEMENT; ANONYMOUS STATISTICAL"`
	Purposes   []string `json:"purposes,omitempty" jsonschema:"the purposes"`
	Duration   int      `json:"duration_days,omitempty" jsonschema:"without stream: for how many days; left out: until it is withdrawn"`
	Reason     string   `json:"reason,omitempty" jsonschema:"why; kept in the record"`
	Evidence   string   `json:"evidence,omitempty" jsonschema:"what proves it, such as the number of a form; kept in the record"`
	Request    string   `json:"request,omitempty" jsonschema:"a key of your choice: a repeated call with the same key makes the change only once"`
}

type revokeInput struct {
	UserID  string `json:"user_id,omitempty" jsonschema:"the user who withdraws; left out: the user of this session"`
	Grantee string `json:"grantee,omitempty" jsonschema:"only the consent to this grantee"`
	Scope   string `json:"scope,omitempty" jsonschema:"only the consent about this"`
	Reason  string `json:"reason,omitempty" jsonschema:"why; kept in the record"`
	Request string `json:"request,omitempty" jsonschema:"a key of your choice: a repeated call with the same key makes the change only once"`
}

func consentTools() []Tool {
	hasRegistry := func(d *Database) bool { return d.Registry != nil }
	subjects := []identity.Role{identity.Subject}
	return []Tool{
		NewTool(Tool{
			Name: "consent_status", Title: "The state of a consent", ReadOnly: true, IsOfferedFor: hasRegistry,
			Roles: []identity.Role{identity.Subject, identity.Admin, identity.System, identity.Agent},
			Description: "Shows what a user has consented to: the stream of the relationship, the categories of " +
				"data that may be used, when it was given and when it expires. " +
				"An agent and a user ask about the session's own user and leave user_id out; an administrator or " +
				"an application names one. " +
				"ConsentNotFoundError (PC404) means that no consent was ever recorded: no data of the user may be used.",
		}, consentStatus),
		NewTool(Tool{
			Name: "upgrade_relationship", Title: "Ask for a partnership", IsIdempotent: true, IsOfferedFor: hasRegistry,
			Roles: subjects,
			Description: "Asks, for the user, for a partnership: data are kept and used as long as the " +
				"relationship lasts (ESSENTIAL, BEHAVIORAL, IMPROVEMENT). " +
				"Only when the user wants it. The agent's side decides about the request. Until then, and if " +
				"nobody decides before task.due_at, nothing changes. consent_status shows the " +
				"decision.",
		}, requestPartnership),
		NewTool(Tool{
			Name: "degrade_relationship", Title: "Take consent back in part", IsDestructive: true, IsIdempotent: true,
			IsOfferedFor: hasRegistry, Roles: subjects,
			Description: "Changes the user's relationship to a stream that shows less, at once and without " +
				"approval: PARTNERED to TEMPORARY or ANONYMOUS, TEMPORARY to ANONYMOUS. " +
				"Data that this removes do not come back. Only when the user wants it. To end everything use consent_revoke.",
		}, degradeRelationship).RestrictMember("target_stream", string(consent.StreamTemporary),
			string(consent.StreamAnonymous)),
		NewTool(Tool{
			Name: "consent_grant", Title: "Consent", IsIdempotent: true, IsOfferedFor: hasRegistry, Roles: subjects,
			Description: "Records the user's consent: to a stream, or, without stream, to one grantee or about " +
				"one thing. Only when the user has said so. It takes effect at once, for every " +
				"application and agent. Granting again renews; other categories replace the old ones.",
		}, consentGrant).RestrictMember("stream", string(consent.StreamTemporary), string(consent.StreamPartnered),
			string(consent.StreamAnonymous)),
		NewTool(Tool{
			Name: "consent_revoke", Title: "Withdraw consent", IsDestructive: true, IsIdempotent: true,
			IsOfferedFor: hasRegistry, Roles: subjects,
			Description: "Withdraws the user's consent: the whole relationship, or only the consent to a grantee or " +
				"about a scope. From the next statement on it shows nothing, " +
				"and the data are deleted. It needs no reason. A second call changes nothing.",
		}, consentRevoke),
	}
}

// consentsOf returns a user's consents, if the caller may ask about this user. An agent may only ask about the user for
// whom it acts.
func (c *Call) consentsOf(ctx context.Context, user string) (string, []operations.ConsentStatus, error) {
	if c.Caller.Role != identity.Agent {
		subject, err := operations.SubjectOf(c.Caller, user)
		if err != nil {
			return "", nil, err
		}
		c.AddAuditSubjects(subject)
		consents, err := c.server.Service.Consents(ctx, c.Caller, subject)
		return subject, consents, err
	}
	sessionUser := c.agentUser()
	if sessionUser == "" || user != "" && user != sessionUser {
		return "", nil, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConsent,
			"an agent can only ask about the user for whom it acts").
			WithHint("Leave user_id out. The policy (audit: subject) and the " +
				"configuration say for whom an agent acts, if for anybody.")
	}
	c.AddAuditSubjects(sessionUser)
	records, now, err := c.Database.Registry.CurrentOfSubject(ctx, sessionUser)
	var consents []operations.ConsentStatus
	for _, r := range records {
		consents = append(consents, operations.ConsentStatus{Record: r, Now: now})
	}
	return sessionUser, consents, err
}

// agentUser returns the user for whom the caller's agent acts, according to its token or to the configuration, and ""
// if it acts for nobody.
func (c *Call) agentUser() string {
	p := c.Database.Policy()
	if p == nil || p.SubjectAttribute() == "" {
		return ""
	}
	claimedUser, byToken := c.Caller.Claims[p.SubjectAttribute()]
	subject, byConfiguration := c.Database.Attributes(c.Caller.Agent)[p.SubjectAttribute()]
	switch {
	case byToken && byConfiguration: // Token and configuration both name a user. The proxy does not serve such an agent.
		return ""
	case byToken:
		return claimedUser
	}
	return subject
}

func consentStatus(ctx context.Context, c *Call, in userInput) (relationship, error) {
	user, consents, err := c.consentsOf(ctx, in.UserID)
	if err != nil {
		return relationship{}, err
	}
	out := relationship{UserID: user, State: "none", Categories: []string{}}
	for _, r := range consents {
		if r.Grantee != consent.AnyGrantee || r.Scope != consent.AnyScope {
			out.Grants = append(out.Grants, scopedConsent{
				Grantee: r.Grantee, Scope: r.Scope, State: string(r.StateAt(r.Now)), Categories: activeCategories(r.Consent,
					r.Now, r.Categories), Purposes: activeCategories(r.Consent, r.Now, r.Purposes),
				GrantedAt: timestampText(r.GivenAt), ExpiresAt: timestampText(r.EndsAt()),
			})
			continue
		}
		out.State, out.Stream = string(r.StateAt(r.Now)), string(r.Stream)
		out.Categories, out.Purposes = activeCategories(r.Consent, r.Now, r.Categories), activeCategories(r.Consent, r.Now, r.Purposes)
		out.GrantedAt, out.ExpiresAt = timestampText(r.GivenAt), timestampText(r.EndsAt())
		out.LastModified = timestampText(r.At)
		out.Task = newTask(r.OpenTask())
	}
	return out, nil
}

// activeCategories returns words if the consent is active, and an empty list otherwise.
func activeCategories(c consent.Consent, now time.Time, words []string) []string {
	if !c.IsActiveAt(now) || words == nil {
		return []string{}
	}
	return words
}

// requestPartnership requests a partnership for the user. The consent does not change until the agent's side accepts.
func requestPartnership(ctx context.Context, c *Call, in upgradeInput) (consentChange, error) {
	return c.change(ctx, consent.Command{Action: consent.ActionUpgrade, Subject: in.UserID, Reason: in.Reason,
		RequestKey: in.Request})
}

func degradeRelationship(ctx context.Context, c *Call, in degradeInput) (consentChange, error) {
	return c.change(ctx, consent.Command{Action: consent.ActionDegrade, Subject: in.UserID,
		Stream: consent.Stream(in.TargetStream), RequestKey: in.Request})
}

func consentGrant(ctx context.Context, c *Call, in grantInput) (consentChange, error) {
	const day = 24 * time.Hour
	if in.Duration < 0 || in.Duration > 100*366 {
		return consentChange{}, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonConsent,
			"a consent lasts for 1 to 36500 days").WithHint("Leave duration_days out for one that does not expire.")
	}
	if in.Stream == "" && in.Grantee == "" && in.Scope == "" && len(in.Categories) == 0 && len(in.Purposes) == 0 {
		return consentChange{}, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonConsent, "to what does the user consent?").
			WithHint("Pass stream, or a grantee, scope, categories or purposes.")
	}
	return c.change(ctx, consent.Command{
		Action: consent.ActionGrant, Subject: in.UserID, Stream: consent.Stream(in.Stream), Grantee: in.Grantee,
		Scope:      in.Scope,
		Categories: in.Categories, Purposes: in.Purposes, Duration: time.Duration(in.Duration) * day, Reason: in.Reason,
		Evidence: in.Evidence, RequestKey: in.Request,
	})
}

func consentRevoke(ctx context.Context, c *Call, in revokeInput) (consentChange, error) {
	return c.change(ctx, consent.Command{
		Action: consent.ActionRevoke, Subject: in.UserID, Grantee: in.Grantee, Scope: in.Scope, Reason: in.Reason,
		RequestKey: in.Request,
	})
}

// change runs a command on a consent in the name of the caller.
func (c *Call) change(ctx context.Context, command consent.Command) (consentChange, error) {
	command.Interface = "mcp"
	if command.Subject == "" {
		command.Subject = c.Caller.Subject
	}
	c.AddAuditSubjects(command.Subject)
	change, err := c.server.Service.Change(ctx, c.Caller, command)
	if err != nil {
		return consentChange{}, err
	}
	r, changedAt := change.Consent, change.RecordedAt
	out := consentChange{
		UserID: command.Subject, State: string(r.StateAt(changedAt)), Stream: string(r.Stream),
		Categories: activeCategories(r,
			changedAt, r.Categories), Purposes: activeCategories(r, changedAt, r.Purposes),
		GrantedAt: timestampText(r.GivenAt), ExpiresAt: timestampText(r.EndsAt()), LastModified: timestampText(changedAt),
		Record: change.RecordNumber,
		Task:   newTask(change.Task),
	}
	if key := command.Key(); key.Grantee != consent.AnyGrantee || key.Scope != consent.AnyScope {
		out.Grantee, out.Scope = key.Grantee, key.Scope
	}
	return out, nil
}

// timestampText formats a time as over HTTP, and returns nil for the zero time.
func timestampText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format(time.RFC3339Nano)
	return &text
}
