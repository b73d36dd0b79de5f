//go:build unix

package world_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The tour, the README and other tests count on these figures.
func TestMemberintelHasWhatItsReadmeSays(t *testing.T) {
	tier.All(t)
	w, err := world.Open("memberintel")
	if err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Template(t, "memberintel", func(ctx context.Context, conn *pgx.Conn) error {
		return w.Load(ctx, conn, nil)
	}).Connect(t, "memberintel_owner")
	const isVisible = "(tenant_id = 'global' OR tenant_id = '11111111-1111-4111-8111-111111111111')"
	for sql, want := range map[string]int{
		"SELECT count(*) FROM brain_entries":                                                                                         1083,
		"SELECT count(*) FROM brain_entries WHERE " + isVisible:                                                                      742,
		"SELECT count(*) FROM brain_entries WHERE tenant_id = 'global'":                                                              581,
		"SELECT count(*) FROM brain_entries WHERE " + isVisible + " AND (title || category || content) ~ 'HIDDENMARK'":               0,
		"SELECT count(*) FROM brain_entries WHERE " + isVisible + " IS NOT TRUE AND title ~ 'HIDDENMARK' AND content ~ 'HIDDENMARK'": 341,
		"SELECT count(*) FROM brain_entries WHERE content !~ 'BODYMARK|HIDDENMARK'":                                                  0,
		"SELECT count(*) FROM brain_entries WHERE " + isVisible + " AND metadata ? 'author' AND metadata ? 'path'":                   652,
		"SELECT count(DISTINCT jsonb_typeof(metadata)) FROM brain_entries WHERE " + isVisible:                                        5,
	} {
		if got := queryNumber(t, conn, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}
