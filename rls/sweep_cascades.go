package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The signatures of the SQL functions for rows that are deleted together with swept rows. sweep_made finds such rows,
// sweep_take deletes them, and sweep_preview counts what a sweep would change.
const (
	sweepMadeFunction    = "pgconsent.sweep_made(pg_catalog.int4, pg_catalog._oid, pg_catalog._tid, pg_catalog.bool)"
	sweepTakeFunction    = "pgconsent.sweep_take(pg_catalog.int4, pg_catalog._oid, pg_catalog._tid, pg_catalog.bool)"
	sweepPreviewFunction = "pgconsent.sweep_preview()"
)

// cascades generates the SQL that deletes dependent rows together with swept rows, to any depth. In the SQL, tables
// have numbers, in the order of their names.
type cascades struct {
	all          []policy.Cascade
	tableNumbers map[catalog.Name]int
	tables       []*catalog.Relation // the tables by their numbers
	// the tables whose rows are deleted with the rows from which they were derived; a table comes before its sources
	derivedTables []*catalog.Relation
}

func newCascades(p *policy.Policy) *cascades {
	k := &cascades{all: p.Cascades(), tableNumbers: map[catalog.Name]int{}}
	add := func(r *catalog.Relation) {
		if !slices.ContainsFunc(k.tables, func(t *catalog.Relation) bool { return t.Name == r.Name }) {
			k.tables = append(k.tables, r)
		}
	}
	for _, t := range p.Tables() {
		if t.Lifecycle != nil {
			add(t.Relation)
		}
	}
	depth := map[catalog.Name]int{}
	for range k.all { // enough rounds for any depth, since derivations form cycles only within one table
		for _, e := range k.all {
			if e.Origin != nil && e.Source.Name != e.Table.Name {
				depth[e.Table.Name] = max(depth[e.Table.Name], depth[e.Source.Name]+1)
			}
		}
	}
	for _, e := range k.all {
		add(e.Source)
		add(e.Table)
		if e.Origin != nil && !slices.ContainsFunc(k.derivedTables,
			func(t *catalog.Relation) bool { return t.Name == e.Table.Name }) {
			k.derivedTables = append(k.derivedTables, e.Table)
		}
	}
	slices.SortFunc(k.tables, func(a, b *catalog.Relation) int {
		return strings.Compare(a.Name.String(), b.Name.String())
	})
	slices.SortStableFunc(k.derivedTables, func(a, b *catalog.Relation) int { return depth[b.Name] - depth[a.Name] })
	for i, t := range k.tables {
		k.tableNumbers[t.Name] = i
	}
	return k
}

// hasDependents reports whether rows of other tables, or others of the same table, are deleted with rows of this table.
func (k *cascades) hasDependents(r *catalog.Relation) bool {
	return slices.ContainsFunc(k.all, func(e policy.Cascade) bool { return e.Source.Name == r.Name })
}

// hasDerivedRowCondition returns the condition that some row was derived directly from the row t of a table. It returns
// "" if no rows are derived from this table.
func (k *cascades) hasDerivedRowCondition(r *catalog.Relation) string {
	var conditions []string
	for _, e := range k.all {
		if e.Origin != nil && e.Source.Name == r.Name {
			fromItems, where := e.Origin.DerivedRowsSQL(e.Table, "made", "t")
			conditions = append(conditions, "EXISTS (SELECT FROM "+strings.Join(fromItems, " CROSS JOIN ")+" WHERE "+where+")")
		}
	}
	if len(conditions) == 0 {
		return ""
	}
	return "(" + strings.Join(conditions, "\n      OR ") + ")"
}

// lockedRows is the FROM item of the rows that the table's branch of sweep_rows has locked and stored in variables.
const lockedRows = "ROWS FROM (pg_catalog.unnest(pgconsent_own.os), pg_catalog.unnest(pgconsent_own.xs))"

// rowVariables returns the FROM item g (n, o, i) of the rows that are stored in these variables of sweep_take.
func rowVariables(n, o, i string) string {
	return fmt.Sprintf("ROWS FROM (pg_catalog.unnest(pgconsent_own.%s), pg_catalog.unnest(pgconsent_own.%s), "+
		"pg_catalog.unnest(pgconsent_own.%s)) AS g (n, o, i)", n, o, i)
}

// dependentRows returns the query of the rows that must be deleted with the rows of g. Its columns are extraColumns,
// the table's number, the row's tableoid and ctid, whether it was derived from the other row, and true.
func (k *cascades) dependentRows(extraColumns string) string {
	const isDeleted = "true"
	var out []string
	for _, e := range k.all {
		n := k.tableNumbers[e.Source.Name]
		sourceJoin := fmt.Sprintf("g JOIN %s AS s ON g.n OPERATOR(pg_catalog.=) %d AND s.tableoid "+
			"OPERATOR(pg_catalog.=) g.o AND s.ctid OPERATOR(pg_catalog.=) g.i", e.Source.Name.SQL(), n)
		if e.Origin != nil {
			fromItems, where := e.Origin.DerivedRowsSQL(e.Table, "t", "s")
			out = append(out, fmt.Sprintf(
				"SELECT %s%d, t.tableoid, t.ctid, true, %s FROM %s CROSS JOIN %s\n        WHERE %s", extraColumns,
				k.tableNumbers[e.Table.Name], isDeleted, sourceJoin, strings.Join(fromItems, " CROSS JOIN "), where))
			continue
		}
		step := predicate.Step{Relation: e.Table, Column: e.Key.Columns[0], FromColumn: e.Key.TargetColumns[0]}
		for i := range e.Key.Columns[1:] {
			step.MorePairs = append(step.MorePairs, predicate.ColumnPair{Column: e.Key.Columns[i+1],
				FromColumn: e.Key.TargetColumns[i+1]})
		}
		out = append(out, fmt.Sprintf(
			"SELECT %s%d, t.tableoid, t.ctid, false, %s FROM %s CROSS JOIN %s AS t\n        WHERE g.gone AND %s",
			extraColumns, k.tableNumbers[e.Table.Name], isDeleted, sourceJoin, e.Table.Name.SQL(), step.JoinCondition("t", "s")))
	}
	return strings.Join(out, "\n      UNION ALL ")
}

// functions returns the statements that create sweep_made and sweep_take, which sweep_rows uses, and sweep_preview, for
// dry runs.
func (k *cascades) functions(control, searchPath string, roots []string) []Statement {
	if len(k.all) == 0 {
		return nil
	}
	const why = "What was made from rows that the sweeper deletes goes with them, as the policy says."
	var out []Statement
	for _, sql := range []string{
		k.createSweepMade(), k.createSweepTake(searchPath), k.createSweepPreview(roots),
		fmt.Sprintf("REVOKE ALL ON FUNCTION %s, %s, %s FROM PUBLIC", sweepMadeFunction, sweepTakeFunction, sweepPreviewFunction),
		fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", sweepPreviewFunction, control),
	} {
		out = append(out, Statement{SQL: sql, Why: why})
	}
	return out
}

// sweepArguments are the arguments of sweep_made and sweep_take: a table's number, its rows, and whether these are
// deleted themselves.
const sweepArguments = "source pg_catalog.int4, rows_o pg_catalog._oid, rows_i pg_catalog._tid, gone pg_catalog.bool"

// createSweepMade returns the statement that creates sweep_made, which finds the rows that were derived from the given
// rows.
func (k *cascades) createSweepMade() string {
	return fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_made(%s) RETURNS TABLE "+
		`(n pg_catalog.int4, o pg_catalog.oid, i pg_catalog.tid)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $pgconsent_sweep$
  WITH RECURSIVE going (n, o, i, made, gone) AS (
    SELECT $1, r.o, r.i, false, $4 FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS r (o, i)
    UNION
    SELECT f.n, f.o, f.i, f.made, f.gone FROM (WITH g AS MATERIALIZED (SELECT * FROM going)
      %s) AS f (n, o, i, made, gone)
  )
  SELECT DISTINCT g.n, g.o, g.i FROM going AS g
  WHERE g.made AND NOT (g.n OPERATOR(pg_catalog.=) $1 AND $4 AND EXISTS (SELECT FROM ROWS FROM `+
		"(pg_catalog.unnest($2), pg_catalog.unnest($3)) AS r (o, i) "+
		`WHERE r.o OPERATOR(pg_catalog.=) g.o AND r.i OPERATOR(pg_catalog.=) g.i))
$pgconsent_sweep$`, sweepArguments, k.dependentRows(""))
}

// createSweepTake returns the statement that creates sweep_take, which locks and deletes the rows that sweep_made
// finds.
func (k *cascades) createSweepTake(searchPath string) string {
	var locks, deletes strings.Builder
	for _, t := range k.derivedTables {
		where := fmt.Sprintf(
			"g.n OPERATOR(pg_catalog.=) %d AND t.tableoid OPERATOR(pg_catalog.=) g.o AND t.ctid "+
				"OPERATOR(pg_catalog.=) g.i", k.tableNumbers[t.Name])
		fmt.Fprintf(&locks, "    PERFORM FROM %s AS t JOIN %s ON %s FOR UPDATE OF t;\n", t.Name.SQL(),
			rowVariables("ns", "os", "xs"), where)
		fmt.Fprintf(&deletes,
			"  DELETE FROM %s AS t USING %s WHERE %s;\n  GET DIAGNOSTICS number = ROW_COUNT;\n  IF number "+
				"OPERATOR(pg_catalog.>) 0 THEN\n    swept := %s;\n    RETURN NEXT;\n  END IF;\n",
			t.Name.SQL(), rowVariables("ns", "os", "xs"), where, catalog.QuoteLiteral(t.Name.String())+"::pg_catalog.text")
	}
	const madeRows = "pgconsent.sweep_made(sweep_take.source, sweep_take.rows_o, sweep_take.rows_i, sweep_take.gone)"
	return fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_take(%s) RETURNS TABLE "+
		`(swept pg_catalog.text, number pg_catalog.int8)
LANGUAGE plpgsql VOLATILE SET search_path = %s AS $pgconsent_sweep$
#variable_conflict use_column
<<pgconsent_own>>
DECLARE
  ns pg_catalog.int4[];
  os pg_catalog.oid[];
  xs pg_catalog.tid[];
  held_n pg_catalog.int4[];
  held_o pg_catalog.oid[];
  held_i pg_catalog.tid[];
BEGIN
  FOR round IN 1 .. 20 LOOP
    SELECT pg_catalog.array_agg(m.n), pg_catalog.array_agg(m.o), pg_catalog.array_agg(m.i) INTO ns, os, xs `+
		`FROM %s AS m;
    IF ns IS NULL THEN
      RETURN;
    END IF;
    -- What was locked is as it was found; what somebody changed meanwhile is looked for once more.
    EXIT WHEN NOT EXISTS (SELECT * FROM %s EXCEPT SELECT * FROM %s);
%s    held_n := ns;
    held_o := os;
    held_i := xs;
  END LOOP;
%s  IF EXISTS (SELECT FROM %s) THEN
    RAISE EXCEPTION 'rows that were made from others stay' USING ERRCODE = '55000';
  END IF;
END $pgconsent_sweep$`, sweepArguments, searchPath, madeRows, rowVariables("ns", "os", "xs"), rowVariables("held_n",
		"held_o",
		"held_i"),
		locks.String(), deletes.String(), madeRows)
}

// createSweepPreview returns the statement that creates sweep_preview, which counts for each subject the rows that a
// sweep would delete or change.
func (k *cascades) createSweepPreview(roots []string) string {
	names := make([]string, len(k.tables))
	for i, t := range k.tables {
		names[i] = catalog.QuoteLiteral(t.Name.String()) + "::pg_catalog.text"
	}
	return fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_preview() RETURNS TABLE (relation pg_catalog.text, "+
		`subject pg_catalog.text, what pg_catalog.text, number pg_catalog.int8)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent_sweep$
#variable_conflict use_column
BEGIN
  -- Subjects are swept one after the other, and of each the tables in the order of their numbers: `+
		`a row goes with the first.
  RETURN QUERY WITH RECURSIVE root (who, n, o, i, what) AS MATERIALIZED (
    %s
  ), going (who, via, n, o, i, made, gone) AS (
    SELECT r.who COLLATE "C", r.n, r.n, r.o, r.i, false, r.what OPERATOR(pg_catalog.=) 'deleted' FROM root AS r `+
		`WHERE r.what OPERATOR(pg_catalog.<>) 'anonymised'
    UNION
    SELECT f.who, f.via, f.n, f.o, f.i, f.made, f.gone FROM (WITH g AS MATERIALIZED (SELECT * FROM going)
      %s) AS f (who, via, n, o, i, made, gone)
  ), first AS MATERIALIZED (
    SELECT DISTINCT ON (g.n, g.o, g.i) g.who, g.via, g.n, g.o, g.i, `+
		`g.made OR g.n OPERATOR(pg_catalog.=) g.via AND EXISTS
        (SELECT FROM root AS r WHERE r.what OPERATOR(pg_catalog.=) 'deleted' AND r.n OPERATOR(pg_catalog.=) g.n `+
		`AND r.o OPERATOR(pg_catalog.=) g.o AND r.i OPERATOR(pg_catalog.=) g.i) AS counts
    FROM going AS g WHERE g.gone ORDER BY g.n, g.o, g.i, g.who, g.via, g.made DESC
  ), counted (n, who, what) AS (
    SELECT f.n, f.who, 'deleted'::pg_catalog.text FROM first AS f WHERE f.counts
    UNION ALL
    SELECT r.n, r.who COLLATE "C", 'anonymised' FROM root AS r `+
		`WHERE r.what OPERATOR(pg_catalog.=) 'anonymised' AND NOT EXISTS
      (SELECT FROM first AS f WHERE f.n OPERATOR(pg_catalog.=) r.n AND f.o OPERATOR(pg_catalog.=) r.o `+
		"AND f.i OPERATOR(pg_catalog.=) r.i "+
		`AND (f.who, f.via) OPERATOR(pg_catalog.<=) (r.who COLLATE "C", r.n))
  )
  SELECT (ARRAY[%s])[c.n OPERATOR(pg_catalog.+) 1], c.who COLLATE pg_catalog."default", c.what, `+
		`pg_catalog.count(*) FROM counted AS c GROUP BY 1, 2, 3;
END $pgconsent_sweep$`, strings.Join(roots, "\n    UNION ALL "), k.dependentRows("g.who, g.via, "), strings.Join(names,
		", "))
}

// lockAndCollect returns statements that lock the rows of the WITH clause due and store them in the variables os and
// xs.
func (s tableSweep) lockAndCollect(due string) string {
	return "    " + due + "\n    SELECT pg_catalog.array_agg(due.o), pg_catalog.array_agg(due.i) INTO os, xs FROM due;\n"
}

// deleteDependents returns statements that delete the rows which depend on the locked rows. rowsAreDeleted says that
// the locked rows are deleted, too.
func (s tableSweep) deleteDependents(rowsAreDeleted bool) string {
	return fmt.Sprintf(`    IF os IS NOT NULL THEN
      FOR swept, number IN SELECT m.swept, m.number FROM pgconsent.sweep_take(%d, os, xs, %t) AS m LOOP
        what := 'deleted';
        RETURN NEXT;
        %s
      END LOOP;
    END IF;
`, s.cascades.tableNumbers[s.relation.Name], rowsAreDeleted, noteStatement("deleted"))
}

// noteStatement returns the statement that records, for the consent registry, what a sweep has done for the subject.
func noteStatement(what string) string {
	return "INSERT INTO pgconsent.sweep_note (subject, what) VALUES (sweep_rows.who, '" + what +
		"') ON CONFLICT ON CONSTRAINT sweep_note_subject_what_key DO NOTHING;"
}

// derivedRowsAreDueCondition returns the condition that the row stays, but its derived rows must be deleted, since the
// row is so old that nobody may see it. It returns "" if this can hold for no row of the table.
func (s tableSweep) derivedRowsAreDueCondition() string {
	hasDerivedRows := s.cascades.hasDerivedRowCondition(s.relation)
	if hasDerivedRows == "" || len(s.Columns) == 0 {
		return ""
	}
	lastDay := s.HiddenFromDay - 1
	for _, b := range s.Columns {
		lastDay = max(lastDay, b.LastDay)
	}
	var where string
	switch {
	case s.HiddenFromDay < predicate.NeverDecays:
		where = s.isPastDay(lastDay, nil)
	case s.Anonymise:
		where = s.consentHasEnded()
	default:
		return ""
	}
	where += " AND NOT " + otherConsent + "\n      AND " + hasDerivedRows
	if !s.Anonymise { // leave out rows that are deleted: their dependents go with them
		where = s.consentHasEnded() + " IS NOT TRUE AND " + where
	}
	return where
}

// rootQueries returns queries of the due rows of the table, which [tableSweep.dueSubjectQueries] counts. sweep_preview
// starts from these rows.
func (s tableSweep) rootQueries() []string {
	query := func(what, from, subject, where string) string {
		return fmt.Sprintf("SELECT %s, %d, t.tableoid, t.ctid, '%s'::pg_catalog.text FROM %s\n      WHERE %s",
			subject, s.cascades.tableNumbers[s.relation.Name], what, from, where)
	}
	return s.dueQueries(query)
}
