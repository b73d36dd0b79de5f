package sqltext

import (
	"errors"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The bounds of a text, apart from its length (see [MaxBytes]).
const (
	MaxTokens = 200_000
	MaxDepth  = 1_000
)

// DefaultMaxBytes is the largest permitted length of a text unless it is configured, and MaxAllowedBytes is the largest
// length that can be configured.
const (
	DefaultMaxBytes = 1 << 20
	MaxAllowedBytes = 64 << 20
)

var maxBytes atomic.Int64 // 0: DefaultMaxBytes applies

// MaxBytes returns the largest permitted length of a text, in bytes.
func MaxBytes() int {
	if n := int(maxBytes.Load()); n > 0 {
		return n
	}
	return DefaultMaxBytes
}

// SetMaxBytes sets the largest permitted length of a text for the whole process, up to [MaxAllowedBytes]. Parsing a
// text needs up to a hundred times its length of memory; large texts are parsed one at a time. Call it before the first
// text is scanned.
func SetMaxBytes(n int) { maxBytes.Store(int64(min(n, MaxAllowedBytes))) }

// largeTextBytes is the length above which texts are parsed one at a time: parsing a megabyte may need a hundred
// megabytes of memory.
const largeTextBytes = 64 << 10

var largeTextSlot = make(chan struct{}, 1)

// TokenKind is the parser's number for a kind of token. A token of a single character has the character's code; the
// other kinds are constants of this package.
type TokenKind int32

// Token is one token of a text. Comments and white space are not tokens.
type Token struct {
	Start, End int32 // byte offsets in the text
	Kind       TokenKind
	Keyword    KeywordKind
}

// Source is a text within the bounds, with its tokens.
type Source struct {
	Text   string
	Tokens []Token
}

// Scan checks the bounds of a text and divides it into tokens. Its errors have the SQLSTATEs 22021 (NUL, or not UTF-8),
// 54000 (too long), 54001 (too deeply nested) and 42601 (no SQL).
func Scan(text string) (*Source, *sqlstate.Error) {
	if len(text) > MaxBytes() {
		return nil, sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
			"statement is longer than %d bytes", MaxBytes()).
			WithHint("Send values as parameters, or divide the statement. The operator can raise max_statement.")
	}
	// The parser takes a C string, so it would ignore everything after a NUL without an error.
	if i := strings.IndexByte(text, 0); i >= 0 {
		return nil, sqlstate.New(sqlstate.CharacterNotInRepertoire, sqlstate.ReasonBounds,
			`invalid byte sequence for encoding "UTF8": 0x00`).
			WithHint("Text in PostgreSQL cannot contain NUL.")
	}
	if !utf8.ValidString(text) {
		return nil, sqlstate.New(sqlstate.CharacterNotInRepertoire, sqlstate.ReasonBounds,
			`invalid byte sequence for encoding "UTF8"`).
			WithHint("Send statements as UTF-8; client_encoding is fixed to UTF8.")
	}
	if operatorRunCost(text) > maxRunCost {
		return nil, sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
			"statement has too many operator characters beside each other").
			WithHint("Put spaces between operators, and between comments; send long values as parameters.")
	}
	if len(text) > largeTextBytes {
		largeTextSlot <- struct{}{}
		defer func() { <-largeTextSlot }()
	}
	raw, err := parser.ScanToProtobuf(text)
	if err != nil {
		refusal := parseError(err) // a literal without its end, which the message quotes
		refusal.Message, _, _ = strings.Cut(refusal.Message, " at or near ")
		return nil, refusal
	}
	tokens, refusal := decodeTokens(raw)
	if refusal != nil {
		return nil, refusal
	}
	if maxTreeDepth(tokens) > MaxDepth {
		return nil, sqlstate.New(sqlstate.StatementTooComplex, sqlstate.ReasonBounds,
			"statement is nested more than %d levels deep", MaxDepth).
			WithHint("Long chains of one operator nest too: use a list, as in x = ANY (...), or several statements.")
	}
	if copiedTokens(tokens) > maxCopiedTokens {
		return nil, sqlstate.New(sqlstate.StatementTooComplex, sqlstate.ReasonBounds,
			"an assignment to several columns is too long").
			WithHint("Set the columns one by one: SET a = ..., b = ...")
	}
	return &Source{Text: text, Tokens: tokens}, nil
}

// decodeTokens decodes the scanner's result without allocating an object for each token. Its protobuf fields are:
// ScanResult: 2 = tokens; ScanToken: 1 = start, 2 = end, 4 = token, 5 = keyword kind.
func decodeTokens(raw []byte) ([]Token, *sqlstate.Error) {
	malformed := func() ([]Token, *sqlstate.Error) {
		return nil, sqlstate.AsError(errors.New("sqltext: the scanner's result is malformed"))
	}
	tokens := make([]Token, 0, min(len(raw)/8, MaxTokens+1))
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return malformed()
		}
		raw = raw[n:]
		if number != 2 || kind != protowire.BytesType {
			n = protowire.ConsumeFieldValue(number, kind, raw)
			if n < 0 {
				return malformed()
			}
			raw = raw[n:]
			continue
		}
		body, n := protowire.ConsumeBytes(raw)
		if n < 0 {
			return malformed()
		}
		raw = raw[n:]
		var t Token
		for len(body) > 0 {
			number, kind, n := protowire.ConsumeTag(body)
			if n < 0 || kind != protowire.VarintType {
				return malformed()
			}
			v, m := protowire.ConsumeVarint(body[n:])
			if m < 0 {
				return malformed()
			}
			body = body[n+m:]
			switch number {
			case 1:
				t.Start = int32(v)
			case 2:
				t.End = int32(v)
			case 4:
				t.Kind = TokenKind(v)
			case 5:
				t.Keyword = KeywordKind(v)
			default:
				return malformed()
			}
		}
		if t.Kind == sqlComment || t.Kind == cComment {
			continue
		}
		if len(tokens) == MaxTokens {
			return nil, sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
				"statement has more than %d tokens", MaxTokens).
				WithHint("Send long lists as one array parameter: x = ANY ($1).")
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// TokenText returns the text of a token as it is written.
func (s *Source) TokenText(t Token) string { return s.Text[t.Start:t.End] }

// TokenAt returns the index of the token that starts at a byte offset, or -1.
func (s *Source) TokenAt(offset int32) int {
	low, high := 0, len(s.Tokens)
	for low < high {
		middle := (low + high) / 2
		if s.Tokens[middle].Start < offset {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(s.Tokens) && s.Tokens[low].Start == offset {
		return low
	}
	return -1
}

// KindAt returns the kind of the token with that index, or 0 beyond either end.
func (s *Source) KindAt(i int) TokenKind {
	if i < 0 || i >= len(s.Tokens) {
		return 0
	}
	return s.Tokens[i].Kind
}

// Position converts a byte offset to a position as PostgreSQL counts it: in characters, from 1 on.
func (s *Source) Position(offset int32) int {
	if offset < 0 || int(offset) > len(s.Text) {
		return 0
	}
	return utf8.RuneCountInString(s.Text[:offset]) + 1
}

// IsName tells whether a token can be part of a name: an identifier or any keyword.
func (t Token) IsName() bool {
	return t.Kind == Ident || t.Kind == unicodeIdent || t.Keyword != pg_query.KeywordKind_NO_KEYWORD
}

// IsConstant tells whether a token is a literal or a parameter. Fingerprints of statements leave these out.
func (t Token) IsConstant() bool {
	switch t.Kind {
	case floatConst, Sconst, unicodeStringConst, bitConst, hexConst, integerConst, paramToken:
		return true
	}
	return false
}
