package rewrite

import (
	"strings"
	"testing"
)

// Catalogs with hidden rows are wrapped in a subquery with OFFSET 0 only in statements that contain an expression which
// may fail.
func TestFencesOfCatalogs(t *testing.T) {
	r := rewriter(t, AutoMode)
	const failingCondition = " = (SELECT 1 / count(*) FROM notes)"
	for sql, want := range map[string]string{
		"SELECT 1 FROM pg_type WHERE typname = 'a' AND typlen = 1": "",
		"SELECT 1 FROM pg_type WHERE typlen" + failingCondition:    "(SELECT * FROM pgconsent_catalog.pg_type OFFSET 0) AS pg_type",
		"SELECT 1 FROM pg_catalog.pg_type WHERE pg_catalog.pg_type.typlen" + failingCondition: "(SELECT * FROM pgconsent_catalog.pg_type " +
			"OFFSET 0) AS pg_type WHERE pg_type.typlen",
		"SELECT 1 FROM pg_type AS y, pg_am WHERE y.typlen" + failingCondition: "(SELECT * FROM pgconsent_catalog.pg_type OFFSET 0) AS y, " +
			"pgconsent_catalog.pg_am AS pg_am",
		"SELECT 1 FROM pg_trigger WHERE tgtype" + failingCondition: "pgconsent_catalog.pg_trigger AS pg_trigger",
		"SELECT 1 FROM information_schema.collations WHERE length(collation_name)" + failingCondition: "(SELECT * FROM " +
			"pgconsent_catalog.is_collations OFFSET 0) AS collations",
		"SELECT 1 FROM notes WHERE id" + failingCondition + " AND id IN (TABLE pg_class)": "SELECT * FROM (SELECT * FROM " +
			"pgconsent_catalog.pg_class OFFSET 0) AS pg_class",
		"COPY (SELECT 1 FROM pg_type WHERE typlen" + failingCondition + ") TO STDOUT": "pgconsent_catalog.pg_type OFFSET 0)",
		"SELECT 1 FROM ONLY pg_type WHERE typlen" + failingCondition:                  "refused",
		"SELECT 1 FROM pg_type * WHERE typlen" + failingCondition:                     "refused",
		"SELECT 1 FROM ONLY pg_type WHERE typlen = 1":                                 "",
	} {
		result, refusal := r.Rewrite(sql, false)
		switch {
		case want == "refused" && refusal == nil, want != "refused" && refusal != nil:
			t.Errorf("%s: %v", sql, refusal)
		case want == "" && strings.Contains(result.Text, "OFFSET 0"), want != "refused" && !strings.Contains(result.Text, want):
			t.Errorf("%s:\n%s", sql, result.Text)
		}
	}
}
