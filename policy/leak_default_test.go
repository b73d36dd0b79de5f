package policy

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// hasUniqueDefault returns whether a default, as pg_get_expr writes it, gives each row a value of its own.
func TestUniqueDefaults(t *testing.T) {
	for _, c := range []struct {
		typ, expression string
		want            bool
	}{
		{"uuid", "gen_random_uuid()", true},
		{"text", "(gen_random_uuid())::text", true},
		{"integer", "nextval('public.t_id_seq'::regclass)", true},
		{"text", "('INV-'::text || (nextval('public.s'::regclass))::text)", true},
		{"uuid", "public.uuid_generate_v4()", true},
		{"text", "encode(extensions.gen_random_bytes(12), 'hex'::text)", true},
		{"text", `"Apps".next_code('a'::text)`, true},
		{"timestamp with time zone", "now()", true},
		{"timestamp without time zone", "(now() AT TIME ZONE 'utc'::text)", true},
		{"timestamp with time zone", "date_trunc('day'::text, now())", false},
		{"timestamp(0) with time zone", "now()", false},
		{"date", "now()", false},
		{"date", "CURRENT_DATE", false},
		{"date", "('now'::text)::date", false},
		{"text", "to_char(now(), 'YYYY-MM'::text)", false},
		{"bigint", "(EXTRACT(epoch FROM now()))::bigint", false},
		{"integer", "((random() * (1000)::double precision))::integer", false},
		{"text", "CURRENT_USER", false},
		{"text", "'gen_random_uuid()'::text", false},
		{"text", "lower('nextval(public.f())'::text)", false},
		{"public.geometry", "'POINT(0 0)'::public.geometry(Point,4326)", false},
		{"boolean", "true", false},
		{"text", "current_setting('app.tenant'::text)", false},
		{"text", "", false},
	} {
		if got := hasUniqueDefault(&catalog.Column{Type: c.typ, Default: c.expression}); got != c.want {
			t.Errorf("%s DEFAULT %s: %v", c.typ, c.expression, got)
		}
	}
}
