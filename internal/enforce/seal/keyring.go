package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Keyring holds the seal keys of one database, from the oldest to the newest. It is immutable.
type Keyring struct{ keys []Key }

// NewKeyring returns a keyring with these keys, of which the last one signs. It returns an error if there is no key, or
// if a key is not 32 bytes long.
func NewKeyring(keys []Key) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("no seal key: run pgconsent migrate")
	}
	for _, k := range keys {
		if len(k.Secret) != 32 {
			return nil, fmt.Errorf("seal key %d is not 32 bytes long", k.ID)
		}
	}
	return &Keyring{keys: append([]Key(nil), keys...)}, nil
}

// LoadKeyring reads the seal keys of the database that conn, a connection of the control role, is to.
func LoadKeyring(ctx context.Context, conn *pgx.Conn) (*Keyring, error) {
	rows, err := conn.Query(ctx, "SELECT kid, secret FROM pgconsent.seal_key() ORDER BY kid")
	if err != nil {
		return nil, fmt.Errorf("read the seal keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Key, error) {
		var k Key
		err := row.Scan(&k.ID, &k.Secret)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the seal keys: %w", err)
	}
	return NewKeyring(keys)
}

// Len returns the number of keys.
func (r *Keyring) Len() int { return len(r.keys) }

// NewestKey returns the newest key, which signs.
func (r *Keyring) NewestKey() Key { return r.keys[len(r.keys)-1] }
