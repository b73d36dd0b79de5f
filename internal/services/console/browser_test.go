package console_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// With the keyboard only, a person signs in, withdraws consent and gives it again. Every page is usable at the size of
// a phone and of a desktop, in light and dark colours. The pages load nothing from other hosts, and comply with their
// content security policy.
func TestInABrowser(t *testing.T) {
	c := browser(t)
	r := running(t)
	appoint(t, consent.ActionAppoint, "user-10", "user-11")
	c.size(1100, 800, false)
	c.open(r.Access.HTTP + "/console/")
	c.shoot("login")
	c.write(r.Access.Tokens["subject:user-10"]) // the field has the focus already
	c.loading(func() { c.press("Enter") })
	c.shoot("me-light")

	// The first tab stop is the link that skips the navigation, and each stop is visible when it has the focus.
	var withdraw bool
	for i, first := 0, ""; ; i++ {
		c.press("Tab")
		var focusedElement struct {
			Tag, ID, Text, Outline string
			Width                  float64
			Seen                   bool
		}
		c.eval(`(() => { const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
				return {Tag: e.tagName, ID: e.id, Text: e.textContent.trim(),
			Outline: s.outlineStyle, Width: parseFloat(s.outlineWidth), Seen: r.width > 0 && r.height > 0 && r.left >= 0}; })()`, &focusedElement)
		if focusedElement.Tag == "BODY" || i > 40 {
			break
		}
		if first == "" {
			if first = focusedElement.Text; first != "To the content" {
				t.Errorf("the first stop is %q", first)
			}
		}
		if focusedElement.Outline == "none" || focusedElement.Width < 2 || !focusedElement.Seen {
			t.Errorf("nobody sees that %s %q has the focus: %+v", focusedElement.Tag, focusedElement.Text, focusedElement)
		}
		if focusedElement.ID == "withdraw" {
			withdraw = true
			break
		}
	}
	if !withdraw {
		t.Fatal("the keyboard does not get to the button that withdraws")
	}
	c.loading(func() { c.press("Enter") })
	c.shoot("withdrawn-light")
	var visibleText string
	c.eval(`document.querySelector("[role=status]").textContent`, &visibleText)
	if !strings.Contains(visibleText, "Your consent is withdrawn") || rows(t, "assistant", "user-10") != 0 {
		t.Errorf("after Enter: %q", visibleText)
	}
	c.loading(func() { c.click("#give") })
	c.eval(`document.querySelector("[role=status]").textContent`, &visibleText)
	if !strings.Contains(visibleText, "You have given your consent") {
		t.Errorf("after a click: %q", visibleText)
	}
	c.loading(func() { c.click("#guardians ~ ul a") })
	c.sound(t, "a ward")
	c.shoot("ward-desk-light")
	c.size(360, 740, true)
	c.sound(t, "a ward on a phone")
	c.shoot("ward-phone-dark")
	c.size(1100, 800, false)
	c.open(r.Access.HTTP + "/console/me")
	c.click("#to + details summary")
	c.sound(t, "a form that is open")
	c.shoot("consent-to-desk-light")
	c.size(360, 740, true)
	c.sound(t, "a form that is open on a phone")
	c.shoot("consent-to-phone-dark")
	c.looks(t, r, "subject", "me", "me/seen", "me/history", "people")

	for role, list := range map[string][]string{"admin": {"people", "pending", "why", "nowhere"}, "operator": {"operations"}} {
		c.open(r.Access.HTTP + "/console/")
		c.loading(func() { c.click(".who button") })
		c.click("#token")
		c.write(r.Access.Tokens[role])
		c.loading(func() { c.press("Enter") })
		c.looks(t, r, role, list...)
		if role == "admin" {
			c.open(r.Access.HTTP + "/console/people")
			c.loading(func() { c.click("tbody a") })
			c.sound(t, "a person")
			c.shoot("person-phone-dark")
			c.loading(func() { c.click("section[aria-labelledby=rows] button") })
			c.sound(t, "why")
			c.shoot("why-answer-phone-dark")
			c.size(1100, 800, false)
			c.sound(t, "why")
			c.shoot("why-answer-light")
		}
	}

	// All requests went to this server. The content security policy blocked nothing, and the browser's console has no
	// messages.
	c.mu.Lock()
	defer c.mu.Unlock()
	requestCount := 0
	for _, e := range c.events {
		switch e.Method {
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &p); err != nil {
				t.Fatal(err)
			}
			requestCount++
			if !strings.HasPrefix(p.Request.URL, r.Access.HTTP+"/console/") || strings.Contains(p.Request.URL, "?") {
				t.Errorf("the browser asks for %s", p.Request.URL)
			}
		case "Log.entryAdded":
			var p struct{ Entry struct{ Level, Text string } }
			if err := json.Unmarshal(e.Params, &p); err != nil {
				t.Fatal(err)
			}
			if (p.Entry.Level == "error" || p.Entry.Level == "warning") && !strings.Contains(p.Entry.Text, "status of 40") { // refused pages
				t.Errorf("the browser complains: %s", e.Params)
			}
		case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
			t.Errorf("a script ran: %s", e.Params)
		}
	}
	if requestCount < 20 {
		t.Errorf("the browser has asked for %d addresses only", requestCount)
	}
}

// looks checks the pages in both sizes and in both colour themes.
func (c *chromium) looks(t *testing.T, r *demo.RunningDemo, role string, list ...string) {
	t.Helper()
	for _, path := range list {
		c.open(r.Access.HTTP + "/console/" + path)
		for _, v := range []struct {
			name          string
			width, height int
			dark          bool
		}{{"phone-light", 360, 740, false}, {"phone-dark", 360, 740, true}, {"desk-dark", 1280, 900, true}, {"desk-light", 1280, 900, false}} {
			c.size(v.width, v.height, v.dark)
			c.sound(t, role+" "+path+" "+v.name)
			c.shoot(role + "-" + path + "-" + v.name)
		}
	}
	c.size(360, 740, true)
}

// sound checks a page for problems on a phone, with a keyboard, with a screen reader, or with poor eyesight.
func (c *chromium) sound(t *testing.T, description string) {
	t.Helper()
	var found []string
	c.eval(`(() => {
		const wrong = [], all = s => [...document.querySelectorAll(s)];
		if (document.documentElement.scrollWidth > innerWidth) {
			const wide = all("body *").filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
				e.getBoundingClientRect().left >= 0).map(e => e.tagName + "." + e.className);
			wrong.push("it scrolls sideways: " + document.documentElement.scrollWidth + " of " + innerWidth + " by " + wide.slice(0, 5));
		}
		if (all("main").length != 1 || all("h1").length != 1 || !document.documentElement.lang ||
			!document.title) wrong.push("a landmark, the heading, the language or the title is missing");
		let level = 1;
		for (const h of all("main h1, main h2, main h3, main h4")) {
			const n = +h.tagName[1];
			if (n > level + 1) wrong.push("the heading " + h.textContent + " skips a level");
			level = n;
		}
		for (const e of all("input:not([type=hidden]), select, textarea")) if (!e.labels || !e.labels.length) wrong.push("no label: " + e.name);
		for (const e of all("button, a")) if (!(e.textContent.trim() || e.getAttribute("aria-label"))) wrong.push("no name: " + e.outerHTML);
		const ids = all("[id]").map(e => e.id);
		if (new Set(ids).size != ids.length) wrong.push("an id is there twice: " + ids.filter((v, i) => ids.indexOf(v) != i));
		for (const e of all("[aria-labelledby], [aria-describedby]")) for (const a of ["aria-labelledby", "aria-describedby"]) if (e.hasAttribute(a) &&
			!document.getElementById(e.getAttribute(a))) wrong.push(a + " leads nowhere");
		for (const e of all("img")) if (!e.hasAttribute("alt")) wrong.push("a picture without words");
		for (const e of all("th")) if (!e.scope) wrong.push("a heading of a table without scope");
		if (all("script, style, [style], iframe, object").length) wrong.push("something that the policy of the page does not allow");
		if (all("[tabindex]").some(e => e.tabIndex > 0)) wrong.push("an order of its own");
		for (const e of all("button, .button, select, input:not([type=hidden])")) { const r = e.getBoundingClientRect();
			if (r.width && r.height < 39) wrong.push("too small to hit: " + e.textContent + " " + r.height); }
		const rgb = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] == 0 ? null : m; };
		const light = c => { const f = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
			return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n; n = walk.nextNode();) {
			const e = n.parentElement;
			if (!n.textContent.trim() || !e.getClientRects().length) continue;
			let b = null;
			for (let p = e; p && !b; p = p.parentElement) b = rgb(getComputedStyle(p).backgroundColor);
			const x = light(rgb(getComputedStyle(e).color)), y = light(b || [255, 255, 255]), ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
			if (ratio < 4.5) wrong.push("hard to read (" + ratio.toFixed(2) + "): " + n.textContent.trim().slice(0, 40));
		}
		return wrong;
	})()`, &found)
	for _, f := range found {
		t.Errorf("%s: %s", description, f)
	}
	if t.Failed() {
		c.shoot("failed-" + fmt.Sprint(len(description)))
	}
}
