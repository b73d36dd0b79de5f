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

// Queries often differ from earlier ones in a number or a uuid only. Such a Query is decided, and sent, as the text
// with parameters in place of these literals. That text is decided like any text that a client sends in a Parse. The
// knowledge about the shape decides only how close the answer is to that of the Query (decision 113).

// shapeKey has all that what is known of a shape depends on.
type shapeKey struct {
	shape               string // see [sqltext.TextShape]
	epoch               uint64
	canSign             bool
	hidesKeyOnlyColumns bool
}

// textShape is what is known of the texts of one shape.
type textShape struct {
	bindable      []rewrite.BindableLiteral // the literals in whose place parameters stand
	firstPath     verdict.Path              // the path of the text that came first
	firstTextHash uint64                    // a hash of that text
	hasOtherTexts atomic.Bool               // another text of the shape has come
	isUnusable    atomic.Bool               // the texts are decided as they are
}

// shapeCache has what is known of the shapes of texts, within a number of bytes.
type shapeCache struct {
	knownShapes *otter.Cache[shapeKey, *textShape]
}

// maxBoundText is how long a text with parameters may be, in bytes: the proxy keeps no long ones prepared.
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

// boundVerdict returns a verdict on the text of a Query that sessions of equal rights share. It is on the text with
// parameters where both texts are known to mean the same, and otherwise on the text itself.
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

// isUsable tells whether a text is to be sent with parameters: another of its shape has come before.
func (k *textShape) isUsable(text string) bool {
	if k.isUnusable.Load() {
		return false
	}
	if !k.hasOtherTexts.Load() && maphash.String(textHashSeed, text) != k.firstTextHash {
		k.hasOtherTexts.Store(true)
	}
	return k.hasOtherTexts.Load()
}

// bindLiterals returns the verdict on a text with parameters in place of its bindable literals, or nil.
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

// canBindLiterals tells whether a verdict is on a statement that can run with parameters wherever it could with
// literals: one query on the same path, whose text depends on no type or form of a parameter.
func canBindLiterals(v *verdict.Verdict, path verdict.Path) bool {
	return v.IsAllowed() && v.Path == path && v.IsRunnable() && len(v.Text) <= maxBoundText && len(v.Effects) == 1 &&
		!v.Effects[0].WritesRows &&
		len(v.Forms) == 0 && !v.NeedsValueCheck && !v.CallsSetConfig && !v.HardenBeforeParse && !v.HasHardenedPlan() &&
		!v.EnforcerDetail.(*judgement).sessionOnly && v.EnforcerDetail.(*judgement).observedDecision == nil
}

// positionBefore turns a position in the text with parameters into one in the text with literals.
func positionBefore(text string, literals []sqltext.Literal, bound []rewrite.BindableLiteral, p int) int {
	if p <= 0 {
		return 0
	}
	longer := 0 // by how many characters the literals so far are longer than their parameters
	for i, b := range bound {
		l := literals[b.Number]
		// of the literal; its parameter is at the position at-longer
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
