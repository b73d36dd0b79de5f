package enforce

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/rls"
)

// sizeInterval is the time between two readings of the sizes of tables.
const sizeInterval = time.Minute

// tableSizes has the sizes of tables, and the OIDs that the tables had when their sizes were read.
type tableSizes struct {
	sizes catalog.Sizes
	oids  map[catalog.Name]uint32
}

// coverExactly reports whether s has sizes for exactly these tables.
func (s tableSizes) coverExactly(tables []*catalog.Relation) bool {
	return s.oids != nil && len(s.oids) == len(tables) &&
		!slices.ContainsFunc(tables, func(t *catalog.Relation) bool { return s.oids[t.Name] != t.OID })
}

// readSizes reads how large the tables of the policy's predicates are: the rewriter puts hints for PostgreSQL into
// texts by these sizes. If the size of a table has doubled or halved, it makes a new state with the same rights. Then
// texts are decided again, and prepared statements stay valid. The caller holds mu.
func (d *database) readSizes(ctx context.Context) error {
	s := d.state
	isRecent := time.Since(d.sizesReadAt) < sizeInterval
	if isRecent && s.sizes != nil {
		return nil
	}
	tables, sizes := rls.PredicateTables(s.policy), d.sizes
	if !isRecent || !sizes.coverExactly(tables) {
		of, err := pgcatalog.Sizes(ctx, d.conn, tables)
		if err != nil {
			return err
		}
		sizes = tableSizes{of, map[catalog.Name]uint32{}}
		for _, t := range tables {
			sizes.oids[t.Name] = t.OID
		}
		d.sizes, d.sizesReadAt = sizes, time.Now()
	}
	if s.sizes != nil && similarSizes(s.sizes, sizes.sizes) {
		return nil
	}
	sized := *s
	sized.epoch, sized.sizes = d.enforcer.epochCounter.Add(1), sizes.sizes
	sized.signingRewriter, sized.unsignedRewriter = s.signingRewriter.WithSizes(sizes.sizes), s.unsignedRewriter.WithSizes(sizes.sizes)
	sized.activeRewriter = sized.signingRewriter
	d.state = &sized
	return nil
}

// similarSizes reports whether no table has doubled or halved its size.
func similarSizes(a, b catalog.Sizes) bool {
	if len(a) != len(b) {
		return false
	}
	for name, size := range a {
		other, ok := b[name]
		if !ok || math.Abs(math.Log2((size.Rows+1000)/(other.Rows+1000))) >= 1 {
			return false
		}
	}
	return true
}
