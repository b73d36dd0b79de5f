package console

import (
	"errors"
	"strings"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Whom a subject speaks for, as their guardian, and who speaks for them.

// wardLink is somebody with the address of a page about them, of this session alone.
type wardLink struct{ Name, Handle string }

// fillGuardians fills in who speaks for a person, and whom they speak for.
func (o *Console) fillGuardians(c *call, p *personView) (err error) {
	if p.Guardians, err = o.Service.Guardians(c, c.caller); err != nil {
		return err
	}
	wards, err := o.Service.Wards(c, c.caller)
	for _, w := range wards {
		p.Wards = append(p.Wards, wardLink{w, c.session.handle(w)})
	}
	return err
}

// wardOfRequest is whom the address means.
func (c *call) wardOfRequest() (string, error) {
	id, ok := c.session.idOf(c.r.PathValue("handle"))
	if !ok {
		return "", unknownHandle()
	}
	c.about = []string{id}
	return id, nil
}

func (o *Console) ward(c *call) (answer, error) {
	id, err := c.wardOfRequest()
	if err != nil {
		return answer{}, err
	}
	all, err := o.Service.WardConsents(c, c.caller, id)
	var unknown *consent.NotFoundError
	if err != nil && !errors.As(err, &unknown) {
		return answer{}, err
	}
	p := personView{Subject: id, Handle: c.r.PathValue("handle"), Unasked: !o.Service.AsksRegistry(c.caller)}
	p.fillConsents(o.Now(), all)
	return answer{template: "ward", title: "Whom you speak for", data: p}, nil
}

// wardWithdraw withdraws for a ward: one consent, or every one.
func (o *Console) wardWithdraw(c *call) (answer, error) {
	id, err := c.wardOfRequest()
	if err != nil {
		return answer{}, err
	}
	all, err := o.Service.WardConsents(c, c.caller, id)
	if err != nil {
		return answer{}, err
	}
	done := 0
	for _, s := range all {
		one := s.Grantee == c.form.Get("grantee") && s.Scope == c.form.Get("scope")
		if !one && c.form.Get("all") == "" || !s.ActiveAt(s.Now) && !s.Pending(s.Now) {
			continue
		}
		if _, err := o.Service.Change(c, c.caller,
			consent.Command{Do: consent.Revoke, Subject: id, Grantee: s.Grantee, Scope: s.Scope, Via: "console"}); err != nil {
			return answer{}, err
		}
		done++
	}
	if done == 0 {
		c.session.setFlash(flash{"note", "There was nothing to withdraw", "Nothing has changed."})
	} else {
		c.session.setFlash(flash{"done", "Withdrawn for " + id,
			"It is in force: from their next statement on, agents see nothing by it. That you did it, as the " +
				"guardian, is recorded."})
	}
	return answer{to: "me/for/" + c.r.PathValue("handle")}, nil
}

// kinds are what a consent to one party can be about.
var kinds = []string{consent.Essential, consent.Behavioral, consent.Improvement, consent.Statistical}

// consentTo gives a consent to somebody in particular, about everything.
func (o *Console) consentTo(c *call) (answer, error) {
	command := consent.Command{Do: consent.Grant, Grantee: strings.TrimSpace(c.form.Get("to"))}
	for _, category := range kinds {
		if c.form.Get("category-"+category) != "" {
			command.Categories = append(command.Categories, category)
		}
	}
	missing := ""
	switch {
	case command.Grantee == "" || command.Grantee == consent.Everybody:
		missing = "Say to whom: the name of one party."
	case len(command.Categories) == 0:
		missing = "Say which kinds of data " + command.Grantee + " may see: tick one at least."
	}
	if missing != "" {
		c.session.setFlash(flash{"note", "Nothing was given", missing})
		return answer{to: "me"}, nil
	}
	if _, err := o.change(c, command); err != nil {
		return answer{}, err
	}
	c.session.setFlash(flash{"done", "You have given your consent to " + command.Grantee,
		"It counts from now on, until you withdraw it, with one click, below."})
	return answer{to: "me"}, nil
}
