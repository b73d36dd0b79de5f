package registry

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// party is a row of pgconsent.subject with its key unwrapped.
type party struct {
	ref  uuid
	name string
	key  []byte
	// the first wrapped form of the key, from which the subject's pseudonyms are derived; nil: the present form
	pseudonymKey []byte
}

// newParty returns a party with a new reference and key.
func newParty(name string) party {
	p := party{name: name, key: make([]byte, 32)}
	_, _ = rand.Read(p.key)
	_, _ = rand.Read(p.ref[:])
	p.ref[6], p.ref[8] = p.ref[6]&0x0f|0x40, p.ref[8]&0x3f|0x80
	return p
}

// wrap encrypts a subject's key with the newest key of the file.
func (k Keys) wrap(registry uuid, p party) []byte {
	number, s := k.signingKey()
	return append(binary.BigEndian.AppendUint32(nil, uint32(number)),
		encryptWith(s.wrap[:], p.key, registry[:], p.ref[:], p.pseudonymKey)...)
}

func (k Keys) unwrap(registry, ref uuid, wrapped, pseudonymKey []byte) ([]byte, error) {
	if len(wrapped) < 4 {
		return nil, errors.New("the subject's key is not one")
	}
	s, ok := k.keyByNumber(int32(binary.BigEndian.Uint32(wrapped)))
	if !ok {
		return nil, errors.New("the subject's key is wrapped with a key that is not in the key file")
	}
	key, err := decryptWith(s.wrap[:], wrapped[4:], registry[:], ref[:], pseudonymKey)
	if err != nil || len(key) != 32 {
		return nil, errors.New("the subject's key was changed, or wrapped with another key file")
	}
	return key, nil
}

// details are the parts of a record that are sealed.
type details struct {
	Version       int          `json:"v"`
	Subject       string       `json:"subject"`
	Scope         string       `json:"scope"`
	Grantor       string       `json:"grantor,omitempty"` // the references of persons, in hex
	By            consent.Role `json:"by"`
	RecordedByRef string       `json:"by_ref,omitempty"`
	Guardian      string       `json:"guardian,omitempty"`
	Via           string       `json:"via,omitempty"`
	Reason        string       `json:"reason,omitempty"`
	Evidence      string       `json:"evidence,omitempty"`
	// a digest of the command, which is compared with that of a repeated key
	Command string `json:"command,omitempty"`
	// for each reference the name of the person, with its proof
	Names map[string]nameProof `json:"names,omitempty"`
}

// nameProof is a MAC of a person's name under the person's own key: with the key it proves the name, and without it it
// reveals nothing.
type nameProof string

func (p party) proveName() nameProof {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte("name|"))
	h.Write([]byte(p.name))
	return nameProof(hex.EncodeToString(h.Sum(nil)[:16]))
}

// digest returns a MAC under the subject's key: equal texts of one subject have equal digests.
func (p party) digest(use, text string) []byte {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte(use + "|"))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func (p party) scope(scope string) []byte {
	if scope == consent.Everything {
		return nil
	}
	return p.digest("scope", scope)
}

// seal encrypts details for one record of the subject.
func (p party) seal(registry uuid, number int64, d details) ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("seal a consent record: %w", err)
	}
	return encryptWith(p.key, text, registry[:], p.ref[:], binary.BigEndian.AppendUint64(nil, uint64(number))), nil
}

func (p party) open(registry uuid, number int64, sealed []byte) (details, error) {
	text, err := decryptWith(p.key, sealed, registry[:], p.ref[:], binary.BigEndian.AppendUint64(nil, uint64(number)))
	if err != nil {
		return details{}, errors.New("the sealed details of the record cannot be decrypted")
	}
	var d details
	if err := json.Unmarshal(text, &d); err != nil || d.Version != 1 {
		return details{}, errors.New("the sealed details of the record have an unknown format")
	}
	return d, nil
}

func encryptWith(key, text []byte, bound ...[]byte) []byte {
	aead := newGCM(key)
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	return aead.Seal(nonce, nonce, text, lengthPrefixed(bound))
}

func decryptWith(key, sealed []byte, bound ...[]byte) ([]byte, error) {
	aead := newGCM(key)
	if len(sealed) < aead.NonceSize() {
		return nil, errors.New("too short")
	}
	return aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], lengthPrefixed(bound))
}

func newGCM(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("registry: keys have 32 bytes: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("registry: " + err.Error())
	}
	return aead
}

func lengthPrefixed(parts [][]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
