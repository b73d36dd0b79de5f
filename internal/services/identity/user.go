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

// VerifyUser verifies the token of a user for whom an agent's session is to act. It returns the attributes that the
// token's claims give, and when the token expires.
//
// A delegated token (RFC 8693) must have been delegated to this agent: the sub of its claim act or may_act must be the
// agent's actor in the configuration, or else the agent's name. The token of a program is not accepted as a user's.
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
	role, _ := claims[cfg.JWT.Claims.Role].(string) // only the token of a program has this claim as a text
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

// CallerForUser returns the caller with the attributes of the user whose token is given, and with a name that differs
// for each user. Only agents may act for users, and only if the configuration allows it.
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

// checkActor checks that the token's claim act, or else may_act, names the agent. actor is the name of the agent at the
// provider; "" stands for the agent's own name. If actor is set, the token must have one of these claims.
func (o jsonObject) checkActor(agent, actor string) error {
	claim := "act" // RFC 8693: act names the party that acts, may_act a party that is allowed to
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
