package enforce

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
)

// TestProxiesAnnounceServedPolicy: pgconsent migrate can see in the database how many proxies are connected, and how
// many serve the installed policy.
func TestProxiesAnnounceServedPolicy(t *testing.T) {
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

// TestPolicyNamingANewColumnWaits: a policy may name a column that is known only after pgconsent migrate. The log says
// what the policy waits for, and the policy becomes active once it is installed.
func TestPolicyNamingANewColumnWaits(t *testing.T) {
	w := withSignedViews(t)
	d := w.db0(t)
	w.exec("ALTER TABLE public.memories ADD COLUMN shown boolean DEFAULT true")
	eventually(t, "the column is left out", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return tablesWithWaitingColumns(d.state.snapshot) == "public.memories"
	})
	newer := strings.Replace(rules, "  memories:\n    rows:\n", "  memories:\n    rows:\n      - status: { column: shown, is: true }\n", 1)
	if newer == rules {
		t.Fatal("the rules have changed")
	}
	w.write(newer)
	if err := w.Reload(); err == nil || !strings.Contains(err.Error(), "public.memories are not known before pgconsent migrate") {
		t.Errorf("it is reloaded: %v", err)
	}
	c := w.client("caregiver")
	c.want(titles, "lake", "sea")
	if err := installWith(t.Context(), w.dba, newer, rls.Options{SignedViews: true}); err != nil {
		t.Fatal(err)
	}
	w.exec("UPDATE public.memories SET shown = false WHERE title = 'sea'")
	eventually(t, "it is in force", func() bool {
		c.seal()
		got, err := c.query(titles)
		return err == nil && slices.Equal(got, []string{"lake"})
	})
}
