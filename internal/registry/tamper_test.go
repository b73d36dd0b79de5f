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

// lived fills a registry with records of every kind.
func lived(t testing.TB, r *Registry) {
	t.Helper()
	agent := consent.Party{Role: consent.RoleAgent, ID: "chat"}
	for i := range 8 {
		id := fmt.Sprintf("person %d", i)
		must(t, r, grant(id, consent.StreamTemporary))
		must(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: id, Caller: subject(id)})
		must(t, r, consent.Command{Action: consent.ActionDecide, Subject: id, Caller: agent,
			Decision: []consent.Decision{consent.DecisionApprove, consent.DecisionReject, consent.DecisionDefer}[i%3]})
		must(t, r, consent.Command{Action: consent.ActionGrant, Subject: id, Grantee: "si:vet", Scope: "ctx:health", Purposes: []string{"care"}, Caller: subject(id)})
		must(t, r, consent.Command{Action: consent.ActionAppoint, Subject: id, Guardian: "human:sean", Caller: consent.Party{Role: consent.RoleController,
			ID: "owner"}})
		if i%3 == 0 {
			must(t, r, consent.Command{Action: consent.ActionDegrade, Subject: id, Stream: consent.StreamAnonymous, Caller: subject(id)})
		}
		if i%2 == 0 {
			must(t, r, consent.Command{Action: consent.ActionRevoke, Subject: id, Caller: subject(id)})
		}
		if i == 7 {
			must(t, r, consent.Command{Action: consent.ActionErase, Subject: id, Caller: subject(id)})
		}
	}
}

// exported returns the data that Verify reads, and the anchor.
func exported(t testing.TB, r *Registry) (*Export, recordHead) {
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

// flipped returns b with one random bit changed.
func flipped(r *rand.Rand, b []byte) []byte {
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
	later := e.RecordedAt.Add(time.Duration(1+r.IntN(1e6)) * time.Microsecond)
	other := x.subjects[r.IntN(len(x.subjects))].Reference
	for other == e.Subject || e.Grantee != nil && other == *e.Grantee {
		other = x.subjects[r.IntN(len(x.subjects))].Reference
	}
	pick := func(p **time.Time) {
		if *p == nil || r.IntN(2) == 0 {
			*p = &later
		} else {
			*p = nil
		}
	}
	times := []**time.Time{&e.GivenAt, &e.ExpiresAt, &e.DueAt, &e.DecayFrom, &e.DecayedBefore, &e.VoidBefore, &e.WarnedAt}
	switch n := r.IntN(24); n {
	case 0:
		e.RecordedAt = later
	case 1:
		e.Subject = other
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
		e.Grantee = &other
	case 9:
		e.Scope = flipped(r, e.Scope)
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
		e.Request = flipped(r, e.Request)
	case 20:
		e.Sealed = flipped(r, e.Sealed)
	case 21:
		e.Hash = flipped(r, e.Hash)
	case 22:
		e.MAC = flipped(r, e.MAC)
	case 23:
		e.MACKey++
	}
}

// refolded computes the current consents and people's states from the records again, as an attacker would to hide a
// change.
func refolded(x *Export, k Keys) {
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

// rechained computes numbers, links, hashes and codes again from a record on, with the attacker's own key.
func rechained(x *Export, from int, k Keys) {
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
var tamperings = map[string]func(r *rand.Rand, x *Export, k, foreign Keys) string{
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
			refolded(x, k)
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
		how := "a copy"
		if r.IntN(2) == 0 {
			how = "numbered anew"
			for n := i; n < len(x.entries); n++ {
				x.entries[n].Number = int64(n + 1)
			}
		}
		if r.IntN(2) == 0 {
			refolded(x, k)
		}
		return fmt.Sprint(how, i, j)
	},
	"truncate": func(r *rand.Rand, x *Export, k, _ Keys) string {
		n := r.IntN(len(x.entries))
		x.entries = x.entries[:n]
		refolded(x, k)
		return fmt.Sprint("truncated to ", n)
	},
	"recompute": func(r *rand.Rand, x *Export, k, foreign Keys) string {
		i := r.IntN(len(x.entries))
		switch r.IntN(3) {
		case 0:
			changeEntry(r, x, &x.entries[i])
		case 1:
			x.entries = slices.Delete(x.entries, i, i+1)
		case 2:
			x.entries = slices.Insert(x.entries, i, x.entries[r.IntN(len(x.entries))])
		}
		rechained(x, i, foreign)
		refolded(x, k)
		return fmt.Sprint("worked out anew from ", i)
	},
	"fold": func(r *rand.Rand, x *Export, k, _ Keys) string {
		i := r.IntN(len(x.current))
		f := &x.current[i]
		later := time.Now().Add(time.Duration(r.IntN(1e9)) * time.Microsecond)
		pick := func(p **time.Time) {
			if *p == nil || r.IntN(2) == 0 {
				*p = &later
			} else {
				*p = nil
			}
		}
		more := func(list []string) []string { return append(slices.Clone(list), "IMPROVEMENT/x") }
		switch n := r.IntN(20); n {
		case 0:
			f.State = map[bool]string{true: "withdrawn", false: "given"}[f.State == "given"]
		case 1:
			f.Categories = more(f.Categories)
		case 2:
			f.Purposes = more(f.Purposes)
		case 3:
			f.Asked = more(f.Asked)
		case 4:
			if keeps := slices.IndexFunc(x.current, func(f currentRow) bool { return f.DecayCategories != nil }); r.IntN(2) == 0 {
				x.current[keeps].DecayCategories = nil
			} else {
				f.DecayCategories = more(f.DecayCategories)
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
	"people": func(r *rand.Rand, x *Export, k, foreign Keys) string {
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
				p.Name, p.Key, p.ErasedAt = word("back"), foreign.wrap(x.registries[0], newParty("back")), nil
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
			p.Key = flipped(r, p.Key)
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
	lived(t, r)
	sound(t, r)
	x, anchored := exported(t, r)
	if found := Check(x, r.Keys, &anchored); len(found) > 0 {
		t.Fatal(found)
	}
	foreign, err := parseKeys([]byte("1 " + fmt.Sprintf("%064x", 7)))
	if err != nil {
		t.Fatal(err)
	}
	each := tier.Count(110, 440, 10_000)
	total := 0
	for class, tamper := range tamperings {
		random := rand.New(rand.NewPCG(5, uint64(len(class))))
		for range each {
			bad := copied(x)
			what := tamper(random, bad, r.Keys, foreign)
			total++
			if len(Check(bad, r.Keys, &anchored)) == 0 {
				t.Errorf("%s: not found: %s", class, what)
			}
		}
	}
	if total < 9*each {
		t.Errorf("only %d tamperings", total)
	}
	t.Logf("%d tamperings of %d records", total, x.RecordCount())
}
