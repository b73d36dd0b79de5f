package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/config"
	"github.com/pgconsent/pgconsent/doctor"
	"github.com/pgconsent/pgconsent/enforce"
)

// vouch returns the check of a database before its agents are served: the doctor's examination each time, and its probes
// as the agent role once for each policy and catalog.
func vouch(c *config.Config) func(context.Context, *pgx.Conn, enforce.Target) error {
	var mu sync.Mutex
	probed := map[string]string{} // database → versions under which the probes found nothing
	return func(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
		subject := doctor.Subject{
			AgentRole: t.Database.AgentRole, ControlRole: t.Database.ControlRole, ReaderRole: t.Database.ReaderRole,
			Policy: t.Policy, Snapshot: t.Snapshot, Plan: t.Plan,
		}
		if err := doctor.Check(ctx, conn, subject); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		versions := t.Policy.Version() + " " + t.Snapshot.Version()
		if probed[t.Database.Name] == versions {
			return nil
		}
		db, ok := c.Databases[t.Database.Name]
		if !ok {
			return fmt.Errorf("database %s is not configured", t.Database.Name)
		}
		agent, err := c.ConnString(db, db.Roles.Agent, db.Secrets.Agent)
		if err != nil {
			return err
		}
		// The probes read every protected table: on a large one that may take longer than a look at the catalog.
		probing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		found, err := doctor.Probe(probing, conn, agent, subject)
		if err == nil {
			err = doctor.Refuse(found)
		}
		if err == nil {
			probed[t.Database.Name] = versions
		}
		return err
	}
}
