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

// party is a row of pgconsent.subject with its key decrypted.
type party struct {
	reference uuid
	name      string
	key       []byte
	// the hash of key as it was first encrypted, from which PostgreSQL makes pseudonyms; nil: rekey has not changed it
	pseudonymKey []byte
}

// newParty returns a party with a new reference and key.
func newParty(name string) party {
	p := party{name: name, key: make([]byte, 32)}
	_, _ = rand.Read(p.key)
	_, _ = rand.Read(p.reference[:])
	p.reference[6], p.reference[8] = p.reference[6]&0x0f|0x40, p.reference[8]&0x3f|0x80
	return p
}

// wrap encrypts a subject's key with the newest key of the key file.
func (k Keys) wrap(registry uuid, p party) []byte {
	number, s := k.signingKey()
	return append(binary.BigEndian.AppendUint32(nil, uint32(number)),
		encryptWith(s.wrapping[:], p.key, registry[:], p.reference[:], p.pseudonymKey)...)
}

func (k Keys) unwrap(registry, ref uuid, wrappedKey, pseudonymKey []byte) ([]byte, error) {
	if len(wrappedKey) < 4 {
		return nil, errors.New("the subject's key is not one")
	}
	s, ok := k.keyByNumber(int32(binary.BigEndian.Uint32(wrappedKey)))
	if !ok {
		return nil, errors.New("the subject's key is wrapped with a key that is not in the key file")
	}
	key, err := decryptWith(s.wrapping[:], wrappedKey[4:], registry[:], ref[:], pseudonymKey)
	if err != nil || len(key) != 32 {
		return nil, errors.New("the subject's key was changed, or wrapped with another key file")
	}
	return key, nil
}

// recordDetails are the parts of a record that are encrypted with the subject's key.
type recordDetails struct {
	Version        int          `json:"v"`
	Subject        string       `json:"subject"`
	Scope          string       `json:"scope"`
	Grantor        string       `json:"grantor,omitempty"` // this and the next references to persons are in hex
	RecordedByRole consent.Role `json:"by"`
	RecordedByRef  string       `json:"by_ref,omitempty"`
	Guardian       string       `json:"guardian,omitempty"`
	Via            string       `json:"via,omitempty"`
	Reason         string       `json:"reason,omitempty"`
	Evidence       string       `json:"evidence,omitempty"`
	// the hash of the command, to recognise a repeated one
	Command string `json:"command,omitempty"`
	// the names to which the references belong, as proofs
	Names map[string]nameProof `json:"names,omitempty"`
}

// nameProof is a MAC of a person's name under the person's own key. Whoever has the key can check the name; without the
// key the proof reveals nothing.
type nameProof string

func (p party) proveName() nameProof {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte("name|"))
	h.Write([]byte(p.name))
	return nameProof(hex.EncodeToString(h.Sum(nil)[:16]))
}

// pseudonym returns a MAC of a text under the subject's key. For the same subject, equal texts have equal pseudonyms.
func (p party) pseudonym(use, text string) []byte {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte(use + "|"))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func (p party) scope(scope string) []byte {
	if scope == consent.AnyScope {
		return nil
	}
	return p.pseudonym("scope", scope)
}

// sealDetails encrypts the details of one record with the subject's key.
func (p party) sealDetails(registry uuid, number int64, d recordDetails) ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("seal a consent record: %w", err)
	}
	return encryptWith(p.key, text, registry[:], p.reference[:], binary.BigEndian.AppendUint64(nil, uint64(number))), nil
}

func (p party) openDetails(registry uuid, number int64, sealedDetails []byte) (recordDetails, error) {
	text, err := decryptWith(p.key, sealedDetails, registry[:], p.reference[:], binary.BigEndian.AppendUint64(nil,
		uint64(number)))
	if err != nil {
		return recordDetails{}, errors.New("the sealed details of the record cannot be decrypted")
	}
	var d recordDetails
	if err := json.Unmarshal(text, &d); err != nil || d.Version != 1 {
		return recordDetails{}, errors.New("the sealed details of the record have an unknown format")
	}
	return d, nil
}

func encryptWith(key, text []byte, additionalData ...[]byte) []byte {
	aead := newGCM(key)
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	return aead.Seal(nonce, nonce, text, lengthPrefixed(additionalData))
}

func decryptWith(key, sealedText []byte, additionalData ...[]byte) ([]byte, error) {
	aead := newGCM(key)
	if len(sealedText) < aead.NonceSize() {
		return nil, errors.New("too short")
	}
	return aead.Open(nil, sealedText[:aead.NonceSize()], sealedText[aead.NonceSize():], lengthPrefixed(additionalData))
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
