package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/test/tier"
)

// As the configuration says, a program acts for the users whose tokens it shows: over SQL in each transaction, over MCP by
// a header.
func TestUsersOfAProvider(t *testing.T) {
	tier.All(t)
	a := startRemoteProxy(t, "memberintel")
	first, foreign := newProvider(t, "first"), newProvider(t, "first")
	publishKeys(t, a.keys, first)
	entitled := func(tenant string) (n int) {
		if err := a.owner.QueryRow(t.Context(), "SELECT count(*) FROM brain_entries WHERE tenant_id IN ('global', $1)", tenant).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const count = "SELECT count(*) FROM brain_entries"
	program := first.token(map[string]any{"agent": "backend", "tenant": nil})
	userToken := func(tenant string) string {
		return first.token(map[string]any{"role": nil, "agent": nil, "tenant": tenant, "act": map[string]any{"sub": "backend"}})
	}
	conn, err := a.connect("backend", program)
	if err != nil {
		t.Fatal(err)
	}
	visibleRows := func(token string) (n int) {
		if err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			if token != "" {
				if _, err := tx.Exec(t.Context(), "SELECT set_config('pgconsent.token', $1, true)", token); err != nil {
					return err
				}
			}
			return tx.QueryRow(t.Context(), count).Scan(&n)
		}); err != nil {
			t.Error(err)
		}
		return n
	}
	if entitled(user1) == entitled(user2) {
		t.Fatal("two users have as many rows: the test tells nothing")
	}
	withoutToken := visibleRows("")
	for _, tenant := range []string{user1, user2, user1} {
		if got := visibleRows(userToken(tenant)); got != entitled(tenant) {
			t.Errorf("for %s it sees %d rows, want %d", tenant, got, entitled(tenant))
		}
		if got := visibleRows(""); got != withoutToken || got >= entitled(user1) || got >= entitled(user2) {
			t.Errorf("for nobody it sees %d rows", got)
		}
	}
	wrongValues := map[string]string{
		"a foreign key":       foreign.token(map[string]any{"role": nil, "agent": nil}),
		"another agent's":     first.token(map[string]any{"agent": "robot"}),
		"to another agent":    first.token(map[string]any{"role": nil, "act": map[string]any{"sub": "robot"}}),
		"an operator's":       first.token(map[string]any{"role": "operator"}),
		"expired":             first.token(map[string]any{"role": nil, "exp": 1}),
		"of another audience": first.token(map[string]any{"role": nil, "aud": "other"}),
		"nonsense":            "x.y.z",
	}
	for description, token := range wrongValues {
		if _, err := conn.Exec(t.Context(), "SET pgconsent.token = '"+token+"'"); codeOf(err) != "28000" || strings.Contains(messageOf(err), token) {
			t.Errorf("%s: %v", description, err)
		}
	}
	openSession := func(user string) (*sdk.ClientSession, error) {
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		return client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: a.http + "/mcp", MaxRetries: -1,
			HTTPClient: &http.Client{Transport: bearerTransport{token: program, next: a.client.Transport, user: user}}}, nil)
	}
	for _, tenant := range []string{user1, user2} {
		session, err := openSession(userToken(tenant))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "query", Arguments: map[string]any{"sql": count}})
		if err != nil || result.IsError || fmt.Sprint(memberAt(result.StructuredContent, "rows")) != fmt.Sprintf("[[%d]]", entitled(tenant)) {
			t.Errorf("over MCP for %s: %v, %v", tenant, result, err)
		}
	}
	for description, token := range wrongValues {
		if session, err := openSession(token); err == nil {
			session.Close()
			t.Errorf("over MCP %s is taken", description)
		}
	}
}
