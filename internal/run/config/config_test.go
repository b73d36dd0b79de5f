package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const fullConfig = `version: 1
listen: 127.0.0.1:6432
tls: { cert: server.crt, key: /etc/server.key }
http: { listen: 127.0.0.1:6433 }
upstream: { host: db.example, port: 5433, ca: ca.pem }
databases:
  memories:
    name: arcive
    policy: policy.yaml
    owners: [arcive_owner]
    search_path: [public, extensions]
    roles: { agent: a_agent, control: a_control }
    secrets: { agent: agent.pw, control: PGCONSENT_CONTROL, migrate: owner.pw }
agents:
  caregiver: { database: memories, auth: scram, attributes: { user: 6f1e0000-0000-4000-8000-000000000000, level: 1e5 } }
credentials: agents.scram
enforcement: both
audit: { mode: buffered, file: audit/ }
consent: { key: k, controller: Example GmbH, warning_days: 2, decay: false, webhook: { url: "https://a.example/c", secret: PGCONSENT_HOOK } }
air: { message_threshold: 5, window: 10m, reminder: Have a break }
`

const minimalConfig = "version: 1\ndatabases: { app: { policy: p.yaml, owners: [o] } }\n"

const withCA = minimalConfig + "tls: { cert: c, key: k, client_ca: ca }\n"

func load(text string, env map[string]string) (*Config, error) {
	return parseConfig("/etc/pgconsent/c.yaml", "c.yaml", []byte(text), func(k string) string { return env[k] })
}

func TestWholeConfiguration(t *testing.T) {
	got, err := load(fullConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Version: 1, Listen: AddressList{"127.0.0.1:6432"}, Path: "/etc/pgconsent/c.yaml",
		TLS:      &TLS{Cert: "/etc/pgconsent/server.crt", Key: "/etc/server.key"},
		HTTP:     HTTP{Listen: "127.0.0.1:6433"},
		Upstream: Upstream{Host: "db.example", Port: 5433, TLS: "verify-full", CA: "/etc/pgconsent/ca.pem"},
		Databases: map[string]*Database{"memories": {
			Name: "arcive", Policy: "/etc/pgconsent/policy.yaml", Owners: []string{"arcive_owner"}, SearchPath: []string{"public", "extensions"},
			Roles:   Roles{Agent: "a_agent", Control: "a_control", Reader: "pgconsent_reader", Rows: "pgconsent_rows", Migrate: "arcive_owner"},
			Secrets: Secrets{Agent: "/etc/pgconsent/agent.pw", Control: "PGCONSENT_CONTROL", Migrate: "/etc/pgconsent/owner.pw"},
		}},
		Agents: map[string]*Agent{"caregiver": {Database: "memories", Auth: "scram",
			Attributes: Attributes{"user": "6f1e0000-0000-4000-8000-000000000000", "level": "1e5"}}},
		Credentials: "/etc/pgconsent/agents.scram", Admin: Admin{Credentials: "/etc/pgconsent/operators.scram"}, Enforcement: EnforceBoth,
		Audit: auditDefaults("buffered", "/etc/pgconsent/audit"),
		Consent: &Consent{Key: "/etc/pgconsent/k", Anchor: "/etc/pgconsent/consent.anchor", Controller: "Example GmbH", DurationDays: 14, WarningDays: 2,
			ReviewTimeout: "48h", AutoRenewal: new(true), RequireExplicit: new(false), Decay: new(false), SweepEvery: "6h",
			Webhook: &Webhook{URL: "https://a.example/c", Secret: "PGCONSENT_HOOK"}},
		AIR: AIR{TimeThreshold: "30m", MessageThreshold: 5, Window: "10m", Idle: "30m", Keep: "1h", Sessions: 1_000_000, Reminder: "Have a break"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConsentIsChecked(t *testing.T) {
	for _, problems := range []string{
		"{ default_duration_days: 0.5 }", "{ default_duration_days: -1 }", "{ warning_days: 15 }",
		"{ review_timeout: soon }", "{ review_timeout: -1h }", "{ decay: maybe }",
		"{ sweep_every: 0s }", "{ key: a, anchor: a }", "{ webhook: { url: ftp://a, secret: b } }", "{ webhook: { url: \"http://a.example\", secret: b } }",
		"{ webhook: { url: \"https://a.example\" } }", "{ retention: 3 }",
	} {
		if _, err := load(minimalConfig+"consent: "+problems+"\n", nil); err == nil {
			t.Errorf("%s is taken", problems)
		}
	}
	// An error quotes the wrong value as it is in the file or the variable.
	for _, q := range []struct {
		section string
		env     map[string]string
		want    string
	}{
		{"{ warning_days: 15 }", nil, "c.yaml:3:12: consent.warning_days must be between 1 and default_duration_days, which is 14: here it is 15"},
		{"{ default_duration_days: 0.5 }", nil, "must be a whole number: here it is 0.5"},
		{"{ review_timeout: soon }", nil, "here it is soon"},
		{"{ decay: maybe }", nil, "must be true or false: here it is maybe"},
		{"{ warning_days: 3 }", map[string]string{"DEFAULT_CONSENT_DURATION_DAYS": "2"}, "which is 2: here it is 3"},
		{"{ warning_days: 3 }", map[string]string{"CONSENT_WARNING_DAYS": "99"}, "here it is 99, by CONSENT_WARNING_DAYS"},
		{"{ decay: true }", map[string]string{"DEFAULT_CONSENT_DURATION_DAYS": "2d"}, "DEFAULT_CONSENT_DURATION_DAYS must be a whole number: here it is 2d"},
	} {
		if _, err := load(minimalConfig+"consent: "+q.section+"\n", q.env); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%s: %v, want %s", q.section, err, q.want)
		}
	}
	// A short duration of consent is accepted. The default of warning_days is then reduced to it.
	for days, warning := range map[string]int{"1": 1, "2": 2, "3": 3, "30": 3} {
		cfg, err := load(minimalConfig+"consent: { decay: true }\n", map[string]string{"DEFAULT_CONSENT_DURATION_DAYS": days})
		if err != nil || cfg.Consent.WarningDays != warning {
			t.Errorf("%s days: %+v %v", days, cfg, err)
		}
	}
	cfg, err := load(minimalConfig, map[string]string{"REQUIRE_EXPLICIT_CONSENT": "true"})
	if err != nil || cfg.Consent != nil {
		t.Errorf("without the section there is no registry: %+v %v", cfg.Consent, err)
	}
}

func TestAIRIsChecked(t *testing.T) {
	for _, problems := range []string{
		"{ message_threshold: -1 }", "{ message_threshold: 1001 }", "{ sessions: -1 }", "{ sessions: 10000001 }",
		"{ sessions: 1000001, message_threshold: 200 }",
		"{ window: 25h }", "{ window: soon }", "{ idle: 0s }", "{ keep: 10m }", "{ time_threshold: 1ms }", "{ threshold: 3 }",
		"{ reminder: " + strings.Repeat("x", 4001) + " }",
	} {
		if _, err := load(minimalConfig+"air: "+problems+"\n", nil); err == nil {
			t.Errorf("%s is taken", problems)
		}
	}
	cfg, err := load(minimalConfig+"air: { time_threshold: 90s, idle: 2h, keep: 2h }\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	after, window, idle, keep := cfg.AIR.Durations()
	if after != 90*time.Second || window != 30*time.Minute || idle != 2*time.Hour || keep != 2*time.Hour {
		t.Errorf("%v, %v, %v, %v", after, window, idle, keep)
	}
}

// A list becomes an array literal. A value that is not allowed in an attribute is an error.
func TestListAttributes(t *testing.T) {
	const agent = "agents:\n  a:\n    database: app\n    attributes: "
	got, err := load(minimalConfig+agent+`{ user: "{x}", none: [], contexts: [work, "a,b", 'say "hi"', 'back\slash', "{}", "|#=%", 7, 'NULL', ""] }`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Attributes{
		"user": "{x}", "none": "{}",
		"contexts": `{"work","a,b","say \"hi\"","back\\slash","{}","|#=%","7","NULL",""}`,
	}
	if diff := cmp.Diff(want, got.Agents["a"].Attributes); diff != "" {
		t.Error(diff)
	}
	for _, problems := range []string{"{ a: { b: c } }", "{ a: [[b]] }", "{ a: [{ b: c }] }", "{ a: [null] }", "{ a: null }", "[a]"} {
		if _, err := load(minimalConfig+agent+problems, nil); err == nil {
			t.Errorf("%s is taken", problems)
		}
	}
}

// seeds/001:158-159, 225-228, 387-399.
func TestDefaults(t *testing.T) {
	got, err := load(minimalConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Version: 1, Listen: AddressList{"127.0.0.1:7432"}, HTTP: HTTP{Listen: "127.0.0.1:7433"}, Path: "/etc/pgconsent/c.yaml",
		Upstream: Upstream{Host: "/var/run/postgresql", Port: 5432, TLS: "disable"},
		Databases: map[string]*Database{"app": {Name: "app", Policy: "/etc/pgconsent/p.yaml", Owners: []string{"o"}, SearchPath: []string{"public"},
			Roles: Roles{Agent: "pgconsent_agent", Control: "pgconsent_control", Reader: "pgconsent_reader", Rows: "pgconsent_rows", Migrate: "o"}}},
		Credentials: "/etc/pgconsent/agents.scram", Admin: Admin{Credentials: "/etc/pgconsent/operators.scram"}, Enforcement: EnforceAuto,
		Audit: auditDefaults("strict", "/etc/pgconsent/audit"),
		AIR:   AIR{TimeThreshold: "30m", MessageThreshold: 20, Window: "30m", Idle: "30m", Keep: "1h", Sessions: 1_000_000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// seeds/001:225-228, 230-233.
func TestEnvironmentIsAboveTheFile(t *testing.T) {
	env := map[string]string{
		"PGCONSENT_LISTEN": "localhost:1", "PGCONSENT_HTTP_LISTEN": "off", "PGCONSENT_UPSTREAM_HOST": "/run/pg", "PGCONSENT_UPSTREAM_PORT": "7",
		"PGCONSENT_UPSTREAM_TLS": "disable", "PGCONSENT_CREDENTIALS": "/c", "PGCONSENT_ENFORCEMENT": "both",
		"PGCONSENT_AUDIT_MODE": "off", "PGCONSENT_AUDIT_FILE": "/a", "PGCONSENT_AUDIT_CHAIN": "here",
		"DEFAULT_CONSENT_DURATION_DAYS": "7", "CONSENT_WARNING_DAYS": "1", "PARTNERSHIP_REVIEW_TIMEOUT": "24h", "ENABLE_AUTO_RENEWAL": "false",
		"REQUIRE_EXPLICIT_CONSENT": "1", "ENABLE_DECAY_PROTOCOL": "true",
	}
	if len(env) != len(Variables) {
		t.Errorf("the test knows %d variables, the code %d", len(env), len(Variables))
	}
	cfg, err := load(strings.ReplaceAll(fullConfig, ", ca: ca.pem", ""), env)
	if err != nil {
		t.Fatal(err)
	}
	n := cfg.Consent
	got := []any{cfg.Listen, cfg.HTTP.Listen, cfg.Upstream, cfg.Credentials, cfg.Enforcement, cfg.Audit, n.DurationDays,
		n.WarningDays, n.ReviewDuration(), *n.AutoRenewal, *n.RequireExplicit, *n.Decay}
	want := []any{AddressList{"localhost:1"}, "off", Upstream{Host: "/run/pg", Port: 7, TLS: "disable"}, "/c",
		EnforceBoth, auditDefaults("off", "/a"), 7, 1, 24 * time.Hour, false, true, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// In the file, several addresses are a list; in the environment variable, they are separated by commas.
func TestListen(t *testing.T) {
	for _, c := range []struct {
		text, env string
		want      AddressList
	}{
		{"listen: 127.0.0.1:1\n", "", AddressList{"127.0.0.1:1"}},
		{"listen: [/run/p/.s.PGSQL.7432]\n", "", AddressList{"/run/p/.s.PGSQL.7432"}},
		{"listen: [127.0.0.1:7432, /run/p/.s.PGSQL.7432, \"[::1]:7432\"]\n", "", AddressList{"127.0.0.1:7432", "/run/p/.s.PGSQL.7432", "[::1]:7432"}},
		{"listen: [127.0.0.1:0, 127.0.0.1:0]\n", "", AddressList{"127.0.0.1:0", "127.0.0.1:0"}},
		{"listen: [127.0.0.1:1, 127.0.0.1:2]\n", "/run/p/s, localhost:3", AddressList{"/run/p/s", "localhost:3"}},
	} {
		got, err := load(minimalConfig+c.text, map[string]string{"PGCONSENT_LISTEN": c.env})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got.Listen); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
	_, err := load(minimalConfig, map[string]string{"PGCONSENT_LISTEN": "127.0.0.1:1,somewhere"})
	if err == nil || !strings.Contains(err.Error(), "here it is somewhere, by PGCONSENT_LISTEN") {
		t.Error(err)
	}
}

func TestCertificateAgents(t *testing.T) {
	c, err := load(withCA+"agents: { a: { database: app, auth: cert }, b: { database: app, auth: cert, cert_name: \"spiffe://x/b\" } }\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.TLS.ClientCA != "/etc/pgconsent/ca" || c.Agents["a"].CertName != "" || c.Agents["b"].CertName != "spiffe://x/b" {
		t.Errorf("%+v %+v %+v", c.TLS, c.Agents["a"], c.Agents["b"])
	}
}

func TestNetworksOfBalancers(t *testing.T) {
	cfg, err := load(minimalConfig+"proxy_protocol: { from: [10.0.0.0/8, \"fd00::/8\", 192.0.2.7/32] }\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(cfg.Proxies.Networks()); got != "[10.0.0.0/8 fd00::/8 192.0.2.7/32]" {
		t.Error(got)
	}
	for _, emptySetting := range []string{"", "proxy_protocol: {}\n", "proxy_protocol: { from: [] }\n"} {
		if cfg, err := load(minimalConfig+emptySetting, nil); err != nil || len(cfg.Proxies.Networks()) != 0 {
			t.Errorf("%s: %v", emptySetting, err)
		}
	}
	for _, problems := range []string{"0.0.0.0/0", "\"::/0\"", "10.0.0.7", "10.0.0.7/8", "10.0.0.0/33", "balancer", "\"\"",
		"\"::ffff:10.0.0.0/104\"", "\"fe80::%eth0/64\""} {
		_, err := load(minimalConfig+"proxy_protocol: { from: [127.0.0.0/8, "+problems+"] }\n", nil)
		if err == nil || !strings.Contains(err.Error(), "c.yaml:3:39: proxy_protocol.from must have networks of load balancers, and not all addresses") {
			t.Errorf("%s: %v", problems, err)
		}
	}
}

// seeds/001:191.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "c.yaml: the file is empty"},
		"not YAML":      {"version: [1", "c.yaml:1:"},
		"not a mapping": {"- 1", "the configuration must be a mapping"},
		"two documents": {minimalConfig + "---\n" + minimalConfig, "one file holds one configuration"},
		"unknown key": {minimalConfig + "listn: x\n",
			"c.yaml:3:1: unknown key \"listn\" in the configuration\n    Did you mean \"listen\"?"},
		"unknown, nothing near": {minimalConfig + "colour: x\n", "Known here: version, listen,"},
		"unknown deep key": {strings.Replace(minimalConfig, "owners", "owner", 1),
			"c.yaml:2:37: unknown key \"owner\" in databases.app\n    Did you mean \"owners\"?"},
		"unknown upstream key": {minimalConfig + "upstream:\n  prot: 5\n",
			"c.yaml:4:3: unknown key \"prot\" in upstream\n    Did you mean \"port\"?"},
		"duplicate key":       {minimalConfig + "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", "c.yaml:4:1:"},
		"alias":               {"version: 1\nx: &a { policy: p, owners: [o] }\n", "unknown key"},
		"merge":               {minimalConfig + "http: { <<: *a }\n", "c.yaml:3:"},
		"version missing":     {"databases: { app: { policy: p, owners: [o] } }", "version must be 1"},
		"version 2":           {strings.Replace(minimalConfig, "1", "2", 1), "c.yaml:1:1: version must be 1"},
		"version as text":     {strings.Replace(minimalConfig, "1", "one", 1), "c.yaml:1:10: version must be a whole number"},
		"no databases":        {"version: 1", "no databases"},
		"no policy":           {"version: 1\ndatabases: { app: { owners: [o] } }", "c.yaml:2:14: databases.app has no policy"},
		"no owners":           {"version: 1\ndatabases: { app: { policy: p } }", "has no owners"},
		"owners as text":      {"version: 1\ndatabases: { app: { policy: p, owners: o } }", "c.yaml:2:40: databases.app.owners must be a list"},
		"database null":       {"version: 1\ndatabases: { app: }", "databases.app has no value"},
		"listen on the net":   {minimalConfig + "listen: 0.0.0.0:7432\n", "c.yaml:3:1: without tls"},
		"listen everywhere":   {minimalConfig + "listen: \":7432\"\n", "without tls"},
		"listen on a name":    {minimalConfig + "listen: db.example:7432\n", "without tls"},
		"listen without port": {minimalConfig + "listen: localhost\n", "host:port"},
		"listen nowhere":      {minimalConfig + "listen: []\n", "c.yaml:3:1: listen is an empty list"},
		"listen by key":       {minimalConfig + "listen: { a: b }\n", "listen must be an address or a list of addresses"},
		"listen to nothing":   {minimalConfig + "listen: \"\"\n", "host:port"},
		"second on the net": {minimalConfig + "listen: [/run/a, 0.0.0.0:7432]\n",
			"c.yaml:3:18: without tls pgconsent listens on loopback and unix sockets only, not on 0.0.0.0:7432"},
		"second without port": {minimalConfig + "listen: [127.0.0.1:1, localhost]\n",
			"c.yaml:3:23: listen must be host:port or the path of a unix socket: here it is localhost"},
		"listen twice":        {minimalConfig + "listen:\n- /run/a\n- 127.0.0.1:1\n- /run/a\n", "c.yaml:6:3: listen names /run/a twice"},
		"http equals second":  {minimalConfig + "listen: [/run/a, 127.0.0.1:7433]\n", "same address"},
		"tls without key":     {minimalConfig + "tls: { cert: c }\n", "a certificate and a key"},
		"http on the net":     {minimalConfig + "http: { listen: 10.0.0.1:7433 }\n", "http listens on loopback only"},
		"http equals listen":  {minimalConfig + "http: { listen: 127.0.0.1:7432 }\n", "same address"},
		"port":                {minimalConfig + "upstream: { port: 70000 }\n", "between 1 and 65535"},
		"upstream tls":        {minimalConfig + "upstream: { host: db, tls: prefer }\n", "One of: disable, require, verify-full"},
		"tls on a socket":     {minimalConfig + "upstream: { tls: require }\n", "a unix socket has no TLS"},
		"ca without use":      {minimalConfig + "upstream: { host: db, tls: require, ca: c }\n", "verify-full only"},
		"no such enforcement": {minimalConfig + "enforcement: none\n", "One of: auto, both"},
		"audit mode":          {minimalConfig + "audit: { mode: loose }\n", "One of: strict, buffered, off"},
		"search path user":    {"version: 1\ndatabases: { app: { policy: p, owners: [o], search_path: [$user] } }", "cannot be pinned"},
		"search path ours":    {"version: 1\ndatabases: { app: { policy: p, owners: [o], search_path: [pgconsent_signed] } }", "cannot be pinned"},
		"search path empty":   {"version: 1\ndatabases: { app: { policy: p, owners: [o], search_path: [] } }", "search_path is empty"},
		"search path twice":   {"version: 1\ndatabases: { app: { policy: p, owners: [o], search_path: [a, a] } }", "twice"},
		"same roles":          {"version: 1\ndatabases: { app: { policy: p, owners: [o], roles: { agent: x, control: x } } }", "same role"},
		"agent role is owner": {"version: 1\ndatabases: { app: { policy: p, owners: [o], roles: { agent: o } } }", "is an owner"},
		"long role": {"version: 1\ndatabases: { app: { policy: p, owners: [o], roles: { agent: " +
			strings.Repeat("x", 64) + " } } }", "63 bytes"},
		"agent is owner":       {minimalConfig + "agents: { o: { database: app } }\n", "c.yaml:3:11: \"o\" is an owner of database app"},
		"jwt without keys":     {minimalConfig + "jwt: { issuer: i, audience: a }\n", "jwt has no jwks"},
		"jwt with secrets":     {minimalConfig + "jwt: { issuer: i, audience: a, jwks: keys.json, algorithms: [HS256] }\n", "cannot be accepted"},
		"jwt unsigned":         {minimalConfig + "jwt: { issuer: i, audience: a, jwks: keys.json, algorithms: [none] }\n", "cannot be accepted"},
		"jwt keys in the open": {minimalConfig + "jwt: { issuer: i, audience: a, jwks: \"http://id.example.org/keys\" }\n", "must be a file or an https address"},
		"jwt with a long skew": {minimalConfig + "jwt: { issuer: i, audience: a, jwks: keys.json, skew: 1h }\n", "at most 10m"},
		"agent without db":     {minimalConfig + "agents: { a: { auth: scram } }\n", "has no database"},
		"agent of no db":       {minimalConfig + "agents: { a: { database: apps } }\n", "Did you mean \"app\"?"},
		"agent auth":           {minimalConfig + "agents: { a: { database: app, auth: jwt } }\n", "the configuration has no section jwt"},
		"agent cert, no tls": {minimalConfig + "agents: { a: { database: app, auth: cert } }\n",
			"agents.a.auth is cert, and the configuration has no tls.client_ca"},
		"agent cert, no ca": {minimalConfig + "tls: { cert: c, key: k }\nagents: { a: { database: app, auth: cert } }\n",
			"c.yaml:4:31: agents.a.auth is cert, and the configuration has no tls.client_ca"},
		"name without cert": {minimalConfig + "agents: { a: { database: app, cert_name: b } }\n",
			"agents.a.cert_name is used by auth: cert only"},
		"name of a wildcard": {withCA + "agents: { a: { database: app, auth: cert, cert_name: \"*.example.org\" } }\n", "must be a whole DNS name or URI"},
		"ca without a pair":  {minimalConfig + "tls: { client_ca: ca }\n", "a certificate and a key"},
		"agent name":         {minimalConfig + "agents: { 'a b': { database: app } }\n", "cannot be an agent's name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(c.text, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant …%s…", err, c.want)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, err := load(minimalConfig+"listen: nowhere\nenforcement: dors\naudit: { mode: loose }\n", nil)
	p, ok := err.(Problems)
	if !ok || len(p) != 3 || !slices.IsSortedFunc(p, func(a, b Problem) int { return a.Line - b.Line }) {
		t.Errorf("got %v", err)
	}
}

func TestLoadSaysWhereToGetAConfiguration(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// giveToOtherUser changes the owner of a file if root runs the tests, because the group may read files that root owns.
func giveToOtherUser(t *testing.T, path string) string {
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	writeSecret := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PGCONSENT_TEST_PW", "from the environment")
	for name, c := range map[string]struct{ source, want, err string }{
		"none":              {"", "", ""},
		"file":              {writeSecret("a", "hush\n", 0o600), "hush", ""},
		"read only":         {writeSecret("ro", "hush", 0o400), "hush", ""},
		"group":             {giveToOtherUser(t, writeSecret("g", "hush", 0o640)), "", "chmod"},
		"group may write":   {writeSecret("gw", "hush", 0o660), "", "chmod"},
		"world":             {writeSecret("w", "hush", 0o604), "", "chmod"},
		"empty":             {writeSecret("e", "\n", 0o600), "", "one line"},
		"two lines":         {writeSecret("t", "a\nb\n", 0o600), "", "one line"},
		"missing":           {filepath.Join(dir, "none"), "", "no such file"},
		"environment":       {"PGCONSENT_TEST_PW", "from the environment", ""},
		"environment unset": {"PGCONSENT_TEST_NONE", "", "is not set"},
	} {
		got, err := ReadSecret(c.source)
		if got != c.want || (err == nil) != (c.err == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error tells the secret", name)
		}
	}
}

// docs/reference/configuration.md documents each key and each variable, and no others.
func TestReferenceIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1])
	}
	var knownKeys []string
	var walk func(path string, t reflect.Type)
	walk = func(path string, t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer:
			walk(path, t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if tag := t.Field(i).Tag.Get("yaml"); tag != "-" {
					walk(joinPath(path, tag), t.Field(i).Type)
				}
			}
		case reflect.Map:
			walk(path+".NAME", t.Elem())
		default:
			knownKeys = append(knownKeys, path)
		}
	}
	walk("", reflect.TypeFor[Config]())
	for _, v := range Variables {
		knownKeys = append(knownKeys, v.Name)
	}
	knownKeys = append(knownKeys, "PGCONSENT_CONFIG")
	slices.Sort(documented)
	slices.Sort(knownKeys)
	if diff := cmp.Diff(knownKeys, documented); diff != "" {
		t.Errorf("code and docs/reference/configuration.md differ (-code +docs):\n%s", diff)
	}
}

// The example in docs/reference/configuration.md is a valid configuration.
func TestReferenceExampleLoads(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(m) == 0 {
		t.Fatal("no example")
	}
	for _, example := range m {
		if _, err := load(string(example[1]), nil); err != nil {
			t.Errorf("%v in:\n%s", err, example[1])
		}
	}
}

// Old spellings are accepted, and reported in DeprecatedSpellings.
func TestOldSpellings(t *testing.T) {
	for text, outdated := range map[string]int{"": 0, "enforcement: auto\n": 0, "enforcement: both\n": 0, "enforcement: doors\n": 1} {
		c, err := load(minimalConfig+text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := text != "enforcement: both\n"; (c.Enforcement == EnforceAuto) != want || len(c.DeprecatedSpellings) != outdated {
			t.Errorf("%q: %s, %q", text, c.Enforcement, c.DeprecatedSpellings)
		}
	}
}

func TestStatementBytes(t *testing.T) {
	for text, want := range map[string]int{"": 1 << 20, "1 MiB": 1 << 20, "16MiB": 16 << 20, "64 MiB": 64 << 20,
		"65 MiB": 0, "0 MiB": 0, "1048576": 0, "1 GiB": 0, "-1 MiB": 0, "1.5 MiB": 0} {
		if n, ok := parseStatementBytes(text); ok != (want > 0) || ok && n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
}

func TestHeapBytes(t *testing.T) {
	for text, want := range map[string]int{"": 4 << 20, "0": 0, "1 MiB": 1 << 20, "32MiB": 32 << 20} {
		upstream := "upstream: { keep_heap: " + text + " }\n"
		if text == "" {
			upstream = ""
		}
		cfg, err := load(minimalConfig+upstream, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := cfg.Upstream.HeapBytes(); n != want {
			t.Errorf("%q: %d", text, n)
		}
	}
	for _, text := range []string{"33 MiB", "0 MiB", "4194304", "4 GiB", "-1 MiB"} {
		if _, err := load(minimalConfig+"upstream: { keep_heap: "+text+" }\n", nil); err == nil || !strings.Contains(err.Error(), "keep_heap") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An operator's name must not be that of an agent, and operators' credentials must be in another file than the agents'.
func TestAdminIsChecked(t *testing.T) {
	const agent = "agents: { chat: { database: app } }\n"
	for section, want := range map[string]string{
		"admin: { users: [ops, \"db a\"] }":                     `"db a" cannot be an operator's name`,
		"admin: { users: [ops, ops] }":                          `admin.users names "ops" twice`,
		"admin: { users: [chat] }":                              `"chat" is an agent`,
		"admin: { users: [ops], credentials: agents.scram }":    "the same file",
		"admin: { users: ops }":                                 "admin.users must be a list",
		"admin: { user: [ops] }":                                `unknown key "user" in admin`,
		"admin: { users: [ops] }":                               "",
		"admin: { users: [app_owner], credentials: ops.scram }": "", // an owner may be an operator, too
	} {
		_, err := load(minimalConfig+agent+section+"\n", nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", section, err, want)
		}
	}
	const configWithTakenName = "version: 1\ndatabases: { pgconsent: { policy: policy.yaml, owners: [app_owner] } }\n"
	if _, err := load(configWithTakenName, nil); err != nil {
		t.Errorf("without operators a database may be called so: %v", err)
	}
	if _, err := load(configWithTakenName+"admin: { users: [ops] }\n", nil); err == nil ||
		!strings.Contains(err.Error(), "c.yaml:2:14: a database called pgconsent hides") {
		t.Errorf("a database hides the console: %v", err)
	}
}
