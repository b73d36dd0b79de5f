package serve

import (
	"log/slog"

	"github.com/pgconsent/pgconsent/audit"
	"github.com/pgconsent/pgconsent/config"
)

// openAudit opens the log of a configuration, with its key, which is made where there is none yet.
func openAudit(c config.Audit, observer audit.Observer, log *slog.Logger) (*audit.Log, error) {
	o := audit.Config{Mode: audit.Mode(c.Mode), Dir: c.File, Anchor: c.Anchor, Observer: observer, Log: log}
	o.MaxSegment, o.MaxAge, o.Retention = c.Sizes()
	if o.Mode != audit.Off {
		key, err := audit.EnsureKey(c.Key, c.File)
		if err != nil {
			return nil, err
		}
		o.Key = key
	}
	return audit.Open(o)
}
