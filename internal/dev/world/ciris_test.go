//go:build unix

package world_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
)

// The tour, the README and other tests count on these figures.
func TestCirisHasWhatItsReadmeSays(t *testing.T) {
	w, err := world.Open("ciris")
	if err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Template(t, "ciris", func(ctx context.Context, conn *pgx.Conn) error { return w.Load(ctx, conn, nil) }).Connect(t, "ciris_owner")
	const isMarked = `(i.channel_id ~ 'HIDDENMARK[0-9a-f]{8}' AND user_identification ~ 'HIDDENMARK' AND session_management ~ 'HIDDENMARK'
		AND communication_context ~ 'HIDDENMARK' AND communication_style ~ 'HIDDENMARK' AND response_preferences ~ 'HIDDENMARK' AND error_patterns ~ 'HIDDENMARK'
		AND feature_usage ~ 'HIDDENMARK' AND interaction_frequency > 770000 AND performance_metrics >= 770000 AND i.user_id ~ 'HIDDENMARK')`
	for sql, want := range map[string]int{
		"SELECT count(*) FROM users":                                                                                                          400,
		"SELECT count(*) FROM users WHERE stream = 'TEMPORARY'":                                                                               150,
		"SELECT count(*) FROM users WHERE stream = 'PARTNERED'":                                                                               100,
		"SELECT count(*) FROM users WHERE stream = 'ANONYMOUS'":                                                                               140,
		"SELECT count(*) FROM users WHERE stream IS NULL OR stream = 'UNKNOWN'":                                                               10,
		"SELECT count(*) FROM interactions":                                                                                                   6504,
		"SELECT count(*) FROM interactions JOIN users USING (user_id) WHERE stream ~ 'TEMPORARY|PARTNERED'":                                   4080,
		"SELECT count(DISTINCT user_id) FROM interactions JOIN users USING (user_id) WHERE stream = 'ANONYMOUS' AND channel_type = 'cli'":     4,
		"SELECT count(*) FROM interactions WHERE usage_statistics > 200":                                                                      1,
		"SELECT count(*) FROM interactions i JOIN users USING (user_id) WHERE coalesce(stream ~ 'TEMPORARY|PARTNERED', false) = " + isMarked:  0,
		"SELECT count(*) FROM interactions i WHERE NOT " + isMarked + " AND i::text ~ 'HIDDENMARK'":                                           0,
		"SELECT count(*) FROM users WHERE coalesce(stream ~ 'TEMPORARY|PARTNERED', false) = (name ~ 'HIDDENMARK' AND user_id ~ 'HIDDENMARK')": 0,
	} {
		if got := queryNumber(t, conn, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}
