package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Refusal describes a construct that agents may not send. It is a row of docs/reference/refused-statements.md.
type Refusal struct {
	Construct string   // the name of the construct in the table, such as "INSERT"
	Nodes     []string // the kinds of parser nodes, or fields of nodes, that the row is about
	Example   string
	Code      sqlstate.Code
	Reason    sqlstate.Reason
	Message   string
	Hint      string
}

// Error returns the error that the client gets.
func (r *Refusal) Error() *sqlstate.Error {
	return sqlstate.New(r.Code, r.Reason, "%s", r.Message).WithHint("%s", r.Hint)
}

const (
	noSchemaChanges  = "agents may not change the schema"
	noAdministration = "agents may not administer the server"
	askOwner         = "Connect as the owner for it: owners' connections pass unchanged."

	notWritable = "the policy does not let agents do that to this table"
	askPolicy   = "A table lists what agents may do under write: commands in the policy. Owners' connections pass unchanged."
)

var refusals = []*Refusal{
	{"INSERT into a table that the policy lets nobody insert into", []string{"INSERT(policy)"},
		"INSERT INTO people (name) VALUES ('Ann')",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "INSERT: " + notWritable, askPolicy},
	{"UPDATE of a table that the policy lets nobody update", []string{"UPDATE(policy)"}, "UPDATE people SET name = 'Ann'",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "UPDATE: " + notWritable, askPolicy},
	{"DELETE from a table that the policy lets nobody delete from", []string{"DELETE(policy)"}, "DELETE FROM people",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "DELETE: " + notWritable, askPolicy},
	{"INSERT, UPDATE or DELETE through a view that agents only read", []string{"view(policy)"}, "DELETE FROM short_titles",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "agents do not write through this view",
		"They do through one that shows columns of one table or such view, without joins, groups, triggers and " +
			"rules. Write to its table, where the policy lets agents do that."},
	{"MERGE that does nothing", []string{"MergeStmt(nothing)"},
		"MERGE INTO people p USING people q ON p.id = q.id WHEN MATCHED THEN DO NOTHING",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement,
		"MERGE without an action is not available to agents", "Use SELECT with a join."},
	{"MERGE into a view, or a table with hidden columns", []string{"MergeStmt(view)"},
		"MERGE INTO open_drafts d USING drafts s ON d.title = s.title WHEN MATCHED THEN DELETE",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
		"MERGE into a view, or a table of which columns are hidden, is not available to agents",
		"Use INSERT with ON CONFLICT, UPDATE and DELETE."},
	{"COPY ... FROM STDIN into a view", []string{"CopyStmt.is_from(view)"}, "COPY open_drafts FROM STDIN",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "COPY FROM into a view is not available to agents",
		"Copy to the table, or use INSERT."},
	{"INSERT ... RETURNING where agents do not see what they insert", []string{"InsertStmt.returning_list(unseen)"},
		"INSERT INTO proposals (title) VALUES ('a') RETURNING id",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonConstruct,
		"RETURNING: a row that agents insert into this table is not visible to them",
		"The policy stamps it so. Leave RETURNING out."},
	{"ON CONFLICT with a collation or operator class", []string{"IndexElem(opclass)"},
		"INSERT INTO drafts (title) VALUES ('a') ON CONFLICT (title COLLATE \"C\") DO NOTHING",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
		"a collation or operator class in ON CONFLICT is not available to agents",
		"Name the columns, or the constraint with ON CONSTRAINT."},
	{"TRUNCATE", []string{"TruncateStmt"}, "TRUNCATE people",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "TRUNCATE is not available to agents",
		"It takes every row, those that are not visible too. DELETE what you see, where the policy allows it."},
	{"COPY ... FROM STDIN without a list of columns, into a table with columns that agents may not write",
		[]string{"CopyStmt.attlist(implied)"}, "COPY drafts FROM STDIN",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonColumn,
		"without a list of columns this COPY would write columns that are not for agents to write",
		"Name the columns: COPY table (columns) FROM STDIN."},
	{"SELECT INTO", []string{"SelectStmt.into_clause", "IntoClause"}, "SELECT * INTO copied FROM people",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "SELECT INTO: " +
			noSchemaChanges, "Leave INTO out, or use a WITH query."},
	{"CREATE TABLE AS", []string{"CreateTableAsStmt"}, "CREATE TABLE copied AS SELECT 1",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "CREATE TABLE AS: " +
			noSchemaChanges, "Use a WITH query for intermediate results."},

	{"FOR UPDATE, FOR SHARE of a table that agents do not update", []string{"LockingClause(policy)"},
		"SELECT * FROM people FOR UPDATE",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonConstruct,
		"row locks are available to agents on tables that they may update",
		"Leave the locking clause out, or name the tables to lock with OF. A table has none on which rules of " +
			"others depend where who is asking decides which rows may be changed. " + askPolicy},
	{"FOR UPDATE, FOR SHARE of a view", []string{"LockingClause(view)"}, "SELECT * FROM short_titles FOR UPDATE",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonConstruct, "row locks through a view are not available to agents",
		"Name the view's table in FROM, with the view's conditions, and lock that, where agents may update it; " +
			"beside a view, name in OF what to lock."},
	{"FOR UPDATE, FOR SHARE of a table with hidden columns", []string{"LockingClause(narrowed)"},
		"SELECT * FROM vehicles FOR UPDATE",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonConstruct,
		"row locks are not available to agents on a table of which they see some columns only",
		"UPDATE ... RETURNING takes a row and gives it, where agents may update the table."},
	{"TABLESAMPLE", []string{"RangeTableSample"}, "SELECT * FROM people TABLESAMPLE SYSTEM (10)",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "TABLESAMPLE is not available to agents",
		"Its choice of rows tells about rows that are not visible. Use ORDER BY random() LIMIT n."},
	{"several collations", []string{"CollateClause(several)"},
		"SELECT 1 FROM (SELECT name COLLATE \"C\" AS a, name COLLATE \"POSIX\" AS b FROM people) x WHERE a > b",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
		"several collations that may meet in one statement are not available to agents",
		"Comparing values of different collations fails, also on rows that are not visible. Columns, domains and " +
			"COLLATE bring them: keep columns of different collations in conditions and result columns of their " +
			"own, without whole rows and UNION, and use with ^@ and starts_with none but \"C\"."},
	{"system columns", []string{"ColumnRef(system column)"}, "SELECT ctid FROM people",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonColumn,
		"system columns of tables under a policy are not available to agents",
		"ctid, xmin, xmax, cmin and cmax tell about rows that are not visible. Use the primary key; a result " +
			"column of such a name needs another alias."},
	{"ONLY of a table that is read through a view of pgconsent and has children", []string{"RangeVar.inh"},
		"SELECT * FROM ONLY vehicles",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "ONLY is not available to agents for this table",
		"Columns of it are hidden, and its view reads its children as well. Leave ONLY out."},
	{"database.schema.table", []string{"RangeVar.catalogname"}, "SELECT * FROM mydb.public.people",
		sqlstate.FeatureNotSupported, sqlstate.ReasonRelation,
		"names with a database in front are not available to agents", "Leave the database out: schema.table."},
	{"DEFAULT out of place", []string{"SetToDefault(elsewhere)"}, "SELECT DEFAULT",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "DEFAULT is not available to agents here",
		"It stands in VALUES of an INSERT and in SET."},
	{"TREAT", []string{"FuncCall(TREAT)"}, "SELECT TREAT(1 AS integer)",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "TREAT is not available to agents", "Use CAST."},
	{"%TYPE, SETOF", []string{"TypeName.pct_type", "TypeName.setof"}, "SELECT CAST(1 AS SETOF integer)",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "SETOF and %TYPE are not available to agents",
		"Name the type itself."},

	{"EXPLAIN ANALYZE of what reads tables, or calls functions other than PostgreSQL's; EXPLAIN of it among other statements",
		[]string{"ExplainStmt(relations)"}, "EXPLAIN ANALYZE SELECT * FROM people",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
		"EXPLAIN ANALYZE of statements that read tables is not available to agents",
		"Plans show statistics of rows that are not visible. EXPLAIN alone, without ANALYZE, answers with a plan that shows none."},
	{"options of EXPLAIN", []string{"ExplainStmt.options"}, "EXPLAIN (BUFFERS) SELECT 1",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "this option of EXPLAIN is not available to agents",
		"EXPLAIN takes ANALYZE, VERBOSE, COSTS, TIMING, SUMMARY and FORMAT."},
	{"LISTEN, NOTIFY of a channel that the policy does not list", []string{"ListenStmt", "NotifyStmt"}, "LISTEN news",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "LISTEN and NOTIFY are available to agents on channels of the policy only",
		"Notifications may carry data past the policy. Poll with a query, or have the channel listed under channels: in the policy."},
	{"LOCK", []string{"LockStmt"}, "LOCK TABLE people",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "LOCK is not available to agents",
		"Reading needs no lock. Lock rows with SELECT ... FOR UPDATE, where the policy lets agents update."},
	{"DO", []string{"DoStmt", "InlineCodeBlock"}, "DO $$ BEGIN END $$",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "DO is not available to agents",
		"pgconsent reads SQL, not PL/pgSQL. Send the statements themselves."},
	{"CALL", []string{"CallStmt", "CallContext"}, "CALL refresh()",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "CALL is not available to agents",
		"Procedures run SQL that pgconsent has not seen. A function that the policy lists can be called in SELECT."},
	{"SHOW ALL", []string{"VariableShowStmt(all)"}, "SHOW ALL",
		sqlstate.FeatureNotSupported, sqlstate.ReasonSetting, "SHOW ALL is not available to agents", "SHOW one setting by name."},

	{"COMMIT AND CHAIN, ROLLBACK AND CHAIN", []string{"TransactionStmt.chain"}, "COMMIT AND CHAIN",
		sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction, "AND CHAIN is not available to agents",
		"Send COMMIT and BEGIN."},
	{"PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED", []string{"TransactionStmt.gid"}, "PREPARE TRANSACTION 'x'",
		sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction, "two-phase commit is not available to agents", "Use COMMIT."},
	{"SET TRANSACTION SNAPSHOT", []string{"VariableSetStmt(TRANSACTION SNAPSHOT)"},
		"SET TRANSACTION SNAPSHOT '00000003-0000001B-1'",
		sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction, "imported snapshots are not available to agents",
		"Read in one transaction of your own."},
	{"SET CONSTRAINTS", []string{"ConstraintsSetStmt"}, "SET CONSTRAINTS ALL DEFERRED",
		sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "SET CONSTRAINTS is not available to agents",
		"Constraints are checked when their owner has declared them to be."},

	{"COPY to or from a file or program", []string{"CopyStmt.filename", "CopyStmt.is_program"}, "COPY people TO '/tmp/people'",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonConstruct,
		"COPY to files and programs of the server is not available to agents",
		`Use COPY ... TO STDOUT or FROM STDIN; psql's \copy does that.`},
	{"COPY of a catalog, view or partitioned table by name", []string{"CopyStmt.relation"}, "COPY pg_class TO STDOUT",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
		"COPY of this relation by name is not available to agents", "Use COPY (SELECT ... FROM ...) TO STDOUT."},
	{"COPY options", []string{"CopyStmt.options"}, "COPY people TO STDOUT (FREEZE true)",
		sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct, "this option of COPY, or its value, is not available to agents",
		"COPY takes FORMAT, DELIMITER, NULL, HEADER, QUOTE, ESCAPE and ENCODING, TO besides FORCE_QUOTE, " +
			"FROM besides FORCE_NULL, FORCE_NOT_NULL, DEFAULT and ON_ERROR stop. ON_ERROR ignore, with " +
			"REJECT_LIMIT and LOG_VERBOSITY, would pass over rows."},

	{"CREATE ...", []string{"CreateStmt", "CreateSchemaStmt", "CreateSeqStmt", "CreateStatsStmt",
		"CreateFunctionStmt", "CreateDomainStmt",
		"CreateEnumStmt", "CreateRangeStmt", "CompositeTypeStmt", "ViewStmt", "IndexStmt", "RuleStmt",
		"CreateTrigStmt", "CreateEventTrigStmt",
		"CreatePolicyStmt", "CreateAmStmt", "CreatePLangStmt", "CreateOpClassStmt", "CreateOpFamilyStmt",
		"CreateConversionStmt", "CreateCastStmt",
		"CreateTransformStmt", "CreateExtensionStmt", "CreateFdwStmt", "CreateForeignServerStmt",
		"CreateForeignTableStmt", "CreateUserMappingStmt",
		"ImportForeignSchemaStmt", "CreatePublicationStmt", "CreateSubscriptionStmt", "CreateRoleStmt",
		"CreatedbStmt", "CreateTableSpaceStmt", "DefineStmt"},
		"CREATE TABLE notes (id integer)",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "CREATE: " + noSchemaChanges, askOwner},
	{"ALTER ...", []string{"AlterTableStmt", "AlterCollationStmt", "AlterDomainStmt", "AlterDefaultPrivilegesStmt",
		"AlterTableSpaceOptionsStmt",
		"AlterTableMoveAllStmt", "AlterExtensionStmt", "AlterExtensionContentsStmt", "AlterFdwStmt",
		"AlterForeignServerStmt", "AlterUserMappingStmt",
		"AlterPolicyStmt", "AlterEventTrigStmt", "AlterRoleStmt", "AlterRoleSetStmt", "AlterSeqStmt",
		"AlterOpFamilyStmt", "AlterStatsStmt",
		"AlterFunctionStmt", "AlterObjectDependsStmt", "AlterObjectSchemaStmt", "AlterOwnerStmt", "AlterOperatorStmt",
		"AlterTypeStmt", "AlterEnumStmt",
		"AlterDatabaseStmt", "AlterDatabaseRefreshCollStmt", "AlterDatabaseSetStmt", "AlterSystemStmt", "AlterTSDictionaryStmt",
		"AlterTSConfigurationStmt", "AlterPublicationStmt", "AlterSubscriptionStmt", "RenameStmt", "ReplicaIdentityStmt"},
		"ALTER TABLE people ADD COLUMN age integer",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "ALTER: " + noSchemaChanges, askOwner},
	{"DROP ...", []string{"DropStmt", "DropTableSpaceStmt", "DropUserMappingStmt", "DropRoleStmt", "DropdbStmt",
		"DropSubscriptionStmt", "DropOwnedStmt", "ReassignOwnedStmt"},
		"DROP TABLE people",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "DROP: " + noSchemaChanges, askOwner},
	{"GRANT, REVOKE", []string{"GrantStmt", "GrantRoleStmt"}, "GRANT SELECT ON people TO PUBLIC",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "GRANT and REVOKE: agents may not change privileges", askOwner},
	{"COMMENT, SECURITY LABEL", []string{"CommentStmt", "SecLabelStmt"}, "COMMENT ON TABLE people IS 'x'",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "COMMENT: " + noSchemaChanges, askOwner},
	{"VACUUM, ANALYZE, REINDEX, CLUSTER, CHECKPOINT, LOAD, REFRESH MATERIALIZED VIEW",
		[]string{"VacuumStmt", "ReindexStmt", "ClusterStmt", "CheckPointStmt", "LoadStmt", "RefreshMatViewStmt"}, "VACUUM people",
		sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "maintenance: " + noAdministration, askOwner},
}

// Refusals returns the table of statements that agents may not send, which docs/reference/refused-statements.md shows.
func Refusals() []*Refusal { return refusals }

var refusalIndex = func() map[string]*Refusal {
	index := map[string]*Refusal{}
	for _, r := range refusals {
		for _, node := range r.Nodes {
			if index[node] == nil {
				index[node] = r
			}
		}
	}
	return index
}()

// refusalOf returns the error for a kind of parser node or a field of a node. A kind that is not in the table is
// refused with a general message.
func refusalOf(node string) *sqlstate.Error {
	if r := refusalIndex[node]; r != nil {
		return r.Error()
	}
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
		"this construct (%s) is not available to agents", node).
		WithHint("pgconsent refuses what it does not know. Write the statement in a plainer form.")
}
