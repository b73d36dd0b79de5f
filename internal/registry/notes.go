package registry

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// NoteSigner makes and checks the codes of a sweeper's notes about deletions. Somebody who writes a note by hand, even
// with all rights in the database, has no key to make a code.
type NoteSigner struct {
	keys Keys
	id   uuid
}

// NoteSigner returns the signer that makes and checks codes for this registry with its current keys.
func (r *Registry) NoteSigner(ctx context.Context) (out NoteSigner, err error) {
	err = r.snapshot(ctx, func(_ context.Context, _ pgx.Tx, id uuid, _ time.Time) error {
		out = NoteSigner{r.Keys, id}
		return nil
	})
	return out, err
}

// Code returns the code for one subject's deletions in one sweep; no two codes are equal.
func (n NoteSigner) Code(subject string) string {
	once := make([]byte, 16)
	_, _ = rand.Read(once) // rand.Read never fails
	kid, _ := n.keys.signingKey()
	text := hex.EncodeToString(once)
	return fmt.Sprintf("%d.%s.%x", kid, text, n.keys.macFor("note|"+text+"|", kid, n.id, []byte(subject)))
}

// Verify checks that a code is valid for this subject, and returns a part that no other code has, by which a note is
// recorded once.
func (n NoteSigner) Verify(subject, code string) (noteID string, ok bool) {
	parts := strings.Split(code, ".")
	if len(parts) != 3 || len(parts[1]) != 32 {
		return "", false
	}
	kid, err := strconv.ParseInt(parts[0], 10, 32)
	mac, hexErr := hex.DecodeString(parts[2])
	if err != nil || hexErr != nil {
		return "", false
	}
	want := n.keys.macFor("note|"+parts[1]+"|", int32(kid), n.id, []byte(subject))
	return parts[1], want != nil && hmac.Equal(want, mac)
}
