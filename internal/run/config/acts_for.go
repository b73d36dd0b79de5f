package config

import (
	"regexp"
	"strings"
)

// ActsFor has the key acts_for of an agent: its sessions act for users, and this says how a session names its user.
type ActsFor struct {
	Attributes []string `yaml:"attributes"` // the policy's attributes that have the user's values
	By         string   `yaml:"by"`         // how a session names its user: jwt or trusted
	Setting    string   `yaml:"setting"`    // with trusted: the setting that names the user
	// for each attribute, the claim of the token, or the member of the JSON object in the setting
	Claims map[string]string `yaml:"claims"`
	Actor  string            `yaml:"actor"` // the agent's name at the identity provider
}

// Values of the key acts_for.by: a verified token names the user, or a setting whose value is trusted.
const (
	ByJWT     = "jwt"
	ByTrusted = "trusted"
)

// requestClaims is the setting in which PostgREST passes the claims of the user's token.
const requestClaims = "request.jwt.claims"

func (a *ActsFor) defaults() {
	switch {
	case a.By != ByTrusted || a.Setting != "":
	case a.Claims != nil:
		a.Setting = requestClaims
	case len(a.Attributes) == 1:
		a.Setting = "pgconsent." + a.Attributes[0]
	}
	a.Setting = strings.ToLower(a.Setting)
}

// ClaimOf returns the name of the claim that has the value of an attribute, and "" if there is none.
func (a *ActsFor) ClaimOf(attribute string, j *JWT) string {
	if claim, ok := a.Claims[attribute]; ok || j == nil {
		return claim
	}
	return j.Claims.Attributes[attribute]
}

var (
	settingName   = regexp.MustCompile(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+$`)
	attributeName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)
)

// check checks the key acts_for of an agent.
func (a *ActsFor) check(d *decoder, path string, agent *Agent, j *JWT) {
	const example = "acts_for: { attributes: [user], by: jwt }"
	if len(a.Attributes) == 0 {
		d.addProblem(path, example, "%s names no attributes", path)
	}
	for i, name := range a.Attributes {
		switch _, isConfigured := agent.Attributes[name]; {
		case !attributeName.MatchString(name):
			d.addProblem(path+".attributes", example, "%s.attributes: %q cannot be an attribute", path, name)
		case isConfigured:
			d.addProblem(path+".attributes", "Leave it out of one of the two.",
				"%s.attributes: the agent itself has the attribute %s", path, name)
		}
		for _, earlier := range a.Attributes[:i] {
			if earlier == name {
				d.addProblem(path+".attributes", "", "%s.attributes names %q twice", path, name)
			}
		}
	}
	for _, name := range sortedKeys(a.Claims) {
		isSupported := false
		for _, attribute := range a.Attributes {
			isSupported = isSupported || attribute == name
		}
		if !isSupported {
			d.addProblem(path+".claims", "", "%s.claims: %q is none of its attributes", path, name)
		}
	}
	switch a.By {
	case ByJWT:
		a.checkJWT(d, path, j)
	case ByTrusted:
		a.checkTrusted(d, path)
	default:
		d.addProblem(path+".by", "One of: jwt, trusted. With trusted pgconsent believes whatever user a session sets: whoever can send "+
			"it SQL can be any user.", "%s.by: %q is not known", path, a.By)
	}
}

func (a *ActsFor) checkJWT(d *decoder, path string, j *JWT) {
	if j == nil {
		d.addProblem(path+".by", "jwt: { issuer: …, audience: …, jwks: … } says which tokens are accepted.",
			"%s.by is jwt, and the configuration has no section jwt", path)
		return
	}
	if a.Setting != "" {
		d.addProblem(path+".setting", "Sessions set pgconsent.token.", "%s.setting is for by: trusted", path)
	}
	for _, name := range a.Attributes {
		if a.ClaimOf(name, j) == "" {
			d.addProblem(path, "claims: { "+name+": sub }", "%s does not say which claim gives the attribute %s", path, name)
		}
	}
}

func (a *ActsFor) checkTrusted(d *decoder, path string) {
	if a.Actor != "" {
		d.addProblem(path+".actor", "", "%s.actor is for by: jwt", path)
	}
	switch {
	case len(a.Attributes) > 1 && a.Claims == nil:
		d.addProblem(path, "claims: { user: sub, tenant: org } says which member of the JSON object in the setting gives which.",
			"%s has several attributes, which one setting must give together", path)
	case a.Setting == "":
	case !settingName.MatchString(a.Setting):
		d.addProblem(path+".setting", "setting: app.user", "%s.setting must be plain names with dots between", path)
	case strings.HasPrefix(a.Setting, "pgconsent.") && (len(a.Attributes) != 1 || a.Setting != "pgconsent."+a.Attributes[0]),
		a.Setting == "pgconsent.token", a.Setting == "pgconsent.seal", a.Setting == "pgconsent.acting", a.Setting == "pgconsent.reason":
		d.addProblem(path+".setting", "setting: app.user", "%s.setting: %q is pgconsent's own", path, a.Setting)
	}
	for _, name := range a.Attributes {
		if a.Claims != nil && a.Claims[name] == "" {
			d.addProblem(path+".claims", "claims: { "+name+": sub }", "%s.claims does not say which member gives the attribute %s", path, name)
		}
	}
}
