package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type consentGrantCmd struct {
	subjectFlags
	Stream   string        `placeholder:"STREAM" help:"TEMPORARY or ANONYMOUS; PARTNERED asks for a partnership."`
	Category []string      `placeholder:"NAME" sep:"none" help:"A category, and what is below it (a covers a/b). May be given several times. Default: all of the stream's."`
	Purpose  []string      `placeholder:"NAME" sep:"none" help:"A purpose, likewise."`
	For      time.Duration `placeholder:"TIME" help:"How long a consent without stream lasts: 720h. Default: until it is withdrawn."`
	targetFlags
	reasonFlags
}

func (consentGrantCmd) Help() string {
	return `A grant may list fewer categories than its stream allows, never more: TEMPORARY ESSENTIAL; PARTNERED ESSENTIAL, BEHAVIORAL,
IMPROVEMENT; ANONYMOUS STATISTICAL. Granting again renews; granting other categories changes them.

  pgconsent consent grant ada --stream TEMPORARY
  pgconsent consent grant ada --stream PARTNERED --category ESSENTIAL --category BEHAVIORAL
  pgconsent consent grant ada --grantee si:vet --scope ctx:bella_health --purpose care --for 720h --evidence "form 12, signed"`
}

func (g consentGrantCmd) Run(s *session) error {
	id, err := g.subject()
	if err != nil {
		return err
	}
	if g.Stream == "" && g.Grantee == "" && g.Scope == "" && len(g.Category) == 0 && len(g.Purpose) == 0 {
		return usageError{
			errors.New("to what does the subject consent? --stream TEMPORARY, or --grantee, --scope, --category or --purpose")}
	}
	c := consent.Command{
		Action: consent.ActionGrant, Subject: id, Stream: consent.Stream(strings.ToUpper(g.Stream)), Categories: g.Category,
		Purposes: g.Purpose, Duration: g.For,
		Grantee: g.Grantee, Scope: g.Scope,
	}
	g.fillCommand(&c)
	return s.makeChange(g.Database, c)
}

type consentRevokeCmd struct {
	subjectFlags
	Controller string `placeholder:"ID" help:"Revoked by the controller, by this person or office, instead of withdrawn by the subject."`
	Erase      bool   `help:"Forget the subject as well, as consent erase does."`
	targetFlags
	reasonFlags
}

func (consentRevokeCmd) Help() string {
	return `From its return on, no new statement shows rows by this consent, and older snapshots and cursors end. A subject or a guardian
withdraws, a controller revokes: records tell the two apart. A second call changes nothing.

  pgconsent consent revoke ada
  pgconsent consent revoke ada --grantee si:vet --scope ctx:bella_health
  pgconsent consent revoke ada --controller legal --reason "court order 7/26"`
}

func (r consentRevokeCmd) Run(s *session) error {
	id, err := r.subject()
	if err != nil {
		return err
	}
	c := consent.Command{Action: consent.ActionRevoke, Subject: id, Grantee: r.Grantee, Scope: r.Scope}
	if r.Erase {
		if r.Grantee+r.Scope != "" {
			return usageError{errors.New("--erase is about the whole subject")}
		}
		c.Action = consent.ActionErase
	}
	r.fillCommand(&c)
	if r.Controller != "" {
		if r.Guardian != "" {
			return usageError{errors.New("--controller and --guardian do not go together: either the controller revokes or a guardian withdraws")}
		}
		c.Caller = consent.Party{Role: consent.RoleController, ID: r.Controller}
	}
	if r.Erase {
		return s.erase(r.Database, c)
	}
	return s.makeChange(r.Database, c)
}

type consentRefuseCmd struct {
	subjectFlags
	targetFlags
	reasonFlags
}

func (r consentRefuseCmd) Run(s *session) error {
	id, err := r.subject()
	if err != nil {
		return err
	}
	c := consent.Command{Action: consent.ActionRefuse, Subject: id, Grantee: r.Grantee, Scope: r.Scope}
	r.fillCommand(&c)
	return s.makeChange(r.Database, c)
}

type consentUpgradeCmd struct {
	subjectFlags
	Category []string `placeholder:"NAME" sep:"none" help:"A category. May be given several times. Default: ESSENTIAL, BEHAVIORAL, IMPROVEMENT."`
	reasonFlags
}

func (consentUpgradeCmd) Help() string {
	return `The consent stays as it is until the agent's side has decided. After review_timeout of the configuration (48 hours) the
request lapses.

  pgconsent consent upgrade ada --reason "we work together"
  pgconsent consent pending
  pgconsent consent decide ada TASK_COMPLETE --agent chat`
}

func (u consentUpgradeCmd) Run(s *session) error {
	id, err := u.subject()
	if err != nil {
		return err
	}
	c := consent.Command{Action: consent.ActionUpgrade, Subject: id, Categories: u.Category}
	u.fillCommand(&c)
	return s.makeChange(u.Database, c)
}

type consentDecideCmd struct {
	ID       string `arg:"" name:"subject" help:"The subject who has asked."`
	Decision string `arg:"" help:"TASK_COMPLETE, REJECT or DEFER."`
	Agent    string `required:"" placeholder:"NAME" help:"The agent that decides, of the configuration, that can log in. It cannot be the subject."`
	Database string `placeholder:"NAME" help:"The database. Default: the only one."`
	Reason   string `placeholder:"TEXT" help:"Why. Sealed in the record."`
	Request  string `placeholder:"KEY" help:"A key of your choice: the same change with the same key is done once."`
}

func (consentDecideCmd) Help() string {
	return `TASK_COMPLETE approves the partnership, REJECT declines it, DEFER leaves it open until the same deadline. As over HTTP, the
agent must belong to this database and be able to log in.

  pgconsent consent decide ada TASK_COMPLETE --agent chat
  pgconsent consent decide ada REJECT --agent chat --reason "too early"`
}

func (d consentDecideCmd) Run(s *session) error {
	if err := s.requireDecider(d.Database, d.Agent); err != nil {
		return err
	}
	return s.makeChange(d.Database, consent.Command{
		Action: consent.ActionDecide, Subject: d.ID, Decision: consent.Decision(strings.ToUpper(d.Decision)),
		Caller: consent.Party{Role: consent.RoleAgent, ID: d.Agent}, Interface: "cli", Reason: d.Reason,
		RequestKey: d.Request,
	})
}

// requireDecider refuses an agent that cannot log in, and so could not decide over HTTP or MCP. Records must not name a
// decider that does not exist.
func (s *session) requireDecider(database, name string) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	agent, err := findAgent(c, name)
	if err != nil {
		return err
	}
	if database != "" && agent.Database != database {
		return usageError{fmt.Errorf("agent %s is one of database %s", name, agent.Database)}
	}
	login, err := loginStates(c)
	if err != nil {
		return err
	}
	if login[name] != "yes" {
		return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity,
			"agent %s cannot log in, and so cannot decide", name).
			WithHint("pgconsent agent list says who can; pgconsent agent add lets it.")
	}
	return nil
}

type consentDegradeCmd struct {
	subjectFlags
	To string `required:"" placeholder:"STREAM" help:"TEMPORARY or ANONYMOUS."`
	reasonFlags
}

func (consentDegradeCmd) Help() string {
	return `PARTNERED becomes TEMPORARY or ANONYMOUS, TEMPORARY becomes ANONYMOUS, without approval. TEMPORARY ends the other categories
at once. With ANONYMOUS, older data decay over 90 days, unless the configuration says decay: false.

  pgconsent consent degrade ada --to ANONYMOUS`
}

func (d consentDegradeCmd) Run(s *session) error {
	id, err := d.subject()
	if err != nil {
		return err
	}
	c := consent.Command{Action: consent.ActionDegrade, Subject: id, Stream: consent.Stream(strings.ToUpper(d.To))}
	d.fillCommand(&c)
	return s.makeChange(d.Database, c)
}

type consentInteractionCmd struct{ subjectFlags }

func (consentInteractionCmd) Help() string {
	return `For the application, when a subject has interacted with it. The first interaction gives TEMPORARY, unless the configuration
says require_explicit; later ones renew it. It never overrides a withdrawal. Statements of agents never do this.

  pgconsent consent interaction ada`
}

func (i consentInteractionCmd) Run(s *session) error {
	id, err := i.subject()
	if err != nil {
		return err
	}
	return s.makeChange(i.Database, consent.Command{Action: consent.ActionInteract, Subject: id,
		Caller: consent.Party{Role: consent.RoleApplication}, Interface: "cli"})
}

type consentGuardianCmd struct {
	Add    consentGuardianAddCmd    `cmd:"" help:"Record that somebody is a guardian of a subject."`
	Remove consentGuardianRemoveCmd `cmd:"" help:"Record that they are no guardian any more."`
}

type consentGuardianAddCmd struct {
	subjectFlags
	Guardian   string `required:"" placeholder:"ID" help:"The guardian."`
	Controller string `default:"owner" placeholder:"ID" help:"Who appoints or dismisses. Default: ${default}."`
	Reason     string `placeholder:"TEXT" help:"Why. Sealed in the record."`
	Evidence   string `placeholder:"TEXT" help:"What proves it. Sealed in the record."`
}

func (g consentGuardianAddCmd) Run(s *session) error {
	return g.changeGuardian(s, consent.ActionAppoint)
}

type consentGuardianRemoveCmd struct{ consentGuardianAddCmd }

func (g consentGuardianRemoveCmd) Run(s *session) error {
	return g.changeGuardian(s, consent.ActionDismiss)
}

func (g consentGuardianAddCmd) changeGuardian(s *session, action consent.Action) error {
	id, err := g.subject()
	if err != nil {
		return err
	}
	r, err := s.openRegistry(g.Database)
	if err != nil {
		return err
	}
	defer r.Close()
	out, err := r.Execute(s.ctx, consent.Command{Action: action, Subject: id, Guardian: g.Guardian,
		Caller: consent.Party{Role: consent.RoleController, ID: g.Controller}, Interface: "cli",
		Reason: g.Reason, Evidence: g.Evidence})
	if err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"subject": id, "guardian": g.Guardian, "speaks": action == consent.ActionAppoint,
			"record": out.RecordNumber})
	}
	line := fmt.Sprintf("%s speaks for %s", g.Guardian, id)
	if action == consent.ActionDismiss {
		line = fmt.Sprintf("%s does not speak for %s", g.Guardian, id)
	}
	if out.RecordNumber == 0 {
		line += "; it was so before"
	} else {
		line += fmt.Sprintf("; record %d", out.RecordNumber)
	}
	_, err = fmt.Fprintln(s.out, line)
	return err
}

type consentEraseCmd struct {
	subjectFlags
	Yes        bool   `help:"Confirm: an erasure cannot be undone."`
	Controller string `placeholder:"ID" help:"Erased by the controller, by this person or office, instead of by the subject's wish."`
	reasonFlags
}

func (consentEraseCmd) Help() string {
	return `Ends every consent of the subject and destroys the key of their records: the name, reasons and evidence cannot be read any
more. The chain of records still verifies. The rows themselves are deleted by pgconsent sweep.

  pgconsent consent erase ada --yes`
}

func (e consentEraseCmd) Run(s *session) error {
	id, err := e.subject()
	if err != nil {
		return err
	}
	if !e.Yes {
		return usageError{errors.New("an erasure cannot be undone: add --yes")}
	}
	c := consent.Command{Action: consent.ActionErase, Subject: id}
	e.fillCommand(&c)
	if e.Controller != "" {
		c.Caller = consent.Party{Role: consent.RoleController, ID: e.Controller}
	}
	return s.erase(e.Database, c)
}

func (s *session) erase(database string, c consent.Command) error {
	r, err := s.openRegistry(database)
	if err != nil {
		return err
	}
	defer r.Close()
	out, err := r.Execute(s.ctx, c)
	if err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"erased": true, "record": out.RecordNumber, "at": out.RecordedAt.UTC()})
	}
	_, err = fmt.Fprintf(s.out, "erased; record %d\n", out.RecordNumber)
	return err
}
