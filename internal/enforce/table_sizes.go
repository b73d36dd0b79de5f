package enforce

import (
	"context"
	"math"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/rls"
)

// sizeInterval is the time between two readings of the sizes of tables.
const sizeInterval = time.Minute

// readSizes reads how large the tables are, for the rewriter's hints. Where one has doubled or halved there is a new
// state of the same rights: verdicts are made anew, and prepared statements stay valid. The caller holds mu.
func (d *database) readSizes(ctx context.Context) error {
	s := d.state
	if s.sizes != nil && time.Since(d.sizesReadAt) < sizeInterval {
		return nil
	}
	sizes, err := pgcatalog.Sizes(ctx, d.conn, rls.Tables(s.policy))
	if err != nil {
		return err
	}
	d.sizesReadAt = time.Now()
	if s.sizes != nil && similarSizes(s.sizes, sizes) {
		return nil
	}
	sized := *s
	sized.epoch, sized.sizes = d.e.epochs.Add(1), sizes
	sized.signingRewriter, sized.unsignedRewriter = s.signingRewriter.WithSizes(sizes), s.unsignedRewriter.WithSizes(sizes)
	sized.activeRewriter = sized.signingRewriter
	d.state = &sized
	return nil
}

// similarSizes tells whether no size has doubled or halved.
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
