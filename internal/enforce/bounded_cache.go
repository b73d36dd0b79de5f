package enforce

import "github.com/maypok86/otter/v2"

// boundedCache is a cache with a limit of bytes. It prefers keys that are asked for often: a client whose keys are
// always new does not evict those of others. Several goroutines may use it.
//
// It is an interface, and not the otter.Cache that implements it, since every package that imports this one would
// compile the generic code of otter once more: two seconds each.
type boundedCache[K comparable, V any] interface {
	GetIfPresent(key K) (V, bool)
	Set(key K, value V) (V, bool)
	EstimatedSize() int
	WeightedSize() uint64
	CleanUp()
	InvalidateAll()
	StopAllGoroutines() bool
}

// newBoundedCache returns a cache of so many bytes. weigh returns how many of them an entry takes.
func newBoundedCache[K comparable, V any](bytes uint64, weigh func(K, V) uint32) (boundedCache[K, V], error) {
	return otter.New(&otter.Options[K, V]{MaximumWeight: bytes, Weigher: weigh})
}

// closeCache frees a cache, which must not be used afterwards.
func closeCache[K comparable, V any](c boundedCache[K, V]) {
	c.InvalidateAll()
	c.StopAllGoroutines()
}
