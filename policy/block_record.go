package policy

import "github.com/pgconsent/pgconsent/internal/enforce/predicate"

// recordedDecl is consent that each subject gives by a record.
type recordedDecl struct {
	subject, subjects string
	subjectAt         place
	but               []attributeRef
	record            *recordDecl
	registry          *registryDecl // instead of a record
}

// recordDecl is the table of the records: `record: { table: …, match: …, grantor: …, grantee: …, … }`.
type recordDecl struct {
	place
	table                  string
	match                  []predicate.Pair
	matchAt                place
	grantor                string
	grantee                *recordGranteeDecl
	guardians              *guardiansDecl
	scope                  *scopeDecl
	revokedColumn, expires string
	where                  []block
}

// recordGranteeDecl says to whom a record gives consent: to the caller, or to an id that is about to enter a list.
type recordGranteeDecl struct {
	place
	column  string
	to      []attributeRef
	all     string
	element bool
}

type guardiansDecl struct {
	place
	table             string
	match             []predicate.Pair
	subject, guardian string
	where             []block
}

type scopeDecl struct {
	place
	column string
	is, in []wordDecl
	all    string
}

// recordedKey reads a key that only consent by records has.
func (d *blockDecoder) recordedKey(b *consentBlock, read func(*recordedDecl, *node)) func(*node) {
	return func(v *node) {
		if b.records == nil {
			b.records = &recordedDecl{subjectAt: v.Place}
		}
		read(b.records, v)
	}
}

func (d *blockDecoder) decodeRecord(n *node) *recordDecl {
	r := &recordDecl{place: n.Place, matchAt: n.Place}
	d.fields(n, "record", map[string]func(*node){
		"table":     d.word(&r.table, "table"),
		"match":     func(v *node) { r.match, r.matchAt = d.pairs(v, "match"), v.Place },
		"grantor":   d.word(&r.grantor, "grantor"),
		"grantee":   func(v *node) { r.grantee = d.decodeRecordGrantee(v) },
		"guardians": func(v *node) { r.guardians = d.decodeGuardians(v) },
		"scope":     func(v *node) { r.scope = d.decodeScope(v) },
		"revoked":   d.word(&r.revokedColumn, "revoked"),
		"expires":   d.word(&r.expires, "expires"),
		"where":     func(v *node) { r.where = d.decodeBlocks(v, "where") },
	})
	d.need(n, "record", "table", "grantor", "grantee")
	return r
}

func (d *blockDecoder) decodeRecordGrantee(n *node) *recordGranteeDecl {
	g := &recordGranteeDecl{place: n.Place}
	is := ""
	d.fields(n, "grantee", map[string]func(*node){
		"column": d.word(&g.column, "column"),
		"to":     func(v *node) { g.to = d.attributeRefs(v, "to") },
		"all":    d.word(&g.all, "all"),
		"is":     d.word(&is, "is"),
	})
	d.need(n, "grantee", "column")
	g.element = is == "element"
	switch {
	case is != "" && !g.element:
		d.fail(n.Place, `write "is: element"`,
			"under grantee \"is\" takes the word element, the id that a list is about to hold, and nothing else")
	case g.element == (len(g.to) > 0):
		d.fail(n.Place, "write to: [attributes that are ids of the caller]", "a grantee needs to know who it is")
	}
	return g
}

func (d *blockDecoder) decodeGuardians(n *node) *guardiansDecl {
	g := &guardiansDecl{place: n.Place}
	d.fields(n, "guardians", map[string]func(*node){
		"table":    d.word(&g.table, "table"),
		"match":    func(v *node) { g.match = d.pairs(v, "match") },
		"subject":  d.word(&g.subject, "subject"),
		"guardian": d.word(&g.guardian, "guardian"),
		"where":    func(v *node) { g.where = d.decodeBlocks(v, "where") },
	})
	d.need(n, "guardians", "table", "subject", "guardian")
	return g
}

func (d *blockDecoder) decodeScope(n *node) *scopeDecl {
	s := &scopeDecl{place: n.Place}
	d.fields(n, "scope", map[string]func(*node){
		"column": d.word(&s.column, "column"),
		"is":     func(v *node) { s.is = d.words(v, "is") },
		"in":     func(v *node) { s.in = d.words(v, "in") },
		"all":    d.word(&s.all, "all"),
	})
	d.need(n, "scope", "column")
	if len(s.is)+len(s.in) == 0 && s.all == "" {
		d.fail(n.Place, "name columns of the row under is (one word) or in (a list), or the word for every row "+
			"under all", "a scope that no row has is no scope")
	}
	return s
}
