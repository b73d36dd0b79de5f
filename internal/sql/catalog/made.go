package catalog

import "slices"

// maxDepth ends the search in types that are made of one another.
const maxDepth = 32

// MadeOf tells whether a value of a type is, or has within it, one of another: an element of an array, what a domain or
// a range is over, an attribute of a composite type. A type that the snapshot does not know may be made of anything.
func (s *Snapshot) MadeOf(whole, part uint32) bool { return s.madeOf(whole, part, maxDepth) }

// BaseType is a type, or the one under a domain: what PostgreSQL chooses operators and functions for (getBaseType,
// lsyscache.c).
func (s *Snapshot) BaseType(oid uint32) uint32 {
	for range maxDepth { // domains over domains
		t := s.TypeByOID(oid)
		if t == nil || t.Kind != 'd' {
			break
		}
		oid = t.Base
	}
	return oid
}

// TypeRunsUserCode tells whether a function of other roles may run as values of a type are compared, or made or
// converted where the text says nothing of it.
func (s *Snapshot) TypeRunsUserCode(oid uint32) bool {
	quiet, known := s.plainTypes[oid]
	return !known || !quiet
}

// ReadRunsUserCode tells whether a function of other roles may run as a relation is read, its columns named or not; by
// says, for people, by what.
func (s *Snapshot) ReadRunsUserCode(r *Relation) (by string, runs bool) {
	if r.PlannerRunsUserCode {
		return r.UserCodeSource, true
	}
	for i := range r.Columns {
		if c := &r.Columns[i]; s.TypeRunsUserCode(c.TypeOID) {
			return r.Name.String() + ", column " + c.Name + ": type " + c.Type, true
		}
	}
	return "", false
}

func (s *Snapshot) runs(oid uint32, depth int) bool {
	t := s.TypeByOID(oid)
	return t == nil || depth == 0 || t.RunsUserCode ||
		slices.ContainsFunc(slices.Concat(s.attributes(t), t.CheckTypes, []uint32{t.Element, t.Base}),
			func(inner uint32) bool { return inner != 0 && s.runs(inner, depth-1) })
}

func (s *Snapshot) madeOf(whole, part uint32, depth int) bool {
	if whole == part {
		return true
	}
	t := s.TypeByOID(whole)
	if t == nil || depth == 0 {
		return true
	}
	for _, inner := range append(s.attributes(t), t.Element, t.Base) {
		if inner != 0 && s.madeOf(inner, part, depth-1) {
			return true
		}
	}
	return false
}

// Parts returns a type and the types that a cast to it casts to as well: of the elements of an array, under a domain,
// of the attributes of a composite type.
func (s *Snapshot) Parts(oid uint32) []uint32 { return s.parts(nil, oid, maxDepth) }

func (s *Snapshot) parts(out []uint32, oid uint32, depth int) []uint32 {
	t := s.TypeByOID(oid)
	if t == nil || depth == 0 {
		return out
	}
	out = append(out, oid)
	inner := append(s.attributes(t), t.Element)
	if t.Kind == 'd' {
		inner = append(inner, t.Base)
	}
	for _, part := range inner {
		out = s.parts(out, part, depth-1)
	}
	return out
}

func (s *Snapshot) attributes(t *Type) []uint32 {
	if t.Kind != 'c' {
		return nil
	}
	r, found := s.Relation(t.Name)
	if !found {
		return nil
	}
	var out []uint32
	for _, c := range r.Columns {
		out = append(out, c.TypeOID)
	}
	return out
}
