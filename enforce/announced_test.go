package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
)

// TestProxiesSayWhatTheyServe: whoever migrates sees how many proxies there are, and how many have taken what is installed.
func TestProxiesSayWhatTheyServe(t *testing.T) {
	w := start(t, nil)
	hash := w.db0(t).state.plan.Hash()
	eventually(t, "served", func() bool {
		serving, all, err := migrations.ReadServing(t.Context(), w.dba, hash)
		if err != nil {
			t.Fatal(err)
		}
		return serving == 1 && all == 1
	})
	if serving, all, err := migrations.ReadServing(t.Context(), w.dba, "another"); err != nil || serving != 0 || all != 1 {
		t.Errorf("%d of %d serve what is not installed: %v", serving, all, err)
	}
}
