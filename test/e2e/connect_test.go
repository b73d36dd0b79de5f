package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/demos"
	"github.com/pgconsent/pgconsent/test/tier"
)

// queryTexts returns the rows of an answer as text, or its error.
func queryTexts(t testing.TB, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return []string{err.Error()}
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		out = append(out, fmt.Sprintf("%q", rows.RawValues()))
	}
	if err := rows.Err(); err != nil {
		var pgError *pgconn.PgError
		if !errors.As(err, &pgError) {
			t.Fatal(err)
		}
		return []string{pgError.Code, pgError.Message, pgError.Hint, pgError.Detail}
	}
	return append(out, rows.CommandTag().String())
}

// Over a connection that the services open for HTTP or MCP, an agent gets the same rows and errors as over its own
// client connection.
func TestServiceConnectionsAreAnsweredLikeClients(t *testing.T) {
	tier.All(t)
	r := demos.StartDemo(t, "ciris")
	service := r.Service()
	for _, agent := range r.Access.Agents {
		caller := identity.Caller{Name: "test", Role: identity.Agent, Agent: agent.Name, Database: "ciris"}
		serviceConn, err := service.Connect(t.Context(), caller)
		if err != nil {
			t.Fatal(err)
		}
		clientConn, err := pgx.Connect(t.Context(), agent.DSN)
		if err != nil {
			t.Fatal(err)
		}
		statements := []string{"SELECT count(*) FROM pg_class", "SELECT current_user, session_user",
			"SHOW search_path", "SELECT pg_sleep(1)", "SET row_security = off",
			"SELECT * FROM pgconsent.consent_current", "COPY (SELECT 1) TO PROGRAM 'true'", "SELECT 1/0", "nonsense"}
		queryRows, err := clientConn.Query(t.Context(),
			"SELECT format('SELECT * FROM %I.%I t ORDER BY t::text', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'")
		if err != nil {
			t.Fatal(err)
		}
		tableQueries, err := pgx.CollectRows(queryRows, pgx.RowTo[string])
		if err != nil || len(tableQueries) == 0 {
			t.Fatalf("%d tables, %v", len(tableQueries), err)
		}
		for _, sql := range tableQueries {
			statements = append(statements, sql, "SELECT count(*) FROM ("+sql+") s", "DELETE FROM "+sql[len("SELECT * FROM "):])
		}
		for _, sql := range statements {
			if diff := cmp.Diff(queryTexts(t, clientConn, sql), queryTexts(t, serviceConn, sql)); diff != "" {
				t.Errorf("%s: %s (-client +face): %s", agent.Name, sql, diff)
			}
		}
		serviceConn.Close(t.Context())
		clientConn.Close(t.Context())
	}
	agent := r.Access.Agents[0].Name
	caller := identity.Caller{Name: "test", Role: identity.Agent, Agent: agent, Database: "ciris"}
	for name, otherCaller := range map[string]identity.Caller{
		"a subject":        {Name: "test", Role: identity.Subject, Subject: "1", Agent: agent, Database: "ciris"},
		"an admin":         {Name: "test", Role: identity.Admin, Agent: agent, Database: "ciris"},
		"no role":          {Name: "test", Agent: agent, Database: "ciris"},
		"an owner":         {Name: "test", Role: identity.Agent, Agent: "ciris_owner", Database: "ciris"},
		"another database": {Name: "test", Role: identity.Agent, Agent: agent, Database: "postgres"},
		"no database":      {Name: "test", Role: identity.Agent, Agent: agent},
	} {
		if conn, err := service.Connect(t.Context(), otherCaller); err == nil {
			conn.Close(t.Context())
			t.Errorf("%s was connected", name)
		}
	}

	conn, err := service.Connect(t.Context(), caller)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	credentials := r.Dir + "/agents.scram"
	if err := config.DisableCredential(credentials, agent); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the session of a disabled agent ends", func() bool {
		_, err := conn.Exec(t.Context(), "SELECT 1")
		return err != nil
	})
	if _, err := service.Connect(t.Context(), caller); sqlstate.AsError(err).Code != sqlstate.InvalidAuthorization {
		t.Errorf("a disabled agent: %v", err)
	}
}
