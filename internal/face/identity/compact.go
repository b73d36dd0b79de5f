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

	"github.com/pgconsent/pgconsent/internal/face/strictjson"
)

// jsonObject is a header or the claims of a token.
type jsonObject map[string]any

// parseCompact takes a token apart: three parts in the one way that base64url has for each, the first two of them JSON
// objects that every reader reads alike. What libraries let pass besides (other alphabets, padding, line breaks, a name
// twice) is no token. Nothing of it is verified yet.
func parseCompact(token string) (header, claims jsonObject, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, nil, errors.New("it is not a signed token in compact form")
	}
	var read [3][]byte
	for i, part := range parts {
		// The library that verifies skips line breaks.
		if read[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil ||
			strings.ContainsAny(part, "\r\n") || part == "" {
			return nil, nil, errors.New("a part of it is not written as base64url is")
		}
	}
	if header, err = objectOf(read[0]); err != nil {
		return nil, nil, fmt.Errorf("its header: %w", err)
	}
	if claims, err = objectOf(read[1]); err != nil {
		return nil, nil, fmt.Errorf("its claims: %w", err)
	}
	return header, claims, nil
}

func objectOf(text []byte) (jsonObject, error) {
	if err := strictjson.Check(text, strictjson.Depth); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a number is what its digits say, and not the nearest that a machine has
	var out jsonObject
	if err := d.Decode(&out); err != nil || out == nil {
		return nil, errors.New("it is not an object")
	}
	return out, nil
}

// text is a member that is one; "" where there is none.
func (o jsonObject) text(name string) (string, error) {
	value, there := o[name]
	text, is := value.(string)
	if there && !is {
		return "", fmt.Errorf("%q is there and is no text", name)
	}
	return text, nil
}

// algorithm is the one that the header names. Keys are found by the id alone: where a header brings a key, or says
// where there is one, nobody looks.
func (o jsonObject) algorithm(taken []string) (jwa.SignatureAlgorithm, error) {
	for _, name := range []string{"crit", "b64"} {
		if _, there := o[name]; there {
			return jwa.NoSignature(), errors.New("its header asks for what is not understood here")
		}
	}
	name, err := o.text("alg")
	if err != nil || !slices.Contains(taken, name) {
		return jwa.NoSignature(), errors.New("it is signed by an algorithm that is not taken")
	}
	algorithm, ok := jwa.LookupSignatureAlgorithm(name)
	if !ok {
		return jwa.NoSignature(), errors.New("it is signed by an algorithm that is not known")
	}
	return algorithm, nil
}

// times are seconds: the library takes texts for them, too.
func (o jsonObject) times() error {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if value, there := o[name]; there {
			if _, is := value.(json.Number); !is {
				return fmt.Errorf("%q is no number", name)
			}
		}
	}
	return nil
}
