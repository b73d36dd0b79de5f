package mcp

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/policy"
)

type rememberInput struct {
	Content       string    `json:"content" jsonschema:"what is to be remembered"`
	Source        string    `json:"source,omitempty" jsonschema:"who told it, as human:sean; left out: you have seen it yourself. It counts where you own the store: anybody else is the source."`
	ToldFrom      string    `json:"told_from,omitempty" jsonschema:"the id of the memory that another SI told you this from, of the same kind: it shows to nobody to whom that one does not"`
	SubjectIDs    []string  `json:"subject_ids,omitempty" jsonschema:"whom or what it is about, as dog:bella. Name everybody: those who are named are asked before others see it."`
	AccessGrants  *[]string `json:"access_grants,omitempty" jsonschema:"who may see it: ids, roles, contexts, or * for everybody. Left out: what the context gives, else who told it. Empty: nobody but the owner."`
	ConsentGrants []string  `json:"consent_grants,omitempty" jsonschema:"who is said to have agreed: evidence, which counts for nothing without a record of consent_grant"`
	Context       string    `json:"context,omitempty" jsonschema:"the context of this memory; left out: the one that was entered with context_enter"`
	Store         string    `json:"store,omitempty" jsonschema:"whose memories it is among; left out: the context's, else your own"`
	Reason        string    `json:"reason,omitempty" jsonschema:"why; kept with the time"`
	RequestKey    string    `json:"request_key,omitempty" jsonschema:"a text that you make up for this one memory, at most 200 bytes, as a UUID. If no answer came, call again with the same key and the same arguments: the memory is not made twice. Another memory takes another key."`
}

// rememberOutput is a memory that was made, now or before.
type rememberOutput struct {
	memory
	Repeated bool `json:"repeated,omitempty" jsonschema:"true: it was made before, with this request_key"`
}

// memory is a memory without its text.
type memory struct {
	ID            string   `json:"id"`
	Kind          string   `json:"kind"`
	Store         string   `json:"store"`
	SourceEntity  string   `json:"source_entity,omitempty"`
	ToldFrom      string   `json:"told_from,omitempty"`
	SubjectIDs    []string `json:"subject_ids"`
	AccessGrants  []string `json:"access_grants" jsonschema:"who may see it, where everybody in subject_ids has consented"`
	ConsentGrants []string `json:"consent_grants"`
}

type regrantInput struct {
	ID            string   `json:"id" jsonschema:"the memory's id"`
	Who           []string `json:"who" jsonschema:"ids, roles, contexts, or * for everybody"`
	ConsentGrants []string `json:"consent_grants,omitempty" jsonschema:"of a grant: who is said to have agreed: evidence, which counts for nothing without a record"`
	Kind          string   `json:"kind,omitempty" jsonschema:"of the memory, if its id does not begin with it"`
	Reason        string   `json:"reason,omitempty" jsonschema:"why; kept with the time"`
}

type regrantOutput struct {
	memory
	Granted []string `json:"granted" jsonschema:"who was not there before"`
	Revoked []string `json:"revoked" jsonschema:"who was"`
}

type enterInput struct {
	Context      string   `json:"context" jsonschema:"its name, as ctx:bella_health"`
	Participants []string `json:"participants,omitempty" jsonschema:"of a new context; of one that is there, only its owner adds them"`
	Role         string   `json:"role,omitempty" jsonschema:"as whom. Your credential says which roles you have; another gives nothing."`
	Store        string   `json:"store,omitempty" jsonschema:"where there are several contexts of this name"`
	Reason       string   `json:"reason,omitempty" jsonschema:"why participants are added; kept with the time"`
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
	AccessGrants []string `json:"default_access_grants" jsonschema:"what new memories are granted to"`
	Owner        bool     `json:"owner" jsonschema:"it is your own, so that you say who takes part"`
}

type contextList struct {
	Contexts []contextInfo `json:"contexts"`
}

type leaveOutput struct {
	Context string `json:"context" jsonschema:"empty: none is entered"`
}

type auditInput struct {
	Subject string `json:"subject,omitempty" jsonschema:"whom the memories are about; or, instead, id"`
	ID      string `json:"id,omitempty" jsonschema:"one memory"`
	Kind    string `json:"kind,omitempty" jsonschema:"of that memory, if its id does not begin with it"`
	After   string `json:"after,omitempty" jsonschema:"what next of the answer before was: the memories that come after those"`
}

type consentInput struct {
	Grantor string `json:"grantor,omitempty" jsonschema:"whose consent: yours, which is the default, or that of somebody whose guardian you are"`
	Grantee string `json:"grantee" jsonschema:"who may see what is granted to it and is about the grantor: an id, a role, or * for everybody"`
	Scope   string `json:"scope,omitempty" jsonschema:"about what: a memory or a context; left out: everything"`
	Store   string `json:"store,omitempty" jsonschema:"among whose memories; left out: as scope and grantor say"`
	Reason  string `json:"reason,omitempty" jsonschema:"why; kept with the time"`
}

type consentRecord struct {
	ID       string `json:"id"`
	Store    string `json:"store"`
	Grantor  string `json:"grantor" jsonschema:"who had it recorded"`
	For      string `json:"for,omitempty" jsonschema:"for whom a guardian spoke"`
	Grantee  string `json:"grantee"`
	Scope    string `json:"scope"`
	Revoked  bool   `json:"revoked"`
	Repeated bool   `json:"repeated" jsonschema:"it was so already"`
}

type withdrawInput struct {
	ID      string `json:"id,omitempty" jsonschema:"of one record; else all of the grantor to the grantee"`
	Grantor string `json:"grantor,omitempty" jsonschema:"whose consent: yours, which is the default, or that of somebody whose guardian you are"`
	Grantee string `json:"grantee,omitempty"`
	Scope   string `json:"scope,omitempty" jsonschema:"only about this"`
	Store   string `json:"store,omitempty" jsonschema:"only there"`
	Reason  string `json:"reason,omitempty" jsonschema:"why; kept with the time"`
}

type withdrawOutput struct {
	Consents []consentRecord `json:"consents"`
}

// section is what the policy says of memories; nil: nothing.
func section(d *Database) *policy.Privacy {
	if d.Privacy == nil || d.Policy() == nil {
		return nil
	}
	return d.Policy().Privacy()
}

// memoryTools make memories, one for each kind of the policy.
func memoryTools(d *Database) []Tool {
	p := section(d)
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
				"In a context it is granted to what the context gives, and may be narrowed with access_grants; " +
				"more is refused (42501) without the consent of those it is about and of who told it.",
		}, func(ctx context.Context, c *Call, in rememberInput) (out rememberOutput, err error) {
			n := privacy.NewMemory{Kind: m.Kind, Store: in.Store, Content: in.Content, Source: in.Source, ToldFrom: in.ToldFrom,
				Subjects: in.SubjectIDs, Consent: in.ConsentGrants, Context: in.Context, Reason: in.Reason}
			if in.AccessGrants != nil {
				n.Access = append([]string{}, *in.AccessGrants...)
			}
			if in.RequestKey == "" {
				out.memory, err = remember(ctx, c, n)
				return out, err
			}
			out.memory, out.Repeated, err = once(ctx, c, "tool memory_"+m.Kind, in.RequestKey,
				in, func() (memory, error) { return remember(ctx, c, n) })
			return out, err
		}))
	}
	return out
}

func remember(ctx context.Context, c *Call, n privacy.NewMemory) (out memory, err error) {
	made, err := c.privacy().AddMemory(ctx, c.Caller, n)
	if err != nil {
		return out, err
	}
	return memoryOf(*made), nil
}

func memoryOf(m privacy.Memory) memory {
	return memory{m.ID, m.Kind, m.Store, m.Source, m.ToldFrom, m.Subjects, m.Access, m.Consent}
}

func consentRecordOf(c privacy.Consent) consentRecord {
	return consentRecord{c.ID, c.Store, c.Grantor, c.For, c.Grantee, c.Scope, c.Revoked, c.Repeated}
}

func contextInfoOf(c privacy.Context) contextInfo {
	return contextInfo{c.Name, c.Store, c.Participants, c.Access, c.Owner}
}

// privacy works with this session's connections, so that what was entered here is entered there.
func (c *Call) privacy() *privacy.Service {
	d := *c.Database.Privacy
	d.ConnectCaller = func(ctx context.Context, _ identity.Caller) (*pgx.Conn, error) { return c.Connect(ctx) }
	return &d
}

func privacyTools() []Tool {
	agents := []identity.Role{identity.Agent}
	offered := func(d *Database) bool { return section(d) != nil }
	contexts := func(d *Database) bool { return offered(d) && section(d).Setting != "" }
	records := func(d *Database) bool { return offered(d) && section(d).Consents != nil }
	return []Tool{
		NewTool(Tool{
			Name: "context_enter", Title: "Enter a context", Idempotent: true, RunsStatements: true, Offered: contexts, Roles: agents,
			Description: "Enters a context, as ctx:bella_health, for the rest of this session: what is granted to " +
				"it shows, and new memories are granted to what it gives. You must take part in it. " +
				"If there is none of this name and you own a store, it is made. Leave it with context_leave " +
				"before you speak with others.",
		}, enterContext),
		NewTool(Tool{
			Name: "context_leave", Title: "Leave the context", Idempotent: true, RunsStatements: true, Offered: contexts, Roles: agents,
			Description: "Leaves the context that was entered: what only the context showed is hidden.",
		}, leaveContext),
		NewTool(Tool{
			Name: "context_list", Title: "Contexts", ReadOnly: true, RunsStatements: true, Offered: contexts, Roles: agents,
			Description: "Lists the contexts that you take part in, and those of your own store, with their " +
				"participants and what new memories in them are granted to.",
		}, listContexts),
		NewTool(Tool{
			Name: "privacy_grant", Title: "Grant a memory to more", Idempotent: true, RunsStatements: true,
			Offered: offered, Roles: agents,
			Description: "Grants a memory of your own store to more. Everybody whom it is about, and who told it, " +
				"must have consented to each of them (consent_grant); else it is refused (42501).",
		}, grantMemory),
		NewTool(Tool{
			Name: "privacy_revoke", Title: "Take grants off a memory", Idempotent: true, RunsStatements: true,
			Offered: offered, Roles: agents,
			Description: "Takes grants off a memory of your own store: from the next statement on they do not see it.",
		}, revokeMemory),
		NewTool(Tool{
			Name: "privacy_audit", Title: "Who sees what", ReadOnly: true, Offered: offered, Roles: []identity.Role{
				identity.Agent, identity.Subject},
			Description: "Shows who sees one memory, or every memory about a subject: through which grant and " +
				"which consent, who does not although it is granted to them, and what became of the grants. " +
				"For the owner of the memories, the subject and its guardian; for anybody else there is nothing " +
				"(PC404). Texts are not shown.",
		}, auditPrivacy),
		NewTool(Tool{
			Name: "consent_grant", Title: "Record a consent", Idempotent: true, RunsStatements: true, Offered: records, Roles: agents,
			Description: "Records that somebody lets a grantee see the memories about them that are granted to " +
				"it: about everything, a context or one memory. Only the grantor itself or its guardian records it, by its own " +
				"session. Consent alone shows nothing: the memory must be granted as well.",
		}, giveConsent),
		NewTool(Tool{
			Name: "consent_revoke", Title: "Revoke a consent", Idempotent: true, RunsStatements: true, Offered: records, Roles: agents,
			Description: "Revokes a consent of your own, or of somebody whose guardian you are: from the next " +
				"statement on the grantee does not see what it stood for. Doing it twice does it once.",
		}, takeConsent),
	}
}

func enterContext(ctx context.Context, c *Call, in enterInput) (out enterOutput, err error) {
	entered, err := c.privacy().EnterContext(ctx, c.Caller,
		privacy.ContextRequest{Context: in.Context, Store: in.Store, Participants: in.Participants, Role: in.Role, Reason: in.Reason})
	if err != nil {
		return out, err
	}
	c.Set(section(c.Database).Setting, entered.Setting)
	return enterOutput{contextInfoOf(entered.Context), entered.Made, entered.Added, entered.Role, entered.RoleHeld}, nil
}

func leaveContext(_ context.Context, c *Call, _ noInput) (leaveOutput, error) {
	c.Set(section(c.Database).Setting, "")
	return leaveOutput{}, nil
}

func listContexts(ctx context.Context, c *Call, _ noInput) (out contextList, err error) {
	list, err := c.privacy().Contexts(ctx, c.Caller)
	out.Contexts = []contextInfo{}
	for _, one := range list {
		out.Contexts = append(out.Contexts, contextInfoOf(one))
	}
	return out, err
}

func grantMemory(ctx context.Context, c *Call, in regrantInput) (regrantOutput, error) {
	return regrant(c.privacy().Grant(ctx, c.Caller,
		privacy.GrantChange{ID: in.ID, Kind: in.Kind, Who: in.Who, Consent: in.ConsentGrants, Reason: in.Reason}))
}

func revokeMemory(ctx context.Context, c *Call, in regrantInput) (regrantOutput, error) {
	return regrant(c.privacy().Revoke(ctx, c.Caller,
		privacy.GrantChange{ID: in.ID, Kind: in.Kind, Who: in.Who, Consent: in.ConsentGrants, Reason: in.Reason}))
}

func regrant(out *privacy.GrantResult, err error) (regrantOutput, error) {
	if err != nil {
		return regrantOutput{}, err
	}
	return regrantOutput{memoryOf(out.Memory), out.Granted, out.Revoked}, nil
}

func auditPrivacy(ctx context.Context, c *Call, in auditInput) (out privacy.AuditReport, err error) {
	report, err := c.Database.Privacy.Audit(ctx, c.Caller,
		privacy.AuditQuestion{Subject: in.Subject, ID: in.ID, Kind: in.Kind, After: in.After})
	if err != nil {
		return out, err
	}
	if in.Subject != "" {
		c.About(in.Subject)
	} else {
		for _, row := range report.Rows {
			c.About(row.Subjects...)
		}
	}
	return *report, nil
}

func giveConsent(ctx context.Context, c *Call, in consentInput) (consentRecord, error) {
	out, err := c.privacy().RecordConsent(ctx, c.Caller,
		privacy.ConsentRequest{Grantor: in.Grantor, Grantee: in.Grantee, Scope: in.Scope, Store: in.Store, Reason: in.Reason})
	if err != nil {
		return consentRecord{}, err
	}
	return consentRecordOf(*out), nil
}

func takeConsent(ctx context.Context, c *Call, in withdrawInput) (out withdrawOutput, err error) {
	list, err := c.privacy().WithdrawConsent(ctx, c.Caller,
		privacy.ConsentRequest{ID: in.ID, Grantor: in.Grantor, Grantee: in.Grantee, Scope: in.Scope, Store: in.Store, Reason: in.Reason})
	out.Consents = []consentRecord{}
	for _, one := range list {
		out.Consents = append(out.Consents, consentRecordOf(one))
	}
	return out, err
}
