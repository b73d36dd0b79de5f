package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The signatures of the sweeper's SQL functions. sweep_due lists the subjects whose rows must be deleted or made
// anonymous; sweep_rows does that for rows of one subject.
const (
	listDueFunction   = "pgconsent.sweep_due()"
	sweepRowsFunction = "pgconsent.sweep_rows(pg_catalog.text, pg_catalog.text, pg_catalog.int4)"
)

// sweepFeature makes the functions by which the sweeper deletes rows whose consent has ended, and makes others
// anonymous. sweep_due lists the subjects whose rows are due. sweep_rows deletes and changes the due rows of one
// subject in one table. The functions run as the migrating role, which owns the tables, so the control role needs no
// right on these. sweep_rows first locks out writers of the consent registry. So a renewal of consent comes either
// before, and saves the rows, or afterwards.
type sweepFeature struct{ *planFacts }

func (f sweepFeature) objects() []Object {
	o := newObject("functions of the sweeper",
		"The sweeper deletes what has ended and makes anonymous what has decayed, by the registry and in no other way.")
	for _, function := range []string{listDueFunction, sweepRowsFunction, sweepPreviewFunction, sweepTakeFunction, sweepMadeFunction} {
		o.drop("Take the functions of the sweeper away.", "DROP FUNCTION IF EXISTS "+function)
	}
	o.MakeStatements = slices.Clone(o.DropStatements)
	var dueQueries, rowStatements, rootQueries []string
	dependents := newCascades(f.policy)
	for _, t := range f.policy.Tables() {
		if t.Lifecycle == nil {
			continue
		}
		s := tableSweep{t.Lifecycle, t.Relation, dependents}
		dueQueries = append(dueQueries, s.dueSubjectQueries()...)
		rowStatements = append(rowStatements, s.sweepBranch())
		rootQueries = append(rootQueries, s.rootQueries()...)
	}
	if len(dueQueries) == 0 {
		return []Object{o.Object}
	}
	// The application's triggers, which a sweep fires, need the application's search path.
	path := []string{"pg_catalog"}
	for _, s := range f.snap.SearchPath() {
		path = append(path, catalog.QuoteIdent(s))
	}
	searchPath := strings.Join(append(path, "pg_temp"), ", ")
	o.MakeStatements = append(o.MakeStatements, dependents.functions(f.control, searchPath, rootQueries)...)
	o.create(fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_due() RETURNS TABLE (relation pg_catalog.text, "+
		`subject pg_catalog.text, what pg_catalog.text, number pg_catalog.int8)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent_sweep$
#variable_conflict use_column
BEGIN
  RETURN QUERY %s;
END $pgconsent_sweep$`, strings.Join(dueQueries, "\n  UNION ALL ")))
	o.create(fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_rows(relation pg_catalog.text, who pg_catalog.text, "+
		"most pg_catalog.int4) RETURNS TABLE (swept pg_catalog.text, what pg_catalog.text, "+
		`number pg_catalog.int8)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = %s AS $pgconsent_sweep$
#variable_conflict use_column
<<pgconsent_own>>
DECLARE
  os pg_catalog.oid[];
  xs pg_catalog.tid[];
BEGIN
  -- Nobody writes the registry until this transaction has ended.
  PERFORM FROM pgconsent.consent_registry AS g FOR SHARE;
  -- They wait for no transaction that holds a row which has to go: an agent's may last.
  PERFORM pg_catalog.set_config('lock_timeout', '1s', true);
  CASE sweep_rows.relation
%s  END CASE;
END $pgconsent_sweep$`, searchPath, strings.Join(rowStatements, "")))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s, %s FROM PUBLIC", listDueFunction, sweepRowsFunction))
	o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s, %s TO %s", listDueFunction, sweepRowsFunction, f.control))
	return []Object{o.Object}
}

// tableSweep generates the SQL for one table. In its conditions, t is a row and c is the registry's current consent
// record of the row's subject.
type tableSweep struct {
	*policy.Lifecycle
	relation *catalog.Relation
	cascades *cascades // generates the deletion of rows that depend on this table's
}

// name returns the name of the table as an SQL literal.
func (s tableSweep) name() string {
	return catalog.QuoteLiteral(s.relation.Name.String()) + "::pg_catalog.text"
}

func (s tableSweep) column(name string) string { return "t." + catalog.QuoteIdent(name) }

// subjectExpression returns the expression of the row's subject as text, as the registry stores it.
func (s tableSweep) subjectExpression() string {
	return "(" + s.column(s.Subject) + `::pg_catalog.text COLLATE pg_catalog."default")`
}

// streamRecord is the condition that c is a record for every grantee and every scope.
const streamRecord = "c.grantee OPERATOR(pg_catalog.=) '*'::pg_catalog.text AND c.scope OPERATOR(pg_catalog.=) " +
	"'*'::pg_catalog.text"

// olderThan returns the condition that the row is older than moment. A row whose time is NULL counts as older.
func (s tableSweep) olderThan(moment string) string {
	rowTime := s.column(s.TimeColumn)
	return "(" + rowTime + " IS NULL OR " + rowTime + " OPERATOR(pg_catalog.<) " + moment + ")"
}

// otherConsent is the condition that the subject has another active consent, for one grantee or scope, by which
// somebody may still see the row.
const otherConsent = `EXISTS (SELECT FROM pgconsent.consent_current AS o WHERE o.subject OPERATOR(pg_catalog.=) c.subject
      AND (o.grantee OPERATOR(pg_catalog.<>) '*'::pg_catalog.text OR o.scope OPERATOR(pg_catalog.<>) ` +
	`'*'::pg_catalog.text) AND o.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text
      AND (o.expires_at IS NULL OR o.expires_at OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp())
      AND (c.state OPERATOR(pg_catalog.<>) ALL ('{withdrawn,revoked}'::pg_catalog.text[]) ` +
	`OR o.number OPERATOR(pg_catalog.>) c.number))`

// consentHasEnded returns the condition that the consent that applied to the row has ended. A new consent given
// afterwards does not extend to older rows.
func (s tableSweep) consentHasEnded() string {
	const isWithdrawn = "c.state OPERATOR(pg_catalog.=) ANY ('{withdrawn,revoked}'::pg_catalog.text[])"
	const isExpired = "c.stream IS NOT NULL AND c.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text AND " +
		"c.expires_at OPERATOR(pg_catalog.<=) pg_catalog.statement_timestamp()"
	if s.TimeColumn == "" {
		return "(" + isWithdrawn + " OR c.stream IS NOT NULL AND c.state OPERATOR(pg_catalog.=) " +
			"'expired'::pg_catalog.text OR " + isExpired + ")"
	}
	return "(" + isWithdrawn + " OR c.void_before IS NOT NULL AND " + s.olderThan("c.void_before") + " OR " + isExpired +
		" AND " + s.olderThan("c.expires_at") + ")"
}

// isErased returns the condition that the row is one of those that the subject's erasure e covers.
func (s tableSweep) isErased() string {
	if s.TimeColumn != "" {
		return s.olderThan("e.erased_at")
	}
	return "NOT EXISTS (SELECT FROM pgconsent.consent_current AS o WHERE o.subject OPERATOR(pg_catalog.=) e.subject " +
		`AND o.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text
      AND (o.expires_at IS NULL OR o.expires_at OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()))`
}

// columnIsDueCondition returns the condition that a column of the row must be masked now and is not masked yet.
func (s tableSweep) columnIsDueCondition(b policy.LifecycleColumn) string {
	return s.isPastDay(b.LastDay, b.Categories) + s.isNotYetMasked(b)
}

// isPastDay returns the condition that more than the given number of full days of the consent's countdown have passed
// for the row. It also holds if the subject's consent no longer lists the categories.
func (s tableSweep) isPastDay(day int, categories []string) string {
	isGiven := func(stream string) string {
		return "c.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text AND c.stream OPERATOR(pg_catalog.=) '" +
			stream + "'::pg_catalog.text"
	}
	conditions := []string{
		// for a running countdown, and for a stopped one: days are counted as in the rule that hides rows
		fmt.Sprintf("%s AND pg_catalog.statement_timestamp() OPERATOR(pg_catalog.-) "+
			"'%d:00:00'::pg_catalog.interval OPERATOR(pg_catalog.>=) c.decay_from", s.olderThan("c.decay_from"), 24*(day+1)),
		fmt.Sprintf("%s AND c.decayed_days OPERATOR(pg_catalog.>) %d", s.olderThan("c.decayed_before"), day),
		// for an ANONYMOUS consent without a countdown, or rows newer than the countdown's start: at once
		isGiven("ANONYMOUS") + " AND (c.decay_from IS NULL OR NOT " + s.olderThan("c.decay_from") + ")",
	}
	// olderThan holds for rows without a time, so the registry's time must be checked as well.
	conditions[0] = "c.decay_from IS NOT NULL AND " + conditions[0]
	conditions[1] = "c.decayed_before IS NOT NULL AND " + conditions[1]
	if len(categories) > 0 {
		conditions = append(conditions,
			isGiven("TEMPORARY")+" AND c.decayed_before IS NOT NULL AND "+s.olderThan("c.decayed_before")+
				" AND NOT c.categories OPERATOR(pg_catalog.@>) "+arraySQL(categories))
	}
	if s.Anonymise {
		conditions = append(conditions, s.consentHasEnded())
	}
	return "(" + strings.Join(conditions, " OR ") + ")"
}

// arraySQL returns an SQL array expression of words.
func arraySQL(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = catalog.QuoteLiteral(w) + "::pg_catalog.text"
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]"
}

// isNotYetMasked returns the condition, with AND in front, that the column does not have its masked value yet.
func (s tableSweep) isNotYetMasked(b policy.LifecycleColumn) string {
	column := s.column(b.Name)
	switch b.Mask {
	case policy.Null:
		return " AND " + column + " IS NOT NULL"
	case policy.Hash:
		if b.Subject { // a row whose subject is masked is no longer found as the subject's
			return ""
		}
		return " AND NOT pg_catalog.starts_with(" + column + "::pg_catalog.text, 'anonymous-')"
	default:
		return " AND " + column + "::pg_catalog.text IS DISTINCT FROM (" + s.maskedValue(b) + ")::pg_catalog.text"
	}
}

// maskedValue returns the expression of a column's masked value. For the mask Hash this is a pseudonym made from the
// value and the subject's key. Equal values of a subject have equal pseudonyms, so that counts of groups stay right.
// Once the key is deleted, nobody can find out whose values they were.
func (s tableSweep) maskedValue(b policy.LifecycleColumn) string {
	column := s.column(b.Name)
	switch b.Mask {
	case policy.Plain:
		return catalog.QuoteLiteral(b.Value) + "::" + b.Type
	case policy.Hash:
		// the plain hash is for subjects without a key; a subject with a consent record always has one
		return pseudonymAs(b.Type, "COALESCE("+pseudonym("c.subject", column)+
			", pgconsent.mask('sweep||' OPERATOR(pg_catalog.||) "+column+"::pg_catalog.text))")
	default:
		return maskedColumn(b.VisibleColumn, column)
	}
}

// pseudonym returns the expression of the pseudonym for a value of the subject. Its value is NULL if the registry has
// no key for the subject.
func pseudonym(subject, value string) string {
	return "pgconsent.pseudonym(" + subject + ", " + value + "::pg_catalog.text)"
}

// pseudonymAs returns the expression of a pseudonym, given by its hash, in a column's type.
func pseudonymAs(columnType, hash string) string {
	if columnType == "uuid" {
		return hash + "::pg_catalog.uuid"
	}
	return "('anonymous-' OPERATOR(pg_catalog.||) " + hash + ")::" + columnType
}

// anyColumnIsDueCondition returns the condition that some column of the row must be masked now.
func (s tableSweep) anyColumnIsDueCondition() string {
	conditions := make([]string, len(s.Columns))
	for i, b := range s.Columns {
		conditions[i] = "(" + s.columnIsDueCondition(b) + ")"
	}
	return "(" + strings.Join(conditions, "\n      OR ") + ")"
}

// fromRowAndRecord returns the FROM items of the row t and its subject's consent record c.
func (s tableSweep) fromRowAndRecord() string {
	return s.relation.Name.SQL() + " AS t JOIN pgconsent.consent_current AS c ON c.subject OPERATOR(pg_catalog.=) " +
		s.subjectExpression() + " AND " + streamRecord
}

// dueSubjectQueries returns queries that count, for each subject, the rows of the table that a sweep must delete or
// change.
func (s tableSweep) dueSubjectQueries() []string {
	return s.dueQueries(func(what, from, subject, where string) string {
		return fmt.Sprintf("SELECT %s, %s, '%s'::pg_catalog.text, pg_catalog.count(*) FROM %s\n    WHERE %s "+
			"GROUP BY 2", s.name(), subject, what, from, where)
	})
}

// dueQueries calls query for each kind of due rows (deleted, anonymised, derived) and returns the results.
func (s tableSweep) dueQueries(query func(what, from, subject, where string) string) []string {
	out := []string{query("deleted", s.relation.Name.SQL()+
		" AS t JOIN pgconsent.sweep_erased AS e ON e.subject OPERATOR(pg_catalog.=) "+s.subjectExpression(), "e.subject",
		s.isErased())}
	if !s.Anonymise {
		out = append(out, query("deleted", s.fromRowAndRecord(), "c.subject", s.consentHasEnded()+" AND NOT "+otherConsent))
	}
	if len(s.Columns) > 0 {
		where := s.anyColumnIsDueCondition() + " AND NOT " + otherConsent
		if !s.Anonymise { // leave out rows that are deleted anyway
			where += " AND " + s.consentHasEnded() + " IS NOT TRUE"
		}
		out = append(out, query("anonymised", s.fromRowAndRecord(), "c.subject", where))
	}
	if where := s.derivedRowsAreDueCondition(); where != "" {
		out = append(out, query("derived", s.fromRowAndRecord(), "c.subject", where))
	}
	return out
}

// subjectCondition returns the condition that the row is about the subject sweep_rows.who. It compares in the column's
// type, so that PostgreSQL can use an index.
func (s tableSweep) subjectCondition() string {
	column, subjectParameter := s.column(s.Subject), "sweep_rows.who"
	typedSubject := ""
	switch c := s.relation.Column(s.Subject); c.Type {
	case "uuid":
		typedSubject = "CASE WHEN " + subjectParameter +
			" OPERATOR(pg_catalog.~) '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN " +
			subjectParameter + "::pg_catalog.uuid END"
	case "smallint", "integer", "bigint":
		// a number of 19 digits may not fit into bigint, so the text is compared before it is converted
		number := subjectParameter + "::pg_catalog.numeric OPERATOR"
		typedSubject = "CASE WHEN " + subjectParameter + " OPERATOR(pg_catalog.~) '^-?[0-9]{1,18}$' THEN " + subjectParameter +
			"::pg_catalog.int8 WHEN " + subjectParameter +
			" OPERATOR(pg_catalog.~) '^-?[0-9]{19}$' THEN CASE WHEN " + number + "(pg_catalog.>=) (-9223372036854775808) AND " +
			number + "(pg_catalog.<=) 9223372036854775807 THEN " + subjectParameter + "::pg_catalog.int8 END END"
	case "date":
	default:
		return column + "::pg_catalog.text OPERATOR(pg_catalog.=) " + subjectParameter + " AND " + s.subjectExpression() +
			" OPERATOR(pg_catalog.=) " + subjectParameter
	}
	isSubject := s.subjectExpression() + " OPERATOR(pg_catalog.=) " + subjectParameter
	if typedSubject == "" {
		return isSubject
	}
	return column + " OPERATOR(pg_catalog.=) " + typedSubject + " AND " + isSubject
}

// sweepBranch returns the CASE branch of sweep_rows for this table. It deletes or changes the due rows of the subject,
// at most sweep_rows.most of each kind.
func (s tableSweep) sweepBranch() string {
	table := s.relation.Name.SQL()
	lockDueRows := func(from, where string) string {
		return fmt.Sprintf("WITH due AS MATERIALIZED (SELECT t.tableoid AS o, t.ctid AS i FROM %s\n      WHERE %s "+
			"AND %s LIMIT sweep_rows.most FOR UPDATE OF t)", from, s.subjectCondition(), where)
	}
	const dueRowCondition = "t.tableoid OPERATOR(pg_catalog.=) due.o AND t.ctid OPERATOR(pg_catalog.=) due.i"
	const isSubjectsRecord = "c.subject OPERATOR(pg_catalog.=) sweep_rows.who AND " + streamRecord
	rowsAndRecords := table + " AS t JOIN pgconsent.consent_current AS c ON " + isSubjectsRecord
	returnCount := func(what string) string {
		return fmt.Sprintf(`;
    GET DIAGNOSTICS number = ROW_COUNT;
    IF number OPERATOR(pg_catalog.>) 0 THEN
      swept := %s;
      what := '%s';
      RETURN NEXT;
      %s
    END IF;
`, s.name(), what, noteStatement(what))
	}
	deleteDueRows := func(from, where string) string {
		deleteStatement := "\n    DELETE FROM " + table + " AS t USING due WHERE " + dueRowCondition + returnCount("deleted")
		if !s.cascades.hasDependents(s.relation) {
			return "    " + lockDueRows(from, where) + deleteStatement
		}
		return s.lockAndCollect(lockDueRows(from, where)) + s.deleteDependents(true) +
			"    WITH due (o, i) AS (SELECT * FROM " +
			lockedRows + " AS d)" + deleteStatement
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  WHEN %s THEN\n", s.name())
	b.WriteString(deleteDueRows(table+
		" AS t JOIN pgconsent.sweep_erased AS e ON e.subject OPERATOR(pg_catalog.=) sweep_rows.who", s.isErased()))
	if !s.Anonymise {
		b.WriteString(deleteDueRows(rowsAndRecords, s.consentHasEnded()+" AND NOT "+otherConsent))
	}
	if where := s.derivedRowsAreDueCondition(); where != "" {
		b.WriteString(s.lockAndCollect(lockDueRows(rowsAndRecords, where)) + s.deleteDependents(false) +
			fmt.Sprintf(`    number := COALESCE(pg_catalog.cardinality(os), 0);
    IF number OPERATOR(pg_catalog.>) 0 THEN
      swept := %s;
      what := 'derived';
      RETURN NEXT;
      IF number OPERATOR(pg_catalog.>=) sweep_rows.most THEN
        RETURN; -- what others were made from stays until they have gone
      END IF;
    END IF;
`, s.name()))
	}
	if len(s.Columns) > 0 {
		assignments := make([]string, len(s.Columns))
		for i, column := range s.Columns {
			assignments[i] = fmt.Sprintf("%s = CASE WHEN %s THEN %s ELSE %s END", catalog.QuoteIdent(column.Name),
				s.columnIsDueCondition(column), s.maskedValue(column), s.column(column.Name))
		}
		b.WriteString("    " + lockDueRows(rowsAndRecords, s.anyColumnIsDueCondition()+" AND NOT "+otherConsent) +
			"\n    UPDATE " + table + " AS t SET " + strings.Join(assignments, ",\n      ") +
			"\n    FROM due, pgconsent.consent_current AS c WHERE " + dueRowCondition + " AND " + isSubjectsRecord + returnCount("anonymised"))
	}
	return b.String()
}
