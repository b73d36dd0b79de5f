package oracle

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// An author makes statements. Every choice is taken from its random numbers, so that a seed gives the same statement
// again.
type author struct {
	*rand.Rand
	model    *model
	params   []authorParam
	extended bool // it may have parameters
	plain    bool // it writes as people do: casts, rows as wholes and deep conditions have forms of their own, and fewer
	odd      int  // in a hundred, expressions that are not leak-safe
	negative int  // in a hundred, searches that are negated
	names    int  // aliases that were given
	queries  []*authorItem
	depth    int
}

// authorParam is a parameter: what it may be bound to.
type authorParam struct {
	typ    string
	kind   kind
	oid    uint32 // declared; 0: left open
	values []*string
}

// authorItem is an item of FROM.
type authorItem struct {
	alias   string
	columns []modelColumn
	key     []string // whose values no two rows share
	table   *modelTable
}

// authorScope is what an expression sees.
type authorScope struct {
	items  []*authorItem
	parent *authorScope
	words  []string // text searches that its FROM has besides
}

func (a *author) in(percent int) bool { return a.IntN(100) < percent }

func one[T any](a *author, list ...T) T { return list[a.IntN(len(list))] }

func literal(value string) string {
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}

// column picks one that is in scope.
func (a *author) column(s *authorScope, kinds ...kind) (string, modelColumn, bool) {
	type found struct {
		sql string
		c   modelColumn
	}
	var all []found
	for s := s; s != nil; s = s.parent {
		if s.parent != nil && len(s.items) > 0 && a.in(15) {
			continue // one from outside
		}
		for _, i := range s.items {
			for _, c := range i.columns {
				if len(kinds) == 0 || slices.Contains(kinds, c.kind) {
					all = append(all, found{i.alias + "." + c.name, c})
				}
			}
		}
		if len(all) > 0 {
			break
		}
	}
	if len(all) == 0 {
		return "", modelColumn{}, false
	}
	f := one(a, all...)
	return f.sql, f.c, true
}

// sample is a value of a column, or one of its type.
func (a *author) sample(c modelColumn) (string, bool) {
	if len(c.samples) == 0 || a.in(4) {
		switch c.kind {
		case kindInt, kindNumeric, kindFloat:
			return fmt.Sprint(a.IntN(40)), true
		case kindText:
			return one(a, "", "a", "report"), true
		case kindBool:
			return "t", true
		case kindTexts, kindInts:
			return "{}", true
		case kindJSONB:
			return one(a, "{}", "[]", "null", "1"), true
		case kindRange:
			return one(a, "empty", "(,)"), !strings.HasSuffix(c.typ, "multirange")
		}
		if len(c.samples) == 0 {
			return "", false
		}
	}
	v := one(a, c.samples...)
	return v, len(v) < 300
}

// value is a constant or a parameter of a column's type.
func (a *author) value(c modelColumn) string {
	v, ok := a.sample(c)
	switch {
	case (!ok || a.in(3)) && a.plain:
		return "NULL"
	case !ok || a.in(6):
		return "NULL::" + c.typ
	}
	return a.constant(v, c, func() (string, bool) { return a.sample(c) })
}

// constant writes a value, or a parameter that may be bound to it and to others.
func (a *author) constant(v string, c modelColumn, others func() (string, bool)) string {
	if a.extended && a.in(55) {
		for i, p := range a.params {
			if p.typ == c.typ && a.in(25) || p.kind == c.kind && a.in(6) {
				return a.param(i, c)
			}
		}
		p := authorParam{typ: c.typ, kind: c.kind, values: []*string{&v}}
		for range 3 {
			o, ok := others()
			switch {
			case a.in(12):
				p.values = append(p.values, nil)
			case ok:
				p.values = append(p.values, &o)
			default:
				p.values = append(p.values, &v)
			}
		}
		if a.in(6) {
			p.values[0] = nil
		}
		switch near := declared[c.kind]; {
		case a.in(25) && c.oid != 0 && c.oid < firstOwnOID:
			p.oid = c.oid
		case a.in(25) && len(near) > 0:
			p.oid = one(a, near...)
		}
		a.params = append(a.params, p)
		return a.param(len(a.params)-1, c)
	}
	switch {
	case (c.kind == kindInt || c.kind == kindNumeric) && !strings.ContainsAny(v, "-Nn") && (a.plain || a.in(60)):
		return v
	case a.plain && a.in(97) && c.typ != "tsquery", c.kind == kindText && a.in(60):
		return literal(v)
	}
	return literal(v) + "::" + c.typ
}

// firstOwnOID is that of the first type that is not PostgreSQL's own.
const firstOwnOID = 16384

// declared are types that drivers declare parameters as beside columns of a kind, whatever the column's is.
var declared = map[kind][]uint32{
	kindInt: {pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float8OID}, kindNumeric: {
		pgtype.Int4OID, pgtype.Float8OID, pgtype.NumericOID}, kindFloat: {pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID},
	kindText: {pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.UnknownOID}, kindTime: {
		pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.DateOID},
	kindDate: {pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID}, kindUUID: {pgtype.UUIDOID, pgtype.TextOID},
	kindJSONB: {pgtype.JSONBOID, pgtype.JSONOID}, kindTexts: {
		pgtype.TextArrayOID, pgtype.VarcharArrayOID}, kindInts: {pgtype.Int4ArrayOID, pgtype.Int8ArrayOID},
}

func (a *author) param(i int, c modelColumn) string {
	if a.in(60) && !a.plain || a.in(20) {
		return fmt.Sprintf("$%d::%s", i+1, c.typ)
	}
	return fmt.Sprintf("$%d", i+1)
}

var textColumn = modelColumn{typ: "text", oid: 25, kind: kindText}

// fragment is a part of a text that is in the table, or not.
func (a *author) fragment(c modelColumn) string {
	v := ""
	if len(c.samples) > 0 {
		v = one(a, c.samples...)
	}
	if len(a.model.words) > 0 && (v == "" || a.in(20)) {
		v = one(a, a.model.words...)
	}
	if a.in(5) {
		v = "HIDDEN" // which is in hidden rows
	}
	runes := []rune(v)
	if len(runes) > 4 {
		at := a.IntN(len(runes) - 3)
		runes = runes[at:min(len(runes), at+one(a, 1, 2, 3, 3, 3, 4, 5))]
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`\%_.*+?()[]{}|^$'`, r) {
			return -1
		}
		return r
	}, string(runes))
}

func (a *author) pattern(c modelColumn) string {
	f := a.fragment(c)
	return one(a, "%"+f+"%", "%"+f+"%", f+"%", "%"+f, f, "%", "_%", "", "%"+a.fragment(c)+"%"+f+"%")
}

func (a *author) expression(c modelColumn) string {
	f := a.fragment(c)
	if f == "" {
		return one(a, "^$", ".", "^", "x*")
	}
	return one(a, f, f, "^"+f, f+"$", "^$", ".*", f+"|"+a.fragment(c), "("+f+")+", "[^a-z]"+f, "^[A-M]", f+".{0,3}", "x*")
}

func (a *author) word() string {
	w := "report"
	if len(a.model.words) > 0 {
		w = strings.ToLower(one(a, a.model.words...))
	}
	if a.in(5) {
		w = "hidden:*"
	}
	return w
}

// tsquery is a search, as text.
func (a *author) tsquery() string {
	w := a.word()
	if a.in(a.negative) {
		return one(a, "!"+w, "!"+w+" & !"+a.word(), "!("+w+" | "+a.word()+")", "!"+w+" | "+a.word(), "!!"+w)
	}
	return one(a, w, w, w+" | "+a.word(), w+" & !"+a.word(), w+" & "+a.word(), w+":*", w+" <-> "+a.word())
}

func (a *author) search() string {
	text := func(v string) string {
		return a.constant(v, textColumn, func() (string, bool) { return a.word(), true })
	}
	switch a.IntN(9) {
	case 0:
		return "to_tsquery('english', " + text(a.tsquery()) + ")"
	case 1:
		return "plainto_tsquery('english', " + text(one(a, a.word(), a.word()+" "+a.word(), "", "the")) + ")"
	case 2:
		return "websearch_to_tsquery(" + one(a, "'english', ", "'simple', ") +
			text(one(a, "-"+a.word(), a.word(), a.word()+" or "+a.word(), a.word()+" -"+a.word())) + ")"
	case 3:
		return "to_tsquery('simple', " + text(a.tsquery()) + ")"
	case 4:
		return a.constant(a.tsquery(), modelColumn{typ: "tsquery", oid: 3615}, func() (string, bool) { return a.tsquery(), true })
	case 5:
		return "phraseto_tsquery('english', " + text(a.word()+" "+a.word()) + ")"
	case 6:
		if a.in(25) {
			return one(a, "NULL::tsquery", "''::tsquery")
		}
	}
	if a.plain {
		return one(a, "to_tsquery('simple', "+literal(a.tsquery())+")", literal(a.tsquery()))
	}
	return literal(a.tsquery()) + "::tsquery"
}

// object is a part of a JSON document.
func (a *author) object(c modelColumn) string {
	v, ok := a.sample(c)
	if !ok || a.in(12) {
		return one(a, "{}", "[]", `{"n": null}`, "null")
	}
	if m := jsonPair.FindAllString(v, -1); len(m) > 0 && a.in(80) {
		return "{" + one(a, m...) + "}"
	}
	return v
}

// condition is a truth value.
func (a *author) condition(s *authorScope, depth int) string {
	if a.plain && a.in(80) {
		var parts []string
		for range one(a, 1, 1, 1, 1, 2, 2, 3) {
			switch n := a.IntN(100); {
			case n < 58 || depth == 0 && n < 80:
				parts = append(parts, a.unit(s, 0))
			case n < 80 || depth == 0:
				parts = append(parts, "("+a.unit(s, 0)+" OR "+a.unit(s, 0)+")")
			case n < 84:
				parts = append(parts, "NOT ("+a.unit(s, 0)+")")
			case n < 87:
				parts = append(parts, "("+a.unit(s, 0)+") IS "+one(a, "TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "NULL"))
			default:
				parts = append(parts, a.sub(s, depth-1))
			}
		}
		return strings.Join(parts, " AND ")
	}
	if depth > 0 {
		switch n := a.IntN(100); {
		case n < 14:
			return a.condition(s, depth-1) + " AND " + a.unit(s, depth-1)
		case n < 24:
			return "(" + a.condition(s, depth-1) + " OR " + a.condition(s, depth-1) + ")"
		case n < 33:
			return "NOT (" + a.condition(s, depth-1) + ")"
		case n < 37:
			return "coalesce(" + a.condition(s, depth-1) + ", " + one(a, "true", "false", "NULL") + ")"
		case n < 41:
			return "CASE WHEN " + a.condition(s, depth-1) + " THEN " + a.unit(s, depth-1) + " ELSE " +
				one(a, "true", "false", "NULL", a.unit(s, depth-1)) + " END"
		case n < 46:
			return "(" + a.condition(s, depth-1) + ") IS " +
				one(a, "TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN", "NULL", "NOT NULL", "DISTINCT FROM true", "NOT DISTINCT FROM false")
		case n < 58:
			return a.sub(s, depth-1)
		}
	}
	return a.unit(s, depth)
}

// unit is one that needs no parentheses.
func (a *author) unit(s *authorScope, depth int) string {
	switch n := a.IntN(100); {
	case n < a.odd:
		return a.notLeakSafe(s)
	case n < 72:
		return a.searched(s)
	case n < 92:
		return a.compared(s)
	case n < 96:
		if sql, _, ok := a.column(s); ok {
			return sql + one(a, " IS NULL", " IS NOT NULL")
		}
	case n < 98 && len(s.items) > 0 && !a.plain:
		i := one(a, s.items...)
		if i.table != nil && i.table.partial {
			break
		}
		return one(a, i.alias+" IS NULL", i.alias+" IS NOT NULL", i.alias+" IS NOT DISTINCT FROM NULL",
			"("+i.alias+".*) IS NULL", "to_jsonb("+i.alias+") IS NOT NULL", i.alias+"::text ILIKE '%a%'")
	}
	return a.compared(s)
}

// compared asks of a column what is no search.
func (a *author) compared(s *authorScope) string {
	x, c, ok := a.column(s, kindInt, kindNumeric, kindFloat, kindText, kindDate, kindTime, kindUUID, kindEnum, kindBool)
	if !ok {
		return one(a, "true", "false", "NULL::boolean")
	}
	if c.kind == kindBool {
		return one(a, x, "NOT "+x, x+" IS NOT TRUE", x+" = "+a.value(c))
	}
	if a.in(12) {
		for range 4 {
			if y, d, ok := a.column(s, c.kind); ok && d.typ == c.typ && y != x {
				return x + one(a, " = ", " <> ", " < ", " IS DISTINCT FROM ") + y
			}
		}
	}
	shape := a.IntN(9)
	if a.plain && shape == 2 {
		shape = 8
	}
	switch shape {
	case 0:
		return x + " IN (" + a.value(c) + ", " + a.value(c) + ", " + a.value(c) + one(a, "", "", ", NULL") + ")"
	case 1:
		return x + " NOT IN (" + a.value(c) + ", " + a.value(c) + ")"
	case 2:
		return x + one(a, " = ANY ", " <> ALL ") + "(ARRAY[" + a.value(c) + ", " + a.value(c) + "]::" + c.typ + "[])"
	case 3:
		return x + " BETWEEN " + a.value(c) + " AND " + a.value(c)
	case 4:
		return x + one(a, " IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + a.value(c)
	case 5:
		return a.value(c) + one(a, " = ", " < ", " >= ") + x
	}
	return x + one(a, " = ", " = ", " <> ", " <> ", " < ", " <= ", " > ", " >= ") + a.value(c)
}

// indexed is a search that has an index, of a column or of a text that may be missing.
func (a *author) indexed(s *authorScope) string {
	if vectors := a.vectors(s); len(vectors) > 0 && a.in(45) {
		q := a.tsquery()
		if a.in(40) {
			q = "!" + a.word()
		}
		return one(a, vectors...) + " @@ to_tsquery('simple', " + a.constant(q, textColumn, func() (string, bool) { return a.tsquery(), true }) + ")"
	}
	for range 4 {
		x, c, ok := a.column(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindText)
		if !ok || c.loose || a.in(40) && c.kind == kindText {
			continue
		}
		switch c.kind {
		case kindTSVector:
			q := a.search()
			if name := fmt.Sprintf("q%d", len(s.words)); strings.Contains(q, "tsquery(") && a.in(40) {
				s.words = append(s.words, q+" AS "+name)
				q = name
			}
			if a.in(25) {
				return q + " @@ " + x
			}
			return x + " @@ " + q
		case kindJSONB:
			return x + " @> " + a.constant(a.object(c), c, func() (string, bool) { return a.object(c), true })
		case kindText:
			p := "%" + a.fragment(c) + "%"
			return x + one(a, " LIKE ", " ILIKE ", " ~* ") +
				a.constant(strings.Trim(p, one(a, "%", " ")), textColumn, func() (string, bool) { return p, true })
		}
		return x + one(a, " @> ", " && ", " <@ ") + a.value(c)
	}
	return a.searched(s)
}

// searched is a search by an operator that some index may answer.
func (a *author) searched(s *authorScope) string {
	x, c, ok := a.column(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindRange, kindText)
	for i := 0; ok && a.plain && c.loose && i < 5; i++ {
		x, c, ok = a.column(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindRange, kindText)
	}
	if ok && c.kind == kindText && a.in(50) { // there is more text than anything else
		if y, d, ok := a.column(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindRange); ok {
			x, c = y, d
		}
	}
	if !ok {
		return a.compared(s)
	}
	plain := x
	not := a.in(a.negative)
	switch c.kind {
	case kindTSVector:
		if a.in(20) {
			x = "coalesce(" + x + ", '')"
		}
		return x + " @@ " + a.search()
	case kindJSONB:
		if a.in(15) {
			x = "coalesce(" + x + ", '{}')"
		}
		var sql string
		switch a.IntN(8) {
		case 0:
			sql = x + " ? " + literal(a.key(c))
		case 1:
			sql = x + one(a, " ?| ", " ?& ") + "ARRAY[" + literal(a.key(c)) + ", " + literal(a.key(c)) + "]"
		case 2:
			sql = x + " @? " + literal("$."+a.key(c))
		case 3:
			sql = x + " <@ " + a.value(c)
		case 4:
			sql = "(" + x + " ->> " + literal(a.key(c)) + ")" + one(a, " = ", " <> ", " LIKE ", " IS NOT DISTINCT FROM ") + a.value(textColumn)
		default:
			sql = x + " @> " + a.constant(a.object(c), c, func() (string, bool) { return a.object(c), true })
		}
		return negate(sql, not)
	case kindTexts, kindInts:
		if a.in(15) {
			x = "coalesce(" + x + ", '{}')"
		}
		if a.in(25) {
			if v, ok := a.sample(c); ok {
				element := strings.Trim(strings.Split(strings.Trim(v, "{}"), ",")[0], `"`)
				of := modelColumn{typ: strings.TrimSuffix(c.typ, "[]"), kind: kindOther}
				return a.constant(element, of, func() (string, bool) { return element, true }) + one(a, " = ANY ", " <> ALL ", " = ANY ") + "(" + x + ")"
			}
		}
		v := a.value(c)
		if got, ok := a.sample(c); ok && a.plain && a.in(50) && !strings.ContainsAny(got, `"NULL`) {
			v = literal("{" + strings.Split(strings.Trim(got, "{}"), ",")[0] + "}")
		}
		return negate(x+one(a, " @> ", " && ", " <@ ")+v, not)
	case kindRange:
		return negate(x+one(a, " && ", " @> ", " <@ ")+a.value(c), not)
	}
	if vectors := a.vectors(s); len(vectors) > 0 && a.in(22) {
		return one(a, vectors...) + " @@ " + a.search()
	}
	switch n := a.IntN(100); {
	case n < 12:
		x = "coalesce(" + x + ", '')"
	case n < 16:
		x = "lower(" + x + ")"
	case n < 20 && plain == x && !a.plain:
		x += "::text"
	}
	text := textColumn
	if c.loose {
		x = "(" + plain + ")::text COLLATE \"C\""
	}
	like := func() (string, bool) { return a.pattern(c), true }
	match := func() (string, bool) { return a.expression(c), true }
	switch a.IntN(9) {
	case 0, 1:
		p, _ := like()
		return x + one(a, " LIKE ", " ILIKE ") + a.constant(p, text, like)
	case 2:
		p, _ := like()
		return x + one(a, " NOT LIKE ", " NOT ILIKE ") + a.constant(p, text, like)
	case 3, 4:
		p, _ := match()
		return x + one(a, " ~ ", " ~* ", " !~ ", " !~* ") + a.constant(p, text, match)
	case 5:
		return x + " % " + a.constant(a.fragment(c), text, func() (string, bool) { return a.fragment(c), true })
	case 6:
		if a.plain && a.in(70) {
			break
		}
		return x + one(a, " LIKE ", " ILIKE ", " ~ ") + one(a, "ANY", "ALL") + " (ARRAY[" +
			literal("%"+a.fragment(c)+"%") + ", " + literal(a.pattern(c)) + "])"
	case 7:
		return x + one(a, " SIMILAR TO ", " NOT SIMILAR TO ") + literal("%"+a.fragment(c)+"%")
	}
	return x + " = " + a.value(c)
}

func negate(sql string, not bool) string {
	if not {
		return "NOT " + sql
	}
	return sql
}

func (a *author) key(c modelColumn) string {
	if v, ok := a.sample(c); ok {
		if m := jsonKey.FindAllStringSubmatch(v, -1); len(m) > 0 {
			return one(a, m...)[1]
		}
	}
	return "a"
}

// vectors are text search vectors of texts that may be missing, as an index has them.
func (a *author) vectors(s *authorScope) []string {
	var out []string
	for _, i := range s.items {
		if i.table == nil {
			continue
		}
		for _, c := range i.table.vectors {
			if slices.ContainsFunc(i.columns, func(x modelColumn) bool { return x.name == c }) {
				out = append(out, "to_tsvector('simple', coalesce("+i.alias+"."+c+", ''))")
			}
		}
	}
	return out
}

// notLeakSafe is a condition that keeps a statement from the signed path, mostly.
func (a *author) notLeakSafe(s *authorScope) string {
	x, c, ok := a.column(s, kindText, kindInt, kindTime, kindDate, kindTexts, kindJSONB, kindNumeric)
	if !ok {
		return "lpad('a', 1) = 'a'"
	}
	if a.plain && a.in(70) { // what cannot fail, and so gets no hardened plan
		switch {
		case c.kind == kindText && !c.loose:
			return one(a, "md5("+x+") < '9'", "reverse("+x+") LIKE '%a%'", x+" ~ '(?=e)'", "lpad("+x+", 3) <> 'xxx'", "initcap("+x+") <> 'B'", x+" ~ '(?!z)'")
		case c.kind == kindTime:
			return "date_trunc('month', " + x + ") > '2026-01-15'"
		case c.kind == kindInt:
			return "to_char(" + x + ", 'FM000') > '010'"
		}
	}
	switch c.kind {
	case kindText:
		x += "::text"
		if c.loose {
			x = "(" + x + ` COLLATE "C")`
		}
		return one(a, "lpad("+x+", 3) <> 'xxx'", "md5("+x+") < '9'", "reverse("+x+") LIKE '%a%'", x+" ~ '(?=e)'",
			"length("+x+") > 4", "regexp_replace("+x+", '[aeiou]', '', 'g') <> "+x, "split_part("+
				x+", ' ', 1) > 'C'", "strpos("+x+", 'e') > 0", "initcap("+x+") = "+x,
			"substring("+x+" from 1 for 2) < 'N'", "translate("+x+", 'a', 'b') <> "+x, "upper("+
				x+") > 'B'", "overlay("+x+" placing 'z' from 1) < 'zz'", "right("+x+", 1) >= 'a'", "ascii("+
				x+") % 2 = 0", "quote_literal("+x+") <> ''", "similarity("+x+", 'report') < 0.9")
	case kindInt:
		return one(a, x+" % 3 = 1", x+" / 2 > 3", "abs("+x+") > 2", "to_char("+x+", 'FM000') > '010'",
			"mod("+x+", 2) = 0", "("+x+")::text LIKE '%1%'", "to_hex("+x+"::bigint) < 'b'", "width_bucket("+x+", 0, 100, 4) < 3")
	case kindNumeric:
		return one(a, "round("+x+") > 5", "trunc("+x+") <> 3", "("+x+")::text LIKE '%1%'", "sign("+x+") = 1", "ceil("+x+") > "+x)
	case kindTime, kindDate:
		return one(a, "extract(dow from "+x+") > 2", "date_trunc('month', "+x+") < timestamp '2026-04-01'",
			"to_char("+x+", 'MM') < '06'", "date_part('day', "+x+") > 9")
	case kindTexts:
		return one(a, "cardinality("+x+") > 1", "array_to_string("+x+", ',') LIKE '%a%'",
			"array_position("+x+", 'b') IS NULL", "EXISTS (SELECT FROM unnest("+x+") AS u (v) WHERE u.v > 'b')")
	}
	return one(a, "jsonb_typeof("+x+") = 'object'", x+"::text LIKE '%a%'", "jsonb_path_exists("+x+", '$.*')",
		"EXISTS (SELECT FROM jsonb_each(CASE jsonb_typeof("+x+") WHEN 'object' THEN "+x+" END) AS e WHERE e.key > 'b')")
}

// sub is a condition with a sub-select.
func (a *author) sub(s *authorScope, depth int) string {
	a.depth++
	defer func() { a.depth-- }()
	if a.depth > 2 {
		return a.unit(s, 0)
	}
	from, inner := a.from(s, 1+a.IntN(2), depth)
	where := ""
	if a.in(85) {
		where = " WHERE " + a.condition(inner, depth)
	}
	// what joins it to what is outside
	if link := a.link(s, inner); link != "" && a.in(70) {
		if where == "" {
			where = " WHERE " + link
		} else {
			where += " AND " + link
		}
	}
	switch a.IntN(7) {
	case 0, 1:
		return one(a, "EXISTS", "NOT EXISTS") + " (SELECT " + one(a, "", "1 ", "* ") + "FROM " + from + where + ")"
	case 2, 3, 4:
		x, c, ok := a.column(s)
		if !ok {
			break
		}
		for range 6 {
			y, d, ok := a.column(&authorScope{items: inner.items}, c.kind)
			if ok && d.typ == c.typ {
				return x + one(a, " IN ", " IN ", " NOT IN ", " = ANY ", " <> ALL ") + "(SELECT " + y + " FROM " + from + where + ")"
			}
		}
	case 5:
		if y, d, ok := a.column(&authorScope{items: inner.items}, kindInt, kindDate, kindTime); ok {
			if x, c, ok := a.column(s, d.kind); ok && c.typ == d.typ {
				return x + one(a, " = ", " < ", " >= ") + "(SELECT " + one(a, "min", "max") + "(" + y + ") FROM " + from + where + ")"
			}
		}
	}
	return "(SELECT count(*) FROM " + from + where + ")" + one(a, " > ", " = ", " < ") + fmt.Sprint(a.IntN(4))
}

// link is an equality of columns of two scopes, by a foreign key where there is one.
func (a *author) link(s, inner *authorScope) string {
	var keys, others []string
	for _, i := range inner.items {
		for _, o := range s.items {
			if i.table != nil && o.table != nil {
				keys = append(keys, linked(i, o)...)
				keys = append(keys, linked(o, i)...)
			}
			for _, c := range i.columns {
				for _, d := range o.columns {
					if c.typ == d.typ && (c.kind == kindInt || c.kind == kindUUID || c.kind == kindText) &&
						(c.name == d.name || slices.Contains(i.key, c.name) || slices.Contains(o.key, d.name)) {
						others = append(others, i.alias+"."+c.name+" = "+o.alias+"."+d.name)
					}
				}
			}
		}
	}
	switch {
	case len(keys) > 0 && a.in(80):
		return one(a, keys...)
	case len(others) > 0:
		return one(a, others...)
	}
	return ""
}

func linked(i, o *authorItem) []string {
	var out []string
	for _, l := range i.table.links {
		if l.to != o.table.relation || len(l.from) != len(l.into) {
			continue
		}
		var parts []string
		for k := range l.from {
			if !i.has(l.from[k]) || !o.has(l.into[k]) {
				parts = nil
				break
			}
			parts = append(parts, i.alias+"."+l.from[k]+" = "+o.alias+"."+l.into[k])
		}
		if len(parts) > 0 {
			out = append(out, strings.Join(parts, " AND "))
		}
	}
	return out
}

func (i *authorItem) has(name string) bool {
	return slices.ContainsFunc(i.columns, func(c modelColumn) bool { return c.name == name })
}

// alias is a name for an item of FROM; it may be that of a table or of a column, or one that an outer query has given.
func (a *author) alias() string {
	a.names++
	if a.in(12) {
		t := one(a, a.model.tables...)
		if a.in(50) {
			return one(a, t.columns...).name
		}
		return catalog.QuoteIdent(t.relation.Name)
	}
	if a.names > 2 && a.in(6) {
		return fmt.Sprintf("t%d", 1+a.IntN(a.names))
	}
	return fmt.Sprintf("t%d", a.names)
}

// parts of a JSON document.
var (
	jsonPair = regexp.MustCompile(`"\w+": (?:"[^"\\]*"|-?[0-9.]+|true|false|null)`)
	jsonKey  = regexp.MustCompile(`"(\w+)": `)
)
