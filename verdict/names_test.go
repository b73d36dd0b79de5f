package verdict_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/verdict"
)

func TestUpstreamName(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("n", 61)
	for _, name := range []string{"", "a", "A", "c:a", "h:a", verdict.SealStatement, long[:60], long, long + "n", "ä\"; x"} {
		got := verdict.UpstreamName(name)
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
		if len(got) > 62 || got == verdict.SealStatement || (got == "") != (name == "") {
			t.Errorf("%q is %q", name, got)
		}
		if back, ok := verdict.ClientName(got); ok != (name != "" && len(name) <= 60) || ok && back != name {
			t.Errorf("%q is %q and back %q", name, got, back)
		}
	}
}
