package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// agentName matches names of agents that need no quotes in DSNs, audit records and metrics.
var agentName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

func (c *Config) check(d *decoder) {
	if c.Version != 1 {
		d.addProblem("version", "This pgconsent reads: version: 1", "version must be 1")
	}
	c.checkListeners(d)
	c.checkUpstream(d)
	c.checkAudit(d)
	c.checkAdmin(d)
	checkOneOf(d, "enforcement", string(c.Enforcement), string(EnforceAuto), string(EnforceBoth))
	if c.Consent != nil {
		c.Consent.check(d)
	}
	c.AIR.checkAIR(d)
	if c.JWT != nil {
		c.JWT.check(d)
	}
	if len(c.Databases) == 0 {
		d.addProblem("databases", "databases: { app: { policy: policy.yaml, owners: [app_owner] } }",
			"no databases are configured")
	}
	for name, db := range c.Databases {
		c.checkDatabase(d, "databases."+name, db)
	}
	for name, a := range c.Agents {
		c.checkAgent(d, name, a)
	}
	if after, err := time.ParseDuration(c.StaleAfter); c.StaleAfter != "" &&
		(err != nil || after < 5*time.Second || after > time.Hour) {
		d.addProblem("stale_after", "stale_after: 60s", "stale_after must be a time from 5s to 1h")
	}
	if _, ok := parseStatementBytes(c.MaxStatement); !ok {
		d.addProblem("max_statement", "max_statement: 16 MiB", "max_statement must be a size from 1 MiB to 64 MiB")
	}
	if _, ok := parseHeapBytes(c.Upstream.KeepHeap); !ok {
		d.addProblem("upstream.keep_heap", "upstream: { keep_heap: 4 MiB }", "upstream.keep_heap must be 0 or a size from 1 MiB to 32 MiB")
	}
	if n, err := strconv.Atoi(c.Upstream.StatementCache); c.Upstream.StatementCache != "" && (err != nil || n < 0 || n > 10_000) {
		d.addProblem("upstream.statement_cache", "upstream: { statement_cache: 100 }",
			"upstream.statement_cache must be a number of statements, 0 to 10000")
	}
	if c.MaxSessions < 0 {
		d.addProblem("max_sessions", "max_sessions: 80, or nothing: as many as the server has room for.",
			"max_sessions must be a number of sessions")
	}
}

func (c *Config) checkUpstream(d *decoder) {
	if c.Upstream.Port < 1 || c.Upstream.Port > 65535 {
		d.addProblem("upstream.port", "", "upstream.port must be between 1 and 65535")
	}
	checkOneOf(d, "upstream.tls", c.Upstream.TLS, "disable", "require", "verify-full")
	if c.Upstream.TLS != "disable" && c.Upstream.isUnixSocket() {
		d.addProblem("upstream.tls", "Leave it out, or name a host.", "a unix socket has no TLS")
	}
	if c.Upstream.CA != "" && c.Upstream.TLS != "verify-full" {
		d.addProblem("upstream.ca", "upstream: { tls: verify-full, ca: … }", "upstream.ca is used by tls: verify-full only")
	}
}

func (c *Config) checkDatabase(d *decoder, path string, db *Database) {
	if db.Policy == "" {
		d.addProblem(path, "policy: policy.yaml", "%s has no policy", path)
	}
	if len(db.Owners) == 0 {
		d.addProblem(path, "owners: [app_owner] lists the database roles whose connections pass unparsed.",
			"%s has no owners", path)
	}
	if len(db.SearchPath) == 0 {
		d.addProblem(path+".search_path", "search_path: [public]", "%s.search_path is empty", path)
	}
	for i, schema := range db.SearchPath {
		if schema == "" || strings.HasPrefix(schema, "pg_") || schema == "$user" || strings.HasPrefix(schema, "pgconsent") {
			d.addProblem(path+".search_path", "pg_catalog is always first; list the schemas of your application.",
				"%s.search_path: %q cannot be pinned", path, schema)
		}
		if slices.Index(db.SearchPath, schema) != i {
			d.addProblem(path+".search_path", "", "%s.search_path names %q twice", path, schema)
		}
	}
	db.Pool.check(d, path+".pool")
	usedRoles := map[string]string{}
	for _, r := range []struct{ key, role string }{
		{"agent", db.Roles.Agent}, {"control", db.Roles.Control}, {"reader", db.Roles.Reader}, {"rows", db.Roles.Rows}} {
		if otherUse, isRepeated := usedRoles[r.role]; isRepeated {
			d.addProblem(path+".roles."+r.key, "", "%s.roles: %s and %s are the same role %q", path, otherUse, r.key, r.role)
		}
		usedRoles[r.role] = r.key
		if slices.Contains(db.Owners, r.role) {
			d.addProblem(path+".roles."+r.key, "The agent role must own nothing and be member of nothing.",
				"%s.roles.%s: %q is an owner", path, r.key, r.role)
		}
		if !isValidRole(r.role) {
			d.addProblem(path+".roles."+r.key, "", "%s.roles.%s: %q is longer than PostgreSQL's 63 bytes", path, r.key, r.role)
		}
	}
}

func (c *Config) checkAgent(d *decoder, name string, a *Agent) {
	path := "agents." + name
	if !agentName.MatchString(name) {
		d.addProblem(path, "Letters, digits, and _ . - after the first; at most 63.", "%q cannot be an agent's name", name)
	}
	db, ok := c.Databases[a.Database]
	switch {
	case a.Database == "":
		d.addProblem(path, "database: "+firstKey(c.Databases), "%s has no database", path)
	case !ok:
		hint := "Databases: " + strings.Join(sortedKeys(c.Databases), ", ") + "."
		if nearestName, found := yamlfile.NearestWord(a.Database, sortedKeys(c.Databases)); found {
			hint = fmt.Sprintf("Did you mean %q?", nearestName)
		}
		d.addProblem(path+".database", hint, "%s names a database %q that is not configured", path, a.Database)
	case slices.Contains(db.Owners, name):
		d.addProblem(path, "An agent's name is a name in this file, not a database role: choose another.",
			"%q is an owner of database %s: it cannot be an agent as well", name, a.Database)
	}
	if a.Limits.Sessions < 0 {
		d.addProblem(path+".limits.sessions",
			"limits: { sessions: 10 }, or nothing: as many as the server has room for.",
			"%s.limits.sessions must be a number of sessions", path)
	}
	a.Pool.check(d, path+".pool")
	if a.ActsFor != nil {
		a.ActsFor.check(d, path+".acts_for", a, c.JWT)
	}
	checkOneOf(d, path+".auth", a.Auth, AuthPassword, AuthToken, AuthCertificate)
	switch {
	case a.Auth == AuthToken && c.JWT == nil:
		d.addProblem(path+".auth", "jwt: { issuer: …, audience: …, jwks: … } says which tokens are accepted.",
			"%s.auth is jwt, and the configuration has no section jwt", path)
	case a.Auth == AuthCertificate && (c.TLS == nil || c.TLS.ClientCA == ""):
		d.addProblem(path+".auth",
			"tls: { cert: server.crt, key: server.key, client_ca: agents.crt } says whose certificates are accepted.",
			"%s.auth is cert, and the configuration has no tls.client_ca", path)
	case a.CertName != "" && a.Auth != AuthCertificate:
		d.addProblem(path+".cert_name", "auth: cert", "%s.cert_name is used by auth: cert only", path)
	case strings.ContainsAny(a.CertName, "* \t"):
		d.addProblem(path+".cert_name", "cert_name: chat.agents.example.org, or cert_name: spiffe://example.org/chat",
			"%s.cert_name must be a whole DNS name or URI", path)
	}
}

// AdminDatabase is the name of the database to which operators connect for the admin console.
const AdminDatabase = "pgconsent"

func (c *Config) checkAdmin(d *decoder) {
	for i, name := range c.Admin.Users {
		path := itemPath("admin.users", i)
		switch {
		case !agentName.MatchString(name):
			d.addProblem(path, "Letters, digits, and _ . - after the first; at most 63.", "%q cannot be an operator's name", name)
		case slices.Index(c.Admin.Users, name) != i:
			d.addProblem(path, "", "admin.users names %q twice", name)
		case c.Agents[name] != nil:
			d.addProblem(path, "Give the operator another name: an agent must not be taken for one.",
				"%q is an agent: it cannot be an operator as well", name)
		}
	}
	if c.Databases[AdminDatabase] != nil && len(c.Admin.Users) > 0 {
		d.addProblem("databases."+AdminDatabase,
			"Call it otherwise here, and say by name: what it is called on the server; or leave admin.users out.",
			"a database called %s hides the admin console", AdminDatabase)
	}
	if c.Admin.Credentials == c.Credentials {
		d.addProblem("admin.credentials", "admin: { credentials: operators.scram }",
			"admin.credentials and credentials are the same file: an agent's password must not be an operator's")
	}
}

func checkOneOf(d *decoder, path, value string, allowedValues ...string) {
	if !slices.Contains(allowedValues, value) {
		d.addProblem(path, "One of: "+strings.Join(allowedValues, ", ")+".", "%s: %q is not known", path, value)
	}
}

func isHostPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= 65535
}

// isLoopback reports whether only this machine can connect to a listener with this address. Of names, only localhost
// counts.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLoopbackHost(host)
}

// IsLoopback reports whether only this machine can connect to the HTTP listener. Otherwise the listener uses TLS.
func (h HTTP) IsLoopback() bool { return isLoopback(h.Listen) }

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (u Upstream) isUnixSocket() bool { return strings.HasPrefix(u.Host, "/") }

func isValidRole(role string) bool { return role != "" && len(role) <= 63 }

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func firstKey[V any](m map[string]V) string {
	if ks := sortedKeys(m); len(ks) > 0 {
		return ks[0]
	}
	return "app"
}
