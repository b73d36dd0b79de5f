package instance

import (
	"os"
	"time"
)

// Full says that a run leaves nothing out: PGCONSENT_FULL is set. It is asked while tests run, so that go does not take a run
// without it from its cache.
func Full() bool { return os.Getenv("PGCONSENT_FULL") != "" }

// Today is the day's number, so that two runs of a day try the same. PGCONSENT_DAY (2026-11-22) plays another day's run again.
func Today() int {
	day := time.Now()
	if text := os.Getenv("PGCONSENT_DAY"); text != "" {
		var err error
		if day, err = time.Parse(time.DateOnly, text); err != nil {
			panic("PGCONSENT_DAY: " + err.Error())
		}
	}
	return int(day.Unix() / 86400)
}

// Turn says whether case i is tried today, where each is tried once in so many days; with [Full] always.
func Turn(i, days int) bool { return Full() || (i+Today())%days == 0 }
