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

// plannedExpression is an expression whose constant parts PostgreSQL may evaluate while it plans a statement that reads
// a table.
type plannedExpression struct {
	relation     uint32
	tree         *tree
	permissive   bool // the row policy is permissive
	source       string
	foreignCalls []uint32 // the functions of other roles in it, if PostgreSQL may call one while planning; else nil
}

// plannedExpressions returns the expressions of indexes, statistics, partition keys, checks and row policies.
func (l *loader) plannedExpressions() []plannedExpression {
	var out []plannedExpression
	for _, i := range l.indexes {
		for _, t := range i.storedTrees() {
			out = append(out, plannedExpression{relation: i.relation, tree: t, source: "index " + i.name})
		}
	}
	for _, s := range l.statistics {
		out = append(out, plannedExpression{relation: s.relation, tree: s.tree, source: "statistics " + s.name})
	}
	for _, p := range l.partitionKeys {
		out = append(out, plannedExpression{relation: p.relation, tree: p.tree, source: "the partition key"})
	}
	for _, c := range l.checks {
		if c.relation != 0 && c.tree != nil {
			out = append(out, plannedExpression{relation: c.relation, tree: c.tree, source: "constraint " + c.name})
		}
	}
	for _, p := range l.policies {
		if p.usingTree != nil {
			out = append(out, plannedExpression{relation: p.relation, tree: p.usingTree, permissive: p.permissive, source: "row policy " + p.name})
		}
	}
	return out
}

// readPlannerUserCode finds the relations for which PostgreSQL may call functions of other roles when a statement reads
// them. While planning, PostgreSQL evaluates constant parts of expressions in indexes, statistics, partition keys,
// checks and policies. To find rows and partitions, it also calls functions of operator classes.
func (l *loader) readPlannerUserCode(ctx context.Context) error {
	k := &l.objects
	for _, p := range l.policies {
		if !p.permissive {
			l.addPlannerUserCode(p.relation, "row policy "+p.name+", which is restrictive")
		}
	}
	if err := l.readIndexUserCode(ctx); err != nil {
		return err
	}
	types, err := l.typesRunningUserCode(ctx)
	if err != nil {
		return err
	}
	var expressions []plannedExpression
	signatures := map[uint32]string{}
	for _, x := range l.plannedExpressions() {
		for _, oid := range x.tree.types {
			if name, runsUserCode := types[oid]; runsUserCode {
				l.addPlannerUserCode(x.relation, x.source+": type "+name)
			}
		}
		if x.foreignCalls = k.callsWhilePlanning(x); len(x.foreignCalls) > 0 {
			expressions = append(expressions, x)
			for _, oid := range x.foreignCalls {
				signatures[oid] = ""
			}
		}
	}
	if err := l.readSignatures(ctx, signatures); err != nil {
		return err
	}
	for _, x := range expressions {
		var names []string
		for _, oid := range x.foreignCalls {
			names = append(names, signatures[oid])
		}
		slices.Sort(names)
		l.addPlannerUserCode(x.relation, x.source+": "+strings.Join(slices.Compact(names), ", "))
	}
	l.inheritPlannerUserCode()
	return nil
}

// callsWhilePlanning returns the functions of other roles in an expression if PostgreSQL may call one of them while it
// plans; otherwise nil.
func (k *objectFacts) callsWhilePlanning(x plannedExpression) []uint32 {
	var functions []uint32
	isAlwaysRun := false
	for _, oid := range x.tree.functions {
		f := k.functions[oid]
		if f != nil && (!k.isCallableByAnybody(f) || x.permissive && k.isHarmlessInPolicy(f) || !x.permissive &&
			k.isHarmlessSQL(f)) {
			continue
		}
		functions = append(functions, oid)
		isAlwaysRun = isAlwaysRun || f == nil || f.language == "sql" || f.hasDefaults
	}
	if isAlwaysRun || mayFold(x.tree.text, functions) {
		return functions
	}
	return nil
}

// addPlannerUserCode notes that reading a relation may call functions of other roles. source names the object that
// causes this.
func (l *loader) addPlannerUserCode(relation uint32, source string) {
	r := l.relations[relation]
	if r == nil {
		return
	}
	if source = r.Name.String() + ", " + source; !r.PlannerRunsUserCode || source < r.UserCodeSource {
		r.UserCodeSource = source
	}
	r.PlannerRunsUserCode = true
}

// readIndexUserCode finds the relations whose indexes and partition keys have operator classes with functions of other
// roles.
func (l *loader) readIndexUserCode(ctx context.Context) error {
	if len(l.objects.userCode.classesCallableByAnybody) == 0 {
		return nil
	}
	var (
		relation uint32
		source   string
	)
	return l.each(ctx, `SELECT i.indrelid, 'index ' || r.relname || ': operator class ' || c.opcname
		  FROM pg_index AS i JOIN pg_class AS r ON r.oid = i.indexrelid
		  JOIN pg_opclass AS c ON c.oid = ANY (i.indclass::oid[]) WHERE c.oid = ANY ($1::oid[])
		UNION SELECT d.partrelid, 'the partition key: operator class ' || c.opcname FROM pg_partitioned_table AS d
		  JOIN pg_opclass AS c ON c.oid = ANY (d.partclass::oid[]) WHERE c.oid = ANY ($1::oid[])`,
		[]any{&relation, &source},
		func() error {
			l.addPlannerUserCode(relation, source)
			return nil
		}, l.objects.userCode.classesCallableByAnybody)
}

// typesRunningUserCode returns the names, by OID, of the types for which PostgreSQL itself calls functions of other
// roles. It also returns the types that contain such types.
func (l *loader) typesRunningUserCode(ctx context.Context) (map[uint32]string, error) {
	if len(l.objects.typesRunningUserCode) == 0 {
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
		}, slices.Sorted(maps.Keys(l.objects.typesRunningUserCode)))
}

// readSignatures reads the names of the given functions with the types of their arguments.
func (l *loader) readSignatures(ctx context.Context, functions map[uint32]string) error {
	if len(functions) == 0 {
		return nil
	}
	var (
		oid  uint32
		name string
	)
	return l.each(ctx, "SELECT f.oid, f.oid::regprocedure::text FROM unnest($1::oid[]) AS f (oid)",
		[]any{&oid, &name}, func() error {
			functions[oid] = name
			return nil
		}, slices.Sorted(maps.Keys(functions)))
}

// inheritPlannerUserCode marks a partition or child if its parent or one of its siblings is marked, since PostgreSQL
// plans for all of them together.
func (l *loader) inheritPlannerUserCode() {
	byName := map[catalog.Name]*catalog.Relation{}
	for _, relation := range l.relations {
		byName[relation.Name] = relation
	}
	names := slices.SortedFunc(maps.Keys(byName),
		func(a, b catalog.Name) int { return strings.Compare(a.String(), b.String()) })
	for changed := true; changed; {
		changed = false
		for _, name := range names {
			relation := byName[name]
			for _, parent := range relation.Parents {
				p := byName[parent]
				switch {
				case p == nil || p.PlannerRunsUserCode == relation.PlannerRunsUserCode:
				case p.PlannerRunsUserCode:
					relation.PlannerRunsUserCode, relation.UserCodeSource, changed = true, p.UserCodeSource, true
				default:
					p.PlannerRunsUserCode, p.UserCodeSource, changed = true, relation.UserCodeSource, true
				}
			}
		}
	}
}

// notFoldedNodes are the kinds of nodes that PostgreSQL does not evaluate while planning if they contain a column. They
// are strict, or do nothing by themselves.
var notFoldedNodes = []string{"VAR", "CONST", "FUNCEXPR", "OPEXPR", "RELABELTYPE", "COERCEVIAIO", "COLLATEEXPR"}

var (
	nodeNamePattern     = regexp.MustCompile(`^[A-Z0-9_]+`)
	callPattern         = regexp.MustCompile(`^:(?:opfuncid|funcid) ([0-9]+)`)
	nullConstantPattern = regexp.MustCompile(`^:constisnull true`)
)

// mayFold tells whether PostgreSQL may call one of the functions while it plans a stored expression. PostgreSQL does
// not call a function while planning if the arguments contain a column, and otherwise only notFoldedNodes.
func mayFold(tree string, functions []uint32) bool {
	if len(functions) == 0 {
		return false
	}
	type node struct{ hasCall, hasColumn, isLate bool }
	stack := []node{{isLate: true}}
	for i := 0; i < len(tree); i++ {
		top := &stack[len(stack)-1]
		switch rest := tree[i:]; tree[i] {
		case '\\':
			i++
		case '{':
			name := nodeNamePattern.FindString(rest[1:])
			stack = append(stack, node{hasColumn: name == "VAR", isLate: slices.Contains(notFoldedNodes, name)})
		case ':':
			if m := callPattern.FindStringSubmatch(rest); m != nil {
				oid, err := strconv.ParseUint(m[1], 10, 32)
				top.hasCall = top.hasCall || err != nil || slices.Contains(functions, uint32(oid))
			}
			top.isLate = top.isLate && !nullConstantPattern.MatchString(rest)
		case '}':
			if len(stack) == 1 || top.hasCall && !(top.hasColumn && top.isLate) {
				return true
			}
			inner := *top
			stack = stack[:len(stack)-1]
			top = &stack[len(stack)-1]
			top.hasColumn, top.isLate = top.hasColumn || inner.hasColumn, top.isLate && inner.isLate
		}
	}
	return len(stack) != 1
}
