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

// The configuration lets a program act for users whose tokens it sends: over SQL in each transaction, over MCP in a
// header. The program sees the rows of that user only, and none without a valid token.
func TestUsersOfAProvider(t *testing.T) {
	tier.All(t)
	a := startRemoteProxy(t, "memberintel")
	trustedProvider, untrustedProvider := newProvider(t, "first"), newProvider(t, "first")
	publishKeys(t, a.keysPath, trustedProvider)
	entitledRows := func(tenant string) (n int) {
		if err := a.owner.QueryRow(t.Context(), "SELECT count(*) FROM brain_entries WHERE tenant_id IN ('global', $1)", tenant).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const countQuery = "SELECT count(*) FROM brain_entries"
	programToken := trustedProvider.token(map[string]any{"agent": "backend", "tenant": nil})
	userToken := func(tenant string) string {
		return trustedProvider.token(map[string]any{"role": nil, "agent": nil, "tenant": tenant, "act": map[string]any{"sub": "backend"}})
	}
	conn, err := a.connect("backend", programToken)
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
			return tx.QueryRow(t.Context(), countQuery).Scan(&n)
		}); err != nil {
			t.Error(err)
		}
		return n
	}
	if entitledRows(user1) == entitledRows(user2) {
		t.Fatal("two users have as many rows: the test tells nothing")
	}
	withoutToken := visibleRows("")
	for _, tenant := range []string{user1, user2, user1} {
		if got := visibleRows(userToken(tenant)); got != entitledRows(tenant) {
			t.Errorf("for %s it sees %d rows, want %d", tenant, got, entitledRows(tenant))
		}
		if got := visibleRows(""); got != withoutToken || got >= entitledRows(user1) || got >= entitledRows(user2) {
			t.Errorf("for nobody it sees %d rows", got)
		}
	}
	wrongValues := map[string]string{
		"a foreign key":       untrustedProvider.token(map[string]any{"role": nil, "agent": nil}),
		"another agent's":     trustedProvider.token(map[string]any{"agent": "robot"}),
		"to another agent":    trustedProvider.token(map[string]any{"role": nil, "act": map[string]any{"sub": "robot"}}),
		"an operator's":       trustedProvider.token(map[string]any{"role": "operator"}),
		"expired":             trustedProvider.token(map[string]any{"role": nil, "exp": 1}),
		"of another audience": trustedProvider.token(map[string]any{"role": nil, "aud": "other"}),
		"nonsense":            "x.y.z",
	}
	for description, token := range wrongValues {
		if _, err := conn.Exec(t.Context(), "SET pgconsent.token = '"+token+"'"); codeOf(err) != "28000" || strings.Contains(messageOf(err), token) {
			t.Errorf("%s: %v", description, err)
		}
	}
	openSession := func(user string) (*sdk.ClientSession, error) {
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		return client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: a.baseURL + "/mcp", MaxRetries: -1,
			HTTPClient: &http.Client{Transport: bearerTransport{token: programToken, next: a.client.Transport, user: user}}}, nil)
	}
	for _, tenant := range []string{user1, user2} {
		session, err := openSession(userToken(tenant))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "query", Arguments: map[string]any{"sql": countQuery}})
		if err != nil || result.IsError || fmt.Sprint(memberAt(result.StructuredContent, "rows")) != fmt.Sprintf("[[%d]]", entitledRows(tenant)) {
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
