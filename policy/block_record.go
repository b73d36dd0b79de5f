package policy

import "github.com/pgconsent/pgconsent/internal/enforce/predicate"

// recordedDecl is the part of a consent block that says which record gives the consent of a subject.
type recordedDecl struct {
	subject, subjects string
	subjectAt         place
	// attributes with the ids of subjects who need not consent, because they are the caller
	exceptCallers []attributeRef
	record        *recordDecl
	registry      *registryDecl // the subjects consent in pgconsent's consent registry, not in a table of records
}

// recordDecl describes the table of consent records: `record: { table: …, match: …, grantor: …, grantee: …, … }`.
type recordDecl struct {
	place
	table                  string
	match                  []predicate.ColumnPair
	matchAt                place
	grantor                string
	grantee                *recordGranteeDecl
	guardians              *guardiansDecl
	scope                  *scopeDecl
	revokedColumn, expires string
	where                  []block
}

// recordGranteeDecl says to whom a record must give consent: to the caller, or to an id that the agent's write adds to
// a list.
type recordGranteeDecl struct {
	place
	column        string
	grantees      []attributeRef
	everybodyWord string
	element       bool
}

// guardiansDecl names the table of the guardians who may consent for a subject.
type guardiansDecl struct {
	place
	table             string
	match             []predicate.ColumnPair
	subject, guardian string
	where             []block
}

// scopeDecl says to which rows a record applies.
type scopeDecl struct {
	place
	column                   string
	wordColumns, listColumns []wordDecl
	everyRowWord             string
}

// recordedKey returns a decoder for a key that is allowed only if subjects consent by records.
func (d *blockDecoder) recordedKey(b *consentBlock, decode func(*recordedDecl, *node)) func(*node) {
	return func(v *node) {
		if b.records == nil {
			b.records = &recordedDecl{subjectAt: v.Place}
		}
		decode(b.records, v)
	}
}

func (d *blockDecoder) decodeRecord(n *node) *recordDecl {
	r := &recordDecl{place: n.Place, matchAt: n.Place}
	d.decodeFields(n, "record", map[string]func(*node){
		"table":     d.decodeWord(&r.table, "table"),
		"match":     func(v *node) { r.match, r.matchAt = d.decodePairs(v, "match"), v.Place },
		"grantor":   d.decodeWord(&r.grantor, "grantor"),
		"grantee":   func(v *node) { r.grantee = d.decodeRecordGrantee(v) },
		"guardians": func(v *node) { r.guardians = d.decodeGuardians(v) },
		"scope":     func(v *node) { r.scope = d.decodeScope(v) },
		"revoked":   d.decodeWord(&r.revokedColumn, "revoked"),
		"expires":   d.decodeWord(&r.expires, "expires"),
		"where":     func(v *node) { r.where = d.decodeBlocks(v, "where") },
	})
	d.requireFields(n, "record", "table", "grantor", "grantee")
	return r
}

func (d *blockDecoder) decodeRecordGrantee(n *node) *recordGranteeDecl {
	g := &recordGranteeDecl{place: n.Place}
	word := ""
	d.decodeFields(n, "grantee", map[string]func(*node){
		"column": d.decodeWord(&g.column, "column"),
		"to":     func(v *node) { g.grantees = d.decodeAttributeRefs(v, "to") },
		"all":    d.decodeWord(&g.everybodyWord, "all"),
		"is":     d.decodeWord(&word, "is"),
	})
	d.requireFields(n, "grantee", "column")
	g.element = word == "element"
	switch {
	case word != "" && !g.element:
		d.fail(n.Place, `write "is: element"`,
			"under grantee \"is\" takes the word element, the id that a list is about to hold, and nothing else")
	case g.element == (len(g.grantees) > 0):
		d.fail(n.Place, "write to: [attributes that are ids of the caller]", "a grantee needs to know who it is")
	}
	return g
}

func (d *blockDecoder) decodeGuardians(n *node) *guardiansDecl {
	g := &guardiansDecl{place: n.Place}
	d.decodeFields(n, "guardians", map[string]func(*node){
		"table":    d.decodeWord(&g.table, "table"),
		"match":    func(v *node) { g.match = d.decodePairs(v, "match") },
		"subject":  d.decodeWord(&g.subject, "subject"),
		"guardian": d.decodeWord(&g.guardian, "guardian"),
		"where":    func(v *node) { g.where = d.decodeBlocks(v, "where") },
	})
	d.requireFields(n, "guardians", "table", "subject", "guardian")
	return g
}

func (d *blockDecoder) decodeScope(n *node) *scopeDecl {
	s := &scopeDecl{place: n.Place}
	d.decodeFields(n, "scope", map[string]func(*node){
		"column": d.decodeWord(&s.column, "column"),
		"is":     func(v *node) { s.wordColumns = d.decodeWords(v, "is") },
		"in":     func(v *node) { s.listColumns = d.decodeWords(v, "in") },
		"all":    d.decodeWord(&s.everyRowWord, "all"),
	})
	d.requireFields(n, "scope", "column")
	if len(s.wordColumns)+len(s.listColumns) == 0 && s.everyRowWord == "" {
		d.fail(n.Place, "name columns of the row under is (one word) or in (a list), or the word for every row "+
			"under all", "a scope that no row has is no scope")
	}
	return s
}
