package registry

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// fillRegistry fills a registry with records of every kind.
func fillRegistry(t testing.TB, r *Registry) {
	t.Helper()
	agent := consent.Party{Role: consent.RoleAgent, ID: "chat"}
	for i := range 8 {
		id := fmt.Sprintf("person %d", i)
		mustExecute(t, r, grant(id, consent.StreamTemporary))
		mustExecute(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: id, Caller: subject(id)})
		mustExecute(t, r, consent.Command{Action: consent.ActionDecide, Subject: id, Caller: agent,
			Decision: []consent.Decision{consent.DecisionApprove, consent.DecisionReject, consent.DecisionDefer}[i%3]})
		mustExecute(t, r, consent.Command{Action: consent.ActionGrant, Subject: id, Grantee: "si:vet", Scope: "ctx:health",
			Purposes: []string{"care"}, Caller: subject(id)})
		mustExecute(t, r, consent.Command{Action: consent.ActionAppoint, Subject: id, Guardian: "human:sean", Caller: consent.Party{Role: consent.RoleController,
			ID: "owner"}})
		if i%3 == 0 {
			mustExecute(t, r, consent.Command{Action: consent.ActionDegrade, Subject: id, Stream: consent.StreamAnonymous, Caller: subject(id)})
		}
		if i%2 == 0 {
			mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: id, Caller: subject(id)})
		}
		if i == 7 {
			mustExecute(t, r, consent.Command{Action: consent.ActionErase, Subject: id, Caller: subject(id)})
		}
	}
}

// exportRegistry returns the data that Verify reads, and the anchor.
func exportRegistry(t testing.TB, r *Registry) (*Export, recordHead) {
	t.Helper()
	file, err := readAnchor(r.Anchor)
	if err != nil {
		t.Fatal(err)
	}
	h, ok, err := file.head(r.Database, r.Keys)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	var x *Export
	if err := r.snapshot(t.Context(), func(ctx context.Context, tx pgx.Tx, _ uuid, _ time.Time) (err error) {
		x, err = readExport(ctx, tx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return x, h
}

func copied(x *Export) *Export {
	return &Export{slices.Clone(x.registries), slices.Clone(x.entries), slices.Clone(x.subjects), slices.Clone(x.current), slices.Clone(x.guardians)}
}

// flipBit returns b with one random bit changed.
func flipBit(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte{1}
	}
	out := slices.Clone(b)
	out[r.IntN(len(out))] ^= 1 << r.IntN(8)
	return out
}

func word(s string) *string { return &s }

// changeEntry alters one random field of a record.
func changeEntry(r *rand.Rand, x *Export, e *recordEntry) {
	laterTime := e.RecordedAt.Add(time.Duration(1+r.IntN(1e6)) * time.Microsecond)
	otherReference := x.subjects[r.IntN(len(x.subjects))].Reference
	for otherReference == e.Subject || e.Grantee != nil && otherReference == *e.Grantee {
		otherReference = x.subjects[r.IntN(len(x.subjects))].Reference
	}
	pick := func(p **time.Time) {
		if *p == nil || r.IntN(2) == 0 {
			*p = &laterTime
		} else {
			*p = nil
		}
	}
	times := []**time.Time{&e.GivenAt, &e.ExpiresAt, &e.DueAt, &e.DecayFrom, &e.DecayedBefore, &e.VoidBefore, &e.WarnedAt}
	switch n := r.IntN(24); n {
	case 0:
		e.RecordedAt = laterTime
	case 1:
		e.Subject = otherReference
	case 2:
		e.Event += "x"
	case 3:
		e.State = map[bool]string{true: "revoked", false: "given"}[e.State == "given"]
	case 4:
		if e.Stream == nil {
			e.Stream = word("PARTNERED")
		} else {
			e.Stream = nil
		}
	case 5:
		e.Categories = append(slices.Clone(e.Categories), "BEHAVIORAL/all")
	case 6:
		e.Purposes = append(slices.Clone(e.Purposes), "everything")
	case 7:
		e.Asked = append(slices.Clone(e.Asked), "ESSENTIAL")
	case 8:
		e.Grantee = &otherReference
	case 9:
		e.Scope = flipBit(r, e.Scope)
	case 10, 11, 12, 13, 14, 15, 16:
		pick(times[n-10])
	case 17:
		days := int32(r.IntN(90) + 1)
		if e.DecayedDays != nil {
			days += *e.DecayedDays
		}
		e.DecayedDays = &days
	case 18:
		e.Controller = word("somebody else")
	case 19:
		e.Request = flipBit(r, e.Request)
	case 20:
		e.Sealed = flipBit(r, e.Sealed)
	case 21:
		e.Hash = flipBit(r, e.Hash)
	case 22:
		e.MAC = flipBit(r, e.MAC)
	case 23:
		e.MACKey++
	}
}

// recomputeState computes the current consents and people's states from the records again, as an attacker would to hide
// a change.
func recomputeState(x *Export, k Keys) {
	c := &checker{keys: k, subjects: map[uuid]*subjectRow{}, openedParties: map[uuid]party{}, erasedSubjects: map[uuid]bool{},
		currentRows: map[consent.Key]currentRow{}, guardians: map[[2]string]int64{}, id: x.registries[0]}
	c.openParties(x.subjects)
	c.checkChain(x.entries, nil)
	x.current, x.guardians = nil, nil
	for _, f := range c.currentRows {
		x.current = append(x.current, f)
	}
	for g, n := range c.guardians {
		x.guardians = append(x.guardians, guardianRow{g[0], g[1], n})
	}
}

// recomputeChain computes numbers, links, hashes and codes again from a record on, with the attacker's own key.
func recomputeChain(x *Export, from int, k Keys) {
	prev := genesisHash(x.registries[0])
	if from > 0 {
		prev = x.entries[from-1].Hash
	}
	for i := from; i < len(x.entries); i++ {
		e := &x.entries[i]
		e.Number, e.PreviousHash = int64(i+1), prev
		e.sign(k, x.registries[0])
		prev = e.Hash
	}
}

// tamperings are kinds of tampering. Each changes an export, and returns a description of the change.
var tamperings = map[string]func(r *rand.Rand, x *Export, k, foreignKeys Keys) string{
	"change": func(r *rand.Rand, x *Export, k, _ Keys) string {
		i := r.IntN(len(x.entries))
		changeEntry(r, x, &x.entries[i])
		return fmt.Sprint("changed ", i)
	},
	"drop": func(r *rand.Rand, x *Export, k, _ Keys) string {
		i := r.IntN(len(x.entries))
		x.entries = slices.Delete(x.entries, i, i+1)
		if r.IntN(2) == 0 {
			for j := i; j < len(x.entries); j++ {
				x.entries[j].Number--
			}
		}
		if r.IntN(2) == 0 {
			recomputeState(x, k)
		}
		return fmt.Sprint("dropped ", i)
	},
	"swap": func(r *rand.Rand, x *Export, k, _ Keys) string {
		i, j := r.IntN(len(x.entries)), r.IntN(len(x.entries))
		for i == j {
			j = r.IntN(len(x.entries))
		}
		x.entries[i], x.entries[j] = x.entries[j], x.entries[i]
		if r.IntN(2) == 0 {
			x.entries[i].Number, x.entries[j].Number = x.entries[j].Number, x.entries[i].Number
		}
		return fmt.Sprint("swapped ", i, j)
	},
	"insert": func(r *rand.Rand, x *Export, k, _ Keys) string {
		i, j := r.IntN(len(x.entries)+1), r.IntN(len(x.entries))
		e := x.entries[j]
		x.entries = slices.Insert(x.entries, i, e)
		description := "a copy"
		if r.IntN(2) == 0 {
			description = "numbered anew"
			for n := i; n < len(x.entries); n++ {
				x.entries[n].Number = int64(n + 1)
			}
		}
		if r.IntN(2) == 0 {
			recomputeState(x, k)
		}
		return fmt.Sprint(description, i, j)
	},
	"truncate": func(r *rand.Rand, x *Export, k, _ Keys) string {
		n := r.IntN(len(x.entries))
		x.entries = x.entries[:n]
		recomputeState(x, k)
		return fmt.Sprint("truncated to ", n)
	},
	"recompute": func(r *rand.Rand, x *Export, k, foreignKeys Keys) string {
		i := r.IntN(len(x.entries))
		switch r.IntN(3) {
		case 0:
			changeEntry(r, x, &x.entries[i])
		case 1:
			x.entries = slices.Delete(x.entries, i, i+1)
		case 2:
			x.entries = slices.Insert(x.entries, i, x.entries[r.IntN(len(x.entries))])
		}
		recomputeChain(x, i, foreignKeys)
		recomputeState(x, k)
		return fmt.Sprint("worked out anew from ", i)
	},
	"fold": func(r *rand.Rand, x *Export, k, _ Keys) string {
		i := r.IntN(len(x.current))
		f := &x.current[i]
		laterTime := time.Now().Add(time.Duration(r.IntN(1e9)) * time.Microsecond)
		pick := func(p **time.Time) {
			if *p == nil || r.IntN(2) == 0 {
				*p = &laterTime
			} else {
				*p = nil
			}
		}
		withExtraCategory := func(list []string) []string { return append(slices.Clone(list), "IMPROVEMENT/x") }
		switch n := r.IntN(20); n {
		case 0:
			f.State = map[bool]string{true: "withdrawn", false: "given"}[f.State == "given"]
		case 1:
			f.Categories = withExtraCategory(f.Categories)
		case 2:
			f.Purposes = withExtraCategory(f.Purposes)
		case 3:
			f.Asked = withExtraCategory(f.Asked)
		case 4:
			if keeps := slices.IndexFunc(x.current, func(f currentRow) bool { return f.DecayCategories != nil }); r.IntN(2) == 0 {
				x.current[keeps].DecayCategories = nil
			} else {
				f.DecayCategories = withExtraCategory(f.DecayCategories)
			}
		case 5:
			f.Subject += "x"
		case 6:
			f.Grantee += "x"
		case 7:
			f.Scope = "table:" + f.Scope
		case 8:
			x.current = slices.Delete(x.current, i, i+1)
			return "a fold is gone"
		case 9:
			g := *f
			g.Grantee = "si:spy"
			x.current = append(x.current, g)
		case 10:
			f.Number++
		case 11:
			days := int32(r.IntN(90) + 1)
			if f.DecayedDays != nil {
				days += *f.DecayedDays
			}
			f.DecayedDays = &days
		case 12:
			if f.Stream == nil {
				f.Stream = word("PARTNERED")
			} else {
				f.Stream = nil
			}
		default:
			pick([]**time.Time{&f.GivenAt, &f.ExpiresAt, &f.DueAt, &f.DecayFrom, &f.DecayedBefore, &f.VoidBefore, &f.WarnedAt}[n-13])
		}
		return fmt.Sprint("fold ", i)
	},
	"people": func(r *rand.Rand, x *Export, k, foreignKeys Keys) string {
		i, j := r.IntN(len(x.subjects)), r.IntN(len(x.subjects))
		p, q := &x.subjects[i], &x.subjects[j]
		now := time.Now()
		switch r.IntN(6) {
		case 5:
			i = slices.IndexFunc(x.subjects, func(p subjectRow) bool { return p.ErasedAt != nil })
			earlier := x.subjects[i].ErasedAt.Add(-time.Duration(1+r.IntN(1e9)) * time.Microsecond)
			x.subjects[i].ErasedAt = &earlier
			return "erased at another time"
		case 0:
			if p.Name == nil {
				p.Name, p.Key, p.ErasedAt = word("back"), foreignKeys.wrap(x.registries[0], newParty("back")), nil
				return "somebody erased is back"
			}
			p.Name = word(*p.Name + "x")
		case 1:
			for i == j || p.Name == nil || q.Name == nil {
				i, j = r.IntN(len(x.subjects)), r.IntN(len(x.subjects))
				p, q = &x.subjects[i], &x.subjects[j]
			}
			p.Name, q.Name = q.Name, p.Name
		case 2:
			p.Key = flipBit(r, p.Key)
		case 3:
			if p.Name == nil {
				p.ErasedAt = nil
				break
			}
			p.Name, p.Key, p.ErasedAt = nil, nil, &now
		case 4:
			x.subjects = slices.Delete(x.subjects, i, i+1)
			return "somebody is gone"
		}
		return fmt.Sprint("people ", i, j)
	},
	"guardians": func(r *rand.Rand, x *Export, k, _ Keys) string {
		i := r.IntN(len(x.guardians))
		switch r.IntN(3) {
		case 0:
			x.guardians[i].Guardian = "human:eve"
		case 1:
			x.guardians = append(x.guardians, guardianRow{"person 0", "human:eve", 1})
		case 2:
			x.guardians = slices.Delete(x.guardians, i, i+1)
		}
		return "guardians"
	},
}

// At least a thousand random changes of each kind, ten thousand in all, are found.
// seeds/001:188-190.
func TestTamperingIsFound(t *testing.T) {
	r := open(t, database(t), defaults)
	fillRegistry(t, r)
	requireVerified(t, r)
	x, anchoredHead := exportRegistry(t, r)
	if found := Check(x, r.Keys, &anchoredHead); len(found) > 0 {
		t.Fatal(found)
	}
	foreignKeys, err := parseKeys([]byte("1 " + fmt.Sprintf("%064x", 7)))
	if err != nil {
		t.Fatal(err)
	}
	roundsPerClass := tier.Count(110, 440, 10_000)
	total := 0
	for class, tamper := range tamperings {
		random := rand.New(rand.NewPCG(5, uint64(len(class))))
		for range roundsPerClass {
			tamperedExport := copied(x)
			description := tamper(random, tamperedExport, r.Keys, foreignKeys)
			total++
			if len(Check(tamperedExport, r.Keys, &anchoredHead)) == 0 {
				t.Errorf("%s: not found: %s", class, description)
			}
		}
	}
	if total < 9*roundsPerClass {
		t.Errorf("only %d tamperings", total)
	}
	t.Logf("%d tamperings of %d records", total, x.RecordCount())
}
