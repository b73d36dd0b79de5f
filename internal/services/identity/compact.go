package identity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"github.com/pgconsent/pgconsent/internal/services/strictjson"
)

// jsonObject is the decoded header or the decoded claims of a JWT.
type jsonObject map[string]any

// parseCompact splits a JWT into its three parts and decodes header and claims, which must be JSON objects that all
// parsers read alike. It refuses what libraries accept beyond the standard: other alphabets, padding, line breaks,
// duplicate names. It does not verify the signature.
func parseCompact(token string) (header, claims jsonObject, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, nil, errors.New("it is not a signed token in compact form")
	}
	var decoded [3][]byte
	for i, part := range parts {
		// The base64 decoder skips line breaks, so that they are refused here.
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil ||
			strings.ContainsAny(part, "\r\n") || part == "" {
			return nil, nil, errors.New("a part of it is not written as base64url is")
		}
	}
	if header, err = parseObject(decoded[0]); err != nil {
		return nil, nil, fmt.Errorf("its header: %w", err)
	}
	if claims, err = parseObject(decoded[1]); err != nil {
		return nil, nil, fmt.Errorf("its claims: %w", err)
	}
	return header, claims, nil
}

func parseObject(text []byte) (jsonObject, error) {
	if err := strictjson.Check(text, strictjson.MaxDepth); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a float would round long numbers
	var out jsonObject
	if err := d.Decode(&out); err != nil || out == nil {
		return nil, errors.New("it is not an object")
	}
	return out, nil
}

// stringMember returns the text of a member, and "" if the object has no member of this name.
func (o jsonObject) stringMember(name string) (string, error) {
	value, exists := o[name]
	text, isString := value.(string)
	if exists && !isString {
		return "", fmt.Errorf("%q is there and is no text", name)
	}
	return text, nil
}

// signatureAlgorithm returns the algorithm that the token's header names, if it is one of allowedAlgorithms. The
// header's own keys and addresses of keys are ignored: keys are found by their ids only.
func (o jsonObject) signatureAlgorithm(allowedAlgorithms []string) (jwa.SignatureAlgorithm, error) {
	for _, name := range []string{"crit", "b64"} {
		if _, exists := o[name]; exists {
			return jwa.NoSignature(), errors.New("its header asks for what is not understood here")
		}
	}
	name, err := o.stringMember("alg")
	if err != nil || !slices.Contains(allowedAlgorithms, name) {
		return jwa.NoSignature(), errors.New("it is signed by an algorithm that is not taken")
	}
	algorithm, ok := jwa.LookupSignatureAlgorithm(name)
	if !ok {
		return jwa.NoSignature(), errors.New("it is signed by an algorithm that is not known")
	}
	return algorithm, nil
}

// checkTimes checks that the members exp, nbf and iat are numbers: the JWT library also accepts strings.
func (o jsonObject) checkTimes() error {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if value, exists := o[name]; exists {
			if _, isNumber := value.(json.Number); !isNumber {
				return fmt.Errorf("%q is no number", name)
			}
		}
	}
	return nil
}
