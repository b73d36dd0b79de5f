package console_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// appoint appoints a guardian or dismisses one, in the name of the controller.
func appoint(t *testing.T, action consent.Action, guardian, ward string) {
	t.Helper()
	if _, err := running(t).Registry().Execute(t.Context(),
		consent.Command{Action: action, Subject: ward, Guardian: guardian, Caller: consent.Party{Role: consent.RoleController, ID: "office"},
			Interface: "cli"}); err != nil {
		t.Fatal(err)
	}
}

var wardEntry = regexp.MustCompile(`href="/console/(me/for/[^"]+)"`)

// A guardian sees and withdraws the consents of a ward. The pages of both say so.
func TestGuardian(t *testing.T) {
	appoint(t, consent.ActionAppoint, "user-14", "user-13")
	ward := signInAs(t, "subject:user-13")
	ward.get("me").says(t, "Your guardians can give and withdraw consent for you: user-14")

	guardian := signInAs(t, "subject:user-14")
	ownPage := guardian.get("me")
	ownPage.says(t, "Only you decide about your consent", "You are the guardian of: user-13")
	link := wardEntry.FindStringSubmatch(ownPage.body)
	if link == nil || strings.Contains(link[1], "user") {
		t.Fatalf("the address of a ward is %q", link)
	}
	page := guardian.get(link[1])
	page.says(t, "You are the guardian of user-13", "Active")
	withdraw := page.button(t, "Withdraw")
	if n := rows(t, "assistant", "user-13"); n != 3 {
		t.Fatalf("the agent sees %d notes, want 3", n)
	}
	guardian.submit(withdraw).says(t, "Withdrawn for user-13", "Withdrawn")
	if n := rows(t, "assistant", "user-13"); n != 0 {
		t.Errorf("after the guardian's withdrawal the agent sees %d notes", n)
	}
	guardian.submit(withdraw).says(t, "There was nothing to withdraw")
	ward.get("me/history").says(t, "Consent withdrawn", "by a guardian user-14, by way of this console", "Guardian appointed: user-14")

	// For a ward without a record, the page explains what that means and what to do.
	appoint(t, consent.ActionAppoint, "user-14", "user-of-no-record")
	for _, link := range wardEntry.FindAllStringSubmatch(guardian.get("me").body, -1) {
		if p := guardian.get(link[1]); strings.Contains(p.body, "You are the guardian of user-of-no-record") {
			p.says(t, "No consent of user-of-no-record is recorded: there is nothing to withdraw, and agents see nothing of user-of-no-record by consent.",
				"pgconsent consent grant user-of-no-record --guardian YOUR-ID")
			ward = nil
		}
	}
	if ward != nil {
		t.Error("a ward without a record has no page")
	}
	ward = signInAs(t, "subject:user-13")
	appoint(t, consent.ActionDismiss, "user-14", "user-of-no-record")

	// The address of a ward's page works in the guardian's session only, and no longer after the guardian is dismissed.
	if p := ward.get(link[1]); p.status != 404 {
		t.Errorf("another session's address: %d", p.status)
	}
	appoint(t, consent.ActionDismiss, "user-14", "user-13")
	if p := guardian.get(link[1]); p.status != 403 || strings.Contains(p.body, "user-13") {
		t.Errorf("after the dismissal: %d", p.status)
	}
	if p := guardian.submit(withdraw); p.status != 403 {
		t.Errorf("withdrawing after the dismissal: %d", p.status)
	}
	if p := guardian.get("me"); strings.Contains(p.body, "user-13") {
		t.Error("whom they do not speak for any more is shown")
	}
}

// A subject consents to one party for selected kinds of data, and withdraws that consent with one click.
func TestConsentToOneParty(t *testing.T) {
	p := signInAs(t, "subject:user-05")
	give := p.get("me").button(t, "Give this consent")
	give.fields.Set("to", "assistant")
	for name := range give.fields {
		if strings.HasPrefix(name, "category-") && name != "category-ESSENTIAL" {
			give.fields.Del(name)
		}
	}
	p.submit(give).says(t, "You have given your consent to assistant", "Consents to single parties", "assistant Active Essential")
	ownPage := p.submit(p.get("me").button(t, "Withdraw"))
	ownPage.says(t, "Your consent is withdrawn", "assistant Withdrawn")
	give.fields.Set("to", " ")
	p.submit(give).says(t, "Nothing was given", "Enter the name of the party")
	give.fields.Set("to", "assistant")
	give.fields.Del("category-ESSENTIAL")
	p.submit(give).says(t, "Nothing was given", "Choose at least one kind of data that assistant may see")
	give.fields.Set("to", "*")
	give.fields.Set("category-ESSENTIAL", "yes")
	p.submit(give).says(t, "Nothing was given", "Enter the name of the party")
	give.fields.Set("to", strings.Repeat("x", 600))
	if got := p.submit(give); got.status != 422 {
		t.Errorf("a name of 600 letters: %d", got.status)
	}
}
