package pgcatalog

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
)

// ofAnybody tells the same of a function as ofOthers, but that code in C of any extension is not meant.
func ofAnybody(p string) string {
	return "(" + ofOthers(p) + " AND NOT (" + p + ".prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'c') AND " + extensionOf("pg_proc", p+".oid") + " <> ''))"
}

// typeRuns tells of a type, a row of pg_type, that PostgreSQL runs such a function by itself: as it compares values of it, converts them, makes one of a text that stands beside it,
// as of an array of a domain, or makes JSON of one.
func typeRuns(t string) string {
	return `EXISTS (SELECT FROM (
		      SELECT u.castfunc FROM pg_cast AS u WHERE u.castsource = ` + t + `.oid AND (u.castcontext = 'i' OR u.casttarget = 'json'::regtype)
		      UNION ALL SELECT r.rngcanonical FROM pg_range AS r WHERE r.rngtypid = ` + t + `.oid
		      UNION ALL SELECT m.amproc FROM pg_opclass AS q JOIN pg_amproc AS m ON m.amprocfamily = q.opcfamily
		        WHERE q.opcdefault AND q.opcintype = ` + t + `.oid AND q.opcmethod IN (SELECT am.oid FROM pg_am AS am WHERE am.amname IN ('btree', 'hash')) OR q.oid = (SELECT r.rngsubopc FROM pg_range AS r WHERE r.rngtypid = ` + t + `.oid)
		      UNION ALL SELECT m[1]::oid FROM pg_constraint AS k CROSS JOIN regexp_matches(k.conbin::text, ':(?:opfuncid|funcid) ([0-9]+)', 'g') AS m WHERE k.contypid = ` + t + `.oid
		    ) AS f (oid) JOIN pg_proc AS p ON p.oid = f.oid WHERE ` + ofAnybody("p") + `)`
}

// typesThatRun are these, and what is made of them.
var typesThatRun = `WITH RECURSIVE part (whole, of) AS (SELECT t.oid, t.typelem FROM pg_type AS t WHERE t.typelem <> 0 UNION ALL SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.typbasetype <> 0
		    UNION ALL SELECT r.rngtypid, r.rngsubtype FROM pg_range AS r UNION ALL SELECT r.rngmultitypid, r.rngtypid FROM pg_range AS r
		    UNION ALL SELECT c.reltype, a.atttypid FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid WHERE c.reltype <> 0 AND a.attnum > 0 AND NOT a.attisdropped),
		  runs (oid) AS (SELECT t.oid FROM pg_type AS t WHERE ` + typeRuns("t") + ` UNION SELECT p.whole FROM runs AS r JOIN part AS p ON p.of = r.oid)
		  SELECT r.oid FROM runs AS r`

// asMade tells of an extension's function in SQL, a row of pg_proc, that its body reads nothing, runs no text, and names no function, no type and no operator but those of PostgreSQL and of extensions that are known: its text, or what
// PostgreSQL keeps parsed.
func asMade(p string) string {
	others := func(class, schema, is string) string {
		return "EXISTS (SELECT FROM " + class + " AS n WHERE " + is + " AND n.oid >= 16384 AND n." + schema + " NOT IN " + ours + " AND NOT " + ofHonest(class, "n.oid") + ")"
	}
	body := p + ".prosqlbody::text"
	return "NOT " + hasDefaults(p) + " AND CASE WHEN " + p + ".prosqlbody IS NULL THEN " + p + `.prosrc COLLATE "C" !~* '"|[^\x01-\x7f]|\w\$|\m(from|into|table|with|execute|` + running + `)\M'
		  AND NOT EXISTS (SELECT FROM regexp_split_to_table(lower(` + p + `.prosrc COLLATE "C"), '\W+') AS w (word) WHERE ` + others("pg_proc", "pronamespace", "n.proname = w.word::name") + " OR " + others("pg_type", "typnamespace", "n.typname = w.word::name") + `) AND NOT ` + operators(p+".prosrc") + `
		ELSE ` + body + ` !~ ':relid [1-9]' AND NOT ` + functions(body, `p.proname ~ '^(`+running+`)$' OR p.oid >= 16384 AND NOT `+ofHonest("pg_proc", "p.oid")) + `
		  AND NOT EXISTS (SELECT FROM regexp_matches(` + body + `, '` + typesIn + `', 'g') AS w WHERE ` + others("pg_type", "typnamespace", "n.oid = w[1]::oid") + ") END"
}

// readRuns reads of which relations a read may run functions of others. As a plan is made, PostgreSQL works out what expressions of their indexes, statistics, partitions, checks and policies make of constants;
// and it finds rows, and partitions, by functions of operator classes.
func (l *loader) readRuns(ctx context.Context) error {
	var (
		oid       uint32
		tree, by  string
		functions []uint32
		always    bool
	)
	// Each of the queries by name is worked out once.
	err := l.each(ctx, `WITH others AS MATERIALIZED (SELECT p.oid FROM pg_proc AS p WHERE `+ofAnybody("p")+`),
		  classes AS MATERIALIZED (SELECT DISTINCT q.oid, q.opcname FROM pg_opclass AS q JOIN pg_amproc AS m ON m.amprocfamily = q.opcfamily JOIN others AS f ON f.oid = m.amproc),
		  types AS MATERIALIZED (`+typesThatRun+`),
		  trees (relation, tree, permissive, by) AS (SELECT i.indrelid, x.tree, false, 'index ' || c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid CROSS JOIN LATERAL (VALUES (i.indexprs::text), (i.indpred::text)) AS x (tree) WHERE x.tree IS NOT NULL
		    UNION ALL SELECT s.stxrelid, s.stxexprs::text, false, 'statistics ' || s.stxname FROM pg_statistic_ext AS s WHERE s.stxexprs IS NOT NULL
		    UNION ALL SELECT d.partrelid, d.partexprs::text, false, 'the partition key' FROM pg_partitioned_table AS d WHERE d.partexprs IS NOT NULL
		    UNION ALL SELECT k.conrelid, k.conbin::text, false, 'constraint ' || k.conname FROM pg_constraint AS k WHERE k.contype = 'c' AND k.conrelid <> 0
		    UNION ALL SELECT l.polrelid, l.polqual::text, l.polpermissive, 'row policy ' || l.polname FROM pg_policy AS l WHERE l.polqual IS NOT NULL AND `+ofCustomers+`)
		SELECT i.indrelid, '', '{}'::oid[], true, 'index ' || r.relname || ': operator class ' || c.opcname FROM pg_index AS i JOIN pg_class AS r ON r.oid = i.indexrelid JOIN classes AS c ON c.oid = ANY (i.indclass::oid[])
		UNION SELECT d.partrelid, '', '{}', true, 'the partition key: operator class ' || c.opcname FROM pg_partitioned_table AS d JOIN classes AS c ON c.oid = ANY (d.partclass::oid[])
		UNION SELECT l.polrelid, '', '{}', true, 'row policy ' || l.polname || ', which is restrictive' FROM pg_policy AS l WHERE NOT l.polpermissive AND `+ofCustomers+`
		UNION SELECT x.relation, '', '{}', true, x.by || ': type ' || t.oid::regtype FROM trees AS x CROSS JOIN LATERAL regexp_matches(x.tree, '`+typesIn+`', 'g') AS m JOIN types AS t ON t.oid = m[1]::oid
		UNION ALL SELECT x.relation, x.tree, array_agg(f.oid), bool_or(p.prolang = `+inSQL+` OR `+hasDefaults("p")+`), x.by || ': ' || string_agg(DISTINCT f.oid::regprocedure::text, ', ')
		FROM trees AS x CROSS JOIN LATERAL regexp_matches(x.tree, ':(?:opfuncid|funcid) ([0-9]+)', 'g') AS m JOIN others AS f ON f.oid = m[1]::oid JOIN pg_proc AS p ON p.oid = f.oid WHERE NOT CASE WHEN x.permissive THEN `+idle("p")+` ELSE `+plainSQL("p")+` END GROUP BY x.relation, x.tree, x.by`,
		[]any{&oid, &tree, &functions, &always, &by},
		func() error {
			if r := l.relations[oid]; r != nil && (always || folds(tree, functions)) {
				if by = r.Name.String() + ", " + by; !r.Runs || by < r.RunsBy {
					r.RunsBy = by
				}
				r.Runs = true
			}
			functions = nil
			return nil
		})
	l.shareRuns()
	return err
}

// shareRuns gives to tables that are parts of one another what one of them has: a plan looks at all of them.
func (l *loader) shareRuns() {
	byName := map[catalog.Name]*catalog.Relation{}
	for _, r := range l.relations {
		byName[r.Name] = r
	}
	names := slices.SortedFunc(maps.Keys(byName), func(a, b catalog.Name) int { return strings.Compare(a.String(), b.String()) })
	for again := true; again; {
		again = false
		for _, name := range names {
			r := byName[name]
			for _, parent := range r.Parents {
				p := byName[parent]
				switch {
				case p == nil || p.Runs == r.Runs:
				case p.Runs:
					r.Runs, r.RunsBy, again = true, p.RunsBy, true
				default:
					p.Runs, p.RunsBy, again = true, r.RunsBy, true
				}
			}
		}
	}
}

// late are the expressions that are strict, or nothing by themselves: PostgreSQL folds none that has a column.
var late = []string{"VAR", "CONST", "FUNCEXPR", "OPEXPR", "RELABELTYPE", "COERCEVIAIO", "COLLATEEXPR"}

var (
	nodeName = regexp.MustCompile(`^[A-Z0-9_]+`)
	calling  = regexp.MustCompile(`^:(?:opfuncid|funcid) ([0-9]+)`)
	isNull   = regexp.MustCompile(`^:constisnull true`)
)

// folds tells of an expression, as it is stored, that one of some functions may be run as a plan is made. One that is called with a column, and with what is folded with none, is not.
func folds(tree string, functions []uint32) bool {
	if len(functions) == 0 {
		return false
	}
	type node struct{ calls, column, late bool }
	stack := []node{{late: true}}
	for i := 0; i < len(tree); i++ {
		at := &stack[len(stack)-1]
		switch rest := tree[i:]; tree[i] {
		case '\\':
			i++
		case '{':
			name := nodeName.FindString(rest[1:])
			stack = append(stack, node{column: name == "VAR", late: slices.Contains(late, name)})
		case ':':
			if m := calling.FindStringSubmatch(rest); m != nil {
				oid, err := strconv.ParseUint(m[1], 10, 32)
				at.calls = at.calls || err != nil || slices.Contains(functions, uint32(oid))
			}
			at.late = at.late && !isNull.MatchString(rest)
		case '}':
			if len(stack) == 1 || at.calls && !(at.column && at.late) {
				return true
			}
			inner := *at
			stack = stack[:len(stack)-1]
			at = &stack[len(stack)-1]
			at.column, at.late = at.column || inner.column, at.late && inner.late
		}
	}
	return len(stack) != 1
}
