//go:build unix

package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

func superuser(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", pgtest.SocketDir(), pgtest.Port()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// dsn returns a connection string for TCP, where the test server asks for passwords.
func dsn(user, password string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres", user, password, pgtest.TCPPort())
}

func queryNumber(t *testing.T, dsn, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// describeServer returns the server's databases and roles with their rights, to compare them before and after a test.
func describeServer(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	var out string
	if err := conn.QueryRow(context.Background(), `SELECT (SELECT string_agg(datname || COALESCE(datacl::text, ''), ',' ORDER BY datname) FROM pg_database)
		|| (SELECT string_agg(rolname, ',' ORDER BY rolname) FROM pg_roles) || (SELECT count(*) FROM pg_class)
			|| (SELECT count(*) FROM pg_auth_members)`).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A world in a folder of the user runs on an existing server, as a role that is no superuser. The demo uses again what
// it has made, and removes it when asked to.
func TestDemoOnExistingServer(t *testing.T) {
	tier.All(t)
	admin := superuser(t)
	exec(t, admin, "CREATE ROLE guest LOGIN CREATEDB CREATEROLE PASSWORD 'guest-password'")
	t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "DROP ROLE guest") })
	before := describeServer(t, admin)
	w, err := world.Open("./testdata/My-App")
	if err != nil {
		t.Fatal(err)
	}
	if w.Name != "my_app" {
		t.Errorf("the world is called %s", w.Name)
	}
	dir := t.TempDir()
	start := func(user, password string) (*RunningDemo, []string, error) {
		var messages []string
		r, err := Start(t.Context(), Config{World: w, ServerDSN: dsn(user, password), Folder: dir, Listen: pgtest.FreeAddress(t),
			HTTP: pgtest.FreeAddress(t), Progress: func(message string) { messages = append(messages, message) }})
		return r, messages, err
	}
	for round := range 2 {
		r, messages, err := start("guest", "guest-password")
		if err != nil {
			t.Fatal(err)
		}
		if n := queryNumber(t, r.Access.Agents[0].DSN, "SELECT count(*) FROM notes"); n != 10 {
			t.Errorf("an agent sees %d notes", n)
		}
		if n := queryNumber(t, r.Access.OwnerDSN, "SELECT count(*) FROM notes"); n != 30+round {
			t.Errorf("round %d: the owner sees %d notes", round, n)
		}
		if round == 0 {
			queryNumber(t, r.Access.OwnerDSN, "INSERT INTO notes VALUES (99, 's', 'kept') RETURNING id")
		}
		if text := strings.Join(messages, "\n"); !strings.Contains(text, "pgconsent_demo_my_app_reader") ||
			strings.Contains(text, "is loaded already") != (round == 1) {
			t.Errorf("round %d: told %s", round, text)
		}
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		config, err := os.ReadFile(filepath.Join(dir, "pgconsent.yaml"))
		if err != nil || strings.Contains(string(config), "guest") {
			t.Errorf("the configuration knows the role of the DSN: %s %v", config, err)
		}
	}
	// Another demo folder has other passwords. The roles get them even if a migration of another database has given
	// them rights there.
	dir = t.TempDir()
	exec(t, admin, "CREATE DATABASE elsewhere", "GRANT CONNECT ON DATABASE elsewhere TO pgconsent_demo_my_app_agent, pgconsent_demo_my_app_control")
	r, _, err := start("guest", "guest-password")
	exec(t, admin, "DROP DATABASE elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	if n := queryNumber(t, r.Access.OwnerDSN, "SELECT count(*) FROM notes"); n != 31 {
		t.Errorf("the owner sees %d notes", n)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	var removedObjects []string
	if err := RemoveFromServer(t.Context(), dsn("guest", "guest-password"), w,
		func(message string) { removedObjects = append(removedObjects, message) }); err != nil {
		t.Fatal(err)
	}
	if len(removedObjects) != 6 {
		t.Errorf("removed %v", removedObjects)
	}
	if after := describeServer(t, admin); after != before {
		t.Errorf("the server has\n%s\nand had\n%s", after, before)
	}
}

// The demo does not touch objects that it did not make, and reports them. It reports missing rights before it makes
// anything.
func TestDemoLeavesForeignObjects(t *testing.T) {
	tier.All(t)
	admin := superuser(t)
	exec(t, admin, "CREATE ROLE poor LOGIN PASSWORD 'poor-password'", "CREATE ROLE rich LOGIN SUPERUSER PASSWORD 'rich-password'")
	t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "DROP ROLE poor; DROP ROLE rich") })
	w, err := world.Open("./testdata/My-App")
	if err != nil {
		t.Fatal(err)
	}
	start := func(user, password string) error {
		r, err := Start(t.Context(), Config{World: w, ServerDSN: dsn(user, password), Folder: t.TempDir(),
			Listen: pgtest.FreeAddress(t), HTTP: pgtest.FreeAddress(t)})
		if err == nil {
			_ = r.Stop()
		}
		return err
	}
	before := describeServer(t, admin)
	if err := start("poor", "poor-password"); err == nil || !strings.Contains(err.Error(), "may not make what the demo needs") {
		t.Errorf("%v", err)
	}
	if err := start("poor", "wrong"); err == nil || !strings.Contains(err.Error(), "cannot log in") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%v", err)
	}
	if after := describeServer(t, admin); after != before {
		t.Errorf("the server has\n%s\nand had\n%s", after, before)
	}
	exec(t, admin, "CREATE ROLE pgconsent_demo_my_app_reader")
	if err := start("rich", "rich-password"); err == nil ||
		!strings.Contains(err.Error(), "has a role pgconsent_demo_my_app_reader that the demo did not make") {
		t.Errorf("%v", err)
	}
	exec(t, admin, "DROP ROLE pgconsent_demo_my_app_reader", "CREATE DATABASE pgconsent_demo_my_app")
	if err := start("rich", "rich-password"); err == nil ||
		!strings.Contains(err.Error(), "has a database pgconsent_demo_my_app that the demo did not make") {
		t.Errorf("%v", err)
	}
	if err := RemoveFromServer(t.Context(), dsn("rich", "rich-password"), w, func(string) {}); err == nil || !strings.Contains(err.Error(), "did not make") {
		t.Errorf("%v", err)
	}
	exec(t, admin, "DROP DATABASE pgconsent_demo_my_app")
	if err := start("rich", "rich-password"); err != nil {
		t.Error(err)
	}
	// An interrupted load starts again.
	exec(t, admin, "COMMENT ON DATABASE pgconsent_demo_my_app IS 'pgconsent demo of world my_app: not loaded yet'")
	if err := start("rich", "rich-password"); err != nil {
		t.Error(err)
	}
	if err := RemoveFromServer(t.Context(), dsn("rich", "rich-password"), w, func(string) {}); err != nil {
		t.Error(err)
	}
	if after := describeServer(t, admin); after != before {
		t.Errorf("the server has\n%s\nand had\n%s", after, before)
	}
}

// A folder that is not a valid world is refused with the reason before a server is started.
func TestInvalidWorldFolders(t *testing.T) {
	readError := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "My-App", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct {
		change map[string]string // file → text; "": none
		want   string
	}{
		{map[string]string{"world.yaml": ""}, "its folder has no world.yaml"},
		{map[string]string{"policy.yaml": "", "data.sql": ""}, "its folder has no data.sql, no policy.yaml"},
		{map[string]string{"world.yaml": "version: 1\nowner: App\nagents: [ { name: a } ]"}, "owner must be a role's name"},
		{map[string]string{"world.yaml": "version: 1\nowner: app\n"}, "it names no agents"},
		{map[string]string{"world.yaml": "version: 1\nowner: app\nagents: [ { name: a }, { name: a } ]"}, "agent a is there twice"},
		{map[string]string{"world.yaml": "version: 1\nname: A-b\nowner: app\nagents: [ { name: a } ]"}, "its name must be of the form"},
		{map[string]string{"policy.yaml": "version: 1\ntabels: {}"}, `policy.yaml:2:1: unknown key "tabels"`},
	} {
		dir := filepath.Join(t.TempDir(), "app")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"world.yaml", "schema.sql", "data.sql", "policy.yaml"} {
			text := readError(name)
			if changed, ok := c.change[name]; ok {
				text = changed
			}
			if text != "" {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		w, err := world.Open(dir)
		if err == nil {
			_, err = Start(t.Context(), Config{World: w, ServerDSN: "host=127.0.0.1 port=1", Folder: t.TempDir(),
				Listen: pgtest.FreeAddress(t), HTTP: pgtest.FreeAddress(t)})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.change, err, c.want)
		}
	}
	if _, err := world.Open("./nowhere"); err == nil || !strings.Contains(err.Error(), "there is no folder") {
		t.Errorf("%v", err)
	}
}

// Errors that only the server finds are reported with their position, and errors in attributes with the agent's name.
func TestFolderOnTheServer(t *testing.T) {
	tier.All(t)
	admin := superuser(t)
	exec(t, admin, "CREATE ROLE rich LOGIN SUPERUSER PASSWORD 'rich-password'")
	t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "DROP ROLE rich") })
	for _, c := range []struct{ file, text, want string }{
		{"schema.sql", "CREATE TABLE notes (id integer PRIMARY KEY,\n  team txt)", "schema.sql:2:8: ERROR: type \"txt\" does not exist"},
		{"world.yaml", "version: 1\nowner: app\nagents: [ { name: north } ]", "agent north of world app cannot log in"},
	} {
		dir := filepath.Join(t.TempDir(), "app")
		if err := os.CopyFS(dir, os.DirFS("testdata/My-App")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := world.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), Config{World: w, ServerDSN: dsn("rich", "rich-password"), Folder: t.TempDir(),
			Listen: pgtest.FreeAddress(t), HTTP: pgtest.FreeAddress(t)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.file, err, c.want)
		}
		if err := RemoveFromServer(t.Context(), dsn("rich", "rich-password"), w, func(string) {}); err != nil {
			t.Error(err)
		}
	}
}
