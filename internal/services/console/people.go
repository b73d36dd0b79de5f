package console

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/tool/why"
)

// Pages for admins show people and their consents, and why an agent sees a row. Admins cannot change consents.

const peoplePerPage = 25

type peoplePage struct {
	Text           string
	Stream         string
	Streams        []streamChoice
	List           []personRow
	Next           string // handle of the last person; "": there is no next page
	NotFirstPage   bool   // this is not the first page
	RegistryUnused bool   // no rule of the policy reads the consent registry
	Now            time.Time
}

type streamChoice struct {
	Value, Text string
	Chosen      bool
}

type personRow struct {
	ID, Handle    string
	MainConsent   *consentView
	OtherConsents int // number of other active consents
}

func (o *Console) showPeople(c *request) (answer, error) {
	c.aboutEverybody = true
	f := c.session.peopleFilter()
	p := peoplePage{Text: f.Text, Stream: string(f.Stream)}
	if h := c.httpRequest.PathValue("handle"); h != "" {
		after, ok := c.session.idOf(h)
		if !ok {
			return answer{}, newUnknownHandleError()
		}
		f.After, p.NotFirstPage = after, true
	}
	f.PageSize = peoplePerPage
	found, err := o.Service.People(c, c.caller, f)
	if err != nil {
		return answer{}, err
	}
	p.Now, p.RegistryUnused = found.Now, !o.Service.ReadsRegistry(c.caller)
	p.Streams = []streamChoice{{"", "Any", f.Stream == ""}}
	for _, s := range consent.Streams {
		p.Streams = append(p.Streams, streamChoice{string(s), streamWords[s], f.Stream == s})
	}
	for _, person := range found.List {
		l := personRow{ID: person.Subject, Handle: c.session.handleFor(person.Subject)}
		for _, con := range person.Consents {
			st := newConsentView(con, found.Now)
			switch {
			case l.MainConsent == nil && con.Grantee == consent.AnyGrantee && con.Scope == consent.AnyScope:
				l.MainConsent = &st
			case st.Active:
				l.OtherConsents++
			}
		}
		p.List = append(p.List, l)
	}
	if found.More {
		p.Next = p.List[len(p.List)-1].Handle
	}
	return answer{template: "people", title: "People", data: p}, nil
}

// setFilter stores the search in the session, since no address may contain a person's id.
func (o *Console) setFilter(c *request) (answer, error) {
	c.aboutEverybody = true
	stream := consent.Stream(c.form.Get("stream"))
	if stream != "" && !slices.Contains(consent.Streams, stream) {
		return answer{}, errUnreadableForm
	}
	text := strings.TrimSpace(c.form.Get("text"))
	if len(text) > 512 {
		return answer{}, errLongForm
	}
	c.session.setPeopleFilter(registry.PeopleFilter{Text: text, Stream: stream})
	return answer{redirectPath: "people"}, nil
}

// newUnknownHandleError returns the error for a handle that this session did not make, or no longer remembers.
func newUnknownHandleError() error {
	return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonInternal,
		"this address belongs to another session, or is too old").WithHint("Start at the list of people.")
}

type pendingView struct {
	operations.PartnershipTask
	Handle string
}

func (o *Console) showPending(c *request) (answer, error) {
	c.aboutEverybody = true
	tasks, err := o.Service.PendingPartnerships(c, c.caller)
	if err != nil {
		return answer{}, err
	}
	var list []pendingView
	for _, t := range tasks {
		list = append(list, pendingView{t, c.session.handleFor(t.Subject)})
	}
	return answer{template: "pending", title: "Requests for a partnership",
		data: map[string]any{"List": list, "Now": o.Now()}}, nil
}

// maxRowKeys is the number of keys of one table that a page offers to choose from.
const maxRowKeys = 50

func (o *Console) showPerson(c *request) (answer, error) {
	id, ok := c.session.idOf(c.httpRequest.PathValue("handle"))
	if !ok {
		return answer{}, newUnknownHandleError()
	}
	c.auditSubjects = []string{id}
	p := personView{Subject: id}
	if err := o.addConsents(c, &p); err != nil {
		return answer{}, err
	}
	if !p.Known {
		return answer{}, consent.NewNotFound()
	}
	history, err := o.Service.History(c, c.caller, id)
	var notFound *consent.NotFoundError
	if err != nil && !errors.As(err, &notFound) {
		return answer{}, err
	}
	slices.Reverse(history)
	p.History = history
	p.AgentViews, p.VisibilityProblem = o.agentViews(c, id)
	for _, s := range p.AgentViews {
		p.Agents = append(p.Agents, s.Agent)
	}
	slices.Sort(p.Agents)
	if p.VisibilityProblem == nil {
		if p.Rows, err = o.Service.RowKeys(c, c.caller, id); err != nil {
			p.VisibilityProblem = o.missingPartProblem("consent.keys", err)
		}
	}
	for i := range p.Rows {
		p.Rows[i].Keys = p.Rows[i].Keys[:min(len(p.Rows[i].Keys), maxRowKeys)]
	}
	return answer{template: "person", title: "One person", data: p}, nil
}

type whyPage struct {
	Agents, Tables []string
	Agent, Table   string
	Key            string
	Answer         *why.Answer
	MissingPart    *problemText
}

func (o *Console) showWhyForm(c *request) (answer, error) {
	c.aboutEverybody = true
	p, err := o.whyFormData(c)
	return answer{template: "why", title: "Why an agent sees a row or not", data: p}, err
}

func (o *Console) whyFormData(c *request) (whyPage, error) {
	tables, err := o.Service.Tables(c, c.caller)
	if err != nil {
		return whyPage{}, err
	}
	p := whyPage{Tables: tables}
	for name := range o.Service.Agents(c.caller.Database) {
		p.Agents = append(p.Agents, name)
	}
	slices.Sort(p.Agents)
	return p, nil
}

func (o *Console) answerWhy(c *request) (answer, error) {
	c.aboutEverybody = true
	p, err := o.whyFormData(c)
	if err != nil {
		return answer{}, err
	}
	p.Agent, p.Table, p.Key = c.form.Get("agent"), c.form.Get("table"), strings.TrimSpace(c.form.Get("key"))
	if p.Key == "" {
		return answer{template: "why", title: "Why an agent sees a row or not", data: p, status: 422}, nil
	}
	key := []string{p.Key}
	if strings.Contains(p.Key, "\n") { // In the form, the key of several columns has one column per line.
		key = strings.Split(strings.ReplaceAll(p.Key, "\r", ""), "\n")
	}
	if p.Answer, err = o.Service.ExplainRow(c, c.caller, p.Agent, p.Table, key); err != nil {
		return answer{}, err
	}
	return answer{template: "why", title: "Why an agent sees a row or not", data: p}, nil
}
