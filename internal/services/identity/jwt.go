package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pgconsent/pgconsent/internal/run/config"
)

// JWT verifies JWTs of an identity provider. A JWT is accepted if one of the provider's public keys has signed it with
// an algorithm of the configuration. Issuer and audience must be those of the configuration, the expiry must be in the
// future, and the claims must give a role that the configuration allows for JWTs.
type JWT struct {
	config func() *config.Config
	keys   *keyCache
	now    func() time.Time
	secret []byte // random key of the codes that stand for persons' names in records
}

// maxTokenBytes limits the length of the tokens that are parsed.
const maxTokenBytes = 8 << 10

// NewJWT makes the verifier of the configuration's section jwt. It fetches the provider's keys when the first token is
// verified.
func NewJWT(c func() *config.Config) *JWT {
	j := c().JWT
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // rand.Read never returns an error.
	return &JWT{config: c, keys: &keyCache{source: j.JWKS, isRemote: j.IsRemote()}, now: time.Now, secret: secret}
}

// Verify implements Verifier.
func (v *JWT) Verify(ctx context.Context, bearer string) (Caller, error) {
	c, _, err := v.verifyToken(ctx, bearer)
	if err != nil {
		return Caller{}, NewRefusal(fmt.Errorf("jwt: %w", err))
	}
	return c, nil
}

// VerifyAgent verifies a JWT that an agent sends as its password. It returns the attributes that the claims give the
// agent, and when the JWT expires.
func (v *JWT) VerifyAgent(ctx context.Context, password, agent, database string) (claims map[string]string,
	until time.Time,
	err error) {
	c, until, err := v.verifyToken(ctx, password)
	if err != nil {
		return nil, until, fmt.Errorf("jwt: %w", err)
	}
	if c.Role != Agent || c.Agent != agent || c.Database != database {
		return nil, until, errors.New("jwt: the token is not this agent's")
	}
	return c.Claims, until, nil
}

func (v *JWT) verifyToken(ctx context.Context, token string) (Caller, time.Time, error) {
	c := v.config()
	claims, until, err := v.verifyAndParseClaims(ctx, c, token)
	if err != nil {
		return Caller{}, time.Time{}, err
	}
	out, err := v.callerOf(c, claims)
	out.ExpiresAt = until
	return out, until, err
}

// verifyAndParseClaims returns the claims of a JWT whose signature, issuer, audience and times are right, and when it
// expires.
func (v *JWT) verifyAndParseClaims(ctx context.Context, cfg *config.Config, token string) (jsonObject, time.Time,
	error) {
	j := cfg.JWT
	var noTime time.Time
	if j == nil {
		return nil, noTime, errors.New("none are taken")
	}
	if len(token) > maxTokenBytes {
		return nil, noTime, errors.New("it is too long")
	}
	header, claims, err := parseCompact(token)
	if err != nil {
		return nil, noTime, err
	}
	algorithm, err := header.signatureAlgorithm(j.Algorithms)
	if err != nil {
		return nil, noTime, err
	}
	id, err := header.stringMember("kid")
	if err != nil {
		return nil, noTime, err
	}
	key, err := v.keys.find(ctx, id, algorithm, v.now())
	if err != nil {
		return nil, noTime, err
	}
	if err := claims.checkTimes(); err != nil {
		return nil, noTime, err
	}
	parsedToken, err := jwt.Parse([]byte(token), jwt.WithKey(algorithm, key), jwt.WithValidate(true),
		jwt.WithIssuer(j.Issuer), jwt.WithAudience(j.Audience),
		jwt.WithAcceptableSkew(j.ClockTolerance()), jwt.WithRequiredClaim(jwt.ExpirationKey),
		jwt.WithClock(jwt.ClockFunc(v.now)))
	if err != nil {
		// The library's error is left out: its text may quote claims.
		return nil, noTime, errors.New("its signature, issuer, audience or time is not right")
	}
	until, _ := parsedToken.Expiration()
	return claims, until.Add(j.ClockTolerance()), nil
}

// callerOf returns the caller that the claims describe. The configuration says which claims have role, subject and
// agent.
func (v *JWT) callerOf(cfg *config.Config, claims jsonObject) (Caller, error) {
	j := cfg.JWT
	var problems error
	text := func(claim string) string {
		claimText, err := claims.stringMember(claim)
		problems = errors.Join(problems, err)
		return claimText
	}
	role := Role(text(j.Claims.Role))
	t := Token{Name: text("sub"), Role: role, Database: text(j.Claims.Database)}
	switch role {
	case Subject:
		t.Subject = text(j.Claims.Subject)
	case Agent:
		t.Agent = text(j.Claims.Agent)
	}
	switch {
	case problems != nil:
		return Caller{}, problems
	case !slices.Contains(j.Roles, string(role)):
		return Caller{}, errors.New("it gives no role that tokens may give")
	case t.Name == "":
		return Caller{}, errors.New("it has no sub")
	}
	switch role {
	case Subject:
		if t.Subject == "" || !isValidSubject(t.Subject) {
			return Caller{}, errors.New("it names no subject")
		}
	case Agent:
		if a, ok := cfg.Agents[t.Agent]; !ok || a.Auth != config.AuthToken {
			return Caller{}, errors.New("it names no agent with auth: jwt")
		}
	}
	t.Name = v.nameOf(role, t.Name)
	out, err := t.caller(cfg)
	if err != nil || role != Agent {
		return out, err
	}
	out.Claims = map[string]string{}
	for attribute, claim := range j.Claims.Attributes {
		value, exists := claims[claim]
		if !exists {
			continue
		}
		text, err := attributeText(value)
		if err != nil {
			return Caller{}, fmt.Errorf("the claim for attribute %s: %w", attribute, err)
		}
		out.Claims[attribute] = text
	}
	return out, nil
}

// nameOf returns the caller's name in records and sessions. The claim sub of a subject's or an agent's JWT may be a
// person's name, which must not be in a log. For these roles, nameOf returns a code that stays the same as long as this
// process runs. For admins, operators and the system it returns sub itself.
func (v *JWT) nameOf(role Role, subject string) string {
	if role != Subject && role != Agent {
		return "jwt " + printableName(subject)
	}
	h := hmac.New(sha256.New, v.secret)
	h.Write([]byte(subject))
	return "jwt " + hex.EncodeToString(h.Sum(nil)[:8])
}

var integerPattern = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// attributeText converts a claim to the text of an attribute. It writes a list as a PostgreSQL array.
func attributeText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(strings.TrimSpace(v), "{") && strings.HasSuffix(strings.TrimSpace(v), "}") {
			return "", errors.New("it is a text that is written like a list: send a list")
		}
		return v, nil
	case json.Number:
		if !integerPattern.MatchString(v.String()) {
			return "", errors.New("it is not a whole number, in digits alone")
		}
		return v.String(), nil
	case []any:
		escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		quotedItems := make([]string, len(v))
		for i, element := range v {
			text, isString := element.(string)
			if number, ok := element.(json.Number); ok && integerPattern.MatchString(number.String()) {
				text, isString = number.String(), true
			}
			if !isString {
				return "", errors.New("it is not a list of texts")
			}
			quotedItems[i] = `"` + escape.Replace(text) + `"`
		}
		return "{" + strings.Join(quotedItems, ",") + "}", nil
	default:
		return "", errors.New("it is neither a text nor a list of texts")
	}
}

// printableName replaces control characters of a name from another system, so that the name fits in one line of a
// record.
func printableName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if len(name) > 90 {
		name = strings.ToValidUTF8(name[:90], "")
	}
	return name
}
