package catalog

import "slices"

// maxTypeDepth bounds how deep types that contain other types are searched.
const maxTypeDepth = 32

// TypeContains tells whether a value of the type container is, or contains, a value of the type contained. An array
// contains its element type, a domain its base type, a range its subtype, and a composite type the types of its
// attributes. A type that the snapshot does not know may contain any type.
func (s *Snapshot) TypeContains(container, contained uint32) bool {
	return s.typeContains(container, contained, maxTypeDepth)
}

// BaseType returns the type for which PostgreSQL chooses operators and functions: the base type of a domain, otherwise
// the type itself (getBaseType, lsyscache.c).
func (s *Snapshot) BaseType(oid uint32) uint32 {
	for range maxTypeDepth { // a domain may be based on another domain
		t := s.TypeByOID(oid)
		if t == nil || t.Kind != 'd' {
			break
		}
		oid = t.Base
	}
	return oid
}

// TypeRunsUserCode tells whether PostgreSQL itself may call a function of another role when it compares, makes or
// converts values of a type. No statement has to name the function for that.
func (s *Snapshot) TypeRunsUserCode(oid uint32) bool {
	isNative, isKnown := s.nativeTypes[oid]
	return !isKnown || !isNative
}

// ReadRunsUserCode tells whether PostgreSQL may call a function of another role when a statement reads a relation,
// whichever columns it names. The result source names the object that causes the call, for messages.
func (s *Snapshot) ReadRunsUserCode(r *Relation) (source string, runs bool) {
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

func (s *Snapshot) typeRunsUserCode(oid uint32, depth int) bool {
	t := s.TypeByOID(oid)
	return t == nil || depth == 0 || t.RunsUserCode ||
		slices.ContainsFunc(slices.Concat(s.attributeTypes(t), t.CheckTypes, []uint32{t.Element, t.Base}),
			func(inner uint32) bool { return inner != 0 && s.typeRunsUserCode(inner, depth-1) })
}

func (s *Snapshot) typeContains(container, contained uint32, depth int) bool {
	if container == contained {
		return true
	}
	t := s.TypeByOID(container)
	if t == nil || depth == 0 {
		return true
	}
	for _, inner := range append(s.attributeTypes(t), t.Element, t.Base) {
		if inner != 0 && s.typeContains(inner, contained, depth-1) {
			return true
		}
	}
	return false
}

// CastTargets returns a type, and the types to which a cast to it also casts parts of the value: the elements of an
// array, the base type of a domain, the attributes of a composite type.
func (s *Snapshot) CastTargets(oid uint32) []uint32 { return s.elementTypes(nil, oid, maxTypeDepth) }

func (s *Snapshot) elementTypes(out []uint32, oid uint32, depth int) []uint32 {
	t := s.TypeByOID(oid)
	if t == nil || depth == 0 {
		return out
	}
	out = append(out, oid)
	inner := append(s.attributeTypes(t), t.Element)
	if t.Kind == 'd' {
		inner = append(inner, t.Base)
	}
	for _, part := range inner {
		out = s.elementTypes(out, part, depth-1)
	}
	return out
}

func (s *Snapshot) attributeTypes(t *Type) []uint32 {
	if t.Kind != 'c' {
		return nil
	}
	relation, exists := s.Relation(t.Name)
	if !exists {
		return nil
	}
	var out []uint32
	for _, c := range relation.Columns {
		out = append(out, c.TypeOID)
	}
	return out
}
