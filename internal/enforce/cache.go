package enforce

import (
	"math"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// cacheKey has everything that a verdict depends on. The epoch stands for the database, policy, catalog, key and
// profile.
type cacheKey struct {
	text                string
	protocol            verdict.Protocol
	epoch               uint64
	canSign             bool
	hidesKeyOnlyColumns bool
	userSetting         string // the setting that names the session's user, if the text may name it; else ""
}

// verdictCache holds verdicts, also refusals, up to a number of bytes.
type verdictCache struct {
	verdicts   boundedCache[cacheKey, *verdict.Verdict]
	maxEntries int
}

// verdictOverhead is how many bytes a verdict takes besides its texts and accesses: a measured value, rounded up.
const verdictOverhead = 1024

func newVerdictCache(bytes uint64) (*verdictCache, error) {
	verdicts, err := newBoundedCache(bytes, entryBytes)
	return &verdictCache{verdicts: verdicts, maxEntries: int(min(bytes/64, math.MaxInt32))}, err
}

// entryBytes returns how many bytes an entry of the cache takes.
func entryBytes(k cacheKey, v *verdict.Verdict) uint32 {
	w := verdictOverhead + len(k.text) + len(v.Text)
	if j, ok := v.EnforcerDetail.(*judgement); ok {
		for _, t := range j.record.Tables {
			w += 64 + len(t.Name)
			for _, c := range t.Columns {
				w += 16 + len(c)
			}
		}
		for _, f := range j.record.Functions {
			w += 16 + len(f)
		}
	}
	return uint32(min(w, math.MaxUint32))
}

func (c *verdictCache) get(k cacheKey) (*verdict.Verdict, bool) { return c.verdicts.GetIfPresent(k) }

func (c *verdictCache) put(k cacheKey, v *verdict.Verdict) {
	if len(k.text) <= c.maxEntries {
		c.verdicts.Set(k, v)
	}
}

func (c *verdictCache) size() (entries int, bytes uint64) {
	return c.verdicts.EstimatedSize(), c.verdicts.WeightedSize()
}
