package proxy

import (
	"maps"
	"slices"
	"sync"
)

// sharedSettings lets sessions share a map where their settings are equal: most sessions of an application begin with
// the same ones.
type sharedSettings struct {
	mu     sync.Mutex
	recent []map[string]string // the latest one in front
}

// maxSharedSettings is how many different maps are remembered.
const maxSharedSettings = 16

// equalTo returns a map with the same settings. Nobody may change the map any more.
func (s *sharedSettings) equalTo(settings map[string]string) map[string]string {
	if len(settings) == 0 {
		return settings
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.recent {
		if maps.Equal(m, settings) {
			return m
		}
	}
	s.recent = slices.Insert(s.recent, 0, settings)[:min(len(s.recent)+1, maxSharedSettings)]
	return settings
}
