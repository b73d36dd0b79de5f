package migrations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// privilege is an entry of an access list (ACL): a right that was granted to a role or PUBLIC.
type privilege struct {
	Object    string // the object as GRANT names it, such as SCHEMA public; DATABASE alone means the current database
	Grantee   string // the role as GRANT names it: PUBLIC or a quoted name
	Privilege string // the right as GRANT names it: SELECT, or INSERT ("title")
	Grantable bool
}

type privileges map[privilege]bool

// readPrivileges reads the access lists of the current database and of its schemas, relations, columns, sequences and
// functions, without system schemas.
func (r *migrationRun) readPrivileges(ctx context.Context) (privileges, error) {
	rows, err := r.tx.Query(ctx, `
WITH theirs AS (
  SELECT n.oid, quote_ident(n.nspname) AS name, n.nspowner, n.nspacl FROM pg_namespace AS n
  WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
), relations AS (
  SELECT c.oid, c.relkind, n.name || '.' || quote_ident(c.relname) AS name, c.relowner, c.relacl
  FROM pg_class AS c JOIN theirs AS n ON n.oid = c.relnamespace
), acls (object, column_name, acl) AS (
  SELECT 'DATABASE', NULL, COALESCE(d.datacl, acldefault('d', d.datdba))
  FROM pg_database AS d WHERE d.datname = current_database()
  UNION ALL
  SELECT 'SCHEMA ' || n.name, NULL, COALESCE(n.nspacl, acldefault('n', n.nspowner)) FROM theirs AS n
  UNION ALL
  SELECT 'TABLE ' || c.name, NULL, COALESCE(c.relacl, acldefault('r', c.relowner)) FROM relations AS c
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  UNION ALL
  SELECT 'TABLE ' || c.name, a.attname, a.attacl
  FROM pg_attribute AS a JOIN relations AS c ON c.oid = a.attrelid
  WHERE a.attacl IS NOT NULL AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  UNION ALL
  SELECT 'SEQUENCE ' || c.name, NULL, COALESCE(c.relacl, acldefault('s', c.relowner)) FROM relations AS c
  WHERE c.relkind = 'S'
  UNION ALL
  SELECT 'FUNCTION ' || n.name || '.' || quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')',
    NULL, COALESCE(p.proacl, acldefault('f', p.proowner))
  FROM pg_proc AS p JOIN theirs AS n ON n.oid = p.pronamespace
  WHERE p.prokind <> 'p'
)
SELECT a.object, CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END,
  x.privilege_type || COALESCE(' (' || quote_ident(a.column_name) || ')', ''), x.is_grantable
FROM acls AS a CROSS JOIN LATERAL aclexplode(a.acl) AS x`)
	if err != nil {
		return nil, fmt.Errorf("migrate: read the privileges: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[privilege])
	if err != nil {
		return nil, fmt.Errorf("migrate: read the privileges: %w", err)
	}
	set := make(privileges, len(list))
	for _, p := range list {
		set[p] = true
	}
	return set, nil
}

// privilegeChanges are the privileges that migrations have granted and revoked on objects which existed before.
type privilegeChanges struct{ granted, revoked privileges }

// newPrivilegeChanges compares the privileges before and after a plan was installed. It ignores grants on objects that
// the plan has made.
func newPrivilegeChanges(before, after privileges) privilegeChanges {
	c := privilegeChanges{privileges{}, privileges{}}
	there := before.objects()
	for p := range after {
		if there[p.Object] && !before[p] {
			c.granted[p] = true
		}
	}
	for p := range before {
		if !after[p] {
			c.revoked[p] = true
		}
	}
	return c
}

// objects returns the set of objects to which the privileges apply.
func (ps privileges) objects() map[string]bool {
	out := map[string]bool{}
	for p := range ps {
		out[p.Object] = true
	}
	return out
}

// isOwn reports whether the privilege's object is in one of pgconsent's schemas, where only pgconsent itself grants
// rights.
func (p privilege) isOwn() bool {
	_, name, _ := strings.Cut(p.Object, " ")
	return strings.HasPrefix(name, "pgconsent.") || strings.HasPrefix(name, "pgconsent_")
}

// restoreStatements returns GRANT statements for privileges that a REVOKE of this migrate has removed, although others
// than pgconsent had granted them too. Rights that pgconsent revokes from PUBLIC on purpose are not restored.
func (c privilegeChanges) restoreStatements(before, after privileges) []Statement {
	there := after.objects()
	var out []Statement
	for _, p := range before.sorted() {
		if !after[p] && !c.granted[p] && there[p.Object] && !p.isOwn() && p.Grantee != "PUBLIC" {
			after[p] = true
			out = append(out, p.grant("", "Somebody else has given this right as well."))
		}
	}
	return out
}

// add adds the changes that another migrate has made, between the privileges before and after.
func (c privilegeChanges) add(before, after privileges) {
	was, is := before.objects(), after.objects()
	for p := range after {
		switch {
		case before[p]:
		case c.revoked[p]:
			delete(c.revoked, p)
		case was[p.Object]:
			c.granted[p] = true
		}
	}
	for p := range before {
		switch {
		case after[p]:
		case c.granted[p]:
			delete(c.granted, p)
		case is[p.Object] && !p.isOwn():
			c.revoked[p] = true
		}
	}
}

// undoStatements returns the statements that undo the changes, so that the privileges are as before the first migrate.
func (c privilegeChanges) undoStatements(database string) []Statement {
	const why = "Give back the privileges that were found."
	var out []Statement
	for _, p := range c.granted.sorted() {
		out = append(out, Statement{fmt.Sprintf("REVOKE %s ON %s FROM %s", p.Privilege, p.objectIn(database), p.Grantee),
			why})
	}
	for _, p := range c.revoked.sorted() {
		out = append(out, p.grant(database, why))
	}
	return out
}

// grant returns the statement that grants the privilege.
func (p privilege) grant(database, why string) Statement {
	option := ""
	if p.Grantable {
		option = " WITH GRANT OPTION"
	}
	return Statement{fmt.Sprintf("GRANT %s ON %s TO %s%s", p.Privilege, p.objectIn(database), p.Grantee, option), why}
}

// objectIn returns the object as GRANT names it. For the database itself it adds the current name, since a copy of a
// database has another name.
func (p privilege) objectIn(database string) string {
	if p.Object == "DATABASE" {
		return "DATABASE " + database
	}
	return p.Object
}

// sorted returns the privileges sorted by object, grantee and right.
func (ps privileges) sorted() []privilege {
	return slices.SortedFunc(maps.Keys(ps), func(a, b privilege) int {
		return slices.Compare([]string{a.Object, a.Grantee, a.Privilege, fmt.Sprint(a.Grantable)},
			[]string{b.Object, b.Grantee, b.Privilege, fmt.Sprint(b.Grantable)})
	})
}

// readPrivilegeChanges reads the changes that earlier migrations have recorded in the database.
func (r *migrationRun) readPrivilegeChanges(ctx context.Context) (privilegeChanges, error) {
	c := privilegeChanges{privileges{}, privileges{}}
	rows, err := r.tx.Query(ctx, "SELECT p.object, p.grantee, p.privilege, p.grantable, p.given FROM pgconsent.installed_privilege AS p")
	if err == nil {
		var p privilege
		var given bool
		_, err = pgx.ForEachRow(rows, []any{&p.Object, &p.Grantee, &p.Privilege, &p.Grantable, &given}, func() error {
			if given {
				c.granted[p] = true
			} else {
				c.revoked[p] = true
			}
			return nil
		})
	}
	if err != nil {
		return c, fmt.Errorf("migrate: read which privileges were changed: %w", err)
	}
	return c, nil
}

// storeStatements returns statements that replace the changes recorded in the database (stored) by c.
func (c privilegeChanges) storeStatements(stored privilegeChanges, why string) []Statement {
	var outdated []string
	var rows [][]string
	collect := func(given bool, now, then privileges) {
		row := func(p privilege) []string {
			return []string{quoteLiteral(p.Object), quoteLiteral(p.Grantee), quoteLiteral(p.Privilege),
				strconv.FormatBool(p.Grantable), strconv.FormatBool(given)}
		}
		for _, p := range then.sorted() {
			if !now[p] {
				outdated = append(outdated, "("+strings.Join(row(p), ", ")+")")
			}
		}
		for _, p := range now.sorted() {
			if !then[p] {
				rows = append(rows, row(p))
			}
		}
	}
	collect(true, c.granted, stored.granted)
	collect(false, c.revoked, stored.revoked)
	return replaceRows("pgconsent.installed_privilege", "(object, grantee, privilege, grantable, given)", outdated,
		"object, grantee, privilege, grantable, given", rows, why)
}
