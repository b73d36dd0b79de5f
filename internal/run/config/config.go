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

// DefaultFile is the path of the configuration if neither the flag --config nor $PGCONSENT_CONFIG names one.
const DefaultFile = "pgconsent.yaml"

// Config is a configuration with its defaults, with absolute paths.
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
	// largest number of sessions of all agents together; 0: as many as PostgreSQL has room for
	MaxSessions int    `yaml:"max_sessions"`
	StaleAfter  string `yaml:"stale_after"` // how long the last known state of a database may be used; "": 60s
	// largest length of an agent's statement, such as "16 MiB"; "": 1 MiB
	MaxStatement string      `yaml:"max_statement"`
	Enforcement  Enforcement `yaml:"enforcement"`
	Audit        Audit       `yaml:"audit"`
	Admin        Admin       `yaml:"admin"`

	DeprecatedSpellings []string `yaml:"-"` // old spellings in the file, each with the new one, for the log
	Consent             *Consent `yaml:"consent"`
	JWT                 *JWT     `yaml:"jwt"`
	AIR                 AIR      `yaml:"air"`

	Path string `yaml:"-"` // path of the configuration file
}

// StaleDuration returns how long agents are served by the last known state of a database that does not answer; 0 stands
// for the default of package enforce.
func (c *Config) StaleDuration() time.Duration { return mustParseDuration(c.StaleAfter) }

// StatementBytes returns the largest accepted length of an agent's statement, in bytes.
func (c *Config) StatementBytes() int {
	n, _ := parseStatementBytes(c.MaxStatement)
	return n
}

// Largest length of a statement: the default, and the largest value that may be configured, in bytes.
const (
	defaultStatement = 1 << 20
	largestStatement = 64 << 20
)

// parseStatementBytes parses the key max_statement: 1 MiB to 64 MiB.
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

// parseMebibytes parses a size of 1 MiB to 99 MiB, and returns it in bytes.
func parseMebibytes(text string) (n int, ok bool) {
	m := sizeInMebibytes.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	mib, _ := strconv.Atoi(m[1])
	return mib << 20, true
}

// TLS has the certificate of the listeners.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// file with the authorities of client certificates, which agents with auth: cert must have; "": no client is asked for
	// one
	ClientCA string `yaml:"client_ca"`
}

// Admin says who may use the admin console. By default, nobody may.
type Admin struct {
	Users       []string `yaml:"users"`       // operators, by the user names with which they log in
	Credentials string   `yaml:"credentials"` // file with the SCRAM verifiers of the operators' passwords
}

// HTTP has the listener of the HTTP API, MCP, the console, /metrics, /healthz and /readyz.
type HTTP struct {
	Listen string `yaml:"listen"` // address of the listener; "off": there is none
	Tokens string `yaml:"tokens"` // file of the tokens that callers may use; "": there are none
}

// Upstream has the address of the PostgreSQL server, and the settings for connections to it.
type Upstream struct {
	Host string `yaml:"host"` // name or address of the server, or the folder of its unix socket
	Port int    `yaml:"port"`
	TLS  string `yaml:"tls"` // whether connections to the server use TLS: disable, require or verify-full
	CA   string `yaml:"ca"`
	// how much freed memory the backend of an agent's session does not return to the system, such as "4 MiB"; "0": as
	// little as its C library does by itself; "": 4 MiB
	KeepHeap string `yaml:"keep_heap"`
	// how many statements of each agent's session the proxy keeps prepared on the server; "": the default of package proxy
	StatementCache string `yaml:"statement_cache"`
}

// CachedStatements returns how many statements of each agent's session the proxy keeps prepared on the server.
func (u *Upstream) CachedStatements(defaultCount int) int {
	if n, err := strconv.Atoi(u.StatementCache); err == nil {
		return n
	}
	return defaultCount
}

// HeapBytes returns how much freed memory, in bytes, the backend of an agent's session does not return to the system.
func (u *Upstream) HeapBytes() int {
	n, _ := parseHeapBytes(u.KeepHeap)
	return n
}

// Freed memory that a backend does not return: the default, and the largest value that may be configured, in bytes.
// glibc does not accept more.
const (
	defaultHeap = 4 << 20
	maxHeap     = 32 << 20
)

// parseHeapBytes parses the key upstream.keep_heap: 0, or 1 MiB to 32 MiB.
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

// Database is a database that pgconsent protects.
type Database struct {
	Name       string   `yaml:"name"` // name of the database on the server
	Policy     string   `yaml:"policy"`
	Owners     []string `yaml:"owners"`
	SearchPath []string `yaml:"search_path"`
	Roles      Roles    `yaml:"roles"`
	Secrets    Secrets  `yaml:"secrets"`
	Pool       Pool     `yaml:"pool"` // pool of agents whose own settings leave it out
}

// Roles has the names of the database roles that pgconsent uses.
type Roles struct {
	Agent   string `yaml:"agent"`
	Control string `yaml:"control"`
	Reader  string `yaml:"reader"`
	Rows    string `yaml:"rows"`
	Migrate string `yaml:"migrate"`
}

// Secrets say where the passwords of the roles are: in a file, or in an environment variable whose name begins with
// PGCONSENT_.
type Secrets struct {
	Agent   string `yaml:"agent"`
	Control string `yaml:"control"`
	Migrate string `yaml:"migrate"`
}

// Agent has the settings of an agent.
type Agent struct {
	Database   string     `yaml:"database"`
	Auth       string     `yaml:"auth"`
	CertName   string     `yaml:"cert_name"` // the name in the certificate of an agent with auth: cert; "": its Common Name is the agent's
	Attributes Attributes `yaml:"attributes"`
	Limits     Limits     `yaml:"limits"`
	Pool       Pool       `yaml:"pool"`
	ActsFor    *ActsFor   `yaml:"acts_for"`
}

// Values of the key auth of an agent.
const (
	AuthPassword    = "scram"
	AuthToken       = "jwt"
	AuthCertificate = "cert"
)

// Limits has the limits of one agent; zero means no limit.
type Limits struct {
	Sessions int `yaml:"sessions"` // largest number of sessions at a time
}

// Enforcement says whether the proxy uses row security and its own predicates together, or chooses one of them.
type Enforcement string

// Values of the key enforcement. Agents see the same rows with each of them.
const (
	EnforceBoth Enforcement = "both" // row security applies, and the rewriter adds predicates, too
	// one predicate per statement: the proxy chooses between row security and signed views
	EnforceAuto  Enforcement = "auto"
	oldAutoValue Enforcement = "doors" // old name of the value auto
)

// FindFile returns the path of the configuration: the value of the flag, or else $PGCONSENT_CONFIG, or else
// [DefaultFile].
func FindFile(flag string) string {
	if flag != "" {
		return flag
	}
	if env := os.Getenv("PGCONSENT_CONFIG"); env != "" {
		return env
	}
	return DefaultFile
}

// Load reads and checks the configuration at path. Only Load and [ReadSecret] read environment variables.
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

// parseConfig does the work of [Load] for the text of the file. displayPath is the path in error messages.
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

// setDefault sets a field to value if the field has the zero value.
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

// makePathsAbsolute makes relative paths absolute: they are relative to dir, the folder of the configuration file.
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
