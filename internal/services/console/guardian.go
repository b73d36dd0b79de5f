package console

import (
	"errors"
	"strings"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Pages for guardians. A subject's wards are the persons whose guardian the subject is.

// wardEntry is a ward. Its handle is the part of the page's address that stands for the ward's id, in this session
// only.
type wardEntry struct{ Name, Handle string }

// fillGuardians adds the subject's guardians and wards to the page.
func (o *Console) fillGuardians(c *request, p *personView) (err error) {
	if p.Guardians, err = o.Service.Guardians(c, c.caller); err != nil {
		return err
	}
	wards, err := o.Service.Wards(c, c.caller)
	for _, w := range wards {
		p.Wards = append(p.Wards, wardEntry{w, c.session.handleFor(w)})
	}
	return err
}

// wardOfRequest returns the id of the ward whose handle is in the request's address.
func (c *request) wardOfRequest() (string, error) {
	id, ok := c.session.idOf(c.httpRequest.PathValue("handle"))
	if !ok {
		return "", newUnknownHandleError()
	}
	c.auditSubjects = []string{id}
	return id, nil
}

func (o *Console) showWard(c *request) (answer, error) {
	id, err := c.wardOfRequest()
	if err != nil {
		return answer{}, err
	}
	consents, err := o.Service.WardConsents(c, c.caller, id)
	var notFound *consent.NotFoundError
	if err != nil && !errors.As(err, &notFound) {
		return answer{}, err
	}
	p := personView{Subject: id, Handle: c.httpRequest.PathValue("handle"),
		RegistryUnused: !o.Service.ReadsRegistry(c.caller)}
	p.fillConsents(o.Now(), consents)
	return answer{template: "ward", title: "People whose guardian you are", data: p}, nil
}

// withdrawForWard withdraws one consent of a ward, or all of them.
func (o *Console) withdrawForWard(c *request) (answer, error) {
	id, err := c.wardOfRequest()
	if err != nil {
		return answer{}, err
	}
	consents, err := o.Service.WardConsents(c, c.caller, id)
	if err != nil {
		return answer{}, err
	}
	withdrawn := 0
	for _, s := range consents {
		isChosen := s.Grantee == c.form.Get("grantee") && s.Scope == c.form.Get("scope")
		if !isChosen && c.form.Get("all") == "" || !s.IsActiveAt(s.Now) && !s.IsPendingAt(s.Now) {
			continue
		}
		if _, err := o.Service.Change(c, c.caller,
			consent.Command{Action: consent.ActionRevoke, Subject: id, Grantee: s.Grantee, Scope: s.Scope,
				Interface: "console"}); err != nil {
			return answer{}, err
		}
		withdrawn++
	}
	if withdrawn == 0 {
		c.session.setFlash(flash{"note", "There was nothing to withdraw", "Nothing has changed."})
	} else {
		c.session.setFlash(flash{"done", "Withdrawn for " + id,
			"From their next statement on, agents see nothing by this consent. The record says that you withdrew " +
				"it as the guardian."})
	}
	return answer{redirectPath: "me/for/" + c.httpRequest.PathValue("handle")}, nil
}

// categoriesForParty are the categories that a consent to a single party can have.
var categoriesForParty = []string{consent.CategoryEssential, consent.CategoryBehavioral, consent.CategoryImprovement,
	consent.CategoryStatistical}

// giveConsentTo gives a single named party a consent about everything.
func (o *Console) giveConsentTo(c *request) (answer, error) {
	command := consent.Command{Action: consent.ActionGrant, Grantee: strings.TrimSpace(c.form.Get("to"))}
	for _, category := range categoriesForParty {
		if c.form.Get("category-"+category) != "" {
			command.Categories = append(command.Categories, category)
		}
	}
	missingField := ""
	switch {
	case command.Grantee == "" || command.Grantee == consent.AnyGrantee:
		missingField = "Enter the name of the party."
	case len(command.Categories) == 0:
		missingField = "Choose at least one kind of data that " + command.Grantee + " may see."
	}
	if missingField != "" {
		c.session.setFlash(flash{"note", "Nothing was given", missingField})
		return answer{redirectPath: "me"}, nil
	}
	if _, err := o.executeCommand(c, command); err != nil {
		return answer{}, err
	}
	c.session.setFlash(flash{"done", "You have given your consent to " + command.Grantee,
		"It is active from now on. You can withdraw it below at any time, with one click."})
	return answer{redirectPath: "me"}, nil
}
