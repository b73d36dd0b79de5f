package oracle

import (
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
)

// An agent searches with pgvector's types, operators and indexes. The answers must be those of a copy without the
// hidden rows, which has no approximate index.
func TestVectorsAreSearchedAsOnAFilteredCopy(t *testing.T) {
	NeedsPgvector(t)
	var r Report
	VectorSchema.runCorpus(t, Options{Modes: instance.Modes(instance.Auto, instance.Both, instance.InjectedOnly), EveryNthInOtherModes: 2}, &r)
	t.Log(r)
	t.Run("by index", func(t *testing.T) {
		var r Report
		VectorSchema.WithIndexPlans().runCorpus(t, Options{Modes: []instance.Mode{instance.Auto}}, &r)
	})
	if r.MustBeAnswered < 100 || r.DependsOnHidden*3 < r.Answered*2 {
		t.Errorf("%d statements must be answered; %d of %d answered ones are sensitive to hidden rows", r.MustBeAnswered, r.DependsOnHidden, r.Answered)
	}
}
