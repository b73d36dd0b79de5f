package registry

import (
	"errors"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// If the server has no free connection, a call retries for its time. Its error then says that no change was begun.
func TestServerWithoutFreeConnections(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	const role = "registry_without_connections"
	super := db.Connect(t, "postgres")
	pgtest.Lock(t, "roles")
	if _, err := super.Exec(t.Context(), "CREATE ROLE "+role+" LOGIN PASSWORD 'role-password' CONNECTION LIMIT 0"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = super.Exec(t.Context(), "DROP ROLE "+role) }()
	limitedConfig := r.Connect.Copy()
	limitedConfig.User, limitedConfig.Password = role, "role-password"
	otherRegistry, err := Open(Config{Connect: limitedConfig, Database: "app", Keys: r.Keys, Anchor: r.Anchor,
		RetryFor: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer otherRegistry.Close()
	_, err = otherRegistry.Execute(t.Context(), grant("ada", "TEMPORARY"))
	var e *sqlstate.Error
	if !errors.As(err, &e) || e.Code != sqlstate.TooManyConnections || e.Hint == "" {
		t.Errorf("a full server: %v", err)
	}
}
