package pgcatalog

import (
	"context"
	"slices"
)

// These are the objects with expressions, as the catalogs store them. Columns are given by their numbers.
type (
	check struct {
		relation, domain uint32 // the table or the domain of the CHECK constraint; the other one is 0
		name             string
		tree             *tree // nil: the constraint is NOT NULL
		keys             []int16
		isEnforced       bool
		isValidated      bool
	}
	generatedColumn struct {
		relation          uint32
		number            int16
		isVirtual         bool
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
	rowPolicy struct {
		relation   uint32
		name       string
		permissive bool
		trees      []*tree // the conditions USING and WITH CHECK
		usingTree  *tree   // the condition USING; nil: there is none
	}
)

// dependencyColumnsSQL returns the array of the columns of a relation on which an object depends.
func dependencyColumnsSQL(catalog, object, relation string) string {
	return `ARRAY(SELECT d.refobjsubid::int2 FROM pg_depend AS d WHERE d.classid = '` + catalog + `'::regclass AND d.objid = ` + object + `
		  AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ` + relation + ` AND d.refobjsubid > 0)`
}

// checks reads the CHECK and invalid NOT NULL constraints of relations or domains that meet the SQL condition where.
func (r *catalogReader) checks(ctx context.Context, where string, add func(check), args ...any) error {
	var (
		c    check
		text *string
	)
	return r.each(ctx, `SELECT con.conrelid, con.contypid, con.conname, con.conbin::text,
		COALESCE(con.conkey, '{}'), `+r.isEnforcedSQL()+`, con.convalidated
		FROM pg_constraint AS con WHERE (con.conbin IS NOT NULL OR con.contype = 'n' AND NOT con.convalidated) AND `+where,
		[]any{&c.relation, &c.domain, &c.name, &text, &c.keys, &c.isEnforced, &c.isValidated},
		func() error {
			c.tree = newTree(text)
			add(c)
			c.keys, text = nil, nil
			return nil
		}, args...)
}

// readChecks reads the checks of relations.
func (r *relationReader) readChecks(ctx context.Context) error {
	return r.checks(ctx, "con.conrelid <> 0 AND "+r.relationCondition("con.conrelid"), func(c check) {
		r.factsOf(c.relation).checks = append(r.factsOf(c.relation).checks, c)
	}, r.conditionArgs()...)
}

// readDomainChecks reads the checks of domains.
func (l *loader) readDomainChecks(ctx context.Context) error {
	return l.catalogReader.checks(ctx, "con.conrelid = 0", func(c check) { l.domainChecks = append(l.domainChecks, c) })
}

func (r *relationReader) readGenerated(ctx context.Context) error {
	var (
		g    generatedColumn
		text *string
	)
	return r.each(ctx, `SELECT f.adrelid, f.adnum, a.attgenerated = 'v', f.adbin::text, `+
		dependencyColumnsSQL("pg_attrdef", "f.oid", "f.adrelid")+`
		FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
		WHERE a.attgenerated <> '' AND `+r.relationCondition("f.adrelid"),
		[]any{&g.relation, &g.number, &g.isVirtual, &text, &g.dependencyColumns},
		func() error {
			g.tree = newTree(text)
			r.factsOf(g.relation).generated = append(r.factsOf(g.relation).generated, g)
			text, g.dependencyColumns = nil, nil
			return nil
		}, r.conditionArgs()...)
}

func (r *relationReader) readPartitionKeys(ctx context.Context) error {
	var (
		p    partitionKey
		text *string
	)
	return r.each(ctx, `SELECT p.partrelid, p.partexprs::text, p.partattrs::int2[], `+
		dependencyColumnsSQL("pg_class", "p.partrelid", "p.partrelid")+`
			FROM pg_partitioned_table AS p WHERE p.partexprs IS NOT NULL AND `+r.relationCondition("p.partrelid"),
		[]any{&p.relation, &text, &p.keys, &p.dependencyColumns},
		func() error {
			p.tree = newTree(text)
			r.factsOf(p.relation).partitionKeys = append(r.factsOf(p.relation).partitionKeys, p)
			text, p.keys, p.dependencyColumns = nil, nil, nil
			return nil
		}, r.conditionArgs()...)
}

func (r *relationReader) readStatistics(ctx context.Context) error {
	var (
		s    statistics
		text *string
	)
	return r.each(ctx, "SELECT s.stxrelid, s.stxname, s.stxexprs::text FROM pg_statistic_ext AS s WHERE "+
		"s.stxexprs IS NOT NULL AND "+r.relationCondition("s.stxrelid")+" ORDER BY s.oid",
		[]any{&s.relation, &s.name, &text},
		func() error {
			s.tree = newTree(text)
			r.factsOf(s.relation).statistics = append(r.factsOf(s.relation).statistics, s)
			text = nil
			return nil
		}, r.conditionArgs()...)
}

// newTrees returns the trees of the texts that are not nil.
func newTrees(texts ...*string) []*tree {
	var out []*tree
	for _, text := range texts {
		if text != nil {
			out = append(out, newTree(text))
		}
	}
	return out
}

// allTrees returns all stored expressions, and the bodies of SQL functions that are stored as parsed trees.
func (l *loader) allTrees() []*tree {
	var out []*tree
	for _, f := range l.objects.functions {
		out = append(out, f.body)
	}
	for _, c := range l.checks {
		out = append(out, c.tree)
	}
	for _, i := range l.indexes {
		out = append(out, i.storedTrees()...)
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
		out = append(out, t.whenTree)
	}
	return slices.DeleteFunc(out, func(t *tree) bool { return t == nil })
}
