package tier

import (
	"flag"
	"testing"
)

// inRun calls f as if in the run with that name.
func inRun(t *testing.T, run string, f func()) {
	t.Helper()
	wasShort := testing.Short()
	t.Setenv("PGCONSENT_NIGHTLY", map[string]string{"nightly": "1"}[run])
	if err := flag.Set("test.short", map[bool]string{true: "true", false: "false"}[run == "quick"]); err != nil {
		t.Fatal(err)
	}
	defer flag.Set("test.short", map[bool]string{true: "true", false: "false"}[wasShort])
	f()
}

// goesOn tells whether a test that begins with that call is not skipped.
func goesOn(t *testing.T, begin func(testing.TB)) (on bool) {
	t.Helper()
	t.Run("probe", func(t *testing.T) {
		begin(t)
		on = true
	})
	return on
}

func TestRuns(t *testing.T) {
	t.Setenv("PGCONSENT_CASES", "")
	t.Setenv("PGCONSENT_SEED", "")
	for _, c := range []struct {
		run          string
		all, nightly bool
		count        int
		picked       []int // the cases that run, of 24 cases with one in three
	}{
		{"quick", false, false, 1, []int{0, 6, 12, 18}},
		{"all", true, false, 2, []int{0, 3, 6, 9, 12, 15, 18, 21}},
		{"nightly", true, true, 3, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
	} {
		inRun(t, c.run, func() {
			if got := goesOn(t, All); got != c.all {
				t.Errorf("%s: All goes on: %t", c.run, got)
			}
			if got := goesOn(t, Nightly); got != c.nightly {
				t.Errorf("%s: Nightly goes on: %t", c.run, got)
			}
			if got := Count(1, 2, 3); got != c.count {
				t.Errorf("%s: %d cases", c.run, got)
			}
			picked := map[int]bool{}
			for _, i := range c.picked {
				picked[i] = true
			}
			for i := range 24 {
				if IsPicked(i, 3) != picked[i] {
					t.Errorf("%s: case %d runs: %t", c.run, i, IsPicked(i, 3))
				}
			}
		})
	}
}

func TestVariables(t *testing.T) {
	t.Setenv("PGCONSENT_CASES", "")
	t.Setenv("PGCONSENT_SEED", "")
	if Seed() != 1 || Cases() != 0 {
		t.Errorf("without variables: seed %d, %d cases", Seed(), Cases())
	}
	t.Setenv("PGCONSENT_CASES", "77")
	t.Setenv("PGCONSENT_SEED", "18446744073709551615")
	for _, run := range []string{"quick", "all", "nightly"} {
		inRun(t, run, func() {
			if Count(1, 2, 3) != 77 || Seed() != 1<<64-1 {
				t.Errorf("%s: seed %d, %d cases", run, Seed(), Count(1, 2, 3))
			}
		})
	}
	t.Setenv("PGCONSENT_SEED", "yesterday")
	defer func() {
		if recover() == nil {
			t.Error("a seed that is no number counts")
		}
	}()
	Seed()
}
