package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// COPY FROM may have options to stop at the first bad row, which is the default, but none to skip bad rows.
func TestCopyOptions(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
	for sql, isAllowed := range map[string]bool{
		"COPY drafts (title) FROM STDIN (ON_ERROR stop)":                true,
		"COPY drafts (title) FROM STDIN (ON_ERROR 'Stop', DEFAULT 'x')": true, "COPY drafts (title) FROM STDIN (ON_ERROR ignore)": false,
		"COPY drafts (title) FROM STDIN (ON_ERROR)": false, "COPY drafts (title) FROM STDIN (REJECT_LIMIT 1)": false,
		"COPY drafts (title) FROM STDIN (LOG_VERBOSITY verbose)": false,
		"COPY drafts (title) FROM STDIN (DEFAULT)":               false, "COPY drafts (title) TO STDOUT (ON_ERROR stop)": false,
		"COPY drafts (title) TO STDOUT (DEFAULT 'x')": false,
	} {
		if _, refusal := r.Rewrite(sql, false); (refusal == nil) != isAllowed || refusal != nil && refusal.Code != sqlstate.FeatureNotSupported {
			t.Errorf("%s: %v", sql, refusal)
		}
	}
}

// COPY of a table with row security becomes a query. It must not return system columns, which show where rows are
// stored and which transactions wrote them.
func TestSystemColumnsAreNotCopied(t *testing.T) {
	for _, mode := range []Mode{RowSecurityMode, AutoMode, InjectedMode} {
		r := rewriter(t, mode)
		for _, column := range []string{"ctid", "xmin", "xmax", "cmin", "cmax"} {
			for _, sql := range []string{"COPY memories (" + column + ") TO STDOUT", "COPY public.memories (id, " + column + ") TO STDOUT (FORMAT csv)"} {
				if result, refusal := r.Rewrite(sql, false); refusal == nil {
					t.Errorf("%s: %s", sql, result.Text)
				}
			}
		}
		if _, refusal := r.Rewrite("COPY memories (id, title) TO STDOUT", false); refusal != nil {
			t.Error(refusal)
		}
	}
}
