package observe

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// LogClass says how the policy would decide the statements of one shape.
type LogClass struct {
	Fingerprint string   `json:"fingerprint"`
	Tag         string   `json:"tag"`
	Count       int64    `json:"count"`
	Allowed     bool     `json:"allowed"`
	SQLState    string   `json:"sqlstate,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Message     string   `json:"message,omitempty"`
	Hint        string   `json:"hint,omitempty"`
	Tables      []string `json:"tables,omitempty"`
	// columns that the policy hides from agents: the statement may fail, or return fewer columns
	Hidden []string `json:"hidden,omitempty"`
	Masked []string `json:"masked,omitempty"`
	SQL    string   `json:"sql,omitempty"` // one of the statements, if the caller asked for texts
}

// LogReplay says how a policy would decide the statements of a log.
type LogReplay struct {
	Statements int64       `json:"statements"`
	Allowed    int64       `json:"allowed"`
	Refused    int64       `json:"refused"`
	Shapes     []*LogClass `json:"shapes"`

	// Contracts tells whether the contracts were evaluated. They depend on the session, so that needs the attributes of an
	// agent.
	Contracts bool `json:"contracts"`

	rewriter   *rewrite.Rewriter
	policy     *policy.Policy
	attributes map[string]string
	keepsTexts bool
	classes    map[[2]string]*LogClass
}

// NewLogReplay returns a replay under a policy, given the database's catalog. It treats tables that the policy would
// only observe as enforced. It stores no literals of the statements unless texts is set. A statement in a log belongs
// to no agent, so contracts are evaluated only after [LogReplay.UseAttributes].
func NewLogReplay(p *policy.Policy, snap *catalog.Snapshot, texts bool) *LogReplay {
	enforcedPolicy := p.Enforced()
	return &LogReplay{rewriter: rewrite.New(snap, enforcedPolicy, rewrite.RowSecurityMode), policy: enforcedPolicy,
		keepsTexts: texts,
		classes:    map[[2]string]*LogClass{}}
}

// UseAttributes lets the replay evaluate contracts, with these attributes for every statement.
func (r *LogReplay) UseAttributes(values map[string]string) {
	r.attributes, r.Contracts = values, r.policy.HasContracts()
}

// checkContracts evaluates the contracts for each statement of a text, and returns the first refusal.
func (r *LogReplay) checkContracts(result *rewrite.Result) *sqlstate.Error {
	if !r.Contracts {
		return nil
	}
	for _, s := range result.Statements {
		if refused := r.policy.Judge(s, r.attributes); refused != nil {
			return refused
		}
	}
	return nil
}

// quotedText matches the quoted parts of an error message, which may repeat words of the statement.
var quotedText = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// Add decides one statement under the policy and counts the result.
func (r *LogReplay) Add(sql string) error {
	r.Statements++
	result, refused := r.rewriter.Rewrite(sql, false)
	j := &LogClass{}
	if result != nil {
		j.Fingerprint, j.Tag = result.Fingerprint, result.Tag
	}
	if refused == nil {
		refused = r.checkContracts(result)
	}
	j.Allowed = refused == nil
	if refused != nil {
		r.Refused++
		j.SQLState, j.Reason, j.Message, j.Hint = string(refused.Code), string(refused.Reason), refused.Message, refused.Hint
		if !r.keepsTexts {
			j.Message, j.Hint = quotedText.ReplaceAllString(j.Message, "…"), quotedText.ReplaceAllString(j.Hint, "…")
		}
	} else {
		r.Allowed++
		for _, a := range result.Accesses {
			table, ok := r.policy.Table(a.Relation)
			if !ok {
				continue
			}
			name := a.Relation.String()
			if !slices.Contains(j.Tables, name) {
				j.Tables = append(j.Tables, name)
			}
			hiddenColumns, maskedColumns := table.HiddenAndMasked(a.Columns)
			for _, c := range hiddenColumns {
				j.Hidden = append(j.Hidden, name+"."+c)
			}
			for _, c := range maskedColumns {
				j.Masked = append(j.Masked, name+"."+c)
			}
		}
	}
	key := [2]string{j.Fingerprint, j.SQLState + j.Message}
	if found := r.classes[key]; found != nil {
		found.Count++
		return nil
	}
	j.Count = 1
	if r.keepsTexts {
		j.SQL = sql
	}
	r.classes[key] = j
	return nil
}

// Sort sorts the classes: refused ones first, then those that lose columns, each by frequency.
func (r *LogReplay) Sort() {
	rank := func(j *LogClass) int {
		switch {
		case !j.Allowed:
			return 0
		case len(j.Hidden)+len(j.Masked) > 0:
			return 1
		}
		return 2
	}
	r.Shapes = slices.SortedFunc(maps.Values(r.classes), func(a, b *LogClass) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(b.Count, a.Count), strings.Compare(a.Fingerprint, b.Fingerprint),
			strings.Compare(a.Message, b.Message))
	})
}

// Print writes the replay as text.
func (r *LogReplay) Print(out io.Writer) {
	fmt.Fprintf(out, "%d statements of %d shapes: %d allowed, %d refused. None was run.\n", r.Statements,
		len(r.Shapes), r.Allowed, r.Refused)
	if r.policy.HasContracts() && !r.Contracts {
		fmt.Fprintln(out, "Contracts were not asked: their answer depends on the session. Say whose with --as AGENT.")
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tSTATEMENT\t\tVERDICT\tTABLES\tWHY")
	for _, j := range r.Shapes {
		verdict, reason := "allowed", ""
		switch {
		case !j.Allowed:
			verdict, reason = j.SQLState, j.Message
			if j.Hint != "" {
				reason += " (" + j.Hint + ")"
			}
		case len(j.Hidden)+len(j.Masked) > 0:
			verdict = "columns"
			var parts []string
			if len(j.Hidden) > 0 {
				parts = append(parts, "no column "+strings.Join(j.Hidden, ", "))
			}
			if len(j.Masked) > 0 {
				parts = append(parts, "masked "+strings.Join(j.Masked, ", "))
			}
			reason = strings.Join(parts, "; ")
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", j.Count, j.Tag, shortFingerprint(j.Fingerprint), verdict,
			strings.Join(j.Tables, " "), strings.Join(strings.Fields(reason), " "))
		if j.SQL != "" {
			fmt.Fprintf(w, "\t\t\t\t\t%s\n", strings.Join(strings.Fields(j.SQL), " "))
		}
	}
	_ = w.Flush()
}
