package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"slices"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// minRSABits is the smallest accepted size of an RSA key (RFC 7518, 3.3): smaller keys have been factored.
const minRSABits = 2048

// algorithmCurves maps each ECDSA algorithm to the elliptic curve of its keys.
var algorithmCurves = map[string]string{"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}

// checkKey checks that a key is a public key for the algorithm. If a public key were used as the shared secret of an
// HMAC, everybody could sign.
func checkKey(key jwk.Key, algorithm jwa.SignatureAlgorithm) error {
	if _, isUnsupported := key.(jwk.UnsupportedKey); isUnsupported {
		return errors.New("its key cannot be read")
	}
	if keyUse, ok := key.KeyUsage(); ok && keyUse != "sig" {
		return errors.New("its key is not for signatures")
	}
	if operations, ok := key.KeyOps(); ok && !slices.Contains(operations, jwk.KeyOpVerify) {
		return errors.New("its key is not to verify by")
	}
	if alg, ok := key.Algorithm(); ok && alg.String() != algorithm.String() {
		return errors.New("its key is for another algorithm")
	}
	var publicKey any
	if err := jwk.Export(key, &publicKey); err != nil {
		return errors.New("its key cannot be read")
	}
	kind := algorithm.String()[:2]
	switch public := publicKey.(type) {
	case *rsa.PublicKey:
		if kind != "RS" && kind != "PS" {
			break
		}
		if public.N.BitLen() < minRSABits {
			return errors.New("its key is too short")
		}
		return nil
	case *ecdsa.PublicKey:
		if want, ok := algorithmCurves[algorithm.String()]; ok && public.Params().Name == want {
			return nil
		}
	case ed25519.PublicKey:
		if kind == "Ed" {
			return nil
		}
	case *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey:
		return errors.New("its key is a private one, which everybody could read")
	}
	return errors.New("its key is of another kind")
}
