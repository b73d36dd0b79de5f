package pgcatalog

import (
	"context"

	"github.com/pgconsent/pgconsent/catalog"
)

func (l *loader) readFunctions(ctx context.Context) error {
	var (
		f                catalog.Function
		kind, volatility string
		names            []string
		types            []string
	)
	// proargnames also names OUT arguments; those of the input arguments are told by proargmodes.
	return l.each(ctx, `SELECT p.oid, n.nspname, p.proname, p.prokind::text,
		  ARRAY(SELECT COALESCE(p.proargnames[k.ord], '') FROM unnest(COALESCE(p.proargmodes, array_fill('i'::"char", ARRAY[p.pronargs::int4]))) WITH ORDINALITY AS k (mode, ord)
		    WHERE k.mode IN ('i', 'b', 'v') ORDER BY k.ord),
		  ARRAY(SELECT format_type(k.type, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS k (type, ord) ORDER BY k.ord),
		  p.pronargdefaults::int4, p.provariadic <> 0, p.prosecdef, p.provolatile::text, l.lanname, `+extensionOf("pg_proc", "p.oid")+`
		FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_temp' ORDER BY p.oid`,
		[]any{&f.OID, &f.Name.Schema, &f.Name.Name, &kind, &names, &types, &f.Defaults, &f.Variadic, &f.SecurityDefiner, &volatility, &f.Language, &f.Extension},
		func() error {
			function := f
			function.Kind, function.Volatility = kind[0], volatility[0]
			function.ArgNames, function.ArgTypes = names, types
			names, types = nil, nil
			l.spec.Functions = append(l.spec.Functions, &function)
			return nil
		})
}

func (l *loader) readTypes(ctx context.Context) error {
	var (
		t    catalog.Type
		kind string
	)
	return l.each(ctx, `SELECT t.oid, n.nspname, t.typname, t.typtype::text, `+extensionOf("pg_type", "t.oid")+`
		FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
		LEFT JOIN pg_class AS c ON c.oid = t.typrelid
		LEFT JOIN pg_type AS e ON e.oid = t.typelem AND e.typarray = t.oid
		LEFT JOIN pg_class AS ec ON ec.oid = e.typrelid
		WHERE COALESCE(c.relkind, 'c') = 'c' AND COALESCE(ec.relkind, 'c') = 'c' AND n.nspname !~ '^pg_(toast|temp)'`,
		[]any{&t.OID, &t.Name.Schema, &t.Name.Name, &kind, &t.Extension},
		func() error {
			found := t
			found.Kind = kind[0]
			l.spec.Types = append(l.spec.Types, &found)
			return nil
		})
}

func (l *loader) readOperators(ctx context.Context) error {
	var o catalog.Operator
	return l.each(ctx, `SELECT n.nspname, o.oprname, `+extensionOf("pg_operator", "o.oid")+`
		FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_temp' ORDER BY o.oid`,
		[]any{&o.Name.Schema, &o.Name.Name, &o.Extension},
		func() error {
			found := o
			l.spec.Operators = append(l.spec.Operators, &found)
			return nil
		})
}

// readSystemNames reads the names that the system's own schemas have.
func (l *loader) readSystemNames(ctx context.Context) error {
	for _, part := range []struct {
		into *map[string]bool
		sql  string
	}{
		{&l.spec.CatalogFunctions, `SELECT DISTINCT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace`},
		{&l.spec.CatalogOperators, `SELECT DISTINCT o.oprname FROM pg_operator AS o WHERE o.oprnamespace = 'pg_catalog'::regnamespace`},
		{&l.spec.InfoSchemaFunctions, `SELECT DISTINCT p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = 'information_schema'`},
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
