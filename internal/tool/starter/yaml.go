package starter

import (
	"regexp"
	"strings"
)

var plainScalar = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// yamlFlow writes a name so that YAML reads it as exactly this text, also inside braces.
func yamlFlow(name string) string {
	if plainScalar.MatchString(name) && !isOneOf(strings.ToLower(name), "true false yes no on off null y n nan inf") {
		return name
	}
	return yamlQuoted(name)
}

// yamlQuoted writes a text in single quotes.
func yamlQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
