package enforce

import (
	"hash/maphash"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Queries often differ from earlier ones in a few literals only. The proxy decides, and sends, such a Query with
// parameters ($1, $2, …) in place of these literals. The new text is decided like any text that a client sends in a
// Parse. So security does not depend on what the proxy remembers of the shape: a mistake there could only make the
// result differ from that of the Query with its literals (decisions 113 and 120).

// shapeKey has everything that the decisions about the texts of one shape depend on.
type shapeKey struct {
	shape               string // see [sqltext.TextShape]
	epoch               uint64
	canSign             bool
	hidesKeyOnlyColumns bool
}

// textShape is what the proxy remembers of texts that differ only in their literals.
type textShape struct {
	all           []rewrite.BindableLiteral // the literals that parameters may replace
	identifying   []rewrite.BindableLiteral // those of them for which PostgreSQL may keep one plan
	firstPath     verdict.Path              // the path of the first text of this shape
	firstTextHash uint64                    // a hash of the first text
	hasOtherTexts atomic.Bool               // a text other than the first one has come

	// Parameters have not worked in place of these literals, so they stay.
	keepsAll, keepsIdentifying atomic.Bool

	// how many texts came, and how many of them had to be decided, while only identifying literals were replaced
	texts, decisions atomic.Int64
}

// minDecisions is how many texts of a shape are decided before the proxy may replace all their literals.
const minDecisions = 20

// replacesAll reports whether parameters replace all literals of texts of this shape. PostgreSQL then plans each
// execution. While only identifying literals are replaced, a text that comes again with the same other literals is kept
// prepared, which is faster: so that is tried first, until most texts have turned out to be new.
func (k *textShape) replacesAll() bool {
	decisions := k.decisions.Load()
	return len(k.all) > len(k.identifying) && !k.keepsAll.Load() && decisions >= minDecisions && 2*decisions > k.texts.Load()
}

// maxBoundText is how many bytes a text with parameters may have: the proxy does not keep longer texts prepared.
const maxBoundText = 32 << 10

// shapeOverhead is how many bytes a shape takes besides its text.
const shapeOverhead = 256

// shapeBytes returns how many bytes a shape takes in the cache.
func shapeBytes(k shapeKey, _ *textShape) uint32 { return uint32(shapeOverhead + len(k.shape)) }

var textHashSeed = maphash.MakeSeed()

// boundVerdict returns a verdict on the text of a Query; sessions of equal rights share it. The verdict is on the text
// with parameters in place of its literals if both texts are known to mean the same. Otherwise it is on the text
// itself.
func (s *session) boundVerdict(st *state, text string) *verdict.Verdict {
	shape, literals := sqltext.TextShape(text)
	if shape == "" || s.mayNameUser(text) {
		return s.sharedVerdict(st, text, verdict.Simple)
	}
	key := shapeKey{shape: shape, epoch: st.epoch, canSign: s.canSign(st), hidesKeyOnlyColumns: s.info.HidesKeyOnlyColumns}
	known, ok := s.enforcer.shapes.GetIfPresent(key)
	if !ok {
		v := s.sharedVerdict(st, text, verdict.Simple)
		s.enforcer.shapes.Set(key, newTextShape(v, text))
		return v
	}
	if !known.hasSecondText(text) {
		return s.sharedVerdict(st, text, verdict.Simple)
	}
	if known.replacesAll() {
		if v, _ := s.bindLiterals(st, known.all, known, text, literals); v != nil {
			return v
		}
	}
	known.texts.Add(1)
	if len(known.identifying) > 0 && !known.keepsIdentifying.Load() {
		if v, isNew := s.bindLiterals(st, known.identifying, known, text, literals); v != nil {
			known.countDecision(isNew)
			return v
		}
	}
	v, isNew := s.decideOnce(st, text, verdict.Simple, s.canSign(st))
	known.countDecision(isNew)
	return v
}

// newTextShape returns what is to be remembered of the first text of a shape, whose verdict is v.
func newTextShape(v *verdict.Verdict, text string) *textShape {
	shape := &textShape{firstPath: v.Path, firstTextHash: maphash.String(textHashSeed, text)}
	if j := v.EnforcerDetail.(*judgement); v.IsAllowed() {
		shape.all = j.bindable
	}
	for _, literal := range shape.all {
		if !literal.NeedsPlan {
			shape.identifying = append(shape.identifying, literal)
		}
	}
	return shape
}

// hasSecondText reports whether texts of the shape have parameters: only from the second different text on.
func (k *textShape) hasSecondText(text string) bool {
	if len(k.all) == 0 {
		return false
	}
	if !k.hasOtherTexts.Load() && maphash.String(textHashSeed, text) != k.firstTextHash {
		k.hasOtherTexts.Store(true)
	}
	return k.hasOtherTexts.Load()
}

func (k *textShape) countDecision(isNew bool) {
	if isNew {
		k.decisions.Add(1)
	}
}

// bindLiterals returns the verdict on a text with parameters in place of some of its literals, and whether it is a new
// one. It returns nil if the text must be decided with these literals.
func (s *session) bindLiterals(st *state, replaced []rewrite.BindableLiteral, shape *textShape, text string,
	literals []sqltext.Literal) (v *verdict.Verdict, isNew bool) {
	values := make([][]byte, 0, len(replaced))
	bound := make([]byte, 0, len(text)+8)
	copied := 0
	needsPlan := false
	for i, b := range replaced {
		l := literals[b.Number]
		value := l.Value(text)
		if !b.Form.Fits(value) || !utf8.ValidString(value) {
			return nil, false
		}
		values = append(values, []byte(value))
		bound = append(append(bound, text[copied:l.Start]...), '$')
		bound = strconv.AppendInt(bound, int64(i+1), 10)
		copied = l.End
		needsPlan = needsPlan || b.NeedsPlan
	}
	decided, isNew := s.decideOnce(st, string(append(bound, text[copied:]...)), verdict.Bindable, s.canSign(st))
	if !canBindLiterals(decided, shape.firstPath) {
		if needsPlan {
			shape.keepsAll.Store(true)
		} else {
			shape.keepsIdentifying.Store(true)
		}
		return nil, false
	}
	verdictCopy := *decided
	verdictCopy.Original, verdictCopy.Values, verdictCopy.NeedsPlan = text, values, needsPlan
	verdictCopy.Position = func(p int) int { return positionBefore(text, literals, replaced, decided.Position(p)) }
	return &verdictCopy, isNew
}

// canBindLiterals reports whether the statement of this verdict can run with parameters wherever it can run with
// literals. It must be one query on the same path, whose text does not depend on the type or the form of a parameter.
func canBindLiterals(v *verdict.Verdict, path verdict.Path) bool {
	return v.IsAllowed() && v.Path == path && v.IsRunnable() && len(v.Text) <= maxBoundText && len(v.Effects) == 1 &&
		!v.Effects[0].WritesRows &&
		len(v.Forms) == 0 && !v.NeedsValueCheck && !v.CallsSetConfig && !v.HardenBeforeParse && !v.HasHardenedPlan() &&
		!v.EnforcerDetail.(*judgement).sessionOnly && v.EnforcerDetail.(*judgement).observedDecision == nil
}

// positionBefore converts a position in the text with parameters into the position in the text with literals.
func positionBefore(text string, literals []sqltext.Literal, bound []rewrite.BindableLiteral, p int) int {
	if p <= 0 {
		return 0
	}
	longer := 0 // how many more characters the literals so far have than their parameters
	for i, b := range bound {
		l := literals[b.Number]
		// literalStart is a position in the text with literals; in the text with parameters it is literalStart-longer.
		literalStart := utf8.RuneCountInString(text[:l.Start]) + 1
		length := 1 + len(strconv.Itoa(i+1))
		switch {
		case p < literalStart-longer:
			return p + longer
		case p < literalStart-longer+length:
			return literalStart
		}
		longer += utf8.RuneCountInString(text[l.Start:l.End]) - length
	}
	return p + longer
}
