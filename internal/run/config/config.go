package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// DefaultFile is the file that is read if neither a flag nor $PGCONSENT_CONFIG names one.
const DefaultFile = "pgconsent.yaml"

// Config is a whole configuration, with defaults filled in and paths made absolute.
type Config struct {
	Version     int                  `yaml:"version"`
	Listen      AddressList          `yaml:"listen"`
	TLS         *TLS                 `yaml:"tls"`
	Proxies     ProxyProtocol        `yaml:"proxy_protocol"`
	HTTP        HTTP                 `yaml:"http"`
	Upstream    Upstream             `yaml:"upstream"`
	Databases   map[string]*Database `yaml:"databases"`
	Agents      map[string]*Agent    `yaml:"agents"`
	Credentials string               `yaml:"credentials"`
	// the largest number of sessions of all agents at a time; 0: as many as the server has room for
	MaxSessions int    `yaml:"max_sessions"`
	StaleAfter  string `yaml:"stale_after"` // how long the last known state of a database may be used; "": 60s
	// the largest length of an agent's statement, such as "16 MiB"; "": 1 MiB
	MaxStatement string      `yaml:"max_statement"`
	Enforcement  Enforcement `yaml:"enforcement"`
	Audit        Audit       `yaml:"audit"`
	Admin        Admin       `yaml:"admin"`

	DeprecatedSpellings []string `yaml:"-"` // old spellings in the file, each with the new one, which the log names once
	Consent             *Consent `yaml:"consent"`
	JWT                 *JWT     `yaml:"jwt"`
	AIR                 AIR      `yaml:"air"`

	Path string `yaml:"-"` // the path of the configuration file
}

// StaleDuration returns how long agents are served by the last known state of a database that does not answer; 0: the
// default of package enforce.
func (c *Config) StaleDuration() time.Duration { return mustParseDuration(c.StaleAfter) }

// StatementBytes returns the largest length of an agent's statement, in bytes.
func (c *Config) StatementBytes() int {
	n, _ := parseStatementBytes(c.MaxStatement)
	return n
}

// The largest length of a statement that is allowed by default, and the largest that may be configured, in bytes.
const (
	defaultStatement = 1 << 20
	largestStatement = 64 << 20
)

// parseStatementBytes reads max_statement: from 1 to 64 MiB.
func parseStatementBytes(text string) (n int, ok bool) {
	if text == "" {
		return defaultStatement, true
	}
	if n, ok = parseMebibytes(text); !ok {
		return defaultStatement, false
	}
	return n, n <= largestStatement
}

var sizeInMebibytes = regexp.MustCompile(`^([1-9][0-9]?) ?MiB$`)

// parseMebibytes reads a size of 1 to 99 MiB, in bytes.
func parseMebibytes(text string) (n int, ok bool) {
	m := sizeInMebibytes.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	mib, _ := strconv.Atoi(m[1])
	return mib << 20, true
}

// TLS is the certificate of the listener.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// the authorities whose certificates clients may show, and must for agents with auth: cert; "": none is asked for
	ClientCA string `yaml:"client_ca"`
}

// Admin says who may use the admin console; nobody may by default.
type Admin struct {
	Users       []string `yaml:"users"`       // the operators, whose names are logins of the console
	Credentials string   `yaml:"credentials"` // the file with the verifiers of their passwords
}

// HTTP is the listener of the API, /metrics, /healthz and /readyz.
type HTTP struct {
	Listen string `yaml:"listen"` // the address of the listener; "off": there is none
	Tokens string `yaml:"tokens"` // the file with the tokens that callers show; "": none are known
}

// Upstream is the PostgreSQL server.
type Upstream struct {
	Host string `yaml:"host"` // the server's name or address, or the folder of its unix socket
	Port int    `yaml:"port"`
	TLS  string `yaml:"tls"` // how connections to the server use TLS: disable, require or verify-full
	CA   string `yaml:"ca"`
	// how much memory the server's process of an agent's session keeps, as "4 MiB"; "0": as little as it would; "": 4
	// MiB
	KeepHeap string `yaml:"keep_heap"`
	// how many statements of a session are kept prepared; "": as package proxy does by default
	StatementCache string `yaml:"statement_cache"`
}

// CachedStatements is how many statements of a session are kept prepared.
func (u *Upstream) CachedStatements(defaultCount int) int {
	if n, err := strconv.Atoi(u.StatementCache); err == nil {
		return n
	}
	return defaultCount
}

// HeapBytes is how much memory the server's process of an agent's session keeps.
func (u *Upstream) HeapBytes() int {
	n, _ := parseHeapBytes(u.KeepHeap)
	return n
}

// The memory that is kept by default, and the most that may be, in bytes: glibc keeps no more.
const (
	defaultHeap = 4 << 20
	maxHeap     = 32 << 20
)

// parseHeapBytes reads upstream.keep_heap: 0, or from 1 to 32 MiB.
func parseHeapBytes(text string) (n int, ok bool) {
	switch text {
	case "":
		return defaultHeap, true
	case "0":
		return 0, true
	}
	n, ok = parseMebibytes(text)
	return n, ok && n <= maxHeap
}

// Database is one protected database.
type Database struct {
	Name       string   `yaml:"name"` // the database's name on the server
	Policy     string   `yaml:"policy"`
	Owners     []string `yaml:"owners"`
	SearchPath []string `yaml:"search_path"`
	Roles      Roles    `yaml:"roles"`
	Secrets    Secrets  `yaml:"secrets"`
	Pool       Pool     `yaml:"pool"` // for agents that do not say otherwise
}

// Roles are the database roles that pgconsent uses.
type Roles struct {
	Agent   string `yaml:"agent"`
	Control string `yaml:"control"`
	Reader  string `yaml:"reader"`
	Rows    string `yaml:"rows"`
	Migrate string `yaml:"migrate"`
}

// Secrets say where the passwords of the roles are: a file, or the name of an environment variable PGCONSENT_….
type Secrets struct {
	Agent   string `yaml:"agent"`
	Control string `yaml:"control"`
	Migrate string `yaml:"migrate"`
}

// Agent is the login of an agent.
type Agent struct {
	Database   string     `yaml:"database"`
	Auth       string     `yaml:"auth"`
	CertName   string     `yaml:"cert_name"` // the name in the certificate of an agent with auth: cert; "": its Common Name is the agent's
	Attributes Attributes `yaml:"attributes"`
	Limits     Limits     `yaml:"limits"`
	Pool       Pool       `yaml:"pool"`
	ActsFor    *ActsFor   `yaml:"acts_for"`
}

// How an agent logs in.
const (
	AuthPassword    = "scram"
	AuthToken       = "jwt"
	AuthCertificate = "cert"
)

// Limits are the limits of one agent; zero: none.
type Limits struct {
	Sessions int `yaml:"sessions"` // the largest number of sessions at a time
}

// Enforcement says how row security and rewriting are used together.
type Enforcement string

// The ways of enforcement. All give the same rows.
const (
	EnforceBoth Enforcement = "both" // row-level security and predicates in the text apply together
	// each statement pays for one predicate: the proxy chooses between row security and signed views
	EnforceAuto  Enforcement = "auto"
	oldAutoValue Enforcement = "doors" // the old name of the value auto
)

// FindFile returns the path of the configuration: from the flag, else from $PGCONSENT_CONFIG, else ./pgconsent.yaml.
func FindFile(flag string) string {
	if flag != "" {
		return flag
	}
	if env := os.Getenv("PGCONSENT_CONFIG"); env != "" {
		return env
	}
	return DefaultFile
}

// Load reads and checks the configuration in path. The environment is read here, and by [ReadSecret].
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "the configuration cannot be read: %v", err).
			WithHint("Name it with --config or PGCONSENT_CONFIG. \"pgconsent demo\" writes a complete one, " +
				"docs/reference/configuration.md explains it.")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return parseConfig(abs, path, text, os.Getenv)
}

// parseConfig is [Load] for a text that was read already; displayPath is the path as the user knows it.
func parseConfig(absolutePath, displayPath string, text []byte, getenv func(string) string) (*Config, error) {
	cfg := &Config{Path: absolutePath}
	d := newDecoder(displayPath)
	d.decode(text, cfg)
	if len(d.problems) == 0 {
		cfg.applyEnvironment(d, getenv)
		cfg.defaults()
		cfg.check(d)
		cfg.makePathsAbsolute(filepath.Dir(absolutePath))
	}
	if len(d.problems) > 0 {
		slices.SortStableFunc(d.problems, func(a, b Problem) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, d.problems
	}
	return cfg, nil
}

// setDefault sets a field that has no value.
func setDefault[T comparable](field *T, value T) {
	var zeroValue T
	if *field == zeroValue {
		*field = value
	}
}

func (c *Config) defaults() {
	if c.Listen == nil {
		c.Listen = AddressList{"127.0.0.1:7432"}
	}
	setDefault(&c.HTTP.Listen, "127.0.0.1:7433")
	c.Upstream.defaults()
	setDefault(&c.Credentials, "agents.scram")
	setDefault(&c.Admin.Credentials, "operators.scram")
	setDefault(&c.Enforcement, EnforceAuto)
	if c.Enforcement == oldAutoValue {
		c.Enforcement = EnforceAuto
		c.DeprecatedSpellings = append(c.DeprecatedSpellings, "enforcement: doors is called enforcement: auto")
	}
	c.Audit.defaults(c.Databases)
	if c.Consent != nil {
		c.Consent.defaults()
	}
	c.AIR.setDefaults()
	if c.JWT != nil {
		c.JWT.defaults()
	}
	for name, db := range c.Databases {
		db.defaults(name)
	}
	for _, a := range c.Agents {
		setDefault(&a.Auth, AuthPassword)
		if a.ActsFor != nil {
			a.ActsFor.defaults()
		}
	}
}

func (u *Upstream) defaults() {
	setDefault(&u.Host, "/var/run/postgresql")
	setDefault(&u.Port, 5432)
	if u.isUnixSocket() || isLoopbackHost(u.Host) {
		setDefault(&u.TLS, "disable")
	}
	setDefault(&u.TLS, "verify-full")
}

func (db *Database) defaults(name string) {
	setDefault(&db.Name, name)
	if db.SearchPath == nil {
		db.SearchPath = []string{"public"}
	}
	setDefault(&db.Roles.Agent, "pgconsent_agent")
	setDefault(&db.Roles.Control, "pgconsent_control")
	setDefault(&db.Roles.Reader, "pgconsent_reader")
	setDefault(&db.Roles.Rows, "pgconsent_rows")
	if len(db.Owners) > 0 {
		setDefault(&db.Roles.Migrate, db.Owners[0])
	}
}

// makePathsAbsolute makes paths absolute that are relative to the file's folder.
func (c *Config) makePathsAbsolute(dir string) {
	fix := func(paths ...*string) {
		for _, p := range paths {
			if *p != "" && !filepath.IsAbs(*p) {
				*p = filepath.Join(dir, *p)
			}
		}
	}
	fix(&c.Credentials, &c.Admin.Credentials, &c.HTTP.Tokens, &c.Audit.File, &c.Audit.Key, &c.Audit.Anchor, &c.Upstream.CA)
	if c.TLS != nil {
		fix(&c.TLS.Cert, &c.TLS.Key, &c.TLS.ClientCA)
	}
	if c.Consent != nil {
		fix(&c.Consent.Key, &c.Consent.Anchor)
		if w := c.Consent.Webhook; w != nil && !isVariable(w.Secret) {
			fix(&w.Secret)
		}
	}
	if c.JWT != nil && !c.JWT.IsRemote() {
		fix(&c.JWT.JWKS)
	}
	for _, db := range c.Databases {
		fix(&db.Policy)
		for _, s := range []*string{&db.Secrets.Agent, &db.Secrets.Control, &db.Secrets.Migrate} {
			if !isVariable(*s) {
				fix(s)
			}
		}
	}
}
