package migrations_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
)

// Roles are the whole server's. Migrating a database beside another changes no password by which that one is served.
// The database that made the roles may give them a new one.
func TestAnotherDatabaseKeepsItsPassword(t *testing.T) {
	first, second := pgtest.Database(t), pgtest.Database(t)
	o := migrations.Options{AgentRole: "kept_agent", ControlRole: "kept_control", ReaderRole: "kept_reader", RowsRole: "kept_rows"}
	t.Cleanup(func() {
		for _, db := range []*pgtest.DB{second, first} {
			if err := migrations.Down(context.Background(), db.Connect(t, "postgres"), o); err != nil {
				t.Error(err)
			}
		}
	})
	for i, c := range []struct {
		name     string
		db       *pgtest.DB
		password string
		refused  bool
		logsIn   string // the password that logs in afterwards
	}{
		{"the first", first, "one", false, "one"},
		{"another, with another password", second, "two", true, "one"},
		{"another, with the same one", second, "one", false, "one"},
		{"the first, with a new one", first, "three", false, "three"},
	} {
		o := o
		o.AgentPassword = c.password
		err := migrations.Up(t.Context(), c.db.Connect(t, "postgres"), o, nothing{})
		e := (*sqlstate.Error)(nil)
		if refused := errors.As(err, &e) && e.Code == sqlstate.InvalidPassword; refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v", c.name, err)
		}
		conn, err := pgx.Connect(t.Context(), first.DSN(o.AgentRole, c.logsIn))
		if err != nil {
			t.Fatalf("%s: nobody logs in with %q: %v", c.name, c.logsIn, err)
		}
		_ = conn.Close(t.Context())
		if i == 0 { // a right of the agents there shows that the database is in use
			if _, err := first.Connect(t, "postgres").Exec(t.Context(), "GRANT USAGE ON SCHEMA public TO "+o.AgentRole); err != nil {
				t.Fatal(err)
			}
		}
	}
}
