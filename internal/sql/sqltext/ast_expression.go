package sqltext

import pg_query "github.com/pganalyze/pg_query_go/v5"

// The constants of enumerations in expressions.
const (
	OR_EXPR  = pg_query.BoolExprType_OR_EXPR
	NOT_EXPR = pg_query.BoolExprType_NOT_EXPR

	IS_NULL     = pg_query.NullTestType_IS_NULL
	IS_NOT_NULL = pg_query.NullTestType_IS_NOT_NULL

	IS_TRUE        = pg_query.BoolTestType_IS_TRUE
	IS_NOT_TRUE    = pg_query.BoolTestType_IS_NOT_TRUE
	IS_FALSE       = pg_query.BoolTestType_IS_FALSE
	IS_NOT_FALSE   = pg_query.BoolTestType_IS_NOT_FALSE
	IS_UNKNOWN     = pg_query.BoolTestType_IS_UNKNOWN
	IS_NOT_UNKNOWN = pg_query.BoolTestType_IS_NOT_UNKNOWN

	IS_GREATEST             = pg_query.MinMaxOp_IS_GREATEST
	SVFOP_CURRENT_DATE      = pg_query.SQLValueFunctionOp_SVFOP_CURRENT_DATE
	SVFOP_CURRENT_TIMESTAMP = pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP
	SVFOP_LOCALTIMESTAMP    = pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP
)
