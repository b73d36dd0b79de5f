package pgcatalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// readFunctions reads the functions outside pg_catalog and information_schema. An aggregate has the properties of the
// functions that it uses, since its own row in pg_proc always says immutable and not SECURITY DEFINER. proargnames also
// names OUT arguments; proargmodes tells which of the names are input arguments.
func (l *loader) readFunctions(ctx context.Context) error {
	aggregates, err := l.readAggregates(ctx)
	if err != nil {
		return err
	}
	definers, err := l.readDefinerDefaults(ctx)
	if err != nil {
		return err
	}
	argTypes, err := l.readArgTypes(ctx)
	if err != nil {
		return err
	}
	var (
		f                catalog.Function
		kind, volatility string
		names, modes     []string
		inputs, all      []uint32
		result           uint32
	)
	return l.each(ctx, `SELECT p.oid, n.nspname, p.proname, p.prokind::text, p.proargnames, p.proargmodes::text[],
		  p.proargtypes::oid[], p.proallargtypes, p.prorettype,
		  p.pronargdefaults::int4, p.provariadic <> 0, p.prosecdef, p.provolatile::text, l.lanname,
		  CASE WHEN l.lanname = 'internal' AND p.prosrc ~ '^(range_constructor[23]|multirange_constructor[012])$' THEN p.prorettype ELSE 0 END
		FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_temp' ORDER BY p.oid`,
		[]any{&f.OID, &f.Name.Schema, &f.Name.Name, &kind, &names, &modes, &inputs, &all, &result, &f.Defaults,
			&f.Variadic, &f.SecurityDefiner, &volatility, &f.Language, &f.RangeType},
		func() error {
			function := f
			function.Kind, function.Volatility = kind[0], volatility[0]
			if aggregate, ok := aggregates[f.OID]; ok {
				function.SecurityDefiner, function.Volatility = f.SecurityDefiner || aggregate.securityDefiner, aggregate.volatility
			}
			function.DefinerDefault = definers[f.OID]
			function.Extension = l.objects.extensionOf("pg_proc", f.OID)
			function.ArgNames, function.ArgTypes, function.ResultTypes = []string{}, []string{}, []uint32{result}
			for _, oid := range inputs {
				function.ArgTypes = append(function.ArgTypes, argTypes[oid])
			}
			for i := range max(len(modes), len(inputs)) {
				mode, name := "i", ""
				if modes != nil {
					mode = modes[i]
				}
				if i < len(names) {
					name = names[i]
				}
				if mode == "i" || mode == "b" || mode == "v" {
					function.ArgNames = append(function.ArgNames, name)
				}
				if mode == "o" || mode == "b" || mode == "t" {
					function.ResultTypes = append(function.ResultTypes, all[i])
				}
			}
			slices.Sort(function.ResultTypes)
			function.ResultTypes = slices.Compact(function.ResultTypes)
			names, modes, inputs, all = nil, nil, nil, nil
			l.spec.Functions = append(l.spec.Functions, &function)
			return nil
		})
}

// setMayBeReplaced sets for functions of extensions whether the extension's owner may have replaced them. It changes
// copies of the functions, since older snapshots share the originals.
func (l *loader) setMayBeReplaced(context.Context) error {
	functions := slices.Clone(l.spec.Functions)
	for i, f := range functions {
		isReplaceable := f.Extension != "" && f.Language != "c" && f.Language != "internal" &&
			!(f.Language == "sql" && l.objects.isHarmlessExtensionBody(l.objects.functions[f.OID]))
		if isReplaceable != f.MayBeReplaced {
			copied := *f
			copied.MayBeReplaced = isReplaceable
			functions[i] = &copied
		}
	}
	l.spec.Functions = functions
	return nil
}

// aggregateFacts combines the properties of the functions that an aggregate uses.
type aggregateFacts struct {
	securityDefiner bool
	volatility      byte
}

func (r *catalogReader) readAggregates(ctx context.Context) (map[uint32]aggregateFacts, error) {
	var (
		oid        uint32
		of         aggregateFacts
		volatility string
	)
	aggregates := map[uint32]aggregateFacts{}
	return aggregates, r.each(ctx, `SELECT a.aggfnoid::oid, bool_or(f.prosecdef), max(f.provolatile::text COLLATE "C")
		FROM pg_aggregate AS a JOIN pg_proc AS p ON p.oid = a.aggfnoid AND p.pronamespace <> 'pg_catalog'::regnamespace
		JOIN pg_proc AS f ON f.oid = ANY (ARRAY[a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn,
			a.aggminvtransfn, a.aggmfinalfn]::oid[]) GROUP BY 1`,
		[]any{&oid, &of.securityDefiner, &volatility},
		func() error {
			of.volatility = volatility[0]
			aggregates[oid] = of
			return nil
		})
}

// readDefinerDefaults reads which functions have an argument default that calls a SECURITY DEFINER function. The
// default may call it directly, or through a function whose body PostgreSQL stores as a parsed tree. PostgreSQL stores
// defaults as trees, which name functions by their OIDs.
func (r *catalogReader) readDefinerDefaults(ctx context.Context) (map[uint32]string, error) {
	var (
		oid  uint32
		name string
	)
	definers := map[uint32]string{}
	return definers, r.each(ctx, `WITH RECURSIVE called (function, oid) AS (
		    SELECT p.oid, k[1]::oid FROM pg_proc AS p
		    CROSS JOIN LATERAL regexp_matches(p.proargdefaults::text, ':(?:funcid|opfuncid) ([0-9]+)', 'g') AS k
		    WHERE p.pronargdefaults > 0 AND p.pronamespace <> 'pg_catalog'::regnamespace
		    UNION SELECT c.function, d.refobjid FROM called AS c JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass
		      AND d.objid = c.oid AND d.refclassid = 'pg_proc'::regclass)
		SELECT c.function, min(f.oid::regprocedure::text) FROM called AS c JOIN pg_proc AS f ON f.oid = c.oid WHERE f.prosecdef GROUP BY 1`,
		[]any{&oid, &name},
		func() error {
			definers[oid] = name
			return nil
		})
}

// readArgTypes reads the names of the argument types of functions outside pg_catalog, as format_type writes them.
func (r *catalogReader) readArgTypes(ctx context.Context) (map[uint32]string, error) {
	var (
		oid  uint32
		name string
	)
	types := map[uint32]string{}
	return types, r.each(ctx,
		`SELECT t.oid, format_type(t.oid, NULL) FROM (SELECT DISTINCT unnest(p.proargtypes::oid[]) FROM pg_proc AS p
				WHERE p.pronamespace <> 'pg_catalog'::regnamespace) AS t (oid)`,
		[]any{&oid, &name},
		func() error {
			types[oid] = name
			return nil
		})
}

func (l *loader) readTypes(ctx context.Context) error {
	baseTypes, err := l.readDomainBaseTypes(ctx)
	if err != nil {
		return err
	}
	labels, err := l.readLabels(ctx)
	if err != nil {
		return err
	}
	functions, err := l.readCheckFunctions(ctx)
	if err != nil {
		return err
	}
	types := map[uint32][]uint32{}
	for _, c := range l.checks {
		if c.domain != 0 && c.tree != nil {
			types[c.domain] = append(types[c.domain], c.tree.types...)
		}
	}
	var (
		t    catalog.Type
		kind string
	)
	return l.each(ctx, `SELECT t.oid, n.nspname, t.typname, t.typtype::text, COALESCE(el.oid, 0),
		  COALESCE(r.rngsubtype, m.rngtypid, t.typbasetype),
		  CASE WHEN r.rngsubdiff <> 0 THEN r.rngsubdiff::regproc::text ELSE '' END
		FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
		LEFT JOIN pg_class AS c ON c.oid = t.typrelid
		LEFT JOIN pg_type AS el ON el.oid = t.typelem AND el.typarray = t.oid
		LEFT JOIN pg_class AS elc ON elc.oid = el.typrelid
		LEFT JOIN pg_range AS r ON r.rngtypid = t.oid LEFT JOIN pg_range AS m ON m.rngmultitypid = t.oid
		WHERE COALESCE(c.relkind, 'c') = 'c' AND COALESCE(elc.relkind, 'c') = 'c' AND n.nspname !~ '^pg_(toast|temp)'`,
		[]any{&t.OID, &t.Name.Schema, &t.Name.Name, &kind, &t.Element, &t.Base, &t.SubtypeDiff},
		func() error {
			newType := t
			newType.Kind = kind[0]
			newType.BaseName = baseTypes[t.OID]
			newType.Extension = l.objects.extensionOf("pg_type", cmp.Or(t.Element, t.OID))
			newType.RunsUserCode = l.objects.typesRunningUserCode[t.OID]
			newType.Labels = append([]string{}, labels[t.OID]...)
			newType.CheckFunctions = append([]uint32{}, functions[t.OID]...)
			newType.CheckTypes = append([]uint32{}, slices.Compact(slices.Sorted(slices.Values(types[t.OID])))...)
			newType.CheckTypes = slices.DeleteFunc(newType.CheckTypes, func(oid uint32) bool { return oid == t.OID })
			l.spec.Types = append(l.spec.Types, &newType)
			return nil
		})
}

// readDomainBaseTypes reads for each domain the type on which it is based, through several domains.
func (r *catalogReader) readDomainBaseTypes(ctx context.Context) (map[uint32]string, error) {
	var (
		domain uint32
		name   string
	)
	baseTypes := map[uint32]string{}
	return baseTypes, r.each(ctx, `WITH RECURSIVE base (domain, oid, modifier) AS (
		    SELECT t.oid, t.typbasetype, t.typtypmod FROM pg_type AS t WHERE t.typtype = 'd'
		    UNION ALL SELECT b.domain, d.typbasetype, d.typtypmod FROM base AS b JOIN pg_type AS d ON d.oid = b.oid WHERE d.typtype = 'd')
		SELECT b.domain, format_type(b.oid, b.modifier) FROM base AS b JOIN pg_type AS f ON f.oid = b.oid WHERE f.typtype <> 'd'`,
		[]any{&domain, &name},
		func() error {
			baseTypes[domain] = name
			return nil
		})
}

// readLabels reads the labels of enums.
func (r *catalogReader) readLabels(ctx context.Context) (map[uint32][]string, error) {
	var (
		enum  uint32
		label string
	)
	labels := map[uint32][]string{}
	return labels, r.each(ctx,
		"SELECT e.enumtypid, e.enumlabel FROM pg_enum AS e ORDER BY e.enumtypid, e.enumsortorder",
		[]any{&enum, &label},
		func() error {
			labels[enum] = append(labels[enum], label)
			return nil
		})
}

// readCheckFunctions reads the functions that the CHECK constraints of domains call, and those that compare and round
// the bounds of ranges. A check may call a function through an operator. PostgreSQL records no dependencies on
// functions of pg_catalog.
func (r *catalogReader) readCheckFunctions(ctx context.Context) (map[uint32][]uint32, error) {
	var typeOID, function uint32
	functions := map[uint32][]uint32{}
	return functions, r.each(ctx, `SELECT k.contypid, COALESCE(o.oprcode::oid, d.refobjid) FROM pg_constraint AS k
		  JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
		  LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
		  WHERE k.contypid <> 0 AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
		UNION SELECT r.rngtypid, p.oid FROM pg_range AS r JOIN pg_opclass AS c ON c.oid = r.rngsubopc
		  CROSS JOIN LATERAL (SELECT r.rngcanonical::oid UNION ALL SELECT r.rngsubdiff::oid
		    UNION ALL SELECT s.amproc::oid FROM pg_amproc AS s WHERE s.amprocfamily = c.opcfamily
		    UNION ALL SELECT o.oprcode::oid FROM pg_amop AS m
		      JOIN pg_operator AS o ON o.oid = m.amopopr WHERE m.amopfamily = c.opcfamily) AS f (oid)
		  JOIN pg_proc AS p ON p.oid = f.oid WHERE p.pronamespace <> 'pg_catalog'::regnamespace
		ORDER BY 1, 2`,
		[]any{&typeOID, &function},
		func() error {
			functions[typeOID] = append(functions[typeOID], function)
			return nil
		})
}

func (l *loader) readCasts(ctx context.Context) error {
	var c catalog.Cast
	return l.each(ctx, `SELECT c.castsource, c.casttarget, c.castfunc, c.castcontext <> 'e'
		FROM pg_cast AS c JOIN pg_proc AS p ON p.oid = c.castfunc WHERE p.pronamespace <> 'pg_catalog'::regnamespace`,
		[]any{&c.Source, &c.Target, &c.Function, &c.Implicit},
		func() error {
			cast := c
			l.spec.Casts = append(l.spec.Casts, &cast)
			return nil
		})
}

func (l *loader) readOperators(ctx context.Context) error {
	var (
		o   catalog.Operator
		oid uint32
	)
	return l.each(ctx, `SELECT n.nspname, o.oprname, o.oid
		FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace
		WHERE n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_temp' ORDER BY o.oid`,
		[]any{&o.Name.Schema, &o.Name.Name, &oid},
		func() error {
			operatorRow := o
			operatorRow.Extension = l.objects.extensionOf("pg_operator", oid)
			l.spec.Operators = append(l.spec.Operators, &operatorRow)
			return nil
		})
}

// readSystemNames reads the names of functions and operators in pg_catalog, and of functions in information_schema.
func (l *loader) readSystemNames(ctx context.Context) error {
	for _, part := range []struct {
		into *map[string]bool
		sql  string
	}{
		{&l.spec.CatalogFunctions,
			`SELECT DISTINCT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace`},
		{&l.spec.CatalogOperators,
			`SELECT DISTINCT o.oprname FROM pg_operator AS o WHERE o.oprnamespace = 'pg_catalog'::regnamespace`},
		{&l.spec.InfoSchemaFunctions,
			`SELECT DISTINCT p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = 'information_schema'`},
	} {
		set := map[string]bool{}
		var name string
		if err := l.each(ctx, part.sql, []any{&name}, func() error {
			set[name] = true
			return nil
		}); err != nil {
			return err
		}
		*part.into = set
	}
	return nil
}
