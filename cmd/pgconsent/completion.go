package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completeWord is the argument with which a shell asks pgconsent for the words that may come next.
const completeWord = "__complete"

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `The script asks the program for commands, flags and the values that a flag can have; elsewhere the shell completes files.

  pgconsent completion bash > /etc/bash_completion.d/pgconsent
  pgconsent completion zsh > /usr/local/share/zsh/site-functions/_pgconsent
  pgconsent completion fish > ~/.config/fish/completions/pgconsent.fish`
}

func (c completionCmd) Run(s *session) error {
	_, err := fmt.Fprint(s.out, completionScripts[c.Shell])
	return err
}

var completionScripts = map[string]string{
	"bash": `_pgconsent() {
    local name help
    COMPREPLY=()
    while IFS=$'\t' read -r name help; do
        COMPREPLY+=("$name")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" ` + completeWord + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _pgconsent pgconsent
`,
	"zsh": `#compdef pgconsent
_pgconsent() {
    local name help
    local -a candidates
    while IFS=$'\t' read -r name help; do
        candidates+=("${name//:/\\:}:$help")
    done < <("${words[1]/#\~/$HOME}" ` + completeWord + ` "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#candidates )); then
        _describe pgconsent candidates
    else
        _files
    fi
}
if [ "$funcstack[1]" = _pgconsent ]; then
    _pgconsent
else
    compdef _pgconsent pgconsent
fi
`,
	"fish": `function __pgconsent_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] ` + completeWord + ` $words[2..-1] "$current" 2>/dev/null
end
complete -c pgconsent -n 'count (__pgconsent_complete) >/dev/null' -f -a '(__pgconsent_complete)'
`,
}

// candidate is a word that may come next on a command line, with its help text.
type candidate struct{ word, help string }

// printCandidates prints the words that may come next. The last word of words is the one that the user is typing.
func printCandidates(s streams, words []string) int {
	parser, err := kong.New(&commands{}, kong.Name("pgconsent"))
	if err != nil {
		return exitError
	}
	for _, c := range findCandidates(parser.Model.Node, words) {
		fmt.Fprintf(s.out, "%s\t%s\n", c.word, c.help)
	}
	return exitOK
}

func findCandidates(root *kong.Node, words []string) []candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	if words[0] == "help" && len(words) > 1 {
		words = words[1:]
	}
	currentWord := words[len(words)-1]
	node, positionalIndex, onlyPositional := root, 0, false
	var flagBeforeValue *kong.Flag
	for _, w := range words[:len(words)-1] {
		switch {
		case flagBeforeValue != nil && w == "=": // bash splits --flag=value into three words
		case flagBeforeValue != nil:
			flagBeforeValue = nil
		case onlyPositional:
			positionalIndex++
		case w == "--":
			onlyPositional = true
		case len(w) > 1 && w[0] == '-':
			if f := flagOf(node, w); f != nil && !f.IsBool() && !strings.Contains(w, "=") {
				flagBeforeValue = f
			}
		default:
			index := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == w })
			if index < 0 {
				positionalIndex++
				continue
			}
			node, positionalIndex = node.Children[index], 0
		}
	}
	var candidates []candidate
	name, _, hasValue := strings.Cut(currentWord, "=")
	switch {
	case flagBeforeValue != nil:
		if currentWord == "=" {
			currentWord = ""
		}
		candidates = valueCandidates(flagBeforeValue.Value, "")
	case onlyPositional:
	case hasValue:
		if f := flagOf(node, name); f != nil {
			candidates = valueCandidates(f.Value, name+"=")
		}
	case strings.HasPrefix(currentWord, "-"):
		for n := node; n != nil; n = n.Parent {
			for _, f := range n.Flags {
				if !f.Hidden {
					candidates = append(candidates, candidate{"--" + f.Name, f.Help})
				}
			}
		}
	default:
		for _, n := range node.Children {
			if !n.Hidden {
				candidates = append(candidates, candidate{n.Name, n.Help})
			}
		}
		if positionalIndex < len(node.Positional) {
			candidates = append(candidates, valueCandidates(node.Positional[positionalIndex], "")...)
		}
	}
	return slices.DeleteFunc(candidates, func(c candidate) bool { return !strings.HasPrefix(c.word, currentWord) })
}

// flagOf returns the flag that a word names: a flag of the command, or of a command above it.
func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for n := node; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

// valueCandidates returns the values that a flag or argument may have, if its definition lists them.
func valueCandidates(v *kong.Value, prefix string) []candidate {
	var out []candidate
	if v.Enum != "" {
		for _, word := range v.EnumSlice() {
			out = append(out, candidate{prefix + word, ""})
		}
	}
	return out
}
