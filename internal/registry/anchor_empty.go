package registry

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// AnchorEmpty writes an anchor for a registry without records, so that a later removal of its first records is noticed.
// It changes nothing if the registry has records or an anchor. Migrate calls it with its own connection.
func AnchorEmpty(ctx context.Context, conn *pgx.Conn, k Keys, path, database string) error {
	var id uuid
	var records bool
	if err := conn.QueryRow(ctx,
		"SELECT g.id, EXISTS (SELECT FROM pgconsent.consent_record) FROM pgconsent.consent_registry AS g").
		Scan(&id, &records); err != nil {
		return databaseError("look at the consent registry", err)
	}
	a, err := openAnchor(ctx, path, database, k)
	if err != nil {
		return err
	}
	defer a.close()
	if _, exists := a.content.Anchors[database]; exists || records {
		return nil
	}
	if err := a.prepare(recordHead{id, 0, genesisHash(id)}, time.Now()); err != nil {
		return newAnchorError(false, err)
	}
	if err := a.commit(); err != nil {
		return newAnchorError(false, err)
	}
	return nil
}

// RemoveAnchor removes the anchor of a registry after migrate has removed the registry.
func RemoveAnchor(ctx context.Context, k Keys, path, database string) error {
	a, err := openAnchor(ctx, path, database, k)
	if err != nil {
		return err
	}
	defer a.close()
	if _, exists := a.content.Anchors[database]; !exists {
		return nil
	}
	delete(a.content.Anchors, database)
	if err := a.write(); err != nil {
		return newAnchorError(false, err)
	}
	if err := a.commit(); err != nil {
		return newAnchorError(false, err)
	}
	return nil
}
