package proxy

import "iter"

// byName maps names of statements or portals to them. The zero value has none, and an idle session needs no memory for
// more. The empty name, which drivers use most, is not looked up in the map.
type byName[V any] struct {
	unnamed *V            // nil: there is none
	named   map[string]*V // nil until the first one
}

// get returns the value of a name, or nil.
func (m *byName[V]) get(name string) *V {
	if name == "" {
		return m.unnamed
	}
	return m.named[name]
}

// set sets the value of a name, which is not nil.
func (m *byName[V]) set(name string, value *V) {
	switch {
	case name == "":
		m.unnamed = value
	case m.named == nil:
		m.named = map[string]*V{name: value}
	default:
		m.named[name] = value
	}
}

func (m *byName[V]) remove(name string) {
	if name == "" {
		m.unnamed = nil
	} else {
		delete(m.named, name)
	}
}

// len returns how many names have a value.
func (m *byName[V]) len() int {
	if m.unnamed != nil {
		return len(m.named) + 1
	}
	return len(m.named)
}

// all returns all names with their values. The caller may remove names on the way.
func (m *byName[V]) all() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		if m.unnamed != nil && !yield("", m.unnamed) {
			return
		}
		for name, value := range m.named {
			if !yield(name, value) {
				return
			}
		}
	}
}
