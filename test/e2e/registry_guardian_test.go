package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestGuardiansConsentByTheRegistry checks rules on the registry. A consent counts if a guardian gave it while being
// one, for its grantee and its scope. A consent of somebody who is not yet, or no longer, a guardian shows nothing.
func TestGuardiansConsentByTheRegistry(t *testing.T) {
	tier.All(t)
	for _, mode := range harness.Modes(enforcedModes...) {
		t.Run(mode.Name, func(t *testing.T) {
			db := pgtest.Database(t)
			harness.Exec(t, db,
				`CREATE TABLE visits (id int PRIMARY KEY, who text); INSERT INTO visits VALUES (1, 'dog:bella'), (2, 'dog:bella'), (3, 'dog:rex'), (4, 'human:sean')`)
			d := harness.Database{Name: "app", DB: db, Policy: `version: 1
attributes: { me: { type: text, source: credential } }
tables:
  visits: { rows: [ consent: { subject: who, registry: { grantee: [me], scope: { row: id }, purpose: care } } ] }
`, SearchPath: []string{"public"}}
			harness.Install(t, d, mode)
			g := &governedWorld{T: t, db: db, registry: openRegistry(t, db, consent.Settings{})}
			proxy := harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{
				{Name: "vet", Database: "app", Attributes: map[string]string{"me": "si:vet"}}, {
					Name: "shop", Database: "app", Attributes: map[string]string{"me": "si:shop"}},
			})
			veterinaryConn, shopConn, cursorConn := proxy.Agent(t, "vet", "app"), proxy.Agent(t, "shop", "app"), proxy.Agent(t, "vet", "app")
			checkShown := func(description, wantForVeterinary, wantForShop string) {
				t.Helper()
				const visitsQuery = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM visits"
				if wantForVeterinary == "" {
					wantForVeterinary = `\N`
				}
				if wantForShop == "" {
					wantForShop = `\N`
				}
				g.checkEqual(description+", to the vet", oneText(veterinaryConn, visitsQuery), wantForVeterinary)
				g.checkEqual(description+", to the shop", oneText(shopConn, visitsQuery), wantForShop)
			}
			controller := consent.Party{Role: consent.RoleController, ID: "office"}
			consentBy := func(guardian string, action consent.Action, grantee, scope string) consent.Command {
				return consent.Command{Action: action, Subject: "dog:bella", Grantee: grantee, Scope: scope,
					Purposes: []string{"care"}, Caller: consent.Party{Role: consent.RoleGuardian, ID: guardian}}
			}
			wantRefused := func(description string, c consent.Command) {
				t.Helper()
				var forbiddenError *consent.ForbiddenError
				if _, err := g.registry.Execute(context.Background(), c); !errors.As(err, &forbiddenError) {
					t.Errorf("%s: %v", description, err)
				}
			}
			changeGuardian := func(action consent.Action, subject, guardian string) {
				t.Helper()
				g.executeCommand(consent.Command{Action: action, Subject: subject, Guardian: guardian, Caller: controller})
			}

			checkShown("nobody has consented", "", "")
			wantRefused("who is not appointed yet", consentBy("human:sean", consent.ActionGrant, "si:vet", ""))
			changeGuardian(consent.ActionAppoint, "dog:rex", "human:sean")
			wantRefused("who guards another", consentBy("human:sean", consent.ActionGrant, "si:vet", ""))
			checkShown("of whom nobody speaks for", "", "")

			changeGuardian(consent.ActionAppoint, "dog:bella", "human:sean")
			checkShown("an appointment is no consent", "", "")
			g.executeCommand(consentBy("human:sean", consent.ActionGrant, "si:vet", ""))
			checkShown("the guardian has consented", "1 2", "")
			g.executeCommand(consentBy("human:sean", consent.ActionGrant, "si:shop", "row:visits:2"))
			checkShown("to another, about one row", "1 2", "2")

			oneText(cursorConn, "BEGIN; DECLARE c CURSOR FOR SELECT id FROM visits")
			g.checkEqual("a cursor", oneText(cursorConn, "FETCH 1 FROM c"), "1")
			g.executeCommand(consentBy("human:sean", consent.ActionRevoke, "si:vet", ""))
			g.checkEqual("the cursor", oneText(cursorConn, "FETCH 1 FROM c"), "40001")
			checkShown("the guardian has withdrawn", "", "2")
			g.executeCommand(consentBy("human:sean", consent.ActionGrant, "si:vet", ""))

			// The guardian's earlier consents stay active. New consents and refusals by him do not count.
			changeGuardian(consent.ActionDismiss, "dog:bella", "human:sean")
			checkShown("the guardian is dismissed", "1 2", "2")
			wantRefused("a yes of who was dismissed", consentBy("human:sean", consent.ActionGrant, "si:shop", ""))
			wantRefused("a no of who was dismissed", consentBy("human:sean", consent.ActionRevoke, "si:vet", ""))
			checkShown("after that", "1 2", "2")
			changeGuardian(consent.ActionAppoint, "dog:bella", "human:mira")
			g.executeCommand(consentBy("human:mira", consent.ActionRevoke, "si:vet", ""))
			checkShown("another guardian has withdrawn", "", "2")

			// An erased person cannot act as a guardian. The consents that it gave for its ward stay active.
			g.executeCommand(consentBy("human:mira", consent.ActionGrant, "si:vet", ""))
			g.executeCommand(consent.Command{Action: consent.ActionErase, Subject: "human:mira", Caller: controller})
			checkShown("the guardian is erased", "1 2", "2")
			wantRefused("who was erased", consentBy("human:mira", consent.ActionGrant, "si:vet", ""))
			if report, err := g.registry.Verify(t.Context()); err != nil || len(report.Findings) > 0 {
				t.Errorf("%v %v", report.Findings, err)
			}
		})
	}
}
