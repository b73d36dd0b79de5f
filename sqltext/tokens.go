package sqltext

import pg_query "github.com/pganalyze/pg_query_go/v5"

// KeywordKind says whether a token is a keyword, and of which class.
type KeywordKind = pg_query.KeywordKind

// The tokens that other packages ask for.
const (
	Ident        = TokenKind(pg_query.Token_IDENT)
	Sconst       = TokenKind(pg_query.Token_SCONST)
	OpenParen    = TokenKind('(')
	CloseParen   = TokenKind(')')
	OpenBracket  = TokenKind('[')
	CloseBracket = TokenKind(']')
	Comma        = TokenKind(',')
	Dot          = TokenKind('.')
	Semicolon    = TokenKind(';')
	Star         = TokenKind('*')
	Table        = TokenKind(pg_query.Token_TABLE)
	Only         = TokenKind(pg_query.Token_ONLY)
	Treat        = TokenKind(pg_query.Token_TREAT)
	Binary       = TokenKind(pg_query.Token_BINARY)
	Copy         = TokenKind(pg_query.Token_COPY)
	Arrow        = TokenKind(pg_query.Token_EQUALS_GREATER) // =>
	Assign       = TokenKind(pg_query.Token_COLON_EQUALS)   // :=
)

const (
	equals     = TokenKind('=')
	uident     = TokenKind(pg_query.Token_UIDENT)
	fconst     = TokenKind(pg_query.Token_FCONST)
	usconst    = TokenKind(pg_query.Token_USCONST)
	bconst     = TokenKind(pg_query.Token_BCONST)
	xconst     = TokenKind(pg_query.Token_XCONST)
	iconst     = TokenKind(pg_query.Token_ICONST)
	param      = TokenKind(pg_query.Token_PARAM)
	sqlComment = TokenKind(pg_query.Token_SQL_COMMENT)
	cComment   = TokenKind(pg_query.Token_C_COMMENT)

	kwAnd       = TokenKind(pg_query.Token_AND)
	kwAs        = TokenKind(pg_query.Token_AS)
	kwAtomic    = TokenKind(pg_query.Token_ATOMIC)
	kwBetween   = TokenKind(pg_query.Token_BETWEEN)
	kwCase      = TokenKind(pg_query.Token_CASE)
	kwCross     = TokenKind(pg_query.Token_CROSS)
	kwElse      = TokenKind(pg_query.Token_ELSE)
	kwEnd       = TokenKind(pg_query.Token_END_P)
	kwExcept    = TokenKind(pg_query.Token_EXCEPT)
	kwFull      = TokenKind(pg_query.Token_FULL)
	kwInner     = TokenKind(pg_query.Token_INNER_P)
	kwIntersect = TokenKind(pg_query.Token_INTERSECT)
	kwJoin      = TokenKind(pg_query.Token_JOIN)
	kwLeft      = TokenKind(pg_query.Token_LEFT)
	kwNatural   = TokenKind(pg_query.Token_NATURAL)
	kwOr        = TokenKind(pg_query.Token_OR)
	kwOuter     = TokenKind(pg_query.Token_OUTER_P)
	kwRight     = TokenKind(pg_query.Token_RIGHT)
	kwReturning = TokenKind(pg_query.Token_RETURNING)
	kwSelect    = TokenKind(pg_query.Token_SELECT)
	kwSet       = TokenKind(pg_query.Token_SET)
	kwThen      = TokenKind(pg_query.Token_THEN)
	kwUnion     = TokenKind(pg_query.Token_UNION)
	kwWhen      = TokenKind(pg_query.Token_WHEN)
	kwWhere     = TokenKind(pg_query.Token_WHERE)
	kwHaving    = TokenKind(pg_query.Token_HAVING)
	kwWindow    = TokenKind(pg_query.Token_WINDOW)
	kwOrder     = TokenKind(pg_query.Token_ORDER)
	kwLimit     = TokenKind(pg_query.Token_LIMIT)
	kwOffset    = TokenKind(pg_query.Token_OFFSET)
	kwFetch     = TokenKind(pg_query.Token_FETCH)
	kwFor       = TokenKind(pg_query.Token_FOR)
)
