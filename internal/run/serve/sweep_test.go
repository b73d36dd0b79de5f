//go:build unix

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/registry/sweep"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Messages that the webhook has accepted are counted as delivered, and those that it has refused as failed.
func TestDeliveriesAreCounted(t *testing.T) {
	const rules = `version: 1
attributes: { user: { type: text, source: credential } }
tables: { notes: { rows: [ consent: { subject: about, registry: {} } ] } }
`
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m sweep.Message
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil || m.Subject == "refused" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer receiver.Close()
	db, dir := pgtest.Database(t), t.TempDir()
	instance.Install(t, instance.Database{Name: "app", DB: db, Setup: "CREATE TABLE notes (about text, body text)",
		Policy: rules, SearchPath: []string{"public"}}, instance.Auto)
	for name, text := range map[string]string{"policy.yaml": rules, "webhook.pw": "secret\n", "pgconsent.yaml": fmt.Sprintf(`version: 1
upstream: { host: %s, port: %d }
databases: { app: { name: %s, policy: policy.yaml, owners: [postgres] } }
consent: { key: consent.key, webhook: { url: %q, secret: webhook.pw } }
`, db.SocketDir, db.Port, db.Name, receiver.URL)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.MakeKey(filepath.Join(dir, "consent.key")); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(filepath.Join(dir, "pgconsent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	sweepers, err := (&Service{log: slog.New(slog.DiscardHandler)}).newSweepers(cfg, metrics.New(reg))
	if err != nil {
		t.Fatal(err)
	}
	for _, subjectID := range []string{"ada", "refused", "bob"} {
		for _, command := range []consent.Command{{Action: consent.ActionInteract,
			Caller: consent.Party{Role: consent.RoleSubject, ID: subjectID}},
			{Action: consent.ActionRevoke, Caller: consent.Party{Role: consent.RoleController, ID: "us"}}} {
			command.Subject = subjectID
			if _, err := sweepers.list[0].Registry.Execute(t.Context(), command); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	isFinished := make(chan struct{})
	go func() {
		defer close(isFinished)
		sweepers.run(ctx)
	}()
	defer func() {
		cancel()
		<-isFinished
	}()
	countsByResult := map[string]float64{}
	for end := time.Now().Add(tier.Patience); countsByResult["ok"]+countsByResult["failed"] < 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("only these were counted: %v", countsByResult)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "pgconsent_outbox_deliveries_total" {
				for _, m := range f.GetMetric() {
					countsByResult[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	if countsByResult["ok"] != 2 || countsByResult["failed"] != 1 {
		t.Errorf("counted %v, want 2 that arrived and 1 that failed", countsByResult)
	}
}
