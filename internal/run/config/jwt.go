package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// JWT has the section jwt: which tokens of an identity provider are accepted, and what their claims mean.
type JWT struct {
	Issuer     string    `yaml:"issuer"`
	Audience   string    `yaml:"audience"`
	JWKS       string    `yaml:"jwks"` // keys of the provider: a file, or a URL
	Algorithms []string  `yaml:"algorithms"`
	Skew       string    `yaml:"skew"`
	Roles      []string  `yaml:"roles"`
	Claims     JWTClaims `yaml:"claims"`
}

// JWTClaims has the names of the claims that pgconsent reads.
type JWTClaims struct {
	Role     string `yaml:"role"`
	Subject  string `yaml:"subject"`
	Agent    string `yaml:"agent"`
	Database string `yaml:"database"`
	// for agents with auth: jwt, the claim that gives each attribute, by the attribute's name in the policy
	Attributes map[string]string `yaml:"attributes"`
}

// JWTAlgorithms are the algorithms that may be configured. They are all asymmetric: the public key verifies and cannot
// sign.
var JWTAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// ClockTolerance returns how far the clocks of the provider and of this machine may differ.
func (j *JWT) ClockTolerance() time.Duration { return mustParseDuration(j.Skew) }

// IsRemote reports whether the keys are fetched over the network.
func (j *JWT) IsRemote() bool { return strings.Contains(j.JWKS, "://") }

func (j *JWT) defaults() {
	if j.Algorithms == nil {
		j.Algorithms = []string{"RS256", "ES256", "EdDSA"}
	}
	if j.Roles == nil {
		j.Roles = []string{"subject", "agent"}
	}
	setDefault(&j.Skew, "60s")
	setDefault(&j.Claims.Role, "role")
	setDefault(&j.Claims.Subject, "sub")
	setDefault(&j.Claims.Agent, "agent")
	setDefault(&j.Claims.Database, "database")
}

func (j *JWT) check(d *decoder) {
	for _, k := range []struct{ key, value string }{{"issuer", j.Issuer}, {"audience", j.Audience}, {"jwks", j.JWKS}} {
		if k.value == "" {
			d.addProblem("jwt",
				"jwt: { issuer: https://id.example.org, audience: pgconsent, jwks: https://id.example.org/keys }",
				"jwt has no %s", k.key)
		}
	}
	if j.IsRemote() {
		u, err := url.Parse(j.JWKS)
		if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopbackHost(u.Hostname())) {
			d.addProblem("jwt.jwks", "Keys that somebody on the way could replace verify nothing.",
				"jwt.jwks must be a file or an https address")
		}
	}
	if len(j.Algorithms) == 0 {
		d.addProblem("jwt.algorithms", "algorithms: [RS256]", "jwt.algorithms is empty")
	}
	for _, a := range j.Algorithms {
		if !slices.Contains(JWTAlgorithms, a) {
			d.addProblem("jwt.algorithms", "One of: "+strings.Join(JWTAlgorithms, ", ")+
				". Shared secrets, and tokens without a signature, are not accepted.", "jwt.algorithms: %q cannot be accepted", a)
		}
	}
	for _, r := range j.Roles {
		if !slices.Contains([]string{"subject", "admin", "agent", "system", "operator"}, r) {
			d.addProblem("jwt.roles", "One of: subject, admin, agent, system, operator.", "jwt.roles: %q is not known", r)
		}
	}
	if skew, err := time.ParseDuration(j.Skew); err != nil || skew < 0 || skew > 10*time.Minute {
		d.addProblem("jwt.skew", "skew: 60s", "jwt.skew must be a duration of at most 10m")
	}
}
