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

// BuildFunc fills a database. Its connection is the superuser's. It must close all other connections that it opens.
type BuildFunc func(ctx context.Context, conn *pgx.Conn) error

type template struct {
	key      string
	isShared bool // other processes use the template, too

	once   sync.Once
	name   string
	rights []string // rights on the database, which CREATE DATABASE does not copy
	err    error
}

var templatesByKey sync.Map // the *template for each key

// Template returns a copy of the database that build has filled. For each name, build runs once per process. While it
// runs, no other build of the same run does, since roles belong to the whole server.
func Template(t testing.TB, name string, build BuildFunc) *DB {
	t.Helper()
	return copyOf(t, templateOf(name, false), emptyTemplate, build)
}

// Filled returns a database in which the superuser has run these statements. For the same statements, they run once per
// process, and each further database is a copy.
func Filled(t testing.TB, sql string) *DB {
	t.Helper()
	return Template(t, "filled by "+sql, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		return err
	})
}

// Temporary does the same as Template for a database that no other test needs. The template and its copies are dropped
// when t ends.
func Temporary(t testing.TB, name string, build BuildFunc) *DB {
	t.Helper()
	t.Cleanup(func() {
		templatesByKey.Range(func(key, v any) bool {
			if key != name && !strings.HasPrefix(key.(string), name+"\n") {
				return true
			}
			templatesByKey.Delete(key)
			if tmpl := v.(*template); tmpl.name != "" && tmpl.err == nil {
				drop(t, tmpl.name)
			}
			return true
		})
	})
	return copyOf(t, templateOf(name, false), emptyTemplate, build)
}

// Shared does the same as Template for several packages: if they share a server, the first package builds the template
// for all. key must identify everything on which build depends, except for the code.
func Shared(t testing.TB, key string, build BuildFunc) *DB {
	t.Helper()
	return copyOf(t, templateOf("shared "+key, true), emptyTemplate, build)
}

// BuildFurther makes db a copy of a further template: its present template after build. For each key, build runs only
// once. If the database is no copy, or may have been changed, BuildFurther leaves it unchanged and returns false.
func (db *DB) BuildFurther(key string, build BuildFunc) bool {
	c := db.template
	if c == nil {
		return false
	}
	c.test.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mayBeChanged {
		return false
	}
	from := c.template
	further := templateOf(from.key+"\n"+key, from.isShared)
	further.ensureBuilt(c.test, from, build)
	if c.exists { // the database is a copy of the earlier template, and is made again later
		if err := dropDatabase(db.Name); err != nil {
			c.test.Fatalf("drop database: %v", err)
		}
		c.exists = false
	}
	c.template = further
	return true
}

// UnchangedTemplate returns the key of the template of which db is an unchanged copy. Facts about another copy then
// hold for db, too. It returns "" if db is no copy, or may have been changed.
func (db *DB) UnchangedTemplate() string {
	if db.template == nil {
		return ""
	}
	db.template.mu.Lock()
	defer db.template.mu.Unlock()
	if db.template.mayBeChanged {
		return ""
	}
	return db.template.template.key
}

// Template returns the key of the template of which the database is a copy; "": it is no copy.
func (db *DB) Template() string {
	if db.template == nil {
		return ""
	}
	db.template.mu.Lock()
	defer db.template.mu.Unlock()
	return db.template.template.name
}

// AlteredVariable is an environment variable. If it has any value, the code under test differs from that of other
// packages of the run. So this package then neither uses nor leaves shared templates.
const AlteredVariable = "PGCONSENT_TEST_ALTERED"

func templateOf(key string, shared bool) *template {
	v, _ := templatesByKey.LoadOrStore(key, &template{key: key, isShared: shared && os.Getenv(AlteredVariable) == ""})
	return v.(*template)
}

// emptyTemplate is the template of databases that are built from scratch.
var emptyTemplate = &template{name: "template0"}

func copyOf(t testing.TB, tmpl, from *template, build BuildFunc) *DB {
	t.Helper()
	db := newUncreatedDB(t)
	tmpl.ensureBuilt(t, from, build)
	db.template = &templateCopy{test: t, template: tmpl}
	t.Cleanup(func() {
		if db.template.exists {
			drop(t, db.Name)
		}
	})
	return db
}

func (tmpl *template) ensureBuilt(t testing.TB, from *template, build BuildFunc) {
	t.Helper()
	tmpl.once.Do(func() { tmpl.err = tmpl.build(from, build) })
	if tmpl.err != nil {
		t.Fatalf("template %s: %v", tmpl.key, tmpl.err)
	}
}

func (tmpl *template) build(from *template, build BuildFunc) error {
	release, err := advisoryLock("roles")
	if err != nil {
		return err
	}
	defer release()
	tmpl.name = newName("template")
	if tmpl.isShared {
		tmpl.name = fmt.Sprintf("shared_%x", sha256.Sum256([]byte(tmpl.key)))[:40]
		if exists, err := isBuilt(tmpl.name); err != nil {
			return err
		} else if exists {
			return tmpl.readRights()
		}
		// the process that was building the template was killed
		if err := runAsAdmin("DROP DATABASE IF EXISTS " + tmpl.name); err != nil {
			return err
		}
	}
	if err := fillDatabase(tmpl.name, from, build); err != nil {
		return err
	}
	if err := runAsAdmin("COMMENT ON DATABASE " + tmpl.name + " IS '" + completeComment + "'"); err != nil {
		return err
	}
	return tmpl.readRights()
}

// completeComment is the comment on the database of a template that is complete.
const completeComment = "whole"

// copyTo makes a copy of the template's database, and grants the same rights on it.
func (tmpl *template) copyTo(name string) error {
	if err := createDatabase(name, tmpl.name); err != nil {
		return err
	}
	if len(tmpl.rights) == 0 {
		return nil
	}
	target := " ON DATABASE " + name
	var sql strings.Builder
	sql.WriteString("REVOKE ALL" + target + " FROM PUBLIC; DO $$ BEGIN")
	for _, r := range tmpl.rights {
		privilege, grantee, _ := strings.Cut(r, " TO ")
		grant := "GRANT " + privilege + target + " TO " + grantee
		// another test may have dropped the role in the meantime
		if role, _, _ := strings.Cut(grantee, " WITH GRANT OPTION"); role != "PUBLIC" {
			grant = "IF pg_catalog.to_regrole('" + strings.ReplaceAll(role, "'", "''") + "') IS NOT NULL THEN " + grant + "; END IF"
		}
		sql.WriteString(" " + grant + ";")
	}
	return runAsAdmin(sql.String() + " END $$")
}

// readRights reads which roles besides the owner have rights on the database, unless they have only the default rights.
func (tmpl *template) readRights() error {
	return withAdminConnection(func(ctx context.Context, conn *pgx.Conn) error {
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

func fillDatabase(name string, from *template, build BuildFunc) error {
	if err := from.copyTo(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseNamed(name).DSN("postgres", ""))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return build(ctx, conn)
}

func isBuilt(name string) (exists bool, err error) {
	err = withAdminConnection(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_database AS d
			WHERE d.datname = $1 AND pg_catalog.shobj_description(d.oid, 'pg_database') = $2)`, name, completeComment).Scan(&exists)
	})
	return exists, err
}

// dropTemplates drops the templates that no other process uses.
func dropTemplates() error {
	var err error
	templatesByKey.Range(func(_, v any) bool {
		if tmpl := v.(*template); !tmpl.isShared && tmpl.name != "" && tmpl.err == nil {
			err = runAsAdmin("DROP DATABASE " + tmpl.name + " WITH (FORCE)")
		}
		return err == nil
	})
	return err
}
