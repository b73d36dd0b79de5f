package main

import (
	"regexp"
	"slices"
)

// listFlags are the flags that take several ids, as in --access human:sean si:bella_agent.
var listFlags = []string{"--subject", "--access", "--consent", "--participants", "--access-grants"}

// idPattern matches an argument that counts as a further id of a list flag. Any other argument ends the list.
var idPattern = regexp.MustCompile(`^[\pL\pN_.]+:[^\s"'` + "`" + `\\,;()\[\]{}<>$]+$`)

// expandListFlags repeats a list flag before each further id: --access a:1 b:2 becomes --access a:1 --access b:2. The
// commands about memories and contexts have such flags.
func expandListFlags(args []string) []string {
	if !slices.ContainsFunc(args, func(a string) bool { return a == "privacy" || a == "context" || a == "generalize" }) {
		return args
	}
	var out []string
	flag, isFirst := "", false
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		switch {
		case slices.Contains(listFlags, a):
			flag, isFirst = a, true
		case flag != "" && isFirst: // the first argument after the flag is its value
			isFirst = false
		case flag != "" && (idPattern.MatchString(a) || a == "*"):
			out = append(out, flag)
		default:
			flag = ""
		}
		out = append(out, a)
	}
	return out
}
