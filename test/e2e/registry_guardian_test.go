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

// TestGuardiansConsentByTheRegistry: rules that ask the registry show what a guardian has consented to while being one,
// to whom and about what. A consent of somebody who is not a guardian yet, or not any more, shows nothing.
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
			vet, shop, held := proxy.Agent(t, "vet", "app"), proxy.Agent(t, "shop", "app"), proxy.Agent(t, "vet", "app")
			wantShown := func(description, toVet, toShop string) {
				t.Helper()
				const query = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM visits"
				if toVet == "" {
					toVet = `\N`
				}
				if toShop == "" {
					toShop = `\N`
				}
				g.want(description+", to the vet", oneText(vet, query), toVet)
				g.want(description+", to the shop", oneText(shop, query), toShop)
			}
			controller := consent.Party{Role: consent.RoleController, ID: "office"}
			consentBy := func(guardian string, action consent.Action, grantee, scope string) consent.Command {
				return consent.Command{Action: action, Subject: "dog:bella", Grantee: grantee, Scope: scope,
					Purposes: []string{"care"}, Caller: consent.Party{Role: consent.RoleGuardian, ID: guardian}}
			}
			wantRefused := func(description string, c consent.Command) {
				t.Helper()
				var forbidden *consent.ForbiddenError
				if _, err := g.registry.Execute(context.Background(), c); !errors.As(err, &forbidden) {
					t.Errorf("%s: %v", description, err)
				}
			}
			guards := func(action consent.Action, subject, guardian string) {
				t.Helper()
				g.do(consent.Command{Action: action, Subject: subject, Guardian: guardian, Caller: controller})
			}

			wantShown("nobody has consented", "", "")
			wantRefused("who is not appointed yet", consentBy("human:sean", consent.ActionGrant, "si:vet", ""))
			guards(consent.ActionAppoint, "dog:rex", "human:sean")
			wantRefused("who guards another", consentBy("human:sean", consent.ActionGrant, "si:vet", ""))
			wantShown("of whom nobody speaks for", "", "")

			guards(consent.ActionAppoint, "dog:bella", "human:sean")
			wantShown("an appointment is no consent", "", "")
			g.do(consentBy("human:sean", consent.ActionGrant, "si:vet", ""))
			wantShown("the guardian has consented", "1 2", "")
			g.do(consentBy("human:sean", consent.ActionGrant, "si:shop", "row:visits:2"))
			wantShown("to another, about one row", "1 2", "2")

			oneText(held, "BEGIN; DECLARE c CURSOR FOR SELECT id FROM visits")
			g.want("a cursor", oneText(held, "FETCH 1 FROM c"), "1")
			g.do(consentBy("human:sean", consent.ActionRevoke, "si:vet", ""))
			g.want("the cursor", oneText(held, "FETCH 1 FROM c"), "40001")
			wantShown("the guardian has withdrawn", "", "2")
			g.do(consentBy("human:sean", consent.ActionGrant, "si:vet", ""))

			// Consents that he gave stay; new ones count neither as given nor as refused.
			guards(consent.ActionDismiss, "dog:bella", "human:sean")
			wantShown("the guardian is dismissed", "1 2", "2")
			wantRefused("a yes of who was dismissed", consentBy("human:sean", consent.ActionGrant, "si:shop", ""))
			wantRefused("a no of who was dismissed", consentBy("human:sean", consent.ActionRevoke, "si:vet", ""))
			wantShown("after that", "1 2", "2")
			guards(consent.ActionAppoint, "dog:bella", "human:mira")
			g.do(consentBy("human:mira", consent.ActionRevoke, "si:vet", ""))
			wantShown("another guardian has withdrawn", "", "2")

			// An erased person speaks for nobody, and the consents given for the ward stay.
			g.do(consentBy("human:mira", consent.ActionGrant, "si:vet", ""))
			g.do(consent.Command{Action: consent.ActionErase, Subject: "human:mira", Caller: controller})
			wantShown("the guardian is erased", "1 2", "2")
			wantRefused("who was erased", consentBy("human:mira", consent.ActionGrant, "si:vet", ""))
			if report, err := g.registry.Verify(t.Context()); err != nil || len(report.Findings) > 0 {
				t.Errorf("%v %v", report.Findings, err)
			}
		})
	}
}
