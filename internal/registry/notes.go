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

// NoteSigner makes and checks the codes of the notes in which a sweeper says that it deleted rows. Somebody who writes
// a note by hand, even with all rights in the database, has no key to make such a code.
type NoteSigner struct {
	keys Keys
	id   uuid
}

// NoteSigner returns a signer for the notes of this registry.
func (r *Registry) NoteSigner(ctx context.Context) (out NoteSigner, err error) {
	err = r.snapshot(ctx, func(_ context.Context, _ pgx.Tx, id uuid, _ time.Time) error {
		out = NoteSigner{r.Keys, id}
		return nil
	})
	return out, err
}

// Code returns the code for the deletions of one subject's rows in one sweep. No two codes are equal.
func (n NoteSigner) Code(subject string) string {
	once := make([]byte, 16)
	_, _ = rand.Read(once) // rand.Read never fails
	kid, _ := n.keys.signingKey()
	text := hex.EncodeToString(once)
	return fmt.Sprintf("%d.%s.%x", kid, text, n.keys.macFor("note|"+text+"|", kid, n.id, []byte(subject)))
}

// Verify checks that a code is valid for a subject. noteID is a part of the code that no other code has, so that the
// sweeper records each note only once.
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
