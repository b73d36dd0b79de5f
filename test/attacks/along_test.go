package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// An agent deletes or updates a row of its own, and foreign keys change other rows along with it. If hidden rows lie in
// between, the outcome may reveal them. The policy must warn in exactly those cases.
func TestCascadesOverHiddenRows(t *testing.T) {
	tier.All(t)
	const ownRule, head = "rows: [ own: { column: owner, is: user } ]", "attributes: { user: { type: text, source: credential } }\ntables:\n"
	const tasks = "  task: { " + ownRule + ", write: { commands: [delete] } }\n"
	const shelf = "  shelf: { " + ownRule + ", write: { commands: [delete] } }\n"
	const tree = "CREATE TABLE task (id int PRIMARY KEY, owner text NOT NULL, parent int, title text, UNIQUE " +
		"(owner, id), FOREIGN KEY (parent) REFERENCES task (id) ON DELETE CASCADE);\nINSERT INTO task VALUES (1, " +
		"'me', NULL, 'a'), (2, 'you', %d, 'hidden'), (3, 'me', 2, 'c'), (9, 'me', NULL, 'z')"
	const shelves = "CREATE TABLE shelf (id int PRIMARY KEY, owner text NOT NULL);\nCREATE TABLE folder (id int " +
		"PRIMARY KEY, owner text NOT NULL, shelf int REFERENCES shelf ON DELETE CASCADE);\nCREATE TABLE file (id " +
		"int PRIMARY KEY, owner text NOT NULL, folder int REFERENCES folder ON DELETE SET NULL);\n" +
		"INSERT INTO shelf VALUES (1, 'me'), (9, 'me');\nINSERT INTO folder VALUES (2, 'you', %d);\nINSERT INTO file VALUES (1, 'me', 2)"
	const codes = "CREATE TABLE code (id int PRIMARY KEY, owner text NOT NULL, name text UNIQUE);\nCREATE TABLE " +
		"alias (owner text NOT NULL, name text PRIMARY KEY REFERENCES code (name) ON UPDATE CASCADE);\nCREATE " +
		"TABLE used (id int PRIMARY KEY, owner text NOT NULL, name text REFERENCES alias ON UPDATE CASCADE);\n" +
		"INSERT INTO code VALUES (1, 'me', 'a'), (9, 'me', 'b');\nINSERT INTO alias SELECT 'you', name FROM code " +
		"WHERE id = %d;\nINSERT INTO used SELECT 1, 'me', name FROM alias"
	for _, c := range []struct {
		name, sql, tables string
		statements        string
		differs           bool // the outcome differs between the twins, and the policy is warned
		isRefused         bool // the command is refused
	}{
		{"a tree", tree, tasks, "DELETE FROM task WHERE id = 1; SELECT id, parent FROM task ORDER BY id", true, false},
		{"a tree by a key with whose it is",
			strings.Replace(strings.Replace(tree, "FOREIGN KEY (parent) REFERENCES task (id)",
				"FOREIGN KEY (owner, parent) REFERENCES task (owner, id)", 1), "%d, 'hidden'), (3, 'me', 2, 'c')",
				"NULL, 'hidden'), (4, 'you', 2 + 0 * %d, 'hidden'), (3, 'me', 1, 'c')", 1), tasks,
			"DELETE FROM task WHERE id = 1; SELECT id, parent FROM task ORDER BY id", false, false},
		{"two tables", shelves, shelf + "  folder: { " + ownRule + " }\n  file: { " + ownRule + " }\n",
			"DELETE FROM shelf WHERE id = 1; SELECT id, folder FROM file", true, false},
		{"two tables, one of which shows with the other", shelves,
			shelf + "  folder: { " + ownRule + " }\n  file: { rows: [ visible: { folder: { id: folder } } ] }\n",
			"DELETE FROM shelf WHERE id = 1; SELECT id, folder FROM file", false, false},
		{"keys that change", codes, "  code: { " +
			ownRule + ", write: { commands: [update], columns: [name], accept: [conflicts] } }\n  alias: { " + ownRule +
			" }\n  used: { " + ownRule + " }\n", "UPDATE code SET name = 'c' WHERE id = 1; SELECT name FROM used", true, false},
		{"a table between that is not listed", codes,
			"  code: { " + ownRule +
				", write: { commands: [update], columns: [name], accept: [conflicts] } }\n  used: { " + ownRule +
				" }\n", "UPDATE code SET name = 'c' WHERE id = 1; SELECT name FROM used", true, false},
		{"rows that hidden ones hold", strings.Replace(shelves, "SET NULL", "NO ACTION", 1),
			shelf + "  file: { rows: open }\n", "DELETE FROM shelf WHERE id = 1; SELECT id FROM shelf", false, true},
		{"hidden rows that hidden ones hold", strings.Replace(shelves, "SET NULL", "NO ACTION", 1),
			shelf + "  folder: { " + ownRule + " }\n  file: { rows: [ visible: { folder: { id: folder } } ] }\n",
			"DELETE FROM shelf WHERE id = 1; SELECT id FROM shelf", false, true},
		{"rows by a key that is hidden", strings.ReplaceAll(shelves, "'you'", "'me'"),
			shelf + "  folder: { " + ownRule + ", columns: { id: allow } }\n", "DELETE FROM shelf WHERE id = 1; SELECT id FROM folder", true, false},
		{"rows by a key that is hidden, and cut",
			strings.Replace(strings.ReplaceAll(shelves, "'you'", "'me'"), "CASCADE", "SET NULL", 1), shelf +
				"  folder: { " + ownRule + ", columns: { id: allow } }\n", "DELETE FROM shelf WHERE id = 1; SELECT id FROM folder", false, false},
		{"rows by a key that is masked, and cut",
			strings.Replace(strings.ReplaceAll(shelves, "'you'", "'me'"), "CASCADE", "SET NULL", 1), shelf +
				"  folder: { " + ownRule + ", columns: { id: allow, shelf: { mask: { generalise: 10 } } } }\n",
			"DELETE FROM shelf WHERE id = 1; SELECT id, shelf FROM folder", true, false},
		{"rows by a key that is hidden and does not let it", strings.Replace(shelves, "CASCADE", "NO ACTION", 1),
			"  shelf: { rows: open, write: { commands: [delete] } }\n  folder: { rows: open, columns: { id: " +
				"allow } }\n", "DELETE FROM shelf WHERE id = 1; SELECT id FROM shelf", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [2]string
			var warnings []*policy.Error
			for i, p := range []int{1, 9} {
				db := pgtest.Database(t)
				instance.Exec(t, db, fmt.Sprintf(c.sql, p))
				d := instance.Database{Name: "pair", DB: db, Policy: "version: 1\n" + head + c.tables, SearchPath: []string{"public"}}
				warnings = instance.Compile(t, d, instance.Auto).Policy.WriteDisclosures()
				agent := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
				for _, sql := range strings.Split(c.statements, "; ") {
					got[i] += sql + "\n" + instance.Ask(agent, sql).SortedString() + "\n"
				}
			}
			refused := strings.Contains(got[0], "42501")
			if differs := got[0] != got[1]; differs != c.differs || (len(warnings) > 0) != c.differs || refused != c.isRefused {
				t.Errorf("told %t, refused %t, warned of: %q\none:\n%s\ntwin:\n%s", differs, refused, warnings, got[0], got[1])
			}
		})
	}
}
