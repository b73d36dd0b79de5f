package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/policy"
)

const published = head + "functions: { search: { pin: { respect: true }, tool: { name: find, description: finds, %s } } }"

// An MCP tool takes the arguments of its function that the policy does not fix. Its statement passes them by name.
func TestTool(t *testing.T) {
	for _, c := range []struct{ arguments, want string }{
		{"", "q:text n:integer?"},
		{"arguments: [n, q]", "q:text n:integer?"},
		{"arguments: { q: what to look for }", "q:text=what to look for"},
	} {
		p, err := compile(strings.Replace(published, "%s", c.arguments, 1))
		if err != nil {
			t.Fatal(err)
		}
		f := p.Functions()[0]
		var got []string
		for _, a := range f.Tool.Arguments {
			text := a.Name + ":" + a.Type
			if a.Optional {
				text += "?"
			}
			if a.Description != "" {
				text += "=" + a.Description
			}
			got = append(got, text)
		}
		if f.Tool.Name != "find" || strings.Join(got, " ") != c.want {
			t.Errorf("%s: tool %s with %q, want %q", c.arguments, f.Tool.Name, got, c.want)
		}
		if got, want := f.CallStatement([]string{"q", "n"}), `SELECT * FROM public.search(q => $1, n => $2)`; got != want {
			t.Errorf("statement %s, want %s", got, want)
		}
	}
}

// Everything that an MCP client is told about a tool is part of the policy's version, and of a diff.
func TestToolIsInTheVersion(t *testing.T) {
	textByVersion := map[string]string{}
	for _, text := range []string{
		"functions: { search: { pin: { respect: true } } }",
		"functions: { search: { pin: { respect: true }, tool: { description: finds } } }",
		"functions: { search: { pin: { respect: true }, tool: { description: seeks } } }",
		"functions: { search: { pin: { respect: true }, tool: { description: seeks, name: find } } }",
		"functions: { search: { pin: { respect: true }, tool: { description: seeks, name: find, arguments: [q] } } }",
		"functions: { search: { pin: { respect: true }, tool: { description: seeks, name: find, arguments: { q: what } } } }",
	} {
		p, err := compile(head + text)
		if err != nil {
			t.Fatal(err)
		}
		if otherText, ok := textByVersion[p.Version()]; ok {
			t.Errorf("one version for two policies:\n%s\n%s", otherText, text)
		}
		textByVersion[p.Version()] = text
		if _, isTold := p.Restrictions()["tool find"]; isTold != strings.Contains(text, "name: find") {
			t.Errorf("Bounds has tool find: %t, for %s", isTold, text)
		}
	}
}

func TestWrongTools(t *testing.T) {
	tool := func(text string) string {
		return head + "functions: { search: { pin: { respect: true }, tool: " + text + " } }"
	}
	for name, c := range map[string]struct{ text, want string }{
		"no description":     {tool("{ name: find }"), `tool of search needs "description"`},
		"not a mapping":      {tool("find"), "tool of search must be a mapping"},
		"unknown key":        {tool("{ description: x, nam: y }"), `unknown key "nam" in tool of search (did you mean "name"?)`},
		"a name of ours":     {tool("{ description: x, name: query }"), `"query" is a tool of pgconsent's own (choose another name)`},
		"no name for a tool": {tool("{ description: x, name: 'find it' }"), `"find it" cannot be the name of a tool`},
		"long description":   {tool("{ description: " + strings.Repeat("x", 5000) + " }"), "longer than 4096 bytes"},
		"unknown argument":   {tool("{ description: x, arguments: [qq] }"), `has no argument "qq" (did you mean "q"?)`},
		"a pinned argument": {tool("{ description: x, arguments: [q, respect] }"),
			`"respect" is pinned (leave it out: tools do not take what is pinned)`},
		"an argument twice":    {tool("{ description: x, arguments: [q, q] }"), `argument "q" is there twice`},
		"an argument is left":  {tool("{ description: x, arguments: [n] }"), `argument "q" of public.search(text, boolean, integer) has no default`},
		"arguments of no kind": {tool("{ description: x, arguments: q }"), "arguments must be a mapping or a list"},
		"overloads":            {head + "functions: { mixed: { tool: { description: x } } }", "public.mixed has 2 overloads: a tool is one of them"},
		"two of one name": {head + "functions: { search: { tool: { description: x, name: find } }, app.twice: { tool: { description: x, name: find } } }",
			"tool find is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
		})
	}
	if len(policy.BuiltinTools) == 0 {
		t.Error("no name is reserved")
	}
}
