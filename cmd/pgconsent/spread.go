package main

import (
	"regexp"
	"slices"
)

// spreading are the flags of lists of ids, after which several may stand: --access human:sean si:bella_agent.
var spreading = []string{"--subject", "--access", "--consent", "--participants", "--access-grants"}

// anID is what is taken for one more id after such a flag, and not for the next argument.
var anID = regexp.MustCompile(`^[\pL\pN_.]+:[^\s"'` + "`" + `\\,;()\[\]{}<>$]+$`)

// spread writes the flag again before each further id, in the commands about memories and contexts.
func spread(args []string) []string {
	if !slices.ContainsFunc(args, func(a string) bool { return a == "privacy" || a == "context" || a == "generalize" }) {
		return args
	}
	var out []string
	flag, first := "", false
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		switch {
		case slices.Contains(spreading, a):
			flag, first = a, true
		case flag != "" && first: // its own value
			first = false
		case flag != "" && (anID.MatchString(a) || a == "*"):
			out = append(out, flag)
		default:
			flag = ""
		}
		out = append(out, a)
	}
	return out
}
