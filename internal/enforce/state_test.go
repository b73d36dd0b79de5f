package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// Two states that differ in anything that affects verdicts have different versions.
func TestStatesDiffer(t *testing.T) {
	w := start(t, nil)
	v, refused := w.databases["memories"].current()
	if refused != nil {
		t.Fatal(refused)
	}
	of := func(text string) (*policy.Policy, *rls.Plan) {
		doc, err := policy.Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Compile(doc, v.state.snapshot, policy.WithViews(rewrite.RewriteViewQuery))
		if err != nil {
			t.Fatal(err)
		}
		return p, rls.Generate(p, v.state.snapshot, rls.Options{})
	}
	_, plan := of(wider)
	for name, change := range map[string]func(*state){
		"policy":                       func(s *state) { s.versions.Policy += "x" },
		"catalog":                      func(s *state) { s.versions.Catalog += "x" },
		"profile":                      func(s *state) { s.profile += "x" },
		"plan":                         func(s *state) { s.plan = plan },
		"number of the key":            func(s *state) { s.sealKey.ID++ },
		"key":                          func(s *state) { s.sealKey.Secret = append([]byte{s.sealKey.Secret[0] + 1}, s.sealKey.Secret[1:]...) },
		"nothing (and so it is equal)": func(*state) {},
	} {
		other := *v.state
		change(&other)
		if same := name[0] == 'n' && name != "number of the key"; v.state.equal(&other) != same || other.equal(v.state) != same {
			t.Errorf("another %s: equal %v", name, v.state.equal(&other))
		}
		if name == "key" || name == "number of the key" {
			if sameKey(v.state.sealKey, other.sealKey) {
				t.Errorf("another %s is the same key", name)
			}
		}
	}
	if sameKey(seal.Key{ID: 1, Secret: []byte("a")}, seal.Key{ID: 1, Secret: []byte("b")}) ||
		sameKey(seal.Key{ID: 1, Secret: []byte("a")}, seal.Key{ID: 2, Secret: []byte("a")}) {
		t.Error("two keys are taken for one")
	}

	// A signature that was made for one profile is not valid for another.
	cfg := w.databases["memories"].cfg
	here := profileName(cfg, v.state.policy, v.state.plan)
	role := cfg
	role.AgentRole = "another"
	alone, _ := of(rules + "limits: { statements: 5 }\n") // another policy with the same plan
	for name, other := range map[string]string{
		"role": profileName(role, v.state.policy, v.state.plan), "policy": profileName(cfg, alone, v.state.plan), "plan": profileName(cfg, v.state.policy, plan),
	} {
		if other == here {
			t.Errorf("another %s has the same profile", name)
		}
	}
}
