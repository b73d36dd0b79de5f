package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Tool publishes a function as an MCP tool.
type Tool struct {
	Name        string
	Description string
	Arguments   []ToolArgument // the arguments, in the order of the function's arguments
}

// ToolArgument is an argument of a tool. Arguments with a pinned value are left out.
type ToolArgument struct {
	Name        string
	Type        string // the type as the catalog writes it
	Description string
	Optional    bool // the caller may leave the argument out, since the function has a default for it
}

// BuiltinTools are the names of pgconsent's own MCP tools, which a policy may not use for its tools.
var BuiltinTools = []string{
	"consent_grant", "consent_revoke", "consent_status", "context_enter", "context_leave", "context_list",
	"degrade_relationship", "interaction_end", "interaction_session", "list_tables",
	"memory_belief", "memory_episode", "memory_generalize", "memory_note", "memory_raw", "partnership_decide",
	"partnership_pending", "privacy_audit",
	"privacy_grant", "privacy_revoke", "query", "track_interaction", "upgrade_relationship",
}

// toolName matches the names of MCP tools that vendors of models accept.
var toolName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// toolDecl is the key tool of a function.
type toolDecl struct {
	place
	name, description string
	nameAt            place
	arguments         []toolArgumentDecl // the arguments that the policy describes; nil: all that are not pinned
	hasArguments      bool
}

type toolArgumentDecl struct {
	place
	name, description string
}

// decodeTool reads how a function is published as a tool.
func (d *functionDecoder) decodeTool(decl *functionDecl, n *node) {
	t := &toolDecl{place: n.Place, nameAt: n.Place}
	label := "tool of " + decl.name
	d.decodeFields(n, label, map[string]func(*node){
		"name":        d.decodeWordAt(&t.name, &t.nameAt, "name"),
		"description": d.decodeWord(&t.description, "description"),
		"arguments": func(v *node) {
			t.hasArguments = true
			switch v.Kind {
			case yamlfile.ListNode:
				for _, item := range v.Items {
					a := toolArgumentDecl{place: item.Place}
					d.decodeWord(&a.name, "an argument")(item)
					t.arguments = append(t.arguments, a)
				}
			case yamlfile.MappingNode:
				for i, name := range v.Keys {
					a := toolArgumentDecl{place: v.KeyPlaces[i], name: name}
					d.decodeWord(&a.description, "the description of an argument")(v.Values[i])
					t.arguments = append(t.arguments, a)
				}
			default:
				d.fail(v.Place, "write arguments: { NAME: what it is, … }", "arguments must be a mapping or a list, not %s", v.Kind)
			}
		},
	})
	d.requireFields(n, label, "description")
	decl.tool = t
}

// compileTool checks and compiles the tool of a function.
func (c *functionCompiler) compileTool(p *Policy, decl functionDecl, f *Function) {
	t := decl.tool
	if t == nil {
		return
	}
	out := &Tool{Name: t.name, Description: t.description}
	if out.Name == "" {
		out.Name = f.Name.Name
	}
	switch {
	case !toolName.MatchString(out.Name):
		c.fail(t.nameAt, "the name of a tool is of letters, digits, _ and -, at most 64 long",
			"%q cannot be the name of a tool", out.Name)
	case slices.Contains(BuiltinTools, out.Name):
		c.fail(t.nameAt, "choose another name", "%q is a tool of pgconsent's own", out.Name)
	case len(out.Description) > 4096:
		c.fail(t.place, "", "the description of tool %s is longer than 4096 bytes", out.Name)
	case f.Overloads[0].Kind != 'f':
		c.fail(t.place, "publish a function that calls it", "%s is an aggregate: a tool is a function", f.Name)
	case len(f.Overloads) != 1:
		c.fail(t.place, "publish a function of another name, which calls the one that is meant",
			"%s has %d overloads: a tool is one of them", f.Name, len(f.Overloads))
	}
	for _, other := range p.functions {
		if other.Tool != nil && other.Tool.Name == out.Name {
			c.fail(t.nameAt, "choose another name", "tool %s is there twice: %s is published under this name", out.Name, other.Name)
		}
	}
	if len(f.Overloads) == 1 {
		out.Arguments = c.compileToolArguments(t, f)
	}
	f.Tool = out
}

func (c *functionCompiler) compileToolArguments(t *toolDecl, f *Function) []ToolArgument {
	o := f.Overloads[0]
	if o.Variadic {
		c.fail(t.place, "", "%s is variadic: it cannot be a tool", functionSignature(o))
		return nil
	}
	pinned := func(name string) bool {
		return slices.ContainsFunc(f.Pins, func(p Pin) bool { return p.Arg == name })
	}
	described := map[string]string{}
	for _, a := range t.arguments {
		_, twice := described[a.name]
		switch {
		case !slices.Contains(o.ArgNames, a.name):
			c.fail(a.place, closest(a.name, o.ArgNames), "%s has no argument %q", functionSignature(o), a.name)
		case pinned(a.name):
			c.fail(a.place, "leave it out: tools do not take what is pinned", "%q is pinned", a.name)
		case twice:
			c.fail(a.place, "", "argument %q is there twice", a.name)
		}
		described[a.name] = a.description
	}
	var out []ToolArgument
	for i, name := range o.ArgNames {
		optional := i >= len(o.ArgNames)-o.Defaults
		description, wanted := described[name]
		if !t.hasArguments {
			wanted = !pinned(name)
		}
		switch {
		case wanted && name == "":
			c.fail(t.place, "", "argument %d of %s has no name, which tools need", i+1, functionSignature(o))
		case wanted:
			out = append(out, ToolArgument{Name: name, Type: o.ArgTypes[i], Description: description, Optional: optional})
		case !optional && !pinned(name):
			c.fail(t.place, "list it under arguments, or pin it", "argument %q of %s has no default", name, functionSignature(o))
		}
	}
	return out
}

// CallStatement returns the SQL that the tool runs: a call of the function with the named arguments as parameters, in
// this order.
func (f *Function) CallStatement(names []string) string {
	arguments := make([]string, len(names))
	for i, name := range names {
		arguments[i] = fmt.Sprintf("%s => $%d", catalog.QuoteIdent(name), i+1)
	}
	return fmt.Sprintf("SELECT * FROM %s.%s(%s)", catalog.QuoteIdent(f.Name.Schema), catalog.QuoteIdent(f.Name.Name),
		strings.Join(arguments, ", "))
}

// describeParts describes the tool for people.
func (t *Tool) describeParts(f *Function) map[string]string {
	out := map[string]string{"": t.describe(), "function": f.Name.String(), "description": t.Description}
	for _, a := range t.Arguments {
		out["argument "+a.Name] = a.Type
	}
	return out
}

// describe returns a text with everything about the tool, for the hash of the policy.
func (t *Tool) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q", t.Name, t.Description)
	for _, a := range t.Arguments {
		fmt.Fprintf(&b, " %q %q %q %t", a.Name, a.Type, a.Description, a.Optional)
	}
	return b.String()
}
