//go:build unix

package pgtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Build fills a database, as the superuser. It must close what else it opens.
type Build func(ctx context.Context, conn *pgx.Conn) error

type template struct {
	once sync.Once
	name string
	err  error
}

var templates sync.Map // name, or key of a shared one → *template

// Template makes a database as build leaves it. Build runs once per package run and name, on a database that the others are
// copied from, while no other build of the run runs: roles belong to all.
func Template(t testing.TB, name string, build Build) *DB {
	t.Helper()
	return copyOf(t, name, func() (string, error) {
		name := newName("template")
		release, err := acquire("roles")
		if err != nil {
			return "", err
		}
		defer release()
		return name, fill(name, build)
	})
}

// Shared is Template for what several packages have in common: where they share a server, the first that asks builds it for
// all. Key must tell all that build depends on, besides the code.
func Shared(t testing.TB, key string, build Build) *DB {
	t.Helper()
	return copyOf(t, "shared "+key, func() (string, error) {
		name := fmt.Sprintf("shared_%x", sha256.Sum256([]byte(key)))[:40]
		release, err := acquire("roles")
		if err != nil {
			return "", err
		}
		defer release()
		there, err := exists(name)
		if err != nil || there {
			return name, err
		}
		// The name is given last: who finds it finds it whole.
		unfinished := newName("template")
		if err := fill(unfinished, build); err != nil {
			return "", err
		}
		return name, admin("ALTER DATABASE " + unfinished + " RENAME TO " + name)
	})
}

func copyOf(t testing.TB, key string, build func() (string, error)) *DB {
	t.Helper()
	if server == nil {
		t.Fatal("pgtest: no server; call pgtest.Main in TestMain")
	}
	v, _ := templates.LoadOrStore(key, &template{})
	tmpl := v.(*template)
	tmpl.once.Do(func() { tmpl.name, tmpl.err = build() })
	if tmpl.err != nil {
		t.Fatalf("template %s: %v", key, tmpl.err)
	}
	return create(t, tmpl.name)
}

func fill(name string, build Build) error {
	if err := admin("CREATE DATABASE " + name + " TEMPLATE template0"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, on(name).DSN("postgres", ""))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return build(ctx, conn)
}

func exists(name string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, on("postgres").DSN("postgres", ""))
	if err != nil {
		return false, err
	}
	defer conn.Close(context.Background())
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_database AS d WHERE d.datname = $1)", name).Scan(&there)
	return there, err
}
