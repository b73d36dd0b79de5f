package enforce

import (
	"hash/maphash"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"github.com/maypok86/otter/v2"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Queries often differ from earlier ones in a number or a uuid only. The proxy decides, and sends, such a Query with
// parameters ($1, $2, …) in place of these literals. The new text is decided like any text that a client sends in a
// Parse. So security does not depend on what the proxy remembers of the shape: a mistake there could only make the
// result differ from that of the Query with its literals (decision 113).

// shapeKey has everything that the decisions about the texts of one shape depend on.
type shapeKey struct {
	shape               string // see [sqltext.TextShape]
	epoch               uint64
	canSign             bool
	hidesKeyOnlyColumns bool
}

// textShape is what the proxy remembers of texts that differ only in their literals.
type textShape struct {
	bindable      []rewrite.BindableLiteral // the literals that parameters replace
	firstPath     verdict.Path              // the path of the first text of this shape
	firstTextHash uint64                    // a hash of the first text
	hasOtherTexts atomic.Bool               // a text other than the first one has come
	isUnusable    atomic.Bool               // texts of this shape are decided with their literals
}

// shapeCache remembers the shapes of texts, up to a number of bytes.
type shapeCache struct {
	knownShapes *otter.Cache[shapeKey, *textShape]
}

// maxBoundText is how many bytes a text with parameters may have: the proxy does not keep longer texts prepared.
const maxBoundText = 32 << 10

// shapeOverhead is how many bytes a shape takes besides its text.
const shapeOverhead = 256

func newShapeCache(bytes uint64) (*shapeCache, error) {
	cached, err := otter.New(&otter.Options[shapeKey, *textShape]{
		MaximumWeight: bytes,
		Weigher:       func(k shapeKey, _ *textShape) uint32 { return uint32(shapeOverhead + len(k.shape)) },
	})
	return &shapeCache{knownShapes: cached}, err
}

func (c *shapeCache) close() {
	c.knownShapes.InvalidateAll()
	c.knownShapes.StopAllGoroutines()
}

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
	known, ok := s.enforcer.shapeCache.knownShapes.GetIfPresent(key)
	if ok && known.isUsable(text) {
		if v := s.bindLiterals(st, known, text, literals); v != nil {
			return v
		}
	}
	v := s.sharedVerdict(st, text, verdict.Simple)
	if !ok {
		known = &textShape{firstPath: v.Path, firstTextHash: maphash.String(textHashSeed, text)}
		if j := v.EnforcerDetail.(*judgement); v.IsAllowed() {
			known.bindable = j.bindable
		}
		known.isUnusable.Store(len(known.bindable) == 0)
		s.enforcer.shapeCache.knownShapes.Set(key, known)
	}
	return v
}

// isUsable reports whether parameters may replace the literals of this text: only from the second different text of the
// shape on.
func (k *textShape) isUsable(text string) bool {
	if k.isUnusable.Load() {
		return false
	}
	if !k.hasOtherTexts.Load() && maphash.String(textHashSeed, text) != k.firstTextHash {
		k.hasOtherTexts.Store(true)
	}
	return k.hasOtherTexts.Load()
}

// bindLiterals returns the verdict on a text with parameters in place of its bindable literals. It returns nil if the
// text must be decided with its literals.
func (s *session) bindLiterals(st *state, shape *textShape, text string, literals []sqltext.Literal) *verdict.Verdict {
	values := make([][]byte, 0, len(shape.bindable))
	bound := make([]byte, 0, len(text)+8)
	copied := 0
	for i, b := range shape.bindable {
		l := literals[b.Number]
		value := l.Value(text)
		if b.IsUUID && !rewrite.IsPlainUUID(value) || !utf8.ValidString(value) {
			return nil
		}
		values = append(values, []byte(value))
		bound = append(append(bound, text[copied:l.Start]...), '$')
		bound = strconv.AppendInt(bound, int64(i+1), 10)
		copied = l.End
	}
	v := s.decide(st, string(append(bound, text[copied:]...)), verdict.Bindable, s.canSign(st))
	if !canBindLiterals(v, shape.firstPath) {
		shape.isUnusable.Store(true)
		return nil
	}
	verdictCopy := *v
	verdictCopy.Original, verdictCopy.Values = text, values
	verdictCopy.Position = func(p int) int { return positionBefore(text, literals, shape.bindable, v.Position(p)) }
	return &verdictCopy
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
