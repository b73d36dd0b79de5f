package rewrite

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visited lists, for each kind of node that the walk handles, the fields that hold other nodes and that the walk
// enters. A field after "-" is not entered: the parser never fills it, since it belongs to later stages of PostgreSQL,
// or the walk refuses the node if it is filled. A field that is missing here is refused at run time by reconcile.
const visited = `
A_ArrayExpr elements
A_Const ival fval boolval sval bsval
A_Expr name lexpr rexpr
A_Indices lidx uidx
A_Indirection arg indirection
A_Star
Alias colnames
BitString
BoolExpr args - xpr
Boolean
BooleanTest arg - xpr
CTECycleClause cycle_col_list cycle_mark_value cycle_mark_default
CTESearchClause search_col_list
CaseExpr arg args defresult - xpr
CaseWhen expr result - xpr
CoalesceExpr args - xpr
CollateClause arg collname
ColumnDef type_name coll_clause - raw_default cooked_default identity_sequence constraints fdwoptions
ClosePortalStmt
ColumnRef fields
CommonTableExpr aliascolnames ctequery search_clause cycle_clause - ctecolnames ctecoltypes ctecoltypmods ctecolcollations
CopyStmt relation query attlist options where_clause
CurrentOfExpr - xpr
DeallocateStmt
DeclareCursorStmt query
DeleteStmt relation using_clause where_clause returning_list with_clause
DefElem arg
DiscardStmt
ExecuteStmt params
ExplainStmt query options
FetchStmt
Float
FuncCall funcname args agg_order agg_filter over
GroupingFunc args - xpr refs
GroupingSet content
IndexElem expr - collation opclass opclassopts
InferClause index_elems where_clause
InsertStmt relation cols select_stmt on_conflict_clause returning_list with_clause
Integer
JoinExpr larg rarg using_clause join_using_alias quals alias
JsonAggConstructor output agg_filter agg_order over
JsonArrayAgg constructor arg
JsonArrayConstructor exprs output
JsonArrayQueryConstructor query output format
JsonFormat
JsonIsPredicate expr format
JsonKeyValue key value
JsonObjectAgg constructor arg
JsonObjectConstructor exprs output
JsonOutput type_name returning
JsonReturning format
JsonValueExpr raw_expr formatted_expr format
List items
LockingClause locked_rels
MergeStmt relation source_relation join_condition merge_when_clauses with_clause
MergeWhenClause condition target_list values
MinMaxExpr args - xpr
MultiAssignRef source
NamedArgExpr arg - xpr
NullTest arg - xpr
OnConflictClause infer target_list where_clause
ParamRef
PrepareStmt argtypes query
RangeFunction functions alias coldeflist
RangeSubselect subquery alias
RangeTableFunc docexpr rowexpr namespaces columns alias
RangeTableFuncCol type_name colexpr coldefexpr
RangeVar alias
RawStmt stmt
ResTarget val indirection
RowExpr args - xpr colnames
SQLValueFunction - xpr
SelectStmt distinct_clause target_list from_clause where_clause group_clause having_clause window_clause values_lists sort_clause limit_offset limit_count ` +
	`with_clause larg rarg locking_clause - into_clause
SetToDefault - xpr
SortBy node use_op
String
SubLink testexpr oper_name subselect - xpr
TransactionStmt options
TypeCast arg type_name
TypeName names typmods array_bounds
UpdateStmt relation target_list where_clause from_clause returning_list with_clause
UnlistenStmt
VariableSetStmt args
VariableShowStmt
WindowDef partition_clause order_clause start_offset end_offset
WithClause ctes
XmlExpr named_args args - xpr arg_names
XmlSerialize expr type_name
`

func handledKinds() map[string][]string {
	kinds := map[string][]string{}
	for line := range dataLines(visited) {
		fields := strings.Fields(line)
		kinds[fields[0]] = slices.DeleteFunc(fields[1:], func(f string) bool { return f == "-" })
	}
	return kinds
}

// TestEveryFieldIsAccountedFor goes through the parser's descriptor. It fails for a field that holds nodes and is not
// in the table above.
func TestEveryFieldIsAccountedFor(t *testing.T) {
	handledFields := handledKinds()
	seenKinds := map[string]bool{}
	for _, m := range messages() {
		fields, ok := handledFields[string(m.Name())]
		if !ok {
			continue
		}
		seenKinds[string(m.Name())] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if isListed := slices.Contains(fields, string(f.Name())); isListed != (f.Message() != nil) {
				t.Errorf("%s.%s: holds nodes %v, listed %v", m.Name(), f.Name(), f.Message() != nil, isListed)
			}
		}
		for _, name := range fields {
			if m.Fields().ByName(protoreflect.Name(name)) == nil {
				t.Errorf("%s has no field %s", m.Name(), name)
			}
		}
	}
	for kind := range handledFields {
		if !seenKinds[kind] {
			t.Errorf("the parser has no kind %s", kind)
		}
	}
}

// neverParsed are kinds of nodes from PostgreSQL's later stages, or parts of statements that are refused as a whole.
// The walk has no case for them.
const neverParsed = `AccessPriv Aggref AlterTableCmd AlternativeSubPlan ArrayCoerceExpr ArrayExpr CallContext CaseTestExpr CoerceToDomain
CoerceToDomainValue CoerceViaIO CollateExpr Constraint ConvertRowtypeExpr CreateOpClassItem DistinctExpr FieldSelect FieldStore FromExpr
FuncExpr FunctionParameter InferenceElem InlineCodeBlock IntList JsonConstructorExpr MergeAction 
NextValueExpr NullIfExpr ObjectWithArgs OidList OnConflictExpr OpExpr PLAssignStmt Param PartitionBoundSpec PartitionCmd PartitionElem
PartitionRangeDatum PartitionSpec PublicationObjSpec PublicationTable Query RTEPermissionInfo RangeTblEntry RangeTblFunction RangeTblRef
RelabelType ReturnStmt RoleSpec RowCompareExpr RowMarkClause ScalarArrayOpExpr SetOperationStmt SortGroupClause StatsElem SubPlan
SubscriptingRef TableFunc TableLikeClause TableSampleClause TargetEntry TriggerTransition VacuumRelation Var WindowClause WindowFunc WithCheckOption`

// TestEveryKindIsHandledOrRefused checks that the walk handles each kind of node, or refuses it.
func TestEveryKindIsHandledOrRefused(t *testing.T) {
	handledFields := handledKinds()
	neverParsedKinds := map[string]bool{}
	for _, kind := range strings.Fields(neverParsed) {
		neverParsedKinds[kind] = true
	}
	node := (&sqltext.Node{}).ProtoReflect().Descriptor()
	if node.Fields().Len() != 252 {
		t.Errorf("a Node holds %d kinds, not 252: the parser is another", node.Fields().Len())
	}
	for i := range node.Fields().Len() {
		kind := string(node.Fields().Get(i).Message().Name())
		wayCount := 0
		if handledFields[kind] != nil {
			wayCount++
		}
		if refusalIndex[kind] != nil {
			wayCount++
		}
		if neverParsedKinds[kind] {
			wayCount++
		}
		delete(neverParsedKinds, kind)
		if wayCount == 0 || wayCount > 1 && kind != "InlineCodeBlock" && kind != "CallContext" {
			t.Errorf("%s is handled, refused and never parsed %d times in all", kind, wayCount)
		}
	}
	for kind := range neverParsedKinds {
		t.Errorf("a Node holds no %s", kind)
	}
}

func messages() []protoreflect.MessageDescriptor {
	file := (&sqltext.Node{}).ProtoReflect().Descriptor().ParentFile().Messages()
	var out []protoreflect.MessageDescriptor
	for i := range file.Len() {
		out = append(out, file.Get(i))
	}
	return out
}
