package migrations

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

//go:embed sql/*.sql
var files embed.FS

// base is one numbered migration.
type base struct {
	number   int
	name     string
	up, down string
}

// bases are the numbered files, in order.
var bases = func() []base {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		panic(err)
	}
	slices.Sort(names)
	var out []base
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "sql/"), ".sql")
		if strings.HasSuffix(name, ".down") {
			continue
		}
		number, err := strconv.Atoi(name[:4])
		if err != nil || number != len(out)+1 {
			panic("migrations: " + file + " is out of order")
		}
		out = append(out, base{number, name, read(file), read("sql/" + name + ".down.sql")})
	}
	return out
}()

func read(file string) string {
	data, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// installedBase returns the number of the newest base migration, 0 without any.
func (r *run) installedBase(ctx context.Context) (int, error) {
	var there bool
	if err := r.tx.QueryRow(ctx, "SELECT pg_catalog.to_regclass('pgconsent.migration') IS NOT NULL").
		Scan(&there); err != nil || !there {
		return 0, err
	}
	var n int
	var unknown bool
	if err := r.tx.QueryRow(ctx, "SELECT COALESCE(pg_catalog.max(m.number), 0), "+
		"COALESCE(pg_catalog.bool_or(m.number OPERATOR(pg_catalog.=) 1 AND m.name OPERATOR(pg_catalog.<>) $1), false) "+
		"FROM pgconsent.migration AS m", bases[0].name).Scan(&n, &unknown); err != nil {
		return 0, err
	}
	if unknown {
		return 0, errBeforeRelease
	}
	if n > len(bases) {
		return 0, sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonUpstream,
			"the database has base migration %d, which this pgconsent does not know", n).
			WithHint("Use the pgconsent that installed it, or a newer one.")
	}
	return n, nil
}

// errBeforeRelease is the error for a database of a version before 0.1.0, whose base was made in other steps.
var errBeforeRelease = sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonUpstream,
	"a development version from before 0.1.0 was installed in this database, and cannot be upgraded").
	WithHint("Run pgconsent migrate --down with that version, then pgconsent migrate with this one. " +
		"Consent records and records of the audit in the database are not taken over: dump schema pgconsent first.")

func (r *run) installBase(ctx context.Context, have int) error {
	for _, b := range bases[have:] {
		if err := r.exec(ctx, Statement{b.up, "Base " + b.name +
			": schemas, keys, verifiers of the sealed session."}); err != nil {
			return err
		}
		if err := r.exec(ctx, Statement{
			fmt.Sprintf("INSERT INTO pgconsent.migration (number, name) VALUES (%d, %s)", b.number, quoteLiteral(b.name)),
			"Remember that it is installed.",
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) removeBase(ctx context.Context, have int) error {
	for _, b := range slices.Backward(bases[:have]) {
		if err := r.exec(ctx, Statement{b.down, "Take base " + b.name + " away."}); err != nil {
			return err
		}
	}
	return nil
}
