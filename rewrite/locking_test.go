package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// lockPlaces are statements that lock rows of a table, at each depth and by each name for it.
var lockPlaces = []string{
	"SELECT id FROM {table} FOR {lock}", "SELECT id FROM {table} AS d FOR {lock} OF d",
	"SELECT id FROM public.{table} FOR {lock} OF {table} SKIP LOCKED", "SELECT d.id FROM {table} d, generate_series(1, 2) n FOR {lock}",
	"SELECT id FROM (SELECT * FROM {table}) d FOR {lock}",
	"SELECT d.id FROM generate_series(1, 2) n, (SELECT * FROM {table}) d FOR {lock} OF d",
	"SELECT d.id FROM (SELECT x.* FROM (SELECT * FROM {table}) x) d FOR {lock} OF d NOWAIT",
	"SELECT d.id FROM generate_series(1, 2) n JOIN LATERAL (SELECT * FROM {table} WHERE n = 1) d ON true FOR " +
		"{lock} OF d", "WITH d AS (SELECT id FROM {table} FOR {lock}) SELECT id FROM d", "SELECT (SELECT id FROM {table} LIMIT 1 FOR {lock})",
	"SELECT 1 WHERE EXISTS (SELECT FROM {table} FOR {lock})",
	"UPDATE drafts SET title = 'x' FROM (SELECT id FROM {table} FOR {lock}) x WHERE x.id = drafts.id",
	"DECLARE c CURSOR FOR SELECT id FROM {table} FOR {lock}",
	"PREPARE p AS SELECT id FROM {table} FOR {lock}", "COPY (SELECT id FROM {table} FOR {lock}) TO STDOUT",
}

// Agents may lock rows of tables that they may update. They may not where the policy decides by agent which rows may be
// changed, and rules of other tables read these rows. Otherwise an agent could lock a consent and so prevent that it is
// withdrawn.
func TestRowsThatAgentsMayNotLock(t *testing.T) {
	r := rewriter(t, InjectedMode)
	drafts, _ := r.pol.Table(catalog.Name{Schema: "public", Name: "drafts"})
	defer func() { drafts.Write.AffectsOtherRules = false }()
	for _, c := range []struct {
		table    string
		decisive bool
		refused  bool
	}{{"drafts", false, false}, {"drafts", true, true}, {"memories", false, true}} {
		drafts.Write.AffectsOtherRules = c.decisive
		for _, lockingStatement := range lockPlaces {
			for _, lock := range []string{"UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"} {
				sql := strings.NewReplacer("{table}", c.table, "{lock}", lock).Replace(lockingStatement)
				if result, refusal := r.Rewrite(sql, false); (refusal != nil) != c.refused {
					t.Errorf("%s (others depend on it: %t): %v, %s", sql, c.decisive, refusal, result.Text)
				} else if refusal != nil && refusal.Code != "42501" {
					t.Errorf("%s: %v", sql, refusal)
				}
			}
		}
	}
}
