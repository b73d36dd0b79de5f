package policytest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Schema is the schema of a database, without its rows.
type Schema struct{ Extensions, SQL string }

// DumpSchema reads the schema of a database with pg_dump, without the objects that pgconsent has installed. The
// variables PG… of the environment say how pg_dump logs in.
func DumpSchema(ctx context.Context, environment []string) (Schema, error) {
	bin, err := pgcluster.FindBinaries(ctx)
	if err != nil {
		return Schema{}, err
	}
	dir, err := os.MkdirTemp("", "pgconsent-dump")
	if err != nil {
		return Schema{}, err
	}
	defer os.RemoveAll(dir)
	archive, list := filepath.Join(dir, "archive"), filepath.Join(dir, "list")
	run := func(name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(bin.Dir, name), args...)
		cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "PGAPPNAME=pgconsent policy test"},
			environment...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
				"there is no %s in %s, by which the schema is read", name, bin.Dir).
				WithHint("Install PostgreSQL's client programs, or write the schema down: pg_dump --schema-only > schema.sql")
		}
		if err != nil {
			return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "%s failed: %s", name,
				strings.TrimSpace(errs.String())).
				WithHint("roles.migrate must be able to read the schema; pg_dump (%s) must not be older than the server.", bin.Version)
		}
		return out.Bytes(), nil
	}
	if _, err := run("pg_dump", "--schema-only", "--no-owner", "--no-privileges", "--exclude-schema=pgconsent*",
		"--format=custom", "--file="+archive); err != nil {
		return Schema{}, err
	}
	entries, err := run("pg_restore", "--list", archive)
	if err != nil {
		return Schema{}, err
	}
	extensions, otherEntries := withoutOurObjects(strings.Split(string(entries), "\n"))
	restore := func(entries []string) (string, error) {
		if err := os.WriteFile(list, []byte(strings.Join(entries, "\n")+"\n"), 0o600); err != nil {
			return "", err
		}
		sql, err := run("pg_restore", "--no-owner", "--no-privileges", "--use-list="+list, "--file=-", archive)
		return string(sql), err
	}
	var s Schema
	if s.Extensions, err = restore(extensions); err != nil {
		return s, err
	}
	// pg_restore makes the schemas of extensions before the extensions.
	var schemas []string
	for _, m := range extensionSchema.FindAllStringSubmatch(s.Extensions, -1) {
		name := unquote(m[1])
		otherEntries = slices.DeleteFunc(otherEntries, func(e string) bool {
			l := listEntry.FindStringSubmatch(e)
			isOfSchema := l != nil && l[1] == "SCHEMA" && strings.HasPrefix(l[3], name+" ")
			if isOfSchema {
				schemas = append(schemas, e)
			}
			return isOfSchema
		})
	}
	if len(schemas) > 0 {
		restoredSchema, err := restore(schemas)
		if err != nil {
			return s, err
		}
		s.Extensions = restoredSchema + s.Extensions
	}
	s.SQL, err = restore(otherEntries)
	return s, err
}

// extensionSchema matches a statement that installs an extension in a schema.
var extensionSchema = regexp.MustCompile(`(?m)^CREATE EXTENSION .* WITH SCHEMA ` + identifier + `;$`)

// listEntry matches a line of pg_restore's list: number; OIDs, kind, schema, tag, owner.
var listEntry = regexp.MustCompile(
	`^\d+; \d+ \d+ (EXTENSION|SCHEMA|POLICY|TRIGGER|EVENT TRIGGER|ROW SECURITY|[A-Z][A-Z ]*?) (\S+) (.*)$`)

// pgconsentNamePattern matches, in a line of pg_restore's list, the name of a policy or trigger that pgconsent made.
var pgconsentNamePattern = regexp.MustCompile(` (!|zz_)?pgconsent_`)

// withoutOurObjects separates the extensions from the other entries. It leaves out the policies and triggers that
// migrate makes, and row security of tables that have only pgconsent's policies.
func withoutOurObjects(entries []string) (extensions, otherEntries []string) {
	isOwnName := pgconsentNamePattern.MatchString
	table := func(schema, tag string) string { name, _, _ := strings.Cut(tag, " "); return schema + "." + name }
	var policies, otherPolicies []string // Tables with pgconsent's policies, and tables with others.
	for _, e := range entries {
		if m := listEntry.FindStringSubmatch(e); m != nil && m[1] == "POLICY" {
			if isOwnName(m[3]) {
				policies = append(policies, table(m[2], m[3]))
			} else {
				otherPolicies = append(otherPolicies, table(m[2], m[3]))
			}
		}
	}
	for _, e := range entries {
		m := listEntry.FindStringSubmatch(e)
		switch {
		case m == nil:
		case m[1] == "EXTENSION":
			extensions = append(extensions, e)
		case (m[1] == "POLICY" || m[1] == "TRIGGER") && isOwnName(m[3]):
		case m[1] == "EVENT TRIGGER" && strings.Contains(m[3], "pgconsent_"):
		case m[1] == "ROW SECURITY" && slices.Contains(policies, table(m[2], m[3])) &&
			!slices.Contains(otherPolicies, table(m[2], m[3])):
		case m[1] == "SCHEMA" && strings.HasPrefix(m[3], "public "):
		case m[1] == "COMMENT" && strings.HasPrefix(m[3], "EXTENSION "), m[1] == "COMMENT" &&
			strings.HasPrefix(m[3], "SCHEMA public"):
		default:
			otherEntries = append(otherEntries, e)
		}
	}
	return extensions, otherEntries
}
