package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// VerifyUser verifies the token of a user for whom a session of an agent is to act. It returns the attributes that its
// claims give, and its expiry.
//
// A token that was delegated (RFC 8693) must have been delegated to this agent. The sub of its claim act is the actor
// that the configuration names, or else the agent's name, and so is that of may_act. A token of a program is none of a
// user's.
func (v *JWT) VerifyUser(ctx context.Context, token, agent, database string) (attributes map[string]string, until time.Time, err error) {
	cfg := v.config()
	claims, until, err := v.verifyAndParseClaims(ctx, cfg, token)
	if err != nil {
		return nil, until, fmt.Errorf("jwt: %w", err)
	}
	a, ok := cfg.Agents[agent]
	if !ok || a.Database != database || a.ActsFor == nil {
		return nil, until, errors.New("jwt: this agent acts for nobody")
	}
	if err := claims.checkActor(agent, a.ActsFor.Actor); err != nil {
		return nil, until, fmt.Errorf("jwt: %w", err)
	}
	role, _ := claims[cfg.JWT.Claims.Role].(string) // in the token of a program this claim is a text
	if isOfProgram := slices.Contains([]Role{Agent, Admin, System, Operator}, Role(role)); isOfProgram {
		if name, _ := claims.stringMember(cfg.JWT.Claims.Agent); Role(role) != Agent || name != agent {
			return nil, until, errors.New("jwt: it is no token of a user")
		}
	}
	attributes = map[string]string{}
	for _, attribute := range a.ActsFor.Attributes {
		value, exists := claims[a.ActsFor.ClaimOf(attribute, cfg.JWT)]
		if !exists {
			continue
		}
		if attributes[attribute], err = attributeText(value); err != nil {
			return nil, until, fmt.Errorf("jwt: the claim for attribute %s: %w", attribute, err)
		}
	}
	if len(attributes) == 0 {
		return nil, until, errors.New("jwt: it names no user")
	}
	return attributes, until, nil
}

// CallerForUser returns the caller as it acts for the user of a token: it has another name for each user, and the
// user's attributes. Only agents whose configuration says so act for others.
func (v *JWT) CallerForUser(ctx context.Context, caller Caller, token string) (Caller, error) {
	if caller.Role != Agent {
		return Caller{}, NewRefusal(errors.New("only agents act for users"))
	}
	attributes, until, err := v.VerifyUser(ctx, token, caller.Agent, caller.Database)
	if err != nil {
		return Caller{}, NewRefusal(err)
	}
	if caller.ExpiresAt.IsZero() || until.Before(caller.ExpiresAt) {
		caller.ExpiresAt = until
	}
	user := ""
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		user += name + "\x00" + attributes[name] + "\x00"
	}
	claims := maps.Clone(attributes)
	for name, value := range caller.Claims {
		if _, ofUser := claims[name]; !ofUser {
			claims[name] = value
		}
	}
	caller.Name, caller.UserToken, caller.Claims = caller.Name+" for "+v.nameOf(Subject, user), token, claims
	return caller, nil
}

// checkActor checks who may act by a token. actor is the name by which the provider knows the agent; "": its own, and
// the token need not say that it was delegated.
func (o jsonObject) checkActor(agent, actor string) error {
	claim := "act" // RFC 8693: act names the party that acts, may_act one that is allowed to
	if _, exists := o[claim]; !exists {
		claim = "may_act"
	}
	value, exists := o[claim]
	switch object, isObject := value.(map[string]any); {
	case exists && !isObject:
		return fmt.Errorf("%q is there and is no object", claim)
	case exists:
		sub, err := jsonObject(object).stringMember("sub")
		if err != nil {
			return err
		}
		if sub != cmp.Or(actor, agent) {
			return fmt.Errorf("%q names another actor than this agent", claim)
		}
	case actor != "":
		return errors.New("it does not say who may act by it")
	}
	return nil
}
