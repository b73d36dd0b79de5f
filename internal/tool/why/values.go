package why

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/policy"
)

// Setting is a setting of the agent's session and its value.
type Setting struct{ Name, Value string }

// AttributeValues returns the attributes of an agent's session as the database computes them: those of the credential,
// and those that follow from the settings. It leaves out attributes without a value. tx is a transaction of the owner;
// the seal that AttributeValues sets ends with tx.
func AttributeValues(ctx context.Context, tx pgx.Tx, p *policy.Policy, credential map[string]string,
	settings []Setting) (map[string]string, error) {
	if err := beginSealed(ctx, tx, tx.Conn(), credential, settings); err != nil {
		return nil, err
	}
	values := map[string]string{}
	var names []string
	for _, a := range p.Attributes() {
		names = append(names, a.Name)
	}
	rows, err := tx.Query(ctx,
		"SELECT name, pgconsent_signed.attr(name) FROM pg_catalog.unnest($1::pg_catalog.text[]) AS name", names)
	if err != nil {
		return nil, fmt.Errorf("the attributes: %w", err)
	}
	var name string
	var value *string
	if _, err := pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		if value != nil {
			values[name] = *value
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("the attributes: %w", err)
	}
	return values, nil
}

// beginSealed makes a transaction a sealed session of the agent, with the agent's settings. It reads the keys on the
// connection keys, which may be the transaction's own.
func beginSealed(ctx context.Context, tx pgx.Tx, keys *pgx.Conn, credential map[string]string,
	settings []Setting) error {
	ring, err := seal.LoadKeyring(ctx, keys)
	if err != nil {
		return err
	}
	var now time.Time
	if err := tx.QueryRow(ctx, "SELECT pg_catalog.transaction_timestamp()").Scan(&now); err != nil {
		return err
	}
	value := ring.NewestKey().Seal(seal.Claims{PID: tx.Conn().PgConn().PID(), Expires: now.Add(seal.SealLifetime),
		Profile:    "why",
		Attributes: credential})
	for _, s := range append(settings[:len(settings):len(settings)], Setting{seal.Setting, value}) {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config($1, $2, true)", s.Name, s.Value); err != nil {
			return fmt.Errorf("set %s: %w", s.Name, err)
		}
	}
	return nil
}
