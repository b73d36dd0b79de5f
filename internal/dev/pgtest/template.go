//go:build unix

package pgtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Build fills a database, as the superuser. It must close what else it opens.
type Build func(ctx context.Context, conn *pgx.Conn) error

type template struct {
	key    string
	shared bool // other processes find it by its key

	once   sync.Once
	name   string
	rights []string // on the database itself: CREATE DATABASE does not copy them
	err    error
}

var templates sync.Map // key → *template

// Template makes a database as build leaves it. Build runs once per package run and name, on a database that the others
// are copied from, while no other build of the run runs: roles belong to all.
func Template(t testing.TB, name string, build Build) *DB {
	t.Helper()
	return copyOf(t, templateOf(name, false), emptyTemplate, build)
}

// Temporary is Template for what nobody asks for again when t is over: the template, and those made of it, are dropped
// then.
func Temporary(t testing.TB, name string, build Build) *DB {
	t.Helper()
	t.Cleanup(func() {
		templates.Range(func(key, v any) bool {
			if key != name && !strings.HasPrefix(key.(string), name+"\n") {
				return true
			}
			templates.Delete(key)
			if tmpl := v.(*template); tmpl.name != "" && tmpl.err == nil {
				drop(t, tmpl.name)
			}
			return true
		})
	})
	return copyOf(t, templateOf(name, false), emptyTemplate, build)
}

// Shared is Template for what several packages have in common: where they share a server, the first that asks builds it
// for all. Key must tell all that build depends on, besides the code.
func Shared(t testing.TB, key string, build Build) *DB {
	t.Helper()
	return copyOf(t, templateOf("shared "+key, true), emptyTemplate, build)
}

// Extend makes db, the copy of a template, what build makes of it. For each key that is done once, to a copy of the
// template that db is a copy of from then on. A database that may have been changed, or that is no copy, is left as it
// is: Extend returns false.
func (db *DB) Extend(key string, build Build) bool {
	c := db.copied
	if c == nil {
		return false
	}
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open {
		return false
	}
	from := c.from
	further := templateOf(from.key+"\n"+key, from.shared)
	further.make(c.t, from, build)
	if c.made { // somebody has looked at it
		if err := admin("DROP DATABASE " + db.Name + " WITH (FORCE)"); err != nil {
			c.t.Fatalf("drop database: %v", err)
		}
		c.made = false
	}
	c.from = further
	return true
}

// UnchangedTemplate names what db is an untouched copy of, so that what was found out about another copy is true of it as well; ""
// where it may have been changed, or is no copy.
func (db *DB) UnchangedTemplate() string {
	if db.copied == nil {
		return ""
	}
	db.copied.mu.Lock()
	defer db.copied.mu.Unlock()
	if db.copied.open {
		return ""
	}
	return db.copied.from.key
}

// Template is the name of the database that db is a copy of, "" if it is none.
func (db *DB) Template() string {
	if db.copied == nil {
		return ""
	}
	db.copied.mu.Lock()
	defer db.copied.mu.Unlock()
	return db.copied.from.name
}

// AlteredVariable is the environment variable that says, with any value, that the code under test is not that of the
// other packages of the run: it gets and leaves no shared templates.
const AlteredVariable = "PGCONSENT_TEST_ALTERED"

func templateOf(key string, shared bool) *template {
	v, _ := templates.LoadOrStore(key, &template{key: key, shared: shared && os.Getenv(AlteredVariable) == ""})
	return v.(*template)
}

// emptyTemplate is the template of what is built from nothing.
var emptyTemplate = &template{name: "template0"}

func copyOf(t testing.TB, tmpl, from *template, build Build) *DB {
	t.Helper()
	db := reserve(t)
	tmpl.make(t, from, build)
	db.copied = &templateCopy{t: t, from: tmpl}
	t.Cleanup(func() {
		if db.copied.made {
			drop(t, db.Name)
		}
	})
	return db
}

func (tmpl *template) make(t testing.TB, from *template, build Build) {
	t.Helper()
	tmpl.once.Do(func() { tmpl.err = tmpl.build(from, build) })
	if tmpl.err != nil {
		t.Fatalf("template %s: %v", tmpl.key, tmpl.err)
	}
}

func (tmpl *template) build(from *template, build Build) error {
	release, err := acquire("roles")
	if err != nil {
		return err
	}
	defer release()
	tmpl.name = newName("template")
	if tmpl.shared {
		tmpl.name = fmt.Sprintf("shared_%x", sha256.Sum256([]byte(tmpl.key)))[:40]
		if there, err := isBuilt(tmpl.name); err != nil {
			return err
		} else if there {
			return tmpl.readRights()
		}
		if err := admin("DROP DATABASE IF EXISTS " + tmpl.name); err != nil { // whoever built it was killed
			return err
		}
	}
	if err := fill(tmpl.name, from, build); err != nil {
		return err
	}
	if err := admin("COMMENT ON DATABASE " + tmpl.name + " IS '" + builtMark + "'"); err != nil {
		return err
	}
	return tmpl.readRights()
}

// builtMark is the comment of a template that its build has finished.
const builtMark = "whole"

// copyTo makes a database that is a copy, with the rights on it.
func (tmpl *template) copyTo(name string) error {
	if err := create(name, tmpl.name); err != nil {
		return err
	}
	if len(tmpl.rights) == 0 {
		return nil
	}
	on := " ON DATABASE " + name
	sql := "REVOKE ALL" + on + " FROM PUBLIC"
	for _, r := range tmpl.rights {
		privilege, grantee, _ := strings.Cut(r, " TO ")
		sql += "; GRANT " + privilege + on + " TO " + grantee
	}
	return admin(sql)
}

// readRights reads who but the owner has rights on the database, where somebody has changed those that a new database
// has.
func (tmpl *template) readRights() error {
	return onAdmin(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT pg_catalog.format('%s TO %s%s', x.privilege_type,
				CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(x.grantee)) END,
				CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' END)
			FROM pg_catalog.pg_database AS d CROSS JOIN LATERAL pg_catalog.aclexplode(d.datacl) AS x
			WHERE d.datname = $1 ORDER BY 1`, tmpl.name)
		if err != nil {
			return err
		}
		tmpl.rights, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
}

func fill(name string, from *template, build Build) error {
	if err := from.copyTo(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseNamed(name).DSN("postgres", ""))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return build(ctx, conn)
}

func isBuilt(name string) (there bool, err error) {
	err = onAdmin(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_database AS d
			WHERE d.datname = $1 AND pg_catalog.shobj_description(d.oid, 'pg_database') = $2)`, name, builtMark).Scan(&there)
	})
	return there, err
}

// dropTemplates drops those that nobody will copy any more when this process has ended.
func dropTemplates() error {
	var err error
	templates.Range(func(_, v any) bool {
		if tmpl := v.(*template); !tmpl.shared && tmpl.name != "" && tmpl.err == nil {
			err = admin("DROP DATABASE " + tmpl.name + " WITH (FORCE)")
		}
		return err == nil
	})
	return err
}
