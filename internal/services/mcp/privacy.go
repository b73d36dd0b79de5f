package mcp

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/policy"
)

type rememberInput struct {
	Content       string    `json:"content" jsonschema:"the text of the memory"`
	Source        string    `json:"source,omitempty" jsonschema:"the entity that told it, such as human:sean; left out: you have seen it yourself. Only the owner of the store can name another."`
	ToldFrom      string    `json:"told_from,omitempty" jsonschema:"the id of the memory, of the same kind, from which another SI told you this: only those who see that one see this one"`
	SubjectIDs    []string  `json:"subject_ids,omitempty" jsonschema:"whom or what it is about, such as dog:bella. Name everybody: the consent of those named is needed before others see it."`
	AccessGrants  *[]string `json:"access_grants,omitempty" jsonschema:"who may see it: ids, roles, contexts, or * for everybody. Left out: the context's grants, else the entity that told it. Empty: nobody but the owner."`
	ConsentGrants []string  `json:"consent_grants,omitempty" jsonschema:"who is said to have consented: evidence only, without effect unless consent_grant has made a record"`
	Context       string    `json:"context,omitempty" jsonschema:"the context of this memory; left out: the one that was entered with context_enter"`
	Store         string    `json:"store,omitempty" jsonschema:"the store to put it in; left out: the context's, else your own"`
	Reason        string    `json:"reason,omitempty" jsonschema:"why; stored with the time"`
	RequestKey    string    `json:"request_key,omitempty" jsonschema:"a text that you make up for this one memory, at most 200 bytes, such as a UUID. If no answer came, call again with the same key and arguments: the memory is not made twice. Use another key for another memory."`
}

// rememberOutput is a memory that this call has made, or an earlier call with the same request_key.
type rememberOutput struct {
	memoryInfo
	Repeated bool `json:"repeated,omitempty" jsonschema:"true: it was made before, with this request_key"`
}

// memoryInfo is a memory without its text.
type memoryInfo struct {
	ID            string   `json:"id"`
	Kind          string   `json:"kind"`
	Store         string   `json:"store"`
	SourceEntity  string   `json:"source_entity,omitempty"`
	ToldFrom      string   `json:"told_from,omitempty"`
	SubjectIDs    []string `json:"subject_ids"`
	AccessGrants  []string `json:"access_grants" jsonschema:"who may see it, if everybody in subject_ids has consented"`
	ConsentGrants []string `json:"consent_grants"`
}

type regrantInput struct {
	ID            string   `json:"id" jsonschema:"the memory's id"`
	Who           []string `json:"who" jsonschema:"ids, roles, contexts, or * for everybody"`
	ConsentGrants []string `json:"consent_grants,omitempty" jsonschema:"with a grant: who is said to have consented: evidence only, without effect unless there is a record"`
	Kind          string   `json:"kind,omitempty" jsonschema:"the kind of the memory, if its id does not begin with it"`
	Reason        string   `json:"reason,omitempty" jsonschema:"why; stored with the time"`
}

type regrantOutput struct {
	memoryInfo
	Granted []string `json:"granted" jsonschema:"ids that were added"`
	Revoked []string `json:"revoked" jsonschema:"ids that were removed"`
}

type enterInput struct {
	Context      string   `json:"context" jsonschema:"the name of the context, such as ctx:bella_health"`
	Participants []string `json:"participants,omitempty" jsonschema:"of a new context; of one that is there, only its owner adds them"`
	Role         string   `json:"role,omitempty" jsonschema:"the role to enter with, one of those in your credential; another gives no access"`
	Store        string   `json:"store,omitempty" jsonschema:"the store, where several have a context of this name"`
	Reason       string   `json:"reason,omitempty" jsonschema:"why participants are added; stored with the time"`
}

type enterOutput struct {
	contextInfo
	Created  bool     `json:"created"`
	Added    []string `json:"added" jsonschema:"participants that were not there before"`
	Role     string   `json:"role,omitempty"`
	RoleHeld *bool    `json:"role_held,omitempty" jsonschema:"false: your credential does not have the role, and it gives nothing"`
}

type contextInfo struct {
	Context      string   `json:"context"`
	Store        string   `json:"store"`
	Participants []string `json:"participants"`
	AccessGrants []string `json:"default_access_grants" jsonschema:"the grants of new memories"`
	Owner        bool     `json:"owner" jsonschema:"it is your own, and you decide who takes part"`
}

type contextList struct {
	Contexts []contextInfo `json:"contexts"`
}

type leaveOutput struct {
	Context string `json:"context" jsonschema:"empty: none is entered"`
}

type auditInput struct {
	Subject string `json:"subject,omitempty" jsonschema:"the subject of the memories; instead of id"`
	ID      string `json:"id,omitempty" jsonschema:"one memory; instead of subject"`
	Kind    string `json:"kind,omitempty" jsonschema:"the kind of that memory, if its id does not begin with it"`
	After   string `json:"after,omitempty" jsonschema:"the next of the previous page"`
}

type consentInput struct {
	Grantor string `json:"grantor,omitempty" jsonschema:"who consents: you, which is the default, or somebody whose guardian you are"`
	Grantee string `json:"grantee" jsonschema:"who may see memories about the grantor that are granted to it: an id, a role, or * for everybody"`
	Scope   string `json:"scope,omitempty" jsonschema:"the scope: a memory or a context; left out: everything"`
	Store   string `json:"store,omitempty" jsonschema:"the store; left out: as scope and grantor imply"`
	Reason  string `json:"reason,omitempty" jsonschema:"why; stored with the time"`
}

type consentRecord struct {
	ID       string `json:"id"`
	Store    string `json:"store"`
	Grantor  string `json:"grantor" jsonschema:"the entity that had it recorded"`
	For      string `json:"for,omitempty" jsonschema:"the person for whom a guardian consented"`
	Grantee  string `json:"grantee"`
	Scope    string `json:"scope"`
	Revoked  bool   `json:"revoked"`
	Repeated bool   `json:"repeated" jsonschema:"it was recorded before"`
}

type withdrawInput struct {
	ID      string `json:"id,omitempty" jsonschema:"one record; left out: all of the grantor to the grantee"`
	Grantor string `json:"grantor,omitempty" jsonschema:"who consents: you, which is the default, or somebody whose guardian you are"`
	Grantee string `json:"grantee,omitempty"`
	Scope   string `json:"scope,omitempty" jsonschema:"only consents about this"`
	Store   string `json:"store,omitempty" jsonschema:"only in this store"`
	Reason  string `json:"reason,omitempty" jsonschema:"why; stored with the time"`
}

type withdrawOutput struct {
	Consents []consentRecord `json:"consents"`
}

// privacySection returns the policy's section about memories, and nil if there is none.
func privacySection(d *Database) *policy.Privacy {
	if d.Privacy == nil || d.Policy() == nil {
		return nil
	}
	return d.Policy().Privacy()
}

// memoryTools makes the tools that store memories: one for each kind of memory in the policy.
func memoryTools(d *Database) []Tool {
	p := privacySection(d)
	if p == nil {
		return nil
	}
	var out []Tool
	for _, m := range p.Memories {
		out = append(out, NewTool(Tool{
			Name: "memory_" + m.Kind, Title: "Remember: " + m.Kind, RunsStatements: true, Roles: []identity.Role{identity.Agent},
			Description: "Makes a memory of the kind " + m.Kind +
				". It is private: only its owner sees it, and those in access_grants, if everybody in subject_ids " +
				"has consented to them. " +
				"In a context it gets the context's grants, which access_grants may narrow; " +
				"more grants are refused (42501) without the consent of its subjects and of the entity that told it.",
		}, func(ctx context.Context, c *Call, in rememberInput) (out rememberOutput, err error) {
			n := privacy.NewMemory{Kind: m.Kind, Store: in.Store, Content: in.Content, Source: in.Source, ToldFrom: in.ToldFrom,
				Subjects: in.SubjectIDs, Consent: in.ConsentGrants, Context: in.Context, Reason: in.Reason}
			if in.AccessGrants != nil {
				n.Access = append([]string{}, *in.AccessGrants...)
			}
			if in.RequestKey == "" {
				out.memoryInfo, err = storeMemory(ctx, c, n)
				return out, err
			}
			out.memoryInfo, out.Repeated, err = callOnce(ctx, c, "tool memory_"+m.Kind, in.RequestKey,
				in, func() (memoryInfo, error) { return storeMemory(ctx, c, n) })
			return out, err
		}))
	}
	return out
}

func storeMemory(ctx context.Context, c *Call, n privacy.NewMemory) (out memoryInfo, err error) {
	storedMemory, err := c.privacyService().AddMemory(ctx, c.Caller, n)
	if err != nil {
		return out, err
	}
	return memoryOf(*storedMemory), nil
}

func memoryOf(m privacy.Memory) memoryInfo {
	return memoryInfo{m.ID, m.Kind, m.Store, m.Source, m.ToldFrom, m.Subjects, m.Access, m.Consent}
}

func consentRecordOf(c privacy.RecordedConsent) consentRecord {
	return consentRecord{c.ID, c.Store, c.Grantor, c.OnBehalfOf, c.Grantee, c.Scope, c.Revoked, c.Repeated}
}

func contextInfoOf(c privacy.Context) contextInfo {
	return contextInfo{c.Name, c.Store, c.Participants, c.Access, c.Owner}
}

// privacyService returns the operations on memories, which use connections of this session. A context that the session
// has entered is therefore active in these connections.
func (c *Call) privacyService() *privacy.Service {
	d := *c.Database.Privacy
	d.ConnectCaller = func(ctx context.Context, _ identity.Caller) (*pgx.Conn, error) { return c.Connect(ctx) }
	return &d
}

func privacyTools() []Tool {
	agents := []identity.Role{identity.Agent}
	hasPrivacySection := func(d *Database) bool { return privacySection(d) != nil }
	contexts := func(d *Database) bool { return hasPrivacySection(d) && privacySection(d).ContextSetting != "" }
	records := func(d *Database) bool { return hasPrivacySection(d) && privacySection(d).Consents != nil }
	return []Tool{
		NewTool(Tool{
			Name: "context_enter", Title: "Enter a context", IsIdempotent: true, RunsStatements: true, IsOfferedFor: contexts,
			Roles: agents,
			Description: "Enters a context, such as ctx:bella_health, for the rest of this session: memories that are granted to " +
				"it show, and new memories get its grants. You must take part in it. " +
				"If there is none of this name and you own a store, it is made. Leave it with context_leave " +
				"before you speak with others.",
		}, enterContext),
		NewTool(Tool{
			Name: "context_leave", Title: "Leave the context", IsIdempotent: true, RunsStatements: true, IsOfferedFor: contexts,
			Roles:       agents,
			Description: "Leaves the context that was entered: memories that only the context showed are hidden again.",
		}, leaveContext),
		NewTool(Tool{
			Name: "context_list", Title: "Contexts", ReadOnly: true, RunsStatements: true, IsOfferedFor: contexts, Roles: agents,
			Description: "Lists the contexts that you take part in, and those of your own store, with their " +
				"participants and the grants of new memories in them.",
		}, listContexts),
		NewTool(Tool{
			Name: "privacy_grant", Title: "Grant a memory to more grantees", IsIdempotent: true, RunsStatements: true,
			IsOfferedFor: hasPrivacySection, Roles: agents,
			Description: "Grants a memory of your own store to more grantees. Its subjects, and the entity that told it, " +
				"must have consented to each of them (consent_grant); else it is refused (42501).",
		}, grantMemory),
		NewTool(Tool{
			Name: "privacy_revoke", Title: "Remove grants from a memory", IsIdempotent: true, RunsStatements: true,
			IsOfferedFor: hasPrivacySection, Roles: agents,
			Description: "Removes grants from a memory of your own store: from the next statement on those grantees do not see it.",
		}, revokeMemory),
		NewTool(Tool{
			Name: "privacy_audit", Title: "Who sees what", ReadOnly: true, IsOfferedFor: hasPrivacySection,
			Roles: []identity.Role{identity.Agent, identity.Subject},
			Description: "Shows who sees one memory, or every memory about a subject, by which grant and " +
				"consent; which grantees do not see it for lack of a consent; and the history of the grants. " +
				"It answers the owner of the memories, the subject and its guardian; for anybody else nothing is found " +
				"(PC404). Texts are not shown.",
		}, auditPrivacy),
		NewTool(Tool{
			Name: "consent_grant", Title: "Record a consent", IsIdempotent: true, RunsStatements: true, IsOfferedFor: records,
			Roles: agents,
			Description: "Records that somebody lets a grantee see memories about them that are granted to " +
				"it: all, those of a context, or one. Only the grantor itself or its guardian can record it, in its own " +
				"session. Consent alone shows nothing: the memory must be granted as well.",
		}, recordConsent),
		NewTool(Tool{
			Name: "consent_revoke", Title: "Revoke a consent", IsIdempotent: true, RunsStatements: true, IsOfferedFor: records,
			Roles: agents,
			Description: "Revokes a consent of your own, or of somebody whose guardian you are: from the next " +
				"statement on the grantee does not see those memories. A second call changes nothing.",
		}, withdrawConsent),
	}
}

func enterContext(ctx context.Context, c *Call, in enterInput) (out enterOutput, err error) {
	enteredContext, err := c.privacyService().EnterContext(ctx, c.Caller,
		privacy.ContextRequest{Context: in.Context, Store: in.Store, Participants: in.Participants, Role: in.Role, Reason: in.Reason})
	if err != nil {
		return out, err
	}
	c.SetAttribute(privacySection(c.Database).ContextSetting, enteredContext.Setting)
	return enterOutput{contextInfoOf(enteredContext.Context), enteredContext.Created, enteredContext.Added,
		enteredContext.Role,
		enteredContext.CredentialHasRole}, nil
}

func leaveContext(_ context.Context, c *Call, _ noInput) (leaveOutput, error) {
	c.SetAttribute(privacySection(c.Database).ContextSetting, "")
	return leaveOutput{}, nil
}

func listContexts(ctx context.Context, c *Call, _ noInput) (out contextList, err error) {
	list, err := c.privacyService().Contexts(ctx, c.Caller)
	out.Contexts = []contextInfo{}
	for _, item := range list {
		out.Contexts = append(out.Contexts, contextInfoOf(item))
	}
	return out, err
}

func grantMemory(ctx context.Context, c *Call, in regrantInput) (regrantOutput, error) {
	return newRegrantOutput(c.privacyService().Grant(ctx, c.Caller,
		privacy.GrantChange{ID: in.ID, Kind: in.Kind, Grantees: in.Who, Consent: in.ConsentGrants, Reason: in.Reason}))
}

func revokeMemory(ctx context.Context, c *Call, in regrantInput) (regrantOutput, error) {
	return newRegrantOutput(c.privacyService().Revoke(ctx, c.Caller,
		privacy.GrantChange{ID: in.ID, Kind: in.Kind, Grantees: in.Who, Consent: in.ConsentGrants, Reason: in.Reason}))
}

func newRegrantOutput(out *privacy.GrantResult, err error) (regrantOutput, error) {
	if err != nil {
		return regrantOutput{}, err
	}
	return regrantOutput{memoryOf(out.Memory), out.Granted, out.Revoked}, nil
}

func auditPrivacy(ctx context.Context, c *Call, in auditInput) (out privacy.AuditReport, err error) {
	report, err := c.Database.Privacy.Audit(ctx, c.Caller,
		privacy.AuditQuery{Subject: in.Subject, ID: in.ID, Kind: in.Kind, After: in.After})
	if err != nil {
		return out, err
	}
	if in.Subject != "" {
		c.AddAuditSubjects(in.Subject)
	} else {
		for _, row := range report.Rows {
			c.AddAuditSubjects(row.Subjects...)
		}
	}
	return *report, nil
}

func recordConsent(ctx context.Context, c *Call, in consentInput) (consentRecord, error) {
	out, err := c.privacyService().RecordConsent(ctx, c.Caller,
		privacy.ConsentRequest{Grantor: in.Grantor, Grantee: in.Grantee, Scope: in.Scope, Store: in.Store, Reason: in.Reason})
	if err != nil {
		return consentRecord{}, err
	}
	return consentRecordOf(*out), nil
}

func withdrawConsent(ctx context.Context, c *Call, in withdrawInput) (out withdrawOutput, err error) {
	list, err := c.privacyService().WithdrawConsent(ctx, c.Caller,
		privacy.ConsentRequest{ID: in.ID, Grantor: in.Grantor, Grantee: in.Grantee, Scope: in.Scope, Store: in.Store, Reason: in.Reason})
	out.Consents = []consentRecord{}
	for _, consent := range list {
		out.Consents = append(out.Consents, consentRecordOf(consent))
	}
	return out, err
}
