package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// TestMain lets the test binary run as the program itself, which other tests start.
func TestMain(m *testing.M) {
	if os.Getenv("PGCONSENT_TEST_MAIN") == "1" {
		main()
	}
	pgtest.MainAlone(m)
}

// call runs the program in this process.
func call(t *testing.T, in string, args ...string) (out, stderr string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(args, streams{strings.NewReader(in), &o, &e})
	return o.String(), e.String(), code
}

func writeTestFile(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

const minimalConfig = `version: 1
upstream: { host: 127.0.0.1, port: 1 }
databases: { app: { policy: policy.yaml, owners: [app_owner] } }
agents: { chat: { database: app, attributes: { user: x } } }
`

func TestUsage(t *testing.T) {
	goodConfig := writeTestFile(t, "c.yaml", minimalConfig, 0o600)
	badConfig := writeTestFile(t, "bad.yaml", "version: 1\nlisten: nowhere\ndatabses: {}\n", 0o600)
	policy := writeTestFile(t, "p.yaml", "version: 1\ntables: { people: { rows: [ { open: true }, { wrong: 1 } ] } }\n", 0o600)
	for name, c := range map[string]struct {
		args []string
		code int
		out  string // expected in stdout
		err  string // expected in stderr
	}{
		"nothing":              {nil, exitOK, "pgconsent demo --tour", ""},
		"help":                 {[]string{"--help"}, exitOK, "Commands:", ""},
		"help of a command":    {[]string{"migrate", "--help"}, exitOK, "pgconsent migrate --dry-run > review.sql", ""},
		"help of a subcommand": {[]string{"agent", "add", "--help"}, exitOK, "The password is printed once", ""},
		"schema":               {[]string{"policy", "schema"}, exitOK, `"title": "pgconsent policy"`, ""},
		"other schema":         {[]string{"policy", "schema", "configuration"}, exitOK, `"title": "pgconsent configuration"`, ""},
		"no such schema":       {[]string{"policy", "schema", "audit"}, exitUsage, "", "policy"},
		"version":              {[]string{"version"}, exitOK, "pgconsent ", ""},
		"the flag --version":   {[]string{"--version"}, exitOK, "pgconsent 0.1.0 (commit ", ""},
		"version as JSON":      {[]string{"version", "--json"}, exitOK, `"go":"go1.`, ""},
		"unknown subcommand":   {[]string{"frobnicate"}, exitUsage, "", "pgconsent --help shows"},
		"not a command":        {[]string{"frobnicate"}, exitUsage, "", "unexpected argument frobnicate"},
		"no subcommand":        {[]string{"agent"}, exitUsage, "", `expected one of "add", "list", "disable"`},
		"unknown flag":         {[]string{"demo", "--tuor"}, exitUsage, "", `did you mean "--tour"?`},
		"argument missing":     {[]string{"agent", "add"}, exitUsage, "", "pgconsent agent add --help shows"},
		"flag missing":         {[]string{"rewrite", "SELECT 1", "-c", goodConfig}, exitUsage, "", "--as"},
		"an empty value":       {[]string{"privacy", "add", "x", "--subject", "", "--access", "*"}, exitUsage, "", "--subject is empty"},
		"an empty value, =":    {[]string{"consent", "grant", "ada", "-c", goodConfig, "--grantee="}, exitUsage, "", "--grantee is empty"},
		"one value of several": {[]string{"privacy", "add", "x", "--subject", "dog:bella", "--subject",
			"", "--access", "*"}, exitUsage, "", "--subject is empty"},
		"flags exclude": {[]string{"migrate", "--dry-run", "--down"}, exitUsage, "", "can't be used together"},
		"log format":    {[]string{"version", "--log-format", "xml"}, exitUsage, "", "--log-format"},
		"tour mode":     {[]string{"demo", "--tour=some"}, exitUsage, "", "stands alone or as --tour=only"},
		"tour and JSON": {[]string{"demo", "--tour", "--json"}, exitUsage, "", "do not go together"},
		"down":          {[]string{"demo", "--down"}, exitUsage, "", "goes with --postgres"},
		"no server": {[]string{"demo", "--down", "--postgres", "host=127.0.0.1 port=1 user=u dbname=d"},
			exitError, "", "may make databases and roles"},
		"no folder":           {[]string{"demo", "--world", "./atlantis"}, exitError, "", "there is no folder"},
		"tests of nothing":    {[]string{"policy", "test", "atlantis"}, exitUsage, "", "no such file"},
		"no tests":            {[]string{"policy", "test", "testdata"}, exitUsage, "", "there is no policy_test.yaml"},
		"why nobody":          {[]string{"why", "-c", goodConfig, "--as", "chap", "t", "1"}, exitUsage, "", `no agent "chap"`},
		"why set":             {[]string{"why", "-c", goodConfig, "--as", "chat", "--set", "x", "t", "1"}, exitUsage, "", "--set takes NAME=VALUE"},
		"diff of three":       {[]string{"policy", "diff", "-c", goodConfig, "a", "b", "c"}, exitUsage, "", "takes NEW, or OLD and NEW"},
		"diff for nobody":     {[]string{"policy", "diff", "-c", goodConfig, "a", "--as", "chap"}, exitUsage, "", `no agent "chap"`},
		"no world":            {[]string{"demo", "--world", "atlantis"}, exitError, "", "Worlds: arcive"},
		"demo on the net":     {[]string{"demo", "--listen", "0.0.0.0:7432"}, exitError, "", "loopback only"},
		"no configuration":    {[]string{"serve", "-c", "none.yaml"}, exitError, "", "PGCONSENT_CONFIG"},
		"wrong configuration": {[]string{"serve", "-c", badConfig}, exitError, "", `bad.yaml:3:1: unknown key "databses" in the configuration`},
		"error as JSON":       {[]string{"serve", "-c", "none.yaml", "--json"}, exitError, "", `"hint":"Name it with`},
		"unknown database":    {[]string{"migrate", "-c", goodConfig, "--database", "ap"}, exitUsage, "", `no database "ap" in the configuration: it has app`},
		"unknown agent": {[]string{"rewrite", "-c", goodConfig, "--as", "chap", "SELECT 1"}, exitUsage,
			"", `no agent "chap" in the configuration: it has chat`},
		"server down":          {[]string{"doctor", "-c", goodConfig}, exitError, "", "Is the server running"},
		"policy fine":          {[]string{"policy", "check", "../../examples/worlds/arcive/policy.yaml"}, exitOK, "ok, not compared with a database", ""},
		"policy wrong":         {[]string{"policy", "check", policy}, exitError, "p.yaml:2:", ""},
		"policy wrong as JSON": {[]string{"policy", "check", policy, "--json"}, exitError, `"problems":[{`, ""},
		"agent not listed":     {[]string{"agent", "add", "-c", goodConfig, "nobody"}, exitError, "", "List it first"},
		"agent without login":  {[]string{"agent", "disable", "-c", goodConfig, "chat"}, exitError, "", `no login for "chat"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, code := call(t, "", c.args...)
			if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(stderr, c.err) {
				t.Errorf("code %d, want %d\nstdout %s\nwant …%s…\nstderr %s\nwant …%s…", code, c.code, out, c.out, stderr, c.err)
			}
			if c.code == exitUsage && out != "" {
				t.Errorf("wrong usage printed on stdout: %s", out)
			}
			if strings.Contains(out+stderr, "\x1b[") {
				t.Error("colours without a terminal")
			}
		})
	}
}

func TestConfigFromTheEnvironment(t *testing.T) {
	t.Setenv("PGCONSENT_CONFIG", writeTestFile(t, "c.yaml", minimalConfig, 0o600))
	if out, stderr, code := call(t, "", "agent", "list"); code != exitOK || !strings.Contains(out, "chat") {
		t.Errorf("%d %s %s", code, out, stderr)
	}
}

// An agent that logs in with tokens of a provider can be disabled and enabled like others, and has no password.
func TestAgentsByToken(t *testing.T) {
	config := writeTestFile(t, "c.yaml", strings.Replace(minimalConfig, "attributes: { user: x } } }", "auth: jwt } }", 1)+
		"jwt: { issuer: https://id.test, audience: pgconsent, jwks: keys.json }\n", 0o600)
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"list"}, exitOK, `"login":"yes"`},
		{[]string{"disable", "chat"}, exitOK, `"disabled"`},
		{[]string{"list"}, exitOK, `"login":"disabled"`},
		{[]string{"add", "chat", "--password-file", "pw"}, exitError, "A token of https://id.test is its password"},
		{[]string{"list"}, exitOK, `"login":"disabled"`},
		{[]string{"add", "chat"}, exitOK, `postgres://chat@127.0.0.1:7432/app`},
		{[]string{"list"}, exitOK, `"login":"yes"`},
	} {
		out, stderr, code := call(t, "", append(append([]string{"agent"}, step.args...), "--json", "-c", config)...)
		if code != step.code || !strings.Contains(out+stderr, step.want) {
			t.Errorf("agent %v: %d %s %s, want %d %s", step.args, code, out, stderr, step.code, step.want)
		}
	}
}

func TestAgents(t *testing.T) {
	config := writeTestFile(t, "c.yaml", minimalConfig, 0o600)
	password := writeTestFile(t, "pw", "from a file\n", 0o600)
	checkList := func(want string) {
		t.Helper()
		out, _, code := call(t, "", "agent", "list", "--json", "-c", config)
		var agents []agentInfo
		if err := json.Unmarshal([]byte(out), &agents); err != nil || code != exitOK || len(agents) != 1 || agents[0] != (agentInfo{"chat", "app", want}) {
			t.Errorf("%d %s, want login %s", code, out, want)
		}
	}
	checkList("none")
	out, stderr, code := call(t, "", "agent", "add", "chat", "-c", config)
	if code != exitOK || !strings.HasPrefix(out, "postgres://chat:") || !strings.HasSuffix(out, "@127.0.0.1:7432/app\n") {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	checkList("yes")
	if _, _, code := call(t, "", "agent", "disable", "chat", "-c", config); code != exitOK {
		t.Error("disable failed")
	}
	checkList("disabled")
	out, _, code = call(t, "", "agent", "add", "chat", "--password-file", password, "-c", config)
	if code != exitOK || strings.Contains(out, "from") {
		t.Errorf("%d: a password that is known was printed: %s", code, out)
	}
	checkList("yes")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(config), "agents.scram"))
	if err != nil || !strings.HasPrefix(string(text), "chat SCRAM-SHA-256$4096:") || strings.Count(string(text), "\n") != 1 {
		t.Errorf("%s %v", text, err)
	}
}
