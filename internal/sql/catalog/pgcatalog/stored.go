package pgcatalog

import (
	"context"
	"slices"
)

// What tables and domains have of expressions, as the catalogs store them. Columns are by their numbers.
type (
	check struct {
		relation, of uint32 // the table or the domain of the CHECK constraint
		name         string
		tree         *tree // nil: a column is NOT NULL
		keys         []int16
		enforced     bool
		validated    bool
	}
	generated struct {
		relation          uint32
		number            int16
		virtual           bool
		tree              *tree
		dependencyColumns []int16
	}
	partitionKey struct {
		relation                uint32
		tree                    *tree
		keys, dependencyColumns []int16
	}
	statistics struct {
		relation uint32
		name     string
		tree     *tree
	}
	policy struct {
		relation   uint32
		name       string
		permissive bool
		trees      []*tree // which rows it shows, and which it lets be written
		shows      *tree   // the first of these, or nil
	}
)

// depends is the array of the columns of a relation that an object depends on.
func depends(catalog, object, relation string) string {
	return `ARRAY(SELECT d.refobjsubid::int2 FROM pg_depend AS d WHERE d.classid = '` + catalog + `'::regclass AND d.objid = ` + object + `
		  AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ` + relation + ` AND d.refobjsubid > 0)`
}

// readStored reads the expressions.
func (l *loader) readStored(ctx context.Context) error {
	return inTurn(ctx, l.readChecks, l.readIndexFacts, l.readGenerated, l.readPartitionKeys, l.readStatistics,
		l.readPolicies, l.readTriggers)
}

func (l *loader) readChecks(ctx context.Context) error {
	var (
		c    check
		text *string
	)
	return l.each(ctx, `SELECT con.conrelid, con.contypid, con.conname, con.conbin::text,
		COALESCE(con.conkey, '{}'), `+l.enforced()+`, con.convalidated
		FROM pg_constraint AS con WHERE con.conbin IS NOT NULL OR con.contype = 'n' AND NOT con.convalidated`,
		[]any{&c.relation, &c.of, &c.name, &text, &c.keys, &c.enforced, &c.validated},
		func() error {
			c.tree = newTree(text)
			l.checks = append(l.checks, c)
			c.keys, text = nil, nil
			return nil
		})
}

func (l *loader) readGenerated(ctx context.Context) error {
	l.virtual = map[uint32][]generated{}
	var (
		g    generated
		text *string
	)
	return l.each(ctx, `SELECT f.adrelid, f.adnum, a.attgenerated = 'v', f.adbin::text, `+depends("pg_attrdef", "f.oid", "f.adrelid")+`
		FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE a.attgenerated <> ''`,
		[]any{&g.relation, &g.number, &g.virtual, &text, &g.dependencyColumns},
		func() error {
			g.tree = newTree(text)
			l.generatedColumns = append(l.generatedColumns, g)
			if g.virtual {
				l.virtual[g.relation] = append(l.virtual[g.relation], g)
			}
			text, g.dependencyColumns = nil, nil
			return nil
		})
}

func (l *loader) readPartitionKeys(ctx context.Context) error {
	var (
		p    partitionKey
		text *string
	)
	return l.each(ctx, `SELECT p.partrelid, p.partexprs::text, p.partattrs::int2[], `+
		depends("pg_class", "p.partrelid", "p.partrelid")+` FROM pg_partitioned_table AS p WHERE p.partexprs IS NOT NULL`,
		[]any{&p.relation, &text, &p.keys, &p.dependencyColumns},
		func() error {
			p.tree = newTree(text)
			l.partitionKeys = append(l.partitionKeys, p)
			text, p.keys, p.dependencyColumns = nil, nil, nil
			return nil
		})
}

func (l *loader) readStatistics(ctx context.Context) error {
	var (
		s    statistics
		text *string
	)
	return l.each(ctx, "SELECT s.stxrelid, s.stxname, s.stxexprs::text FROM pg_statistic_ext AS s WHERE "+
		"s.stxexprs IS NOT NULL",
		[]any{&s.relation, &s.name, &text},
		func() error {
			s.tree = newTree(text)
			l.statistics = append(l.statistics, s)
			text = nil
			return nil
		})
}

// trees are the trees of the texts that are not nil.
func trees(texts ...*string) []*tree {
	var out []*tree
	for _, text := range texts {
		if text != nil {
			out = append(out, newTree(text))
		}
	}
	return out
}

// trees are all expressions, and the bodies of functions in SQL that are kept parsed.
func (l *loader) trees() []*tree {
	var out []*tree
	for _, f := range l.known.functions {
		out = append(out, f.body)
	}
	for _, c := range l.checks {
		out = append(out, c.tree)
	}
	for _, i := range l.indexes {
		out = append(out, i.trees()...)
	}
	for _, g := range l.generatedColumns {
		out = append(out, g.tree)
	}
	for _, p := range l.partitionKeys {
		out = append(out, p.tree)
	}
	for _, s := range l.statistics {
		out = append(out, s.tree)
	}
	for _, p := range l.policies {
		out = append(out, p.trees...)
	}
	for _, t := range l.triggers {
		out = append(out, t.when)
	}
	return slices.DeleteFunc(out, func(t *tree) bool { return t == nil })
}
