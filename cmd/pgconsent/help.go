package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"A command. Default: what there is."`
}

func (helpCmd) Help() string {
	return `The same as --help after the command.

  pgconsent help policy test`
}

func (h helpCmd) Run(s *session) error {
	if run(append(slices.Clone(h.Command), "--help"), s.streams) != exitOK {
		return usageError{errSilent}
	}
	return nil
}

type manCmd struct{}

func (manCmd) Help() string {
	return `The page has every command with its flags, as --help says them.

  pgconsent man > /usr/local/share/man/man1/pgconsent.1
  pgconsent man | man -l -`
}

func (manCmd) Run(s *session) error {
	parser, err := kong.New(&commands{}, kong.Name("pgconsent"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(s.out, manPage(parser.Model.Node))
	return err
}

// manPage returns the manual page of the program.
func manPage(root *kong.Node) string {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH PGCONSENT 1 \"\" \"pgconsent %s\"\n", roffText(release))
	out.WriteString(".SH NAME\npgconsent \\- row\\-level consent in front of PostgreSQL\n")
	out.WriteString(".SH SYNOPSIS\n.B pgconsent\n.I command\n[flags]\n.SH DESCRIPTION\n")
	writeManText(&out, strings.TrimPrefix(description, "pgconsent: "))
	out.WriteString(".SH FLAGS OF EVERY COMMAND\n")
	writeManFlags(&out, root)
	out.WriteString(".SH COMMANDS\n")
	var walk func(node *kong.Node, path string)
	walk = func(node *kong.Node, path string) {
		for _, child := range node.Children {
			if child.Hidden {
				continue
			}
			name := path + " " + child.Name
			fmt.Fprintf(&out, ".SS %s\n%s\n", roffText(name), roffText(child.Help))
			if child.Leaf() {
				fmt.Fprintf(&out, ".PP\n.nf\n%s\n.fi\n", roffText("pgconsent "+child.Summary()))
			}
			if child.Detail != "" {
				out.WriteString(".PP\n")
				writeManText(&out, child.Detail)
			}
			writeManFlags(&out, child)
			walk(child, name)
		}
	}
	walk(root, "pgconsent")
	out.WriteString(".SH EXIT STATUS\n")
	for _, c := range []struct {
		code    int
		heading string
	}{{exitOK, "Done."}, {exitError, "Something is wrong: the command says what."}, {exitUsage, "Wrong usage."},
		{exitUnknown, "doctor alone: nothing is unsafe, and something could not be told."}} {
		fmt.Fprintf(&out, ".TP\n%d\n%s\n", c.code, c.heading)
	}
	return out.String()
}

// writeManText writes paragraphs of a manual page. Indented paragraphs keep their line breaks.
func writeManText(out *strings.Builder, text string) {
	for i, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString(".PP\n")
		}
		if strings.HasPrefix(p, "  ") {
			fmt.Fprintf(out, ".nf\n%s\n.fi\n", roffText(p))
		} else {
			fmt.Fprintln(out, roffText(p))
		}
	}
}

// writeManFlags writes the arguments and flags of a command itself, without those of the commands above it.
func writeManFlags(out *strings.Builder, node *kong.Node) {
	for _, a := range node.Positional {
		fmt.Fprintf(out, ".TP\n.I %s\n%s\n", roffText(a.Summary()), roffText(a.Help))
	}
	for _, f := range node.Flags {
		if !f.Hidden {
			fmt.Fprintf(out, ".TP\n.B %s\n%s\n", roffText(flagName(f)), roffText(flagHelp(f)))
		}
	}
}

// flagName returns a flag as users write it.
func flagName(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Tag.Negatable != "" {
		name = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if !f.IsBool() {
		name += "=" + f.FormatPlaceHolder()
	}
	return name
}

// flagHelp returns the help text of a flag.
func flagHelp(f *kong.Flag) string {
	if len(f.Envs) > 0 && !strings.Contains(f.Help, "$"+f.Envs[0]) {
		return f.Help + " The environment: " + strings.Join(f.Envs, ", ") + "."
	}
	return f.Help
}

// controlLine matches the beginnings of lines that man would read as formatting requests.
var controlLine = regexp.MustCompile(`(?m)^(\.)`)

// roffText returns a text in the format of manual pages (roff), in ASCII.
func roffText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	var out strings.Builder
	for _, r := range text {
		if r > unicode.MaxASCII {
			fmt.Fprintf(&out, `\[u%04X]`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return controlLine.ReplaceAllString(out.String(), `\&$1`)
}
