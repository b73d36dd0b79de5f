package enforce

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// ActsFor says for whom the sessions of an agent may act: which attributes such a user has, and how the client names
// the user.
type ActsFor struct {
	Attributes []string // attributes whose values come from the user, not from the agent's own credential
	ByToken    bool     // true: Setting has the user's token, which the proxy verifies; false: its value is believed
	Setting    string   // the setting by which clients name the user, in lower case

	// Claims gives, for each attribute, the member of a JSON object that has its value. It is for a Setting that is
	// believed and whose value is a JSON object. Nil: the value of Setting is the value of the only attribute.
	Claims map[string]string
}

// TokenSetting is the setting in which clients send the token of the user for whom a session acts.
const TokenSetting = "pgconsent.token"

func (a *ActsFor) equal(b *ActsFor) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ByToken == b.ByToken && a.Setting == b.Setting && slices.Equal(a.Attributes, b.Attributes) &&
		maps.Equal(a.Claims, b.Claims)
}

// givesAttribute reports whether the value of this attribute comes from the user for whom an agent acts.
func (a *ActsFor) givesAttribute(attribute string) bool {
	return a != nil && slices.Contains(a.Attributes, attribute)
}

// check returns an error if the policy does not declare the attributes of a, reads them live, or uses a's setting for
// another attribute.
func (a *ActsFor) check(p *policy.Policy) error {
	if a == nil {
		return nil
	}
	var problems []error
	for _, name := range a.Attributes {
		switch declared, ok := p.Attribute(name); {
		case !ok:
			problems = append(problems, fmt.Errorf("acts_for: attribute %s is not one that the policy declares", name))
		case declared.IsLive():
			problems = append(problems, fmt.Errorf("acts_for: attribute %s has the source %s in the policy: declare it with "+
				"source: credential", name, declared.Source))
		}
	}
	if attribute, taken := p.Settings()[a.Setting]; taken {
		problems = append(problems, fmt.Errorf("acts_for: the setting %s is that of the policy's attribute %s", a.Setting,
			attribute))
	}
	return errors.Join(problems...)
}

// parseTrustedUser returns the attributes of the user from the value of a setting that is believed without a token.
func (a *ActsFor) parseTrustedUser(value string) (map[string]string, *sqlstate.Error) {
	if a.Claims == nil {
		return map[string]string{a.Attributes[0]: value}, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(value)))
	d.UseNumber()
	var claims map[string]any
	if err := d.Decode(&claims); err != nil || d.More() {
		return nil, representedUserError(a, errors.New("the value is no JSON object"))
	}
	out := map[string]string{}
	for _, name := range a.Attributes {
		switch claim := claims[a.Claims[name]].(type) {
		case nil:
		case string:
			out[name] = claim
		case json.Number:
			out[name] = claim.String()
		default:
			return nil, representedUserError(a, fmt.Errorf("the member for attribute %s is no text or number", name))
		}
	}
	return out, nil // the value may lack attributes, as for a caller who has not signed in
}

// checkUser returns an error unless user has valid values for the attributes that users give. own are the agent's own
// attributes. The error contains no value.
func (a *ActsFor) checkUser(p *policy.Policy, user, own map[string]string) error {
	for name, value := range user {
		declared, ok := p.Attribute(name)
		if !ok || !a.givesAttribute(name) {
			return fmt.Errorf("attribute %s is none that it gives", name)
		}
		if err := declared.Check(value); err != nil {
			return err
		}
	}
	if len(user) > 0 {
		for _, name := range a.Attributes {
			if declared, _ := p.Attribute(name); user[name] == "" && !declared.Optional {
				return fmt.Errorf("attribute %s is missing", name)
			}
		}
	}
	merged := maps.Clone(user)
	maps.Copy(merged, own)
	return policy.CheckAttributes(merged)
}

func userTokenError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
		"the token in parameter %q is not accepted", TokenSetting).
		WithHint("It must be an unexpired JWT of the configured issuer and audience, for a user of this agent. The operator of " +
			"pgconsent finds in its log what is wrong with it.").WithCause(cause)
}

func representedUserError(a *ActsFor, cause error) *sqlstate.Error {
	if a.ByToken {
		return userTokenError(cause)
	}
	hint := "Set it to a value of attribute " + a.Attributes[0] + ", as PostgreSQL writes its type."
	if a.Claims != nil {
		hint = "Set it to a JSON object that gives the attributes " + strings.Join(a.Attributes, ", ") +
			", each as PostgreSQL writes its type, or to an empty object."
	}
	return sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonIdentity, "invalid value for parameter %q", a.Setting).
		WithHint("%s", hint).WithCause(cause)
}

func heldCursorError() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonIdentity,
		"cursors WITH HOLD are not for sessions that act for others").
		WithHint("It would show rows of one user to the next. Fetch the rows in the transaction.")
}

func unknownUserError(setting string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonIdentity,
		"it is not certain for whom this statement would run").
		WithHint("Send it by itself, once what sets or ends %q has been answered.", setting)
}

func severalUsersError(setting string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonIdentity,
		"statements for several users cannot share a message").
		WithHint("Send what reads after %q was set by itself.", setting)
}

func expiredUserError(setting string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
		"the token of the user for whom this session acts has expired").
		WithHint("Set %q to a new one, or RESET it.", setting)
}
