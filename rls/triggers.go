package rls

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// triggerName returns the quoted name of a trigger of pgconsent on a relation. PostgreSQL copies triggers of a
// partitioned table to its partitions with the same names (CloneRowTriggersToPartition in tablecmds.c). So the name of
// a partition's own trigger also contains a hash of the partition's name.
func triggerName(r *catalog.Relation, name string) string {
	if !r.IsPartition {
		return catalog.QuoteIdent(name)
	}
	sum := sha256.Sum256([]byte(r.Name.Schema + "\x00" + r.Name.Name))
	return catalog.QuoteIdent(name + "_" + hex.EncodeToString(sum[:8]))
}
