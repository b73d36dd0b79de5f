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

// statementAuthor writes random statements. The same seed yields the same statements.
type statementAuthor struct {
	*rand.Rand
	model          *statementModel
	params         []authorParam
	extended       bool // the statement may have parameters, since it is sent in the extended protocol
	plainStyle     bool // write as people do: few casts, whole rows, deeply nested conditions
	oddPercent     int  // percentage of conditions that could reveal hidden rows, by an error for example
	negatedPercent int  // percentage of searches that are negated
	aliasCount     int  // number of aliases so far
	queryItems     []*authorItem
	depth          int
}

// authorParam is a parameter of the statement, with the values to which it may be bound.
type authorParam struct {
	typ    string
	kind   kind
	oid    uint32 // declared type; 0: the client does not declare it
	values []*string
}

// authorItem is an item in FROM.
type authorItem struct {
	alias         string
	columns       []modelColumn
	uniqueColumns []string // columns that together are different in every row
	table         *modelTable
}

// authorScope has the items in FROM that an expression can use.
type authorScope struct {
	items        []*authorItem
	parent       *authorScope
	textSearches []string // text search queries that fromClause must add to FROM
}

func (a *statementAuthor) chance(percent int) bool { return a.IntN(100) < percent }

func pickOne[T any](a *statementAuthor, list ...T) T { return list[a.IntN(len(list))] }

func stringLiteral(value string) string {
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}

// pickColumn returns a random column in scope whose kind is one of these.
func (a *statementAuthor) pickColumn(s *authorScope, kinds ...kind) (string, modelColumn, bool) {
	type candidate struct {
		sql string
		c   modelColumn
	}
	var candidates []candidate
	for s := s; s != nil; s = s.parent {
		if s.parent != nil && len(s.items) > 0 && a.chance(15) {
			continue // sometimes use a column of the outer query
		}
		for _, i := range s.items {
			for _, c := range i.columns {
				if len(kinds) == 0 || slices.Contains(kinds, c.kind) {
					candidates = append(candidates, candidate{i.alias + "." + c.name, c})
				}
			}
		}
		if len(candidates) > 0 {
			break
		}
	}
	if len(candidates) == 0 {
		return "", modelColumn{}, false
	}
	f := pickOne(a, candidates...)
	return f.sql, f.c, true
}

// sampleValue returns a visible value of a column, or sometimes another value of its type.
func (a *statementAuthor) sampleValue(c modelColumn) (string, bool) {
	if len(c.samples) == 0 || a.chance(4) {
		switch c.kind {
		case kindInt, kindNumeric, kindFloat:
			return fmt.Sprint(a.IntN(40)), true
		case kindText:
			return pickOne(a, "", "a", "report"), true
		case kindBool:
			return "t", true
		case kindTexts, kindInts:
			return "{}", true
		case kindJSONB:
			return pickOne(a, "{}", "[]", "null", "1"), true
		case kindRange:
			return pickOne(a, "empty", "(,)"), !strings.HasSuffix(c.typ, "multirange")
		}
		if len(c.samples) == 0 {
			return "", false
		}
	}
	v := pickOne(a, c.samples...)
	return v, len(v) < 300
}

// valueOf returns a constant or a parameter of a column's type.
func (a *statementAuthor) valueOf(c modelColumn) string {
	v, ok := a.sampleValue(c)
	switch {
	case (!ok || a.chance(3)) && a.plainStyle:
		return "NULL"
	case !ok || a.chance(6):
		return "NULL::" + c.typ
	}
	return a.writeConstant(v, c, func() (string, bool) { return a.sampleValue(c) })
}

// writeConstant writes a value as a constant, or as a parameter that may be bound to this and to other values.
func (a *statementAuthor) writeConstant(v string, c modelColumn, otherValue func() (string, bool)) string {
	if a.extended && a.chance(55) {
		for i, p := range a.params {
			if p.typ == c.typ && a.chance(25) || p.kind == c.kind && a.chance(6) {
				return a.paramReference(i, c)
			}
		}
		p := authorParam{typ: c.typ, kind: c.kind, values: []*string{&v}}
		for range 3 {
			o, ok := otherValue()
			switch {
			case a.chance(12):
				p.values = append(p.values, nil)
			case ok:
				p.values = append(p.values, &o)
			default:
				p.values = append(p.values, &v)
			}
		}
		if a.chance(6) {
			p.values[0] = nil
		}
		switch declarable := declaredTypes[c.kind]; {
		case a.chance(25) && c.oid != 0 && c.oid < firstNormalOID:
			p.oid = c.oid
		case a.chance(25) && len(declarable) > 0:
			p.oid = pickOne(a, declarable...)
		}
		a.params = append(a.params, p)
		return a.paramReference(len(a.params)-1, c)
	}
	switch {
	case (c.kind == kindInt || c.kind == kindNumeric) && !strings.ContainsAny(v, "-Nn") && (a.plainStyle || a.chance(60)):
		return v
	case a.plainStyle && a.chance(97) && c.typ != "tsquery", c.kind == kindText && a.chance(60):
		return stringLiteral(v)
	}
	return stringLiteral(v) + "::" + c.typ
}

// firstNormalOID is the lowest OID of objects that are not part of PostgreSQL itself.
const firstNormalOID = 16384

// declaredTypes are the types that drivers declare for a parameter that is compared with a column, by the column's
// kind. The column may have another type.
var declaredTypes = map[kind][]uint32{
	kindInt: {pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float8OID}, kindNumeric: {
		pgtype.Int4OID, pgtype.Float8OID, pgtype.NumericOID}, kindFloat: {pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID},
	kindText: {pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.UnknownOID}, kindTime: {
		pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.DateOID},
	kindDate: {pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID}, kindUUID: {pgtype.UUIDOID, pgtype.TextOID},
	kindJSONB: {pgtype.JSONBOID, pgtype.JSONOID}, kindTexts: {
		pgtype.TextArrayOID, pgtype.VarcharArrayOID}, kindInts: {pgtype.Int4ArrayOID, pgtype.Int8ArrayOID},
}

func (a *statementAuthor) paramReference(i int, c modelColumn) string {
	if a.chance(60) && !a.plainStyle || a.chance(20) {
		return fmt.Sprintf("$%d::%s", i+1, c.typ)
	}
	return fmt.Sprintf("$%d", i+1)
}

var textColumn = modelColumn{typ: "text", oid: 25, kind: kindText}

// textFragment returns a part of a visible text of the column, or sometimes a text that no visible row contains.
func (a *statementAuthor) textFragment(c modelColumn) string {
	v := ""
	if len(c.samples) > 0 {
		v = pickOne(a, c.samples...)
	}
	if len(a.model.words) > 0 && (v == "" || a.chance(20)) {
		v = pickOne(a, a.model.words...)
	}
	if a.chance(5) {
		v = "HIDDEN" // only hidden rows contain this word
	}
	runes := []rune(v)
	if len(runes) > 4 {
		at := a.IntN(len(runes) - 3)
		runes = runes[at:min(len(runes), at+pickOne(a, 1, 2, 3, 3, 3, 4, 5))]
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`\%_.*+?()[]{}|^$'`, r) {
			return -1
		}
		return r
	}, string(runes))
}

func (a *statementAuthor) likePattern(c modelColumn) string {
	f := a.textFragment(c)
	return pickOne(a, "%"+f+"%", "%"+f+"%", f+"%", "%"+f, f, "%", "_%", "", "%"+a.textFragment(c)+"%"+f+"%")
}

func (a *statementAuthor) regexPattern(c modelColumn) string {
	f := a.textFragment(c)
	if f == "" {
		return pickOne(a, "^$", ".", "^", "x*")
	}
	return pickOne(a, f, f, "^"+f, f+"$", "^$", ".*", f+"|"+a.textFragment(c), "("+f+")+", "[^a-z]"+f, "^[A-M]", f+".{0,3}", "x*")
}

func (a *statementAuthor) randomWord() string {
	w := "report"
	if len(a.model.words) > 0 {
		w = strings.ToLower(pickOne(a, a.model.words...))
	}
	if a.chance(5) {
		w = "hidden:*"
	}
	return w
}

// searchQuery returns the text of a random tsquery.
func (a *statementAuthor) searchQuery() string {
	w := a.randomWord()
	if a.chance(a.negatedPercent) {
		return pickOne(a, "!"+w, "!"+w+" & !"+a.randomWord(), "!("+w+" | "+a.randomWord()+")", "!"+w+" | "+a.randomWord(), "!!"+w)
	}
	return pickOne(a, w, w, w+" | "+a.randomWord(), w+" & !"+a.randomWord(), w+" & "+a.randomWord(), w+":*", w+" <-> "+a.randomWord())
}

func (a *statementAuthor) textSearch() string {
	text := func(v string) string {
		return a.writeConstant(v, textColumn, func() (string, bool) { return a.randomWord(), true })
	}
	switch a.IntN(9) {
	case 0:
		return "to_tsquery('english', " + text(a.searchQuery()) + ")"
	case 1:
		return "plainto_tsquery('english', " + text(pickOne(a, a.randomWord(), a.randomWord()+" "+a.randomWord(), "", "the")) + ")"
	case 2:
		return "websearch_to_tsquery(" + pickOne(a, "'english', ", "'simple', ") +
			text(pickOne(a, "-"+a.randomWord(), a.randomWord(), a.randomWord()+" or "+a.randomWord(), a.randomWord()+" -"+a.randomWord())) + ")"
	case 3:
		return "to_tsquery('simple', " + text(a.searchQuery()) + ")"
	case 4:
		return a.writeConstant(a.searchQuery(), modelColumn{typ: "tsquery", oid: 3615}, func() (string, bool) { return a.searchQuery(), true })
	case 5:
		return "phraseto_tsquery('english', " + text(a.randomWord()+" "+a.randomWord()) + ")"
	case 6:
		if a.chance(25) {
			return pickOne(a, "NULL::tsquery", "''::tsquery")
		}
	}
	if a.plainStyle {
		return pickOne(a, "to_tsquery('simple', "+stringLiteral(a.searchQuery())+")", stringLiteral(a.searchQuery()))
	}
	return stringLiteral(a.searchQuery()) + "::tsquery"
}

// jsonFragment returns a part of a JSON document in the column.
func (a *statementAuthor) jsonFragment(c modelColumn) string {
	v, ok := a.sampleValue(c)
	if !ok || a.chance(12) {
		return pickOne(a, "{}", "[]", `{"n": null}`, "null")
	}
	if m := jsonPair.FindAllString(v, -1); len(m) > 0 && a.chance(80) {
		return "{" + pickOne(a, m...) + "}"
	}
	return v
}

// condition returns a random condition.
func (a *statementAuthor) condition(s *authorScope, depth int) string {
	if a.plainStyle && a.chance(80) {
		var parts []string
		for range pickOne(a, 1, 1, 1, 1, 2, 2, 3) {
			switch n := a.IntN(100); {
			case n < 58 || depth == 0 && n < 80:
				parts = append(parts, a.simpleCondition(s, 0))
			case n < 80 || depth == 0:
				parts = append(parts, "("+a.simpleCondition(s, 0)+" OR "+a.simpleCondition(s, 0)+")")
			case n < 84:
				parts = append(parts, "NOT ("+a.simpleCondition(s, 0)+")")
			case n < 87:
				parts = append(parts, "("+a.simpleCondition(s, 0)+") IS "+pickOne(a, "TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "NULL"))
			default:
				parts = append(parts, a.subqueryCondition(s, depth-1))
			}
		}
		return strings.Join(parts, " AND ")
	}
	if depth > 0 {
		switch n := a.IntN(100); {
		case n < 14:
			return a.condition(s, depth-1) + " AND " + a.simpleCondition(s, depth-1)
		case n < 24:
			return "(" + a.condition(s, depth-1) + " OR " + a.condition(s, depth-1) + ")"
		case n < 33:
			return "NOT (" + a.condition(s, depth-1) + ")"
		case n < 37:
			return "coalesce(" + a.condition(s, depth-1) + ", " + pickOne(a, "true", "false", "NULL") + ")"
		case n < 41:
			return "CASE WHEN " + a.condition(s, depth-1) + " THEN " + a.simpleCondition(s, depth-1) + " ELSE " +
				pickOne(a, "true", "false", "NULL", a.simpleCondition(s, depth-1)) + " END"
		case n < 46:
			return "(" + a.condition(s, depth-1) + ") IS " +
				pickOne(a, "TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN", "NULL", "NOT NULL", "DISTINCT FROM true", "NOT DISTINCT FROM false")
		case n < 58:
			return a.subqueryCondition(s, depth-1)
		}
	}
	return a.simpleCondition(s, depth)
}

// simpleCondition returns a random condition that needs no parentheses.
func (a *statementAuthor) simpleCondition(s *authorScope, depth int) string {
	switch n := a.IntN(100); {
	case n < a.oddPercent:
		return a.leakyCondition(s)
	case n < 72:
		return a.operatorSearch(s)
	case n < 92:
		return a.comparison(s)
	case n < 96:
		if sql, _, ok := a.pickColumn(s); ok {
			return sql + pickOne(a, " IS NULL", " IS NOT NULL")
		}
	case n < 98 && len(s.items) > 0 && !a.plainStyle:
		i := pickOne(a, s.items...)
		if i.table != nil && i.table.hasUnusedColumns {
			break
		}
		return pickOne(a, i.alias+" IS NULL", i.alias+" IS NOT NULL", i.alias+" IS NOT DISTINCT FROM NULL",
			"("+i.alias+".*) IS NULL", "to_jsonb("+i.alias+") IS NOT NULL", i.alias+"::text ILIKE '%a%'")
	}
	return a.comparison(s)
}

// comparison returns a comparison of a column, which no index supports.
func (a *statementAuthor) comparison(s *authorScope) string {
	x, c, ok := a.pickColumn(s, kindInt, kindNumeric, kindFloat, kindText, kindDate, kindTime, kindUUID, kindEnum, kindBool)
	if !ok {
		return pickOne(a, "true", "false", "NULL::boolean")
	}
	if c.kind == kindBool {
		return pickOne(a, x, "NOT "+x, x+" IS NOT TRUE", x+" = "+a.valueOf(c))
	}
	if a.chance(12) {
		for range 4 {
			if y, d, ok := a.pickColumn(s, c.kind); ok && d.typ == c.typ && y != x {
				return x + pickOne(a, " = ", " <> ", " < ", " IS DISTINCT FROM ") + y
			}
		}
	}
	shape := a.IntN(9)
	if a.plainStyle && shape == 2 {
		shape = 8
	}
	switch shape {
	case 0:
		return x + " IN (" + a.valueOf(c) + ", " + a.valueOf(c) + ", " + a.valueOf(c) + pickOne(a, "", "", ", NULL") + ")"
	case 1:
		return x + " NOT IN (" + a.valueOf(c) + ", " + a.valueOf(c) + ")"
	case 2:
		return x + pickOne(a, " = ANY ", " <> ALL ") + "(ARRAY[" + a.valueOf(c) + ", " + a.valueOf(c) + "]::" + c.typ + "[])"
	case 3:
		return x + " BETWEEN " + a.valueOf(c) + " AND " + a.valueOf(c)
	case 4:
		return x + pickOne(a, " IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + a.valueOf(c)
	case 5:
		return a.valueOf(c) + pickOne(a, " = ", " < ", " >= ") + x
	}
	return x + pickOne(a, " = ", " = ", " <> ", " <> ", " < ", " <= ", " > ", " >= ") + a.valueOf(c)
}

// indexedSearch returns a search that an index supports, in a column or in a text that may be NULL.
func (a *statementAuthor) indexedSearch(s *authorScope) string {
	if vectors := a.searchVectors(s); len(vectors) > 0 && a.chance(45) {
		q := a.searchQuery()
		if a.chance(40) {
			q = "!" + a.randomWord()
		}
		return pickOne(a, vectors...) + " @@ to_tsquery('simple', " + a.writeConstant(q, textColumn, func() (string, bool) { return a.searchQuery(), true }) + ")"
	}
	for range 4 {
		x, c, ok := a.pickColumn(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindText)
		if !ok || c.equalValuesDiffer || a.chance(40) && c.kind == kindText {
			continue
		}
		switch c.kind {
		case kindTSVector:
			q := a.textSearch()
			if name := fmt.Sprintf("q%d", len(s.textSearches)); strings.Contains(q, "tsquery(") && a.chance(40) {
				s.textSearches = append(s.textSearches, q+" AS "+name)
				q = name
			}
			if a.chance(25) {
				return q + " @@ " + x
			}
			return x + " @@ " + q
		case kindJSONB:
			return x + " @> " + a.writeConstant(a.jsonFragment(c), c, func() (string, bool) { return a.jsonFragment(c), true })
		case kindText:
			p := "%" + a.textFragment(c) + "%"
			return x + pickOne(a, " LIKE ", " ILIKE ", " ~* ") +
				a.writeConstant(strings.Trim(p, pickOne(a, "%", " ")), textColumn, func() (string, bool) { return p, true })
		}
		return x + pickOne(a, " @> ", " && ", " <@ ") + a.valueOf(c)
	}
	return a.operatorSearch(s)
}

// operatorSearch returns a search with an operator that an index may support.
func (a *statementAuthor) operatorSearch(s *authorScope) string {
	x, c, ok := a.pickColumn(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindRange, kindText)
	for i := 0; ok && a.plainStyle && c.equalValuesDiffer && i < 5; i++ {
		x, c, ok = a.pickColumn(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindRange, kindText)
	}
	if ok && c.kind == kindText && a.chance(50) { // otherwise most searches would be in texts
		if y, d, ok := a.pickColumn(s, kindTSVector, kindJSONB, kindTexts, kindInts, kindRange); ok {
			x, c = y, d
		}
	}
	if !ok {
		return a.comparison(s)
	}
	columnSQL := x
	not := a.chance(a.negatedPercent)
	switch c.kind {
	case kindTSVector:
		if a.chance(20) {
			x = "coalesce(" + x + ", '')"
		}
		return x + " @@ " + a.textSearch()
	case kindJSONB:
		if a.chance(15) {
			x = "coalesce(" + x + ", '{}')"
		}
		var sql string
		switch a.IntN(8) {
		case 0:
			sql = x + " ? " + stringLiteral(a.keyPath(c))
		case 1:
			sql = x + pickOne(a, " ?| ", " ?& ") + "ARRAY[" + stringLiteral(a.keyPath(c)) + ", " + stringLiteral(a.keyPath(c)) + "]"
		case 2:
			sql = x + " @? " + stringLiteral("$."+a.keyPath(c))
		case 3:
			sql = x + " <@ " + a.valueOf(c)
		case 4:
			sql = "(" + x + " ->> " + stringLiteral(a.keyPath(c)) + ")" + pickOne(a, " = ", " <> ", " LIKE ", " IS NOT DISTINCT FROM ") + a.valueOf(textColumn)
		default:
			sql = x + " @> " + a.writeConstant(a.jsonFragment(c), c, func() (string, bool) { return a.jsonFragment(c), true })
		}
		return negateIf(sql, not)
	case kindTexts, kindInts:
		if a.chance(15) {
			x = "coalesce(" + x + ", '{}')"
		}
		if a.chance(25) {
			if v, ok := a.sampleValue(c); ok {
				element := strings.Trim(strings.Split(strings.Trim(v, "{}"), ",")[0], `"`)
				elementColumn := modelColumn{typ: strings.TrimSuffix(c.typ, "[]"), kind: kindOther}
				return a.writeConstant(element, elementColumn, func() (string, bool) { return element, true }) +
					pickOne(a, " = ANY ", " <> ALL ", " = ANY ") + "(" + x + ")"
			}
		}
		v := a.valueOf(c)
		if got, ok := a.sampleValue(c); ok && a.plainStyle && a.chance(50) && !strings.ContainsAny(got, `"NULL`) {
			v = stringLiteral("{" + strings.Split(strings.Trim(got, "{}"), ",")[0] + "}")
		}
		return negateIf(x+pickOne(a, " @> ", " && ", " <@ ")+v, not)
	case kindRange:
		return negateIf(x+pickOne(a, " && ", " @> ", " <@ ")+a.valueOf(c), not)
	}
	if vectors := a.searchVectors(s); len(vectors) > 0 && a.chance(22) {
		return pickOne(a, vectors...) + " @@ " + a.textSearch()
	}
	switch n := a.IntN(100); {
	case n < 12:
		x = "coalesce(" + x + ", '')"
	case n < 16:
		x = "lower(" + x + ")"
	case n < 20 && columnSQL == x && !a.plainStyle:
		x += "::text"
	}
	text := textColumn
	if c.equalValuesDiffer {
		x = "(" + columnSQL + ")::text COLLATE \"C\""
	}
	like := func() (string, bool) { return a.likePattern(c), true }
	match := func() (string, bool) { return a.regexPattern(c), true }
	switch a.IntN(9) {
	case 0, 1:
		p, _ := like()
		return x + pickOne(a, " LIKE ", " ILIKE ") + a.writeConstant(p, text, like)
	case 2:
		p, _ := like()
		return x + pickOne(a, " NOT LIKE ", " NOT ILIKE ") + a.writeConstant(p, text, like)
	case 3, 4:
		p, _ := match()
		return x + pickOne(a, " ~ ", " ~* ", " !~ ", " !~* ") + a.writeConstant(p, text, match)
	case 5:
		return x + " % " + a.writeConstant(a.textFragment(c), text, func() (string, bool) { return a.textFragment(c), true })
	case 6:
		if a.plainStyle && a.chance(70) {
			break
		}
		return x + pickOne(a, " LIKE ", " ILIKE ", " ~ ") + pickOne(a, "ANY", "ALL") + " (ARRAY[" +
			stringLiteral("%"+a.textFragment(c)+"%") + ", " + stringLiteral(a.likePattern(c)) + "])"
	case 7:
		return x + pickOne(a, " SIMILAR TO ", " NOT SIMILAR TO ") + stringLiteral("%"+a.textFragment(c)+"%")
	}
	return x + " = " + a.valueOf(c)
}

func negateIf(sql string, not bool) string {
	if not {
		return "NOT " + sql
	}
	return sql
}

func (a *statementAuthor) keyPath(c modelColumn) string {
	if v, ok := a.sampleValue(c); ok {
		if m := jsonKey.FindAllStringSubmatch(v, -1); len(m) > 0 {
			return pickOne(a, m...)[1]
		}
	}
	return "a"
}

// searchVectors returns the expressions of the text search indexes on columns that may be NULL.
func (a *statementAuthor) searchVectors(s *authorScope) []string {
	var out []string
	for _, i := range s.items {
		if i.table == nil {
			continue
		}
		for _, c := range i.table.vectorColumns {
			if slices.ContainsFunc(i.columns, func(x modelColumn) bool { return x.name == c }) {
				out = append(out, "to_tsvector('simple', coalesce("+i.alias+"."+c+", ''))")
			}
		}
	}
	return out
}

// leakyCondition returns a condition that mostly prevents the rewriter from using the signed path.
func (a *statementAuthor) leakyCondition(s *authorScope) string {
	x, c, ok := a.pickColumn(s, kindText, kindInt, kindTime, kindDate, kindTexts, kindJSONB, kindNumeric)
	if !ok {
		return "lpad('a', 1) = 'a'"
	}
	if a.plainStyle && a.chance(70) { // conditions that cannot fail, for which the rewriter makes no hardened plan
		switch {
		case c.kind == kindText && !c.equalValuesDiffer:
			return pickOne(a, "md5("+x+") < '9'", "reverse("+x+") LIKE '%a%'", x+" ~ '(?=e)'", "lpad("+x+", 3) <> 'xxx'", "initcap("+x+") <> 'B'", x+" ~ '(?!z)'")
		case c.kind == kindTime:
			return "date_trunc('month', " + x + ") > '2026-01-15'"
		case c.kind == kindInt:
			return "to_char(" + x + ", 'FM000') > '010'"
		}
	}
	switch c.kind {
	case kindText:
		x += "::text"
		if c.equalValuesDiffer {
			x = "(" + x + ` COLLATE "C")`
		}
		return pickOne(a, "lpad("+x+", 3) <> 'xxx'", "md5("+x+") < '9'", "reverse("+x+") LIKE '%a%'", x+" ~ '(?=e)'",
			"length("+x+") > 4", "regexp_replace("+x+", '[aeiou]', '', 'g') <> "+x, "split_part("+
				x+", ' ', 1) > 'C'", "strpos("+x+", 'e') > 0", "initcap("+x+") = "+x,
			"substring("+x+" from 1 for 2) < 'N'", "translate("+x+", 'a', 'b') <> "+x, "upper("+
				x+") > 'B'", "overlay("+x+" placing 'z' from 1) < 'zz'", "right("+x+", 1) >= 'a'", "ascii("+
				x+") % 2 = 0", "quote_literal("+x+") <> ''", "similarity("+x+", 'report') < 0.9")
	case kindInt:
		return pickOne(a, x+" % 3 = 1", x+" / 2 > 3", "abs("+x+") > 2", "to_char("+x+", 'FM000') > '010'",
			"mod("+x+", 2) = 0", "("+x+")::text LIKE '%1%'", "to_hex("+x+"::bigint) < 'b'", "width_bucket("+x+", 0, 100, 4) < 3")
	case kindNumeric:
		return pickOne(a, "round("+x+") > 5", "trunc("+x+") <> 3", "("+x+")::text LIKE '%1%'", "sign("+x+") = 1", "ceil("+x+") > "+x)
	case kindTime, kindDate:
		return pickOne(a, "extract(dow from "+x+") > 2", "date_trunc('month', "+x+") < timestamp '2026-04-01'",
			"to_char("+x+", 'MM') < '06'", "date_part('day', "+x+") > 9")
	case kindTexts:
		return pickOne(a, "cardinality("+x+") > 1", "array_to_string("+x+", ',') LIKE '%a%'",
			"array_position("+x+", 'b') IS NULL", "EXISTS (SELECT FROM unnest("+x+") AS u (v) WHERE u.v > 'b')")
	}
	return pickOne(a, "jsonb_typeof("+x+") = 'object'", x+"::text LIKE '%a%'", "jsonb_path_exists("+x+", '$.*')",
		"EXISTS (SELECT FROM jsonb_each(CASE jsonb_typeof("+x+") WHEN 'object' THEN "+x+" END) AS e WHERE e.key > 'b')")
}

// subqueryCondition returns a condition that contains a subquery.
func (a *statementAuthor) subqueryCondition(s *authorScope, depth int) string {
	a.depth++
	defer func() { a.depth-- }()
	if a.depth > 2 {
		return a.simpleCondition(s, 0)
	}
	from, inner := a.fromClause(s, 1+a.IntN(2), depth)
	where := ""
	if a.chance(85) {
		where = " WHERE " + a.condition(inner, depth)
	}
	// a condition that compares a column of the subquery with one of the outer query
	if link := a.joinCondition(s, inner); link != "" && a.chance(70) {
		if where == "" {
			where = " WHERE " + link
		} else {
			where += " AND " + link
		}
	}
	switch a.IntN(7) {
	case 0, 1:
		return pickOne(a, "EXISTS", "NOT EXISTS") + " (SELECT " + pickOne(a, "", "1 ", "* ") + "FROM " + from + where + ")"
	case 2, 3, 4:
		x, c, ok := a.pickColumn(s)
		if !ok {
			break
		}
		for range 6 {
			y, d, ok := a.pickColumn(&authorScope{items: inner.items}, c.kind)
			if ok && d.typ == c.typ {
				return x + pickOne(a, " IN ", " IN ", " NOT IN ", " = ANY ", " <> ALL ") + "(SELECT " + y + " FROM " + from + where + ")"
			}
		}
	case 5:
		if y, d, ok := a.pickColumn(&authorScope{items: inner.items}, kindInt, kindDate, kindTime); ok {
			if x, c, ok := a.pickColumn(s, d.kind); ok && c.typ == d.typ {
				return x + pickOne(a, " = ", " < ", " >= ") + "(SELECT " + pickOne(a, "min", "max") + "(" + y + ") FROM " + from + where + ")"
			}
		}
	}
	return "(SELECT count(*) FROM " + from + where + ")" + pickOne(a, " > ", " = ", " < ") + fmt.Sprint(a.IntN(4))
}

// joinCondition returns an equality of a column in inner and a column in s. It uses a foreign key if there is one.
func (a *statementAuthor) joinCondition(s, inner *authorScope) string {
	var keys, others []string
	for _, i := range inner.items {
		for _, o := range s.items {
			if i.table != nil && o.table != nil {
				keys = append(keys, foreignKeyEqualities(i, o)...)
				keys = append(keys, foreignKeyEqualities(o, i)...)
			}
			for _, c := range i.columns {
				for _, d := range o.columns {
					if c.typ == d.typ && (c.kind == kindInt || c.kind == kindUUID || c.kind == kindText) &&
						(c.name == d.name || slices.Contains(i.uniqueColumns, c.name) || slices.Contains(o.uniqueColumns, d.name)) {
						others = append(others, i.alias+"."+c.name+" = "+o.alias+"."+d.name)
					}
				}
			}
		}
	}
	switch {
	case len(keys) > 0 && a.chance(80):
		return pickOne(a, keys...)
	case len(others) > 0:
		return pickOne(a, others...)
	}
	return ""
}

func foreignKeyEqualities(i, o *authorItem) []string {
	var out []string
	for _, l := range i.table.links {
		if l.target != o.table.relation || len(l.columns) != len(l.targetColumns) {
			continue
		}
		var parts []string
		for k := range l.columns {
			if !i.hasColumn(l.columns[k]) || !o.hasColumn(l.targetColumns[k]) {
				parts = nil
				break
			}
			parts = append(parts, i.alias+"."+l.columns[k]+" = "+o.alias+"."+l.targetColumns[k])
		}
		if len(parts) > 0 {
			out = append(out, strings.Join(parts, " AND "))
		}
	}
	return out
}

func (i *authorItem) hasColumn(name string) bool {
	return slices.ContainsFunc(i.columns, func(c modelColumn) bool { return c.name == name })
}

// newAlias returns an alias for an item in FROM. It may also be the name of a table or a column, or an alias in the
// outer query.
func (a *statementAuthor) newAlias() string {
	a.aliasCount++
	if a.chance(12) {
		t := pickOne(a, a.model.tables...)
		if a.chance(50) {
			return pickOne(a, t.columns...).name
		}
		return catalog.QuoteIdent(t.relation.Name)
	}
	if a.aliasCount > 2 && a.chance(6) {
		return fmt.Sprintf("t%d", 1+a.IntN(a.aliasCount))
	}
	return fmt.Sprintf("t%d", a.aliasCount)
}

// These expressions match parts of a JSON document.
var (
	jsonPair = regexp.MustCompile(`"\w+": (?:"[^"\\]*"|-?[0-9.]+|true|false|null)`)
	jsonKey  = regexp.MustCompile(`"(\w+)": `)
)
