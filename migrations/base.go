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

// baseMigration is a numbered pair of SQL files that installs and removes objects which every policy needs, such as
// keys and verifiers.
type baseMigration struct {
	number         int
	name           string
	upSQL, downSQL string
}

// baseMigrations are all base migrations, in the order of their numbers.
var baseMigrations = func() []baseMigration {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		panic(err)
	}
	slices.Sort(names)
	var out []baseMigration
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "sql/"), ".sql")
		if strings.HasSuffix(name, ".down") {
			continue
		}
		number, err := strconv.Atoi(name[:4])
		if err != nil || number != len(out)+1 {
			panic("migrations: " + file + " is out of order")
		}
		out = append(out, baseMigration{number, name, readBaseFile(file), readBaseFile("sql/" + name + ".down.sql")})
	}
	return out
}()

func readBaseFile(file string) string {
	data, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// installedBase returns the number of the newest base migration that is installed in the database, or 0.
func (r *migrationRun) installedBase(ctx context.Context) (int, error) {
	var there bool
	if err := r.tx.QueryRow(ctx, "SELECT pg_catalog.to_regclass('pgconsent.migration') IS NOT NULL").
		Scan(&there); err != nil || !there {
		return 0, err
	}
	var n int
	var unknown bool
	if err := r.tx.QueryRow(ctx, "SELECT COALESCE(pg_catalog.max(m.number), 0), "+
		"COALESCE(pg_catalog.bool_or(m.number OPERATOR(pg_catalog.=) 1 AND m.name OPERATOR(pg_catalog.<>) $1), false) "+
		"FROM pgconsent.migration AS m", baseMigrations[0].name).Scan(&n, &unknown); err != nil {
		return 0, err
	}
	if unknown {
		return 0, errBeforeRelease
	}
	if n > len(baseMigrations) {
		return 0, sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonUpstream,
			"the database has base migration %d, which this pgconsent does not know", n).
			WithHint("Use the pgconsent that installed it, or a newer one.")
	}
	return n, nil
}

// errBeforeRelease is the error for a database with a pgconsent from before version 0.1.0, which had other base
// migrations.
var errBeforeRelease = sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonUpstream,
	"a development version from before 0.1.0 was installed in this database, and cannot be upgraded").
	WithHint("Run pgconsent migrate --down with that version, then pgconsent migrate with this one. " +
		"Consent records and records of the audit in the database are not taken over: dump schema pgconsent first.")

func (r *migrationRun) installBase(ctx context.Context, have int) error {
	for _, b := range baseMigrations[have:] {
		if err := r.exec(ctx, Statement{b.upSQL, "Base " + b.name +
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

func (r *migrationRun) removeBase(ctx context.Context, have int) error {
	for _, b := range slices.Backward(baseMigrations[:have]) {
		if err := r.exec(ctx, Statement{b.downSQL, "Take base " + b.name + " away."}); err != nil {
			return err
		}
	}
	return nil
}
