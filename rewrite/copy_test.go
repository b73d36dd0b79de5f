package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// COPY FROM may stop at what is wrong, as it does without being told to, and not pass over it.
func TestCopyOptions(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
	for sql, allowed := range map[string]bool{
		"COPY drafts (title) FROM STDIN (ON_ERROR stop)":                true,
		"COPY drafts (title) FROM STDIN (ON_ERROR 'Stop', DEFAULT 'x')": true, "COPY drafts (title) FROM STDIN (ON_ERROR ignore)": false,
		"COPY drafts (title) FROM STDIN (ON_ERROR)": false, "COPY drafts (title) FROM STDIN (REJECT_LIMIT 1)": false,
		"COPY drafts (title) FROM STDIN (LOG_VERBOSITY verbose)": false,
		"COPY drafts (title) FROM STDIN (DEFAULT)":               false, "COPY drafts (title) TO STDOUT (ON_ERROR stop)": false,
		"COPY drafts (title) TO STDOUT (DEFAULT 'x')": false,
	} {
		if _, refused := r.Rewrite(sql, false); (refused == nil) != allowed || refused != nil && refused.Code != sqlstate.FeatureNotSupported {
			t.Errorf("%s: %v", sql, refused)
		}
	}
}

// PostgreSQL makes a query of COPY where row security holds, and would show in it where rows lie, and which
// transactions made them.
func TestSystemColumnsAreNotCopied(t *testing.T) {
	for _, mode := range []Mode{RowSecurityMode, AutoMode, InjectedMode} {
		r := rewriter(t, mode)
		for _, column := range []string{"ctid", "xmin", "xmax", "cmin", "cmax"} {
			for _, sql := range []string{"COPY memories (" + column + ") TO STDOUT", "COPY public.memories (id, " + column + ") TO STDOUT (FORMAT csv)"} {
				if result, refused := r.Rewrite(sql, false); refused == nil {
					t.Errorf("%s: %s", sql, result.Text)
				}
			}
		}
		if _, refused := r.Rewrite("COPY memories (id, title) TO STDOUT", false); refused != nil {
			t.Error(refused)
		}
	}
}
