package proxy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// checkSettings passes every setting of the startup message to check, in the order in which PostgreSQL applies them. It
// returns the settings to forward to the server, by their names in lower case.
func (st *startup) checkSettings(check func(name, value, where string) (string, bool, *sqlstate.Error)) (map[string]string, error) {
	wanted, err := splitOptions(st.options)
	if err != nil {
		return nil, err
	}
	forwarded := map[string]string{}
	for _, s := range append(wanted, st.settings...) {
		name := strings.ToLower(s.name)
		if name == "replication" {
			if replicates(s.value) {
				return nil, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
					"replication connections are not for agents").
					WithHint("Connect without the parameter replication.")
			}
			continue
		}
		if check == nil {
			return nil, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
				"the setting %q cannot be checked", s.name)
		}
		value, forward, refusal := check(s.name, s.value, s.origin)
		if refusal != nil {
			return nil, refusal
		}
		if forward {
			forwarded[name] = value
		}
	}
	return forwarded, nil
}

// replicates reports whether a value of the startup parameter replication requests a replication connection.
func replicates(value string) bool {
	switch strings.ToLower(value) {
	case "false", "off", "no", "0", "f", "n":
		return false
	}
	return true
}

// splitOptions reads the startup parameter "options": a command line on which agents may write -c name=value and
// --name=value.
func splitOptions(options string) ([]setting, error) {
	words := splitWords(options)
	var out []setting
	for i := 0; i < len(words); i++ {
		word := words[i]
		var assignment string
		switch {
		case strings.HasPrefix(word, "--") && len(word) > 2:
			assignment = word[2:]
		case word == "-c" && i+1 < len(words):
			i++
			assignment = words[i]
		case strings.HasPrefix(word, "-c") && len(word) > 2:
			assignment = word[2:]
		default:
			return nil, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSetting,
				"invalid command-line argument for server process: %s", word).
				WithHint("The startup parameter options takes -c name=value and --name=value.")
		}
		name, value, ok := strings.Cut(assignment, "=")
		if !ok {
			return nil, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSetting, "-c %s requires a value", name)
		}
		out = append(out, setting{strings.ReplaceAll(name, "-", "_"), value, "options"})
	}
	return out, nil
}

// splitWords splits s at white space, as PostgreSQL's pg_split_opts does; a backslash makes the next character literal.
func splitWords(s string) []string {
	var words []string
	var word []byte
	in, escaped := false, false
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case escaped:
			word, escaped = append(word, b), false
		case b == ' ' || '\t' <= b && b <= '\r':
			if in {
				words = append(words, string(word))
				word, in = word[:0], false
			}
		case b == '\\':
			escaped, in = true, true
		default:
			word, in = append(word, b), true
		}
	}
	if in {
		words = append(words, string(word))
	}
	return words
}
