package enforce

import (
	"context"
	"math"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/rls"
)

// remeasure is how old the sizes of tables may grow.
const remeasure = time.Minute

// measure reads how large the tables are, for the rewriter's hints. Where one has become another size the state is
// another, of the same rights: verdicts are made anew, and prepared statements stay good. The caller holds mu.
func (d *database) measure(ctx context.Context) error {
	s := d.state
	if s.sizes != nil && time.Since(d.sized) < remeasure {
		return nil
	}
	sizes, err := pgcatalog.Sizes(ctx, d.conn, rls.Tables(s.policy))
	if err != nil {
		return err
	}
	d.sized = time.Now()
	if s.sizes != nil && alike(s.sizes, sizes) {
		return nil
	}
	sized := *s
	sized.epoch, sized.sizes = d.e.epochs.Add(1), sizes
	sized.door, sized.plain = s.door.WithSizes(sizes), s.plain.WithSizes(sizes)
	sized.signing = sized.door
	d.state = &sized
	return nil
}

// alike tells whether no size has doubled or halved.
func alike(a, b catalog.Sizes) bool {
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
