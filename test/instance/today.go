package instance

import (
	"os"
	"time"
)

// Full says that a run leaves nothing out: PGCONSENT_FULL is set.
var Full = os.Getenv("PGCONSENT_FULL") != ""

// today is the day's number, so that two runs of a day try the same.
var today = int(time.Now().UTC().Unix() / 86400)

// Turn says whether case i is tried today, where each is tried once in so many days; with [Full] always.
func Turn(i, days int) bool { return Full || (i+today)%days == 0 }
