package main

import "strings"

// emptied is the first flag that is given an empty value, as a script does whose variable is not set; "": none. A flag left out means
// its default (a grantee: everybody; whom a memory is about: nobody), which nobody who writes the flag means.
func emptied(args []string) string {
	for i, a := range args {
		if a == "--" {
			return ""
		}
		if name, is := strings.CutSuffix(a, "="); is && strings.HasPrefix(name, "--") && !strings.Contains(name, "=") {
			return name
		}
		if a == "" && i > 0 && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "=") {
			return args[i-1]
		}
	}
	return ""
}
