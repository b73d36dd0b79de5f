package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

// If the database is too slow, the page asks the person to try again, and shows no details of the error.
func TestSlowDatabaseIsExplained(t *testing.T) {
	status, p, outcome, code := describeError(fmt.Errorf("public.episodes: timeout: %w", context.DeadlineExceeded))
	if status != http.StatusGatewayTimeout || p.Title != "This took too long" ||
		strings.Contains(p.Text+p.Hint, "episodes") || outcome != audit.OutcomeFailed || code != "57014" {
		t.Errorf("%d %+v %s %s", status, p, outcome, code)
	}
	if status, p, _, _ := describeError(fmt.Errorf("public.episodes: broken")); status != http.StatusInternalServerError ||
		strings.Contains(p.Text+p.Hint, "episodes") {
		t.Errorf("%d %+v", status, p)
	}
}
