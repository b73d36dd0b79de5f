package pgcatalog

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// planned is an expression of which PostgreSQL evaluates what it can while it plans to read a table.
type planned struct {
	relation   uint32
	tree       *tree
	permissive bool // the row policy is permissive
	by         string
	calls      []uint32 // functions of other roles, if one may be run
}

// planned are the expressions of indexes, statistics, partition keys, checks and row policies.
func (l *loader) planned() []planned {
	var out []planned
	for _, i := range l.indexes {
		for _, t := range i.trees() {
			out = append(out, planned{relation: i.relation, tree: t, by: "index " + i.name})
		}
	}
	for _, s := range l.statistics {
		out = append(out, planned{relation: s.relation, tree: s.tree, by: "statistics " + s.name})
	}
	for _, p := range l.partitionKeys {
		out = append(out, planned{relation: p.relation, tree: p.tree, by: "the partition key"})
	}
	for _, c := range l.checks {
		if c.relation != 0 && c.tree != nil {
			out = append(out, planned{relation: c.relation, tree: c.tree, by: "constraint " + c.name})
		}
	}
	for _, p := range l.policies {
		if p.shows != nil {
			out = append(out, planned{relation: p.relation, tree: p.shows, permissive: p.permissive, by: "row policy " + p.name})
		}
	}
	return out
}

// readRuns reads of which relations a read may run functions of other roles. As a plan is made, PostgreSQL works out
// what expressions of their indexes, statistics, partitions, checks and policies make of constants; and it finds rows,
// and partitions, by functions of operator classes.
func (l *loader) readRuns(ctx context.Context) error {
	k := &l.known
	for _, p := range l.policies {
		if !p.permissive {
			l.addRuns(p.relation, "row policy "+p.name+", which is restrictive")
		}
	}
	if err := l.readClassesThatRun(ctx); err != nil {
		return err
	}
	types, err := l.typesThatRun(ctx)
	if err != nil {
		return err
	}
	var found []planned
	named := map[uint32]string{}
	for _, x := range l.planned() {
		for _, oid := range x.tree.types {
			if name, runs := types[oid]; runs {
				l.addRuns(x.relation, x.by+": type "+name)
			}
		}
		if x.calls = k.runAsPlanned(x); len(x.calls) > 0 {
			found = append(found, x)
			for _, oid := range x.calls {
				named[oid] = ""
			}
		}
	}
	if err := l.readSignatures(ctx, named); err != nil {
		return err
	}
	for _, x := range found {
		var names []string
		for _, oid := range x.calls {
			names = append(names, named[oid])
		}
		slices.Sort(names)
		l.addRuns(x.relation, x.by+": "+strings.Join(slices.Compact(names), ", "))
	}
	l.shareRuns()
	return nil
}

// runAsPlanned are the functions of other roles in an expression if PostgreSQL may run one of them while it plans; else
// nil.
func (k *known) runAsPlanned(x planned) []uint32 {
	var functions []uint32
	always := false
	for _, oid := range x.tree.functions {
		f := k.functions[oid]
		if f != nil && (!k.ofAnybody(f) || x.permissive && k.idle(f) || !x.permissive && k.plainSQL(f)) {
			continue
		}
		functions = append(functions, oid)
		always = always || f == nil || f.language == "sql" || f.defaults
	}
	if always || folds(x.tree.text, functions) {
		return functions
	}
	return nil
}

// addRuns notes that a read of a relation may run functions of other roles, and by what.
func (l *loader) addRuns(relation uint32, by string) {
	r := l.relations[relation]
	if r == nil {
		return
	}
	if by = r.Name.String() + ", " + by; !r.PlannerRunsUserCode || by < r.UserCodeSource {
		r.UserCodeSource = by
	}
	r.PlannerRunsUserCode = true
}

// readClassesThatRun finds the relations whose indexes and partition keys have operator classes with functions of
// anybody's.
func (l *loader) readClassesThatRun(ctx context.Context) error {
	if len(l.known.uses.running) == 0 {
		return nil
	}
	var (
		relation uint32
		by       string
	)
	return l.each(ctx, `SELECT i.indrelid, 'index ' || r.relname || ': operator class ' || c.opcname
		  FROM pg_index AS i JOIN pg_class AS r ON r.oid = i.indexrelid
		  JOIN pg_opclass AS c ON c.oid = ANY (i.indclass::oid[]) WHERE c.oid = ANY ($1::oid[])
		UNION SELECT d.partrelid, 'the partition key: operator class ' || c.opcname FROM pg_partitioned_table AS d
		  JOIN pg_opclass AS c ON c.oid = ANY (d.partclass::oid[]) WHERE c.oid = ANY ($1::oid[])`,
		[]any{&relation, &by},
		func() error {
			l.addRuns(relation, by)
			return nil
		}, l.known.uses.running)
}

// typesThatRun are the names of the types for which PostgreSQL itself runs functions of other roles, and of the types
// that are made of these, by OID.
func (l *loader) typesThatRun(ctx context.Context) (map[uint32]string, error) {
	if len(l.known.running) == 0 {
		return nil, nil
	}
	var (
		oid  uint32
		name string
	)
	types := map[uint32]string{}
	return types, l.each(ctx, `WITH RECURSIVE part (whole, of) AS (SELECT t.oid, t.typelem FROM pg_type AS t WHERE t.typelem <> 0
		    UNION ALL SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.typbasetype <> 0
		    UNION ALL SELECT r.rngtypid, r.rngsubtype FROM pg_range AS r UNION ALL SELECT r.rngmultitypid, r.rngtypid FROM pg_range AS r
		    UNION ALL SELECT c.reltype, a.atttypid FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
		      WHERE c.reltype <> 0 AND a.attnum > 0 AND NOT a.attisdropped),
		  runs (oid) AS (SELECT unnest($1::oid[]) UNION SELECT p.whole FROM runs AS r JOIN part AS p ON p.of = r.oid)
		SELECT r.oid, r.oid::regtype::text FROM runs AS r`,
		[]any{&oid, &name},
		func() error {
			types[oid] = name
			return nil
		}, slices.Sorted(maps.Keys(l.known.running)))
}

// readSignatures reads the names of functions with the types of their arguments.
func (l *loader) readSignatures(ctx context.Context, of map[uint32]string) error {
	if len(of) == 0 {
		return nil
	}
	var (
		oid  uint32
		name string
	)
	return l.each(ctx, "SELECT f.oid, f.oid::regprocedure::text FROM unnest($1::oid[]) AS f (oid)",
		[]any{&oid, &name}, func() error {
			of[oid] = name
			return nil
		}, slices.Sorted(maps.Keys(of)))
}

// shareRuns gives to tables that are parts of one another what one of them has: a plan looks at all of them.
func (l *loader) shareRuns() {
	byName := map[catalog.Name]*catalog.Relation{}
	for _, r := range l.relations {
		byName[r.Name] = r
	}
	names := slices.SortedFunc(maps.Keys(byName),
		func(a, b catalog.Name) int { return strings.Compare(a.String(), b.String()) })
	for again := true; again; {
		again = false
		for _, name := range names {
			r := byName[name]
			for _, parent := range r.Parents {
				p := byName[parent]
				switch {
				case p == nil || p.PlannerRunsUserCode == r.PlannerRunsUserCode:
				case p.PlannerRunsUserCode:
					r.PlannerRunsUserCode, r.UserCodeSource, again = true, p.UserCodeSource, true
				default:
					p.PlannerRunsUserCode, p.UserCodeSource, again = true, r.UserCodeSource, true
				}
			}
		}
	}
}

// late are the kinds of nodes that are strict, or do nothing by themselves: PostgreSQL does not fold such a node if a
// column is in it.
var late = []string{"VAR", "CONST", "FUNCEXPR", "OPEXPR", "RELABELTYPE", "COERCEVIAIO", "COLLATEEXPR"}

var (
	nodeName = regexp.MustCompile(`^[A-Z0-9_]+`)
	calling  = regexp.MustCompile(`^:(?:opfuncid|funcid) ([0-9]+)`)
	isNull   = regexp.MustCompile(`^:constisnull true`)
)

// folds tells whether PostgreSQL may run one of some functions while it plans an expression, which is given as it is
// stored. A call whose arguments have a column, and only late nodes beside it, does not run then.
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
