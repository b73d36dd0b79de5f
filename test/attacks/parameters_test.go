package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

var parameterSchema = strings.Replace(summed, "(1, 30000)", "(1, 3000)", 1) + `;
DELETE FROM link WHERE person_id = 0 AND big_id <= 40;
ALTER TABLE big ADD body text NOT NULL DEFAULT '', ADD found tsvector;
UPDATE big SET body = (ARRAY['Lake at dawn', 'a lake', '50% off\', 'C:\temp\', 'plain', 'under_score'])[id % 6 + 1] || CASE WHEN id % 7 = 0 THEN ' ' || id ELSE '' END;
UPDATE big SET body = 'x' WHERE a = 123;
UPDATE big SET found = to_tsvector('english', body);
CREATE VIEW lakes AS SELECT id, body, a FROM big WHERE body ILIKE '%lake%';
VACUUM ANALYZE`

var parameterStatements = []string{
	"SELECT id FROM big WHERE body LIKE $1 ORDER BY id",
	"SELECT count(*) FROM big WHERE body NOT ILIKE $1",
	"SELECT count(*) FROM big WHERE a = 123 AND body LIKE $1",
	"SELECT id FROM big WHERE body ILIKE '%' || $1 || '%' ORDER BY id",
	"SELECT count(*) FROM big WHERE body LIKE $1 || '%'",
	"SELECT count(*) FROM big WHERE body LIKE '%' || $1",
	"SELECT count(*) FROM big WHERE body LIKE '%' || $1::text || ''",
	"SELECT count(*) FROM big WHERE lower(body) LIKE lower($1)",
	"SELECT count(*) FROM big WHERE lower(body) LIKE '%' || lower($1) || '%'",
	"SELECT id FROM big WHERE found @@ plainto_tsquery('english', $1) ORDER BY id",
	"SELECT count(*) FROM big WHERE a = 123 AND found @@ websearch_to_tsquery('english', $1)",
	"SELECT count(*) FROM big WHERE NOT found @@ phraseto_tsquery('simple', $1)",
	"SELECT count(*) FROM big WHERE a = 123 AND NOT found @@ plainto_tsquery($1)",
	"SELECT id FROM lakes WHERE body LIKE $1 ORDER BY id",
	"SELECT count(*) FROM big b WHERE EXISTS (SELECT FROM lakes l WHERE l.id = b.id AND l.body ILIKE $1)",
	"SELECT id FROM big WHERE body = $1 OR body LIKE $1 ORDER BY id",
}

// A value may make a pattern or a search fail when it comes to a row. Behind the gate door that row may be hidden, so texts with such values take row
// security, whichever plan the server has.
func TestParametersBehindTheGate(t *testing.T) {
	values := []string{"", "%", "%lake%", "Lake%", "lake", "a lake", `50\%%`, `%\`, `%\\`, `x\`, `\`, `under\_score`, "%" + strings.Repeat("x", 30), "nothing of it", "-dawn OR lake", `"at dawn"`,
		strings.Repeat("lake ", 900), strings.Repeat("w", 3000), "lake " + strings.Repeat("w", 2100)}
	twin := func(value int) instance.Database {
		db := pgtest.Database(t)
		instance.Exec(t, db, strings.Replace(parameterSchema, "VACUUM ANALYZE", "", 1))
		instance.Exec(t, db, fmt.Sprintf("DELETE FROM big WHERE a = %d", value))
		instance.Exec(t, db, "VACUUM ANALYZE big, link")
		return instance.Database{Name: "pair", DB: db, Policy: strings.Replace(summedPolicy, "views: { ", "views: { lakes: {}, ", 1), SearchPath: []string{"public"}}
	}
	var first []string
	for _, mode := range []instance.Mode{instance.Gate, instance.Doors, instance.Both} {
		var got [2][]string
		for i, d := range []instance.Database{twin(123), twin(124)} {
			proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
			c := proxy.Agent(t, "agent", "pair")
			for _, plan := range []string{"auto", "force_generic_plan"} {
				if plan == "auto" && !instance.Full() {
					continue
				}
				instance.Ask(c, "SET plan_cache_mode = "+plan)
				for n, sql := range parameterStatements {
					name := fmt.Sprint("s", n, plan)
					if _, err := c.Prepare(t.Context(), name, sql, nil); err != nil {
						t.Fatal(sql, err)
					}
					for _, value := range values {
						r := c.ExecPrepared(t.Context(), name, [][]byte{[]byte(value)}, nil, nil).Read()
						answer := fmt.Sprintf("%s: %.40q: %v", sql, value, r.Err)
						for _, row := range r.Rows {
							answer += fmt.Sprintf(" %s", row)
						}
						got[i] = append(got[i], answer)
					}
				}
				instance.Ask(c, "DEALLOCATE ALL")
			}
		}
		failed := 0
		for k := range got[0] {
			if strings.Contains(got[0][k], "ERROR") {
				failed++
			}
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s\ntwin: %s", mode.Name, got[0][k], got[1][k])
			}
			if first != nil && got[0][k] != first[k] {
				t.Errorf("%s: %s\nthe first: %s", mode.Name, got[0][k], first[k])
			}
		}
		first = got[0]
		t.Logf("%s: %d of %d fail", mode.Name, failed, len(got[0]))
	}
}
