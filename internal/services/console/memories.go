package console

import (
	"errors"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Pages about memories of agents: who sees the memories about a person, and which beliefs were drawn from the user's
// own memories.

// maxMemories is the number of memories on a page. maxRecipients is the number of persons that a page offers to choose
// from.
const maxMemories, maxRecipients = 25, 24

type memoriesPage struct {
	Subject      string
	OtherPersons []string // other persons that the user can choose
	MorePersons  bool     // there are more persons than the page shows
	Own          bool     // the subject is the signed-in user
	List         []privacy.AuditedMemory
	NotFirstPage bool   // this is not the first page
	Next         string // handle of the first memory of the next page; "": there is no next page
}

func (o *Console) showMemories(c *request) (answer, error) {
	subject, after := c.caller.Subject, ""
	if h := c.httpRequest.PathValue("handle"); h != "" {
		pagePosition, ok := c.session.idOf(h)
		if !ok {
			return answer{}, newUnknownHandleError()
		}
		subject, after, _ = strings.Cut(pagePosition, "\x00")
	}
	return o.memoriesAbout(c, subject, after)
}

// showMemoriesAbout handles a form (POST), since no address may contain a person's id.
func (o *Console) showMemoriesAbout(c *request) (answer, error) {
	subject := strings.TrimSpace(c.form.Get("subject"))
	if subject == "" {
		subject = c.caller.Subject
	}
	return o.memoriesAbout(c, subject, "")
}

// memoriesAbout shows a page of the memories about a subject. after says where the page begins; "" is the first page.
func (o *Console) memoriesAbout(c *request, subject, after string) (answer, error) {
	db, err := o.Service.Database(c.caller)
	if err != nil {
		return answer{}, err
	}
	c.auditSubjects = []string{subject}
	p := memoriesPage{Subject: subject, Own: subject == c.caller.Subject, NotFirstPage: after != ""}
	found, err := db.Privacy.Audit(c, c.caller, privacy.AuditQuery{Subject: subject, After: after,
		MaxMemories: maxMemories})
	var namedError consent.Named
	switch hasMemories, _ := o.Service.HasMemories(c.caller); {
	case !hasMemories:
		return answer{}, err
	// The page is the same whether there are no memories or the caller may not see them.
	case errors.As(err, &namedError) && namedError.Name() == privacy.NameNotFound:
	case err != nil:
		return answer{}, err
	default:
		p.List = found.Rows
		if found.Next != "" {
			p.Next = c.session.handleFor(subject + "\x00" + found.Next)
		}
	}
	if p.OtherPersons, p.MorePersons, err = db.Privacy.AuditableSubjects(c, c.caller, maxRecipients); err != nil {
		return answer{}, err
	}
	p.OtherPersons = slices.DeleteFunc(p.OtherPersons, func(id string) bool { return id == subject })
	if !p.Own && len(p.OtherPersons) > 0 && !slices.Contains(p.OtherPersons, c.caller.Subject) {
		p.OtherPersons = slices.Insert(p.OtherPersons, 0, c.caller.Subject)
	}
	return answer{template: "memories", title: "Who sees memories", data: p}, nil
}

type beliefsPage struct {
	List         []privacy.DerivedBelief
	NotFirstPage bool
	Next         string
}

// showBeliefs shows the beliefs that agents drew from memories of the signed-in user.
func (o *Console) showBeliefs(c *request) (answer, error) {
	db, err := o.Service.Database(c.caller)
	if err != nil {
		return answer{}, err
	}
	p, after := beliefsPage{}, ""
	if h := c.httpRequest.PathValue("handle"); h != "" {
		var ok bool
		if after, ok = c.session.idOf(h); !ok {
			return answer{}, newUnknownHandleError()
		}
		p.NotFirstPage = true
	}
	found, err := db.Privacy.ListDerivedBeliefs(c, c.caller, after)
	if err != nil {
		return answer{}, err
	}
	p.List = found.List
	if found.Next != "" {
		p.Next = c.session.handleFor(found.Next)
	}
	return answer{template: "general", title: "Beliefs drawn from your memories", data: p}, nil
}
