package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Token is an entry of the tokens file.
type Token struct {
	Name    string `yaml:"name"`
	Role    Role   `yaml:"role"`
	Subject string `yaml:"subject,omitempty"`
	Agent   string `yaml:"agent,omitempty"`
	// name of a database of the configuration; required if there are several, except for an agent
	Database string `yaml:"database,omitempty"`
	SHA256   string `yaml:"sha256"` // SHA-256 of the token, in hex
	Disabled bool   `yaml:"disabled,omitempty"`
}

// tokensFile is the content of the tokens file.
type tokensFile struct {
	Tokens []Token `yaml:"tokens"`
}

// maxSubjectBytes is the length of the longest subject id that the consent registry accepts.
const maxSubjectBytes = 512

// tokenPrefix begins each token, so that scanners find tokens that leaked, for example into a repository.
const tokenPrefix = "pgct_"

var tokenNamePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,99}$`)

// NewToken makes a random token and returns it with its SHA-256.
func NewToken() (token, hash string, err error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", "", err
	}
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	return token, TokenHash(token), nil
}

// TokenHash returns the SHA-256 of a token in hex. The tokens file has this hash instead of the token.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Check validates an entry of the tokens file, without comparing it with the configuration.
func (t Token) Check() error {
	if !tokenNamePattern.MatchString(t.Name) {
		return fmt.Errorf("%q cannot be a token's name: letters, digits, and _ . : @ - after the first; at most 100", t.Name)
	}
	if !slices.Contains(Roles, t.Role) {
		return fmt.Errorf("token %s: the role %q is not known; one of subject, admin, agent, system, operator", t.Name, t.Role)
	}
	if (t.Role == Subject) != (t.Subject != "") {
		return fmt.Errorf("token %s: a token of the role subject, and no other, names its subject", t.Name)
	}
	if (t.Role == Agent) != (t.Agent != "") {
		return fmt.Errorf("token %s: a token of the role agent, and no other, names its agent", t.Name)
	}
	if !isValidSubject(t.Subject) {
		return fmt.Errorf("token %s: the subject must be text of at most %d bytes without control characters, "+
			"and not *", t.Name, maxSubjectBytes)
	}
	if sum, err := hex.DecodeString(t.SHA256); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("token %s: sha256 must be 64 hexadecimal digits", t.Name)
	}
	return nil
}

// isValidSubject reports whether the consent registry accepts the id as that of a subject.
func isValidSubject(id string) bool {
	return len(id) <= maxSubjectBytes && utf8.ValidString(id) && id != "*" && !slices.ContainsFunc([]rune(id),
		unicode.IsControl)
}

// caller returns the caller that the token identifies. Its agent and its database must be in the configuration.
func (t Token) caller(cfg *config.Config) (Caller, error) {
	out := Caller{Name: t.Name, Role: t.Role, Subject: t.Subject, Agent: t.Agent, Database: t.Database}
	if t.Role == Agent {
		a, ok := cfg.Agents[t.Agent]
		if !ok {
			return Caller{}, fmt.Errorf("token %s: there is no agent %q in the configuration", t.Name, t.Agent)
		}
		if t.Database != "" && t.Database != a.Database {
			return Caller{}, fmt.Errorf("token %s: agent %s has the database %s", t.Name, t.Agent, a.Database)
		}
		out.Database = a.Database
		return out, nil
	}
	if out.Database == "" {
		if len(cfg.Databases) != 1 {
			return Caller{}, fmt.Errorf("token %s: there are several databases, and it names none", t.Name)
		}
		for name := range cfg.Databases {
			out.Database = name
		}
	}
	if _, ok := cfg.Databases[out.Database]; !ok {
		return Caller{}, fmt.Errorf("token %s: there is no database %q in the configuration", t.Name, out.Database)
	}
	return out, nil
}

// ReadTokens reads a tokens file. It returns no tokens if the file does not exist.
func ReadTokens(path string) ([]Token, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := config.CheckPrivate(path); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseTokens(path, text)
}

func parseTokens(path string, text []byte) ([]Token, error) {
	problems := func(err error) error {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s: %v", path, err).
			WithHint("pgconsent token add writes the file: tokens: [ { name, role, subject or agent, database, sha256 } ]")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	var f tokensFile
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return nil, problems(err)
	}
	names, sums := map[string]bool{}, map[string]bool{}
	for _, t := range f.Tokens {
		if err := t.Check(); err != nil {
			return nil, problems(err)
		}
		if names[t.Name] {
			return nil, problems(fmt.Errorf("two tokens are called %s", t.Name))
		}
		if sums[t.SHA256] {
			return nil, problems(fmt.Errorf("token %s has the sha256 of another", t.Name))
		}
		names[t.Name], sums[t.SHA256] = true, true
	}
	return f.Tokens, nil
}

// AddToken adds an entry to the tokens file. It replaces an entry with the same name only if that token is revoked, or
// if replace is set.
func AddToken(path string, cfg *config.Config, t Token, replace bool) error {
	if err := t.Check(); err != nil {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity, "%v", err)
	}
	if _, err := t.caller(cfg); err != nil {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity, "%v",
			err).WithHint("The configuration is %s.", cfg.Path)
	}
	return updateFile(path, func(tokens []Token) ([]Token, error) {
		i := slices.IndexFunc(tokens, func(o Token) bool { return o.Name == t.Name })
		if i < 0 {
			return append(tokens, t), nil
		}
		if !tokens[i].Disabled && !replace {
			return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity,
				"there is already a token called %s", t.Name).
				WithHint("pgconsent token revoke %s first, or --replace: the old one is then no longer valid.", t.Name)
		}
		tokens[i] = t
		return tokens, nil
	})
}

// RevokeToken disables a token. Its entry stays in the file, since audit records may have its name.
func RevokeToken(path, name string) error {
	return updateFile(path, func(tokens []Token) ([]Token, error) {
		for i := range tokens {
			if tokens[i].Name == name {
				tokens[i].Disabled = true
				return tokens, nil
			}
		}
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity, "%s has no token called %q", path, name).
			WithHint("pgconsent token list shows those there are.")
	})
}

// updateFile reads the entries of a tokens file, passes them to change, and writes the entries that change returns.
func updateFile(path string, change func([]Token) ([]Token, error)) error {
	return config.UpdateSecret(path, func() ([]byte, error) {
		tokens, err := ReadTokens(path)
		if err == nil {
			tokens, err = change(tokens)
		}
		if err != nil {
			return nil, err
		}
		return yaml.Marshal(tokensFile{Tokens: tokens})
	})
}
