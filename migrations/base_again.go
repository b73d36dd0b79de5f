package migrations

import (
	"context"
	"fmt"
	"strings"
)

const restoreBaseReason = "What was installed has been altered: functions and triggers are put back as they are installed."

// restoreBaseStatements returns statements that restore the functions, triggers and revoked rights of the base
// migrations. If several files create a function, the last one counts. Tables are not restored, since they have data.
func restoreBaseStatements() []string {
	last := map[string]int{}
	var all []string
	for _, b := range baseMigrations {
		for _, s := range splitStatements(b.upSQL) {
			if name, ok := functionOf(s); ok {
				last[name] = len(all)
			}
			all = append(all, s)
		}
	}
	var out []string
	for i, s := range all {
		name, isFunction := functionOf(s)
		word, rest, _ := strings.Cut(s, " ")
		switch {
		case isFunction && last[name] == i:
			out = append(out, "CREATE OR REPLACE "+s[strings.Index(s, "FUNCTION "):])
		case strings.HasPrefix(s, "CREATE TRIGGER "):
			out = append(out, "CREATE OR REPLACE "+rest)
		case strings.HasPrefix(s, "CREATE CONSTRAINT TRIGGER "):
			fields := strings.Fields(s)
			for n, f := range fields {
				if f == "ON" {
					out = append(out, "DROP TRIGGER IF EXISTS "+fields[3]+" ON "+fields[n+1], s)
					break
				}
			}
		case word == "ALTER" && strings.Contains(s, " TRIGGER "), word == "REVOKE", word == "INSERT" &&
			strings.Contains(s, "ON CONFLICT"):
			out = append(out, s)
		}
	}
	return out
}

// functionOf returns the name of the function that a statement creates. The name identifies the function, since no
// function of the base migrations is overloaded.
func functionOf(statement string) (string, bool) {
	for _, before := range []string{"CREATE FUNCTION ", "CREATE OR REPLACE FUNCTION "} {
		if rest, ok := strings.CutPrefix(statement, before); ok {
			name, _, _ := strings.Cut(rest, "(")
			return name, true
		}
	}
	return "", false
}

// splitStatements splits the SQL of a base migration into statements. A statement ends with a semicolon at the end of a
// line, outside of function bodies.
func splitStatements(file string) []string {
	var out, lines []string
	quoted, atomic := false, false
	for line := range strings.Lines(file) {
		line = strings.TrimRight(line, "\n")
		if len(lines) == 0 && (line == "" || strings.HasPrefix(line, "--")) {
			continue
		}
		lines = append(lines, line)
		if strings.Count(line, "$$")%2 == 1 {
			quoted = !quoted
		}
		code, _, _ := strings.Cut(line, "--")
		code = strings.TrimSpace(code)
		switch {
		case quoted:
		case code == "BEGIN ATOMIC":
			atomic = true
		case atomic && line != "END;":
		case strings.HasSuffix(code, ";"):
			out = append(out, strings.Join(lines, "\n"))
			lines, atomic = nil, false
		}
	}
	if len(lines) > 0 {
		panic("migrations: a statement has no end: " + lines[0])
	}
	return out
}

// isAltered reports whether somebody has altered installed objects since migrate made them. It also reports whether the
// row of pgconsent.change that marks the oldest valid snapshot is missing.
func (r *migrationRun) isAltered(ctx context.Context) (bool, error) {
	changed, err := compareFingerprints(ctx, r.tx)
	if err != nil || len(changed) > 0 {
		return true, err
	}
	var floorMissing bool
	if err := r.tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pgconsent.change WHERE xid = '0')").Scan(&floorMissing); err != nil {
		return true, fmt.Errorf("look for drift: %w", err)
	}
	return !floorMissing, nil
}

// restoreBase restores altered objects of the base migrations, before the policy's objects are installed anew.
func (r *migrationRun) restoreBase(ctx context.Context) error {
	for _, sql := range restoreBaseStatements() {
		if err := r.exec(ctx, Statement{sql, restoreBaseReason}); err != nil {
			return err
		}
	}
	return nil
}
