package console_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/test/demos"
	"github.com/pgconsent/pgconsent/test/tier"
)

// In a browser without scripts, a person signs in to each shipped world, and to the example of reminders. All controls
// can be reached with the keyboard, the focus is visible, and each page loads.
func TestWorldsInABrowser(t *testing.T) {
	tier.All(t)
	worldNames := append(slices.Clone(world.List()), "../../../examples/air")
	for i, name := range worldNames {
		if tier.IsPicked(i, 4) {
			t.Run(name, func(t *testing.T) {
				if name == "kernle" { // other tests run this world, which can run only once at a time
					checkPagesOfWorld(t, kernle.world(t, name), name)
					return
				}
				checkPagesOfWorld(t, demos.StartDemo(t, name), name)
			})
		}
	}
}

func checkPagesOfWorld(t *testing.T, r *demo.RunningDemo, name string) {
	c := browser(t)
	c.must("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	roles := map[string]string{}
	for tokenName := range r.Access.Tokens {
		role, _, _ := strings.Cut(tokenName, ":")
		if previousName, ok := roles[role]; !ok || tokenName < previousName {
			roles[role] = tokenName
		}
	}
	for _, role := range []string{"admin", "operator", "subject"} {
		if roles[role] == "" {
			continue
		}
		c.size(360, 740, true)
		c.open(r.Access.HTTP + "/console/")
		c.focus("#token") // autofocus may come later
		c.write(r.Access.Tokens[roles[role]])
		c.loading(func() { c.press("Enter") })
		var pages []string
		c.eval(`[...document.querySelectorAll("nav a")].map(e => e.href)`, &pages)
		if len(pages) == 0 {
			t.Fatalf("%s is not signed in", role)
		}
		for _, page := range pages {
			description := name + " " + role + " " + page[strings.Index(page, "/console/")+len("/console/"):]
			c.open(page)
			var heading string
			c.eval(`document.querySelector("h1").textContent`, &heading)
			if heading == "Something went wrong" || heading == "This took too long" {
				t.Errorf("%s: %s", description, heading)
			}
			c.sound(t, description+" phone-dark")
			c.shoot(description + " phone-dark")
			c.size(1280, 900, false)
			c.sound(t, description+" desk-light")
			c.shoot(description + " desk-light")
			c.stops(t, description)
			c.size(360, 740, true)
		}
		if role == "admin" {
			c.open(r.Access.HTTP + "/console/people")
			var collapsedCount int
			c.eval(`document.querySelectorAll("tbody a").length`, &collapsedCount)
			if collapsedCount > 0 {
				c.loading(func() { c.click("tbody a") })
				c.sound(t, name+" a person")
				c.shoot(name + " admin person phone-dark")
				c.eval(`document.querySelectorAll("section[aria-labelledby=rows] button").length`, &collapsedCount)
			}
			if collapsedCount > 0 {
				c.focus(`section[aria-labelledby=rows] button`)
				c.loading(func() { c.press("Space") })
				c.sound(t, name+" why")
				c.shoot(name + " admin why-answer phone-dark")
			}
		}
		if role == "subject" {
			c.open(r.Access.HTTP + "/console/me")
			// A key opens the collapsed parts of the page.
			var collapsedCount int
			if c.eval(`document.querySelectorAll("summary").length`, &collapsedCount); collapsedCount > 0 {
				for _, key := range []string{"Enter", "Space"} {
					var before, after bool
					c.focus("summary")
					c.eval(`document.querySelector("details").open`, &before)
					c.press(key)
					if c.eval(`document.querySelector("details").open`, &after); before == after {
						t.Errorf("%s: %s does not unfold anything", name, key)
					}
				}
			}
			if c.eval(`document.querySelectorAll("#withdraw").length`, &collapsedCount); collapsedCount > 0 {
				c.focus("#withdraw")
				c.loading(func() { c.press("Space") })
				var visibleText string
				if c.eval(`document.querySelector("[role=status]").textContent`, &visibleText); !strings.Contains(visibleText,
					"Your consent is withdrawn") {
					t.Errorf("%s: after the space bar: %q", name, visibleText)
				}
			}
		}
		c.open(r.Access.HTTP + "/console/")
		c.loading(func() { c.click(".who button") })
	}
}

// focus sets the focus to an element.
func (c *chromium) focus(selector string) {
	c.t.Helper()
	c.eval(`document.querySelector("`+selector+`").focus()`, nil)
}

// stops presses Tab through a page. The focus must reach each control, in the order of the page, and each must be
// visible then.
func (c *chromium) stops(t *testing.T, description string) {
	t.Helper()
	var want int
	const tabStopsJS = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(e =>
			e.checkVisibility())`
	c.eval(tabStopsJS+`.length`, &want)
	c.eval(`document.activeElement.blur(); scrollTo(0, 0)`, nil)
	var order []int
	for range min(want, 60) {
		c.press("Tab")
		var focusedElement struct {
			Index   int
			What    string
			Outline string
			Width   float64
			Seen    bool
		}
		c.eval(`(() => { const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
				return {Index: `+tabStopsJS+`.indexOf(e), What: e.outerHTML.slice(0, 80),
			Outline: s.outlineStyle, Width: parseFloat(s.outlineWidth), Seen: `+
			`r.width > 0 && r.height > 0 && r.left >= 0 && r.top >= 0 && r.bottom <= innerHeight + 1}; })()`, &focusedElement)
		if focusedElement.Index < 0 || focusedElement.Outline == "none" || focusedElement.Width < 2 || !focusedElement.Seen {
			t.Errorf("%s: nobody sees where the focus is: %+v", description, focusedElement)
			return
		}
		order = append(order, focusedElement.Index)
	}
	if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != len(order) {
		t.Errorf("%s: the stops are %v", description, order)
	}
}
