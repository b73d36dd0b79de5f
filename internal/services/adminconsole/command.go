package adminconsole

import (
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// command is a command of an operator. It returns the rows of a table, runs an action, or does nothing (as SET).
type command struct {
	columns  []column // columns of the table that the command returns; nil: it returns none
	rows     func(c *Console) ([]row, error)
	action   *action
	argument string // argument of the action
	tag      string // tag of CommandComplete; for a table, the number of rows is added
}

// token is a word, a quoted name or string, or a single other character.
type token struct {
	text     string
	isQuoted bool
	position int // position in the text, in characters, from 1
}

// parseCommands parses the commands of a text. A text of spaces and comments has no commands. An error contains its
// position in the text.
func parseCommands(text string) ([]command, *sqlstate.Error) {
	if !utf8.ValidString(text) {
		return nil, sqlstate.New(sqlstate.CharacterNotInRepertoire, sqlstate.ReasonNone, "the text is not UTF-8")
	}
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	var out []command
	for len(tokens) > 0 {
		end := 0
		for end < len(tokens) && (tokens[end].isQuoted || tokens[end].text != ";") {
			end++
		}
		if end > 0 {
			c, err := parseCommand(tokens[:end])
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
		tokens = tokens[min(end+1, len(tokens)):]
	}
	return out, nil
}

// parseCommand parses one command.
func parseCommand(tokens []token) (command, *sqlstate.Error) {
	first, arguments := tokens[0], tokens[1:]
	switch {
	case first.isKeyword("SHOW"):
		return parseShow(first, arguments)
	case first.isKeyword("HELP") && len(arguments) == 0:
		return command{columns: helpColumns, rows: func(*Console) ([]row, error) { return helpRows(), nil }, tag: "SHOW"}, nil
	case first.isKeyword("SET"): // Drivers send SET when they connect; the console ignores it.
		return command{tag: "SET"}, nil
	}
	for i := range actions {
		if a := &actions[i]; first.isKeyword(a.name) {
			return parseAction(a, first, arguments)
		}
	}
	return command{}, unknownCommand(first)
}

func parseShow(first token, arguments []token) (command, *sqlstate.Error) {
	if len(arguments) == 1 && arguments[0].isKeyword("HELP") {
		return parseCommand(arguments)
	}
	for _, s := range showTables {
		if len(arguments) == 1 && arguments[0].isKeyword(s.name) {
			return command{columns: s.columns, rows: s.rows, tag: "SHOW"}, nil
		}
	}
	badToken := first
	if len(arguments) > 0 {
		badToken = arguments[0]
	}
	var names []string
	for _, s := range showTables {
		names = append(names, s.name)
	}
	return command{}, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonNone, "SHOW is followed by one of: %s",
		strings.Join(names, ", ")).WithPosition(badToken.position).WithHint("HELP says what each shows.")
}

func parseAction(a *action, first token, arguments []token) (command, *sqlstate.Error) {
	c := command{action: a, tag: a.name}
	switch {
	case len(arguments) == 0 && (a.argument == "" || a.isArgumentOptional):
		return c, nil
	case len(arguments) == 1 && a.argument != "" && arguments[0].text != "":
		c.argument = arguments[0].text
		return c, nil
	}
	badToken, hint := first, "A name with other characters than letters, digits, and _ . - is written in double quotes."
	if len(arguments) > 0 {
		badToken = arguments[len(arguments)-1]
	}
	if len(arguments) > 0 && arguments[0].text == "$" {
		badToken, hint = arguments[0], "Commands take no parameters: write the name into the command."
	}
	return command{}, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonNone, "%s is written: %s", a.name,
		strings.TrimSpace(a.name+" "+a.argument)).WithPosition(badToken.position).WithHint("%s", hint)
}

func unknownCommand(badToken token) *sqlstate.Error {
	switch {
	case badToken.isKeyword("BEGIN"), badToken.isKeyword("START"), badToken.isKeyword("COMMIT"), badToken.isKeyword("END"),
		badToken.isKeyword("ROLLBACK"):
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonNone, "the admin console has no transactions").
			WithPosition(badToken.position).WithHint("Connect with autocommit: a command takes effect at once and cannot be rolled back.")
	case badToken.isKeyword("SELECT"):
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonNone, "the admin console runs no SQL").
			WithPosition(badToken.position).WithHint("HELP lists its commands. Rows are in the databases of the configuration.")
	}
	return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonNone, "this is no command of the admin console").
		WithPosition(badToken.position).WithHint("HELP lists the commands.")
}

// isKeyword reports whether a token is the given keyword, in upper or lower case and not quoted.
func (t token) isKeyword(word string) bool { return !t.isQuoted && strings.EqualFold(t.text, word) }

// scan divides a text into tokens. It leaves out spaces and comments.
func scan(text string) ([]token, *sqlstate.Error) {
	s := scanner{remaining: []rune(text)}
	var out []token
	for {
		if err := s.skipSpace(); err != nil {
			return nil, err
		}
		if len(s.remaining) == 0 {
			return out, nil
		}
		t, err := s.token()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
}

// scanner holds the part of a text that is not read yet.
type scanner struct {
	remaining []rune
	position  int // how many characters have been read
}

func (s *scanner) advance(n int) { s.remaining, s.position = s.remaining[n:], s.position+n }

func (s *scanner) startsWith(prefix string) bool {
	return len(s.remaining) >= len(prefix) && string(s.remaining[:len(prefix)]) == prefix
}

// skipSpace skips spaces and comments.
func (s *scanner) skipSpace() *sqlstate.Error {
	for len(s.remaining) > 0 {
		switch {
		case strings.ContainsRune(" \t\r\n\f\v", s.remaining[0]):
			s.advance(1)
		case s.startsWith("--"):
			for len(s.remaining) > 0 && s.remaining[0] != '\n' {
				s.advance(1)
			}
		case s.startsWith("/*"):
			start := s.position + 1
			for s.advance(2); !s.startsWith("*/"); s.advance(1) {
				if len(s.remaining) == 0 {
					return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonNone, "unterminated /* comment").WithPosition(start)
				}
			}
			s.advance(2)
		default:
			return nil
		}
	}
	return nil
}

// token reads the next token.
func (s *scanner) token() (token, *sqlstate.Error) {
	t := token{position: s.position + 1}
	if quote := s.remaining[0]; quote == '"' || quote == '\'' {
		t.isQuoted = true
		var b strings.Builder
		for s.advance(1); ; s.advance(1) {
			switch {
			case len(s.remaining) == 0:
				return t, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonNone, "unterminated quotes").WithPosition(t.position)
			case s.remaining[0] != quote:
				b.WriteRune(s.remaining[0])
				continue
			case len(s.remaining) > 1 && s.remaining[1] == quote:
				b.WriteRune(quote)
				s.advance(1)
				continue
			}
			s.advance(1)
			t.text = b.String()
			return t, nil
		}
	}
	n := 0
	for n < len(s.remaining) && isWord(s.remaining[n]) {
		n++
	}
	n = max(n, 1)
	t.text = string(s.remaining[:n])
	s.advance(n)
	return t, nil
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r) || r > 0x7f
}
