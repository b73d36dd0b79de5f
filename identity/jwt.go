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
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pgconsent/pgconsent/config"
)

// JWT verifies the tokens of an identity provider. A token is taken if a public key of the provider's has signed it by an algorithm of the
// configuration, its issuer and audience are those of the configuration, it has an expiry that is not past, and its claims name a role
// that tokens may give.
type JWT struct {
	config func() *config.Config
	keys   *keys
	now    func() time.Time
	secret []byte // of this process
}

// maxToken bounds what is parsed.
const maxToken = 8 << 10

// NewJWT verifies by what the configuration's section jwt says. Its keys are read when they are first needed.
func NewJWT(c func() *config.Config) *JWT {
	j := c().JWT
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return &JWT{config: c, keys: &keys{source: j.JWKS, remote: j.Remote()}, now: time.Now, secret: secret}
}

// Verify implements Verifier.
func (v *JWT) Verify(ctx context.Context, bearer string) (Caller, error) {
	c, _, err := v.read(ctx, bearer)
	if err != nil {
		return Caller{}, Refused(fmt.Errorf("jwt: %w", err))
	}
	return c, nil
}

// Agent verifies the token that an agent shows as its password. It returns what its claims give it, and until when.
func (v *JWT) Agent(ctx context.Context, password, agent, database string) (claims map[string]string, until time.Time, err error) {
	c, until, err := v.read(ctx, password)
	if err != nil {
		return nil, until, fmt.Errorf("jwt: %w", err)
	}
	if c.Role != Agent || c.Agent != agent || c.Database != database {
		return nil, until, errors.New("jwt: the token is not this agent's")
	}
	return c.Claims, until, nil
}

func (v *JWT) read(ctx context.Context, token string) (Caller, time.Time, error) {
	c := v.config()
	j := c.JWT
	var none time.Time
	if j == nil {
		return Caller{}, none, errors.New("none are taken")
	}
	if len(token) > maxToken || strings.Count(token, ".") != 2 {
		return Caller{}, none, errors.New("not a signed token in compact form")
	}
	message, err := jws.Parse([]byte(token), jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return Caller{}, none, errors.New("it cannot be read")
	}
	header := message.Signatures()[0].ProtectedHeaders()
	algorithm, ok := header.Algorithm()
	if !ok || !slices.Contains(j.Algorithms, algorithm.String()) {
		return Caller{}, none, errors.New("it is signed by an algorithm that is not taken")
	}
	if critical, ok := header.Critical(); ok && len(critical) > 0 {
		return Caller{}, none, errors.New("it has a critical header")
	}
	id, _ := header.KeyID()
	key, err := v.keys.find(ctx, id, v.now())
	if err != nil {
		return Caller{}, none, err
	}
	if err := fits(key, algorithm); err != nil {
		return Caller{}, none, err
	}
	read, err := jwt.Parse([]byte(token), jwt.WithKey(algorithm, key), jwt.WithValidate(true), jwt.WithIssuer(j.Issuer), jwt.WithAudience(j.Audience),
		jwt.WithAcceptableSkew(j.Tolerance()), jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithClock(jwt.ClockFunc(v.now)))
	if err != nil {
		return Caller{}, none, errors.New("its signature, issuer, audience or time is not right") // the library's text may quote claims
	}
	until, _ := read.Expiration()
	out, err := v.caller(c, claims(read))
	out.Until = until.Add(j.Tolerance())
	return out, out.Until, err
}

// fits tells whether a key is one for the algorithm: a public key that is taken for a secret would sign anything.
func fits(key jwk.Key, algorithm jwa.SignatureAlgorithm) error {
	if use, ok := key.KeyUsage(); ok && use != "sig" {
		return errors.New("its key is not for signatures")
	}
	if alg, ok := key.Algorithm(); ok && alg.String() != algorithm.String() {
		return errors.New("its key is for another algorithm")
	}
	want := map[string]string{"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}[algorithm.String()[:2]]
	if want == "" || key.KeyType().String() != want {
		return errors.New("its key is of another kind")
	}
	return nil
}

// claims are all of a token's.
type tokenClaims map[string]any

func claims(t jwt.Token) tokenClaims {
	out := tokenClaims{}
	for _, name := range t.Keys() {
		var value any
		if err := t.Get(name, &value); err == nil {
			out[name] = value
		}
	}
	return out
}

// text is a claim that is one.
func (c tokenClaims) text(name string) string {
	s, _ := c[name].(string)
	return s
}

// caller is whom the claims name, by the configuration.
func (v *JWT) caller(c *config.Config, given tokenClaims) (Caller, error) {
	j := c.JWT
	role := Role(given.text(j.Claims.Role))
	if !slices.Contains(j.Roles, string(role)) {
		return Caller{}, errors.New("it gives no role that tokens may give")
	}
	t := Token{Name: given.text("sub"), Role: role, Database: given.text(j.Claims.Database)}
	if t.Name == "" {
		return Caller{}, errors.New("it has no sub")
	}
	switch role {
	case Subject:
		if t.Subject = given.text(j.Claims.Subject); t.Subject == "" || !validSubject(t.Subject) {
			return Caller{}, errors.New("it names no subject")
		}
	case Agent:
		t.Agent = given.text(j.Claims.Agent)
		if a, ok := c.Agents[t.Agent]; !ok || a.Auth != "jwt" {
			return Caller{}, errors.New("it names no agent with auth: jwt")
		}
	}
	t.Name = v.name(role, t.Name)
	out, err := t.caller(c)
	if err != nil || role != Agent {
		return out, err
	}
	out.Claims = map[string]string{}
	for attribute, claim := range j.Claims.Attributes {
		value, there := given[claim]
		if !there {
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

// name is what records and sessions call the bearer. The sub of a subject's or an agent's token may be a person's name, which no
// log keeps: there it is a code that tells bearers apart as long as this process runs. Staff stand by their names.
func (v *JWT) name(role Role, sub string) string {
	if role != Subject && role != Agent {
		return "jwt " + printable(sub)
	}
	h := hmac.New(sha256.New, v.secret)
	h.Write([]byte(sub))
	return "jwt " + hex.EncodeToString(h.Sum(nil)[:8])
}

// attributeText is a claim as attributes are written: a list as PostgreSQL writes an array.
func attributeText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case float64:
		if v != float64(int64(v)) || v > 1<<53 || v < -(1<<53) {
			return "", errors.New("it is not a whole number that is read exactly")
		}
		return fmt.Sprint(int64(v)), nil
	case []any:
		escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		quoted := make([]string, len(v))
		for i, one := range v {
			text, err := attributeText(one)
			if _, list := one.([]any); err != nil || list {
				return "", errors.New("it is not a list of texts")
			}
			quoted[i] = `"` + escape.Replace(text) + `"`
		}
		return "{" + strings.Join(quoted, ",") + "}", nil
	default:
		return "", errors.New("it is neither a text nor a list of texts")
	}
}

// printable keeps a name from another system on its line of a record.
func printable(name string) string {
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
