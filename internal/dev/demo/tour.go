package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/sweep"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Tour runs the world's guided session through the proxy, and then undoes its changes. It uses one connection for the
// statements of the owner, and one for those of the default agent. It returns an error if an answer differs from the
// expected answer.
func (r *RunningDemo) Tour(ctx context.Context, out io.Writer, colours bool) (err error) {
	t := r.world.Tour
	if t == nil {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "world %s has no tour", r.world.Name)
	}
	p := tourPlayer{out: out, usesColours: colours, preparedStatements: map[string]string{}}
	agent := r.Access.Agents[0]
	if p.registry, err = serve.OpenRegistry(r.config, r.world.Name); err != nil {
		return err
	}
	defer p.registry.Close()
	if p.owner, err = pgx.Connect(ctx, r.Access.OwnerDSN); err != nil {
		return fmt.Errorf("tour: as owner: %w", err)
	}
	defer p.owner.Close(context.WithoutCancel(ctx))
	defer func() {
		// Undo the changes even if the tour was interrupted.
		restoreContext, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		conn, e := pgx.Connect(restoreContext, r.Access.OwnerDSN)
		if e == nil {
			_, e = conn.Exec(restoreContext, t.Restore)
			_ = conn.Close(restoreContext)
		}
		for _, c := range t.RestoreConsents {
			if e == nil {
				_, e = applyConsent(restoreContext, p.registry, c)
			}
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("tour: its changes could not be undone: %w", e))
		}
	}()
	if p.agent, err = pgx.Connect(ctx, agent.DSN); err != nil {
		return fmt.Errorf("tour: as agent %s: %w", agent.Name, err)
	}
	defer p.agent.Close(context.WithoutCancel(ctx))
	p.name = agent.Name
	for i, step := range t.Steps {
		if err := p.playStep(ctx, step); err != nil {
			return fmt.Errorf("tour: step %d: %w", i+1, err)
		}
	}
	fmt.Fprintln(out)
	return nil
}

// tourPlayer prints a session as psql would.
type tourPlayer struct {
	out                io.Writer
	usesColours        bool
	owner, agent       *pgx.Conn
	registry           *registry.Registry
	name               string            // the agent's name
	preparedStatements map[string]string // the SQL of prepared statements, by name
}

// colourText returns a text in a colour if the terminal shows colours.
func (p *tourPlayer) colourText(colour, text string) string {
	if !p.usesColours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p *tourPlayer) playStep(ctx context.Context, s world.Step) error {
	if s.Text != "" {
		fmt.Fprintf(p.out, "\n%s\n\n", p.colourText("1", wrapLines(s.Text, 100)))
	}
	if s.Consent != nil {
		c := *s.Consent
		fmt.Fprintf(p.out, "%s consent %s %s", p.colourText("32", "pgconsent"), c.Command, c.Subject)
		if c.Scope != "" {
			fmt.Fprintf(p.out, " --scope %s", c.Scope)
		}
		registryAnswer, err := applyConsent(ctx, p.registry, c)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "\n%s\n", registryAnswer)
		return nil
	}
	if s.Sweep {
		fmt.Fprintf(p.out, "%s sweep\n", p.colourText("32", "pgconsent"))
		return p.sweep(ctx)
	}
	conn, prompt, colour := p.agent, p.name, "36"
	switch s.Role {
	case "agent":
	case "owner":
		conn, prompt, colour = p.owner, "owner", "33"
	default:
		return fmt.Errorf("%q is neither owner nor agent", s.Role)
	}
	text, sentText := s.SQL, s.SQL
	switch {
	case s.PreparedName != "":
		p.preparedStatements[s.PreparedName] = s.SQL
		if _, err := conn.Prepare(ctx, s.PreparedName, s.SQL); err != nil {
			return err
		}
		sentText = s.PreparedName
	case s.RunPrepared != "":
		if text = p.preparedStatements[s.RunPrepared]; text == "" {
			return fmt.Errorf("no step has prepared %q", s.RunPrepared)
		}
		sentText = s.RunPrepared
	}
	remark := ""
	if s.PreparedName != "" {
		remark = p.colourText("2", "   -- prepared")
	} else if s.RunPrepared != "" {
		remark = p.colourText("2", "   -- the statement prepared above, executed again")
	}
	fmt.Fprintf(p.out, "%s %s;%s\n", p.colourText(colour, prompt+"=>"), text, remark)
	a, err := runStatement(ctx, conn, sentText)
	if err != nil {
		return err
	}
	a.print(p)
	return a.checkAnswer(s.ExpectedAnswer)
}

// sweep deletes expired data. If the demo's own sweeper is running, sweep waits until it has finished.
func (p *tourPlayer) sweep(ctx context.Context) error {
	for {
		r, err := (&sweep.Sweeper{Registry: p.registry}).Run(ctx, false)
		switch {
		case err != nil:
			return err
		case len(r.Failures) > 0:
			return errors.New(r.Failures[0])
		case !r.SweepRunning:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tourAnswer is the server's answer to a statement.
type tourAnswer struct {
	columns     []string
	rows        [][]string
	tag         string
	serverError *pgconn.PgError
}

func runStatement(ctx context.Context, conn *pgx.Conn, sql string) (tourAnswer, error) {
	var a tourAnswer
	// Values of all types come as text, as psql gets them.
	rows, err := conn.Query(ctx, sql, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err == nil {
		for _, f := range rows.FieldDescriptions() {
			a.columns = append(a.columns, f.Name)
		}
		for rows.Next() {
			var row []string
			for _, v := range rows.RawValues() {
				row = append(row, string(v))
			}
			a.rows = append(a.rows, row)
		}
		rows.Close()
		err = rows.Err()
		a.tag = rows.CommandTag().String()
	}
	if err != nil && !errors.As(err, &a.serverError) {
		return a, err
	}
	return a, nil
}

func (a tourAnswer) print(p *tourPlayer) {
	switch {
	case a.serverError != nil:
		fmt.Fprintf(p.out, "%s  %s (SQLSTATE %s)\n", p.colourText("31", a.serverError.Severity+":"), a.serverError.Message,
			a.serverError.Code)
		if a.serverError.Hint != "" {
			fmt.Fprintf(p.out, "%s  %s\n", p.colourText("31", "HINT:"), a.serverError.Hint)
		}
		return
	case len(a.columns) == 0:
		fmt.Fprintln(p.out, a.tag)
		return
	}
	widths := make([]int, len(a.columns))
	for i, c := range a.columns {
		widths[i] = utf8.RuneCountInString(c)
		for _, row := range a.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	line := func(cells []string) {
		var b strings.Builder
		for i, c := range cells {
			if i > 0 {
				b.WriteString(" |")
			}
			fmt.Fprintf(&b, " %-*s", widths[i], c)
		}
		fmt.Fprintln(p.out, strings.TrimRight(b.String(), " "))
	}
	line(a.columns)
	var separators []string
	for _, w := range widths {
		separators = append(separators, strings.Repeat("-", w+2))
	}
	fmt.Fprintln(p.out, strings.Join(separators, "+"))
	for _, row := range a.rows {
		line(row)
	}
	s := "s"
	if len(a.rows) == 1 {
		s = ""
	}
	fmt.Fprintf(p.out, "(%d row%s)\n\n", len(a.rows), s)
}

// checkAnswer compares an answer with the expected one.
func (a tourAnswer) checkAnswer(expected string) error {
	actual := ""
	switch {
	case a.serverError != nil:
		actual = "error " + a.serverError.Code
	case len(a.rows) == 1 && len(a.columns) == 1:
		actual = a.rows[0][0]
	}
	rows := fmt.Sprintf("%d rows", len(a.rows))
	ok := false
	switch {
	case expected == "" || expected == actual && actual != "":
		ok = a.serverError == nil || expected != ""
	case expected == "error":
		ok = a.serverError != nil
	case strings.HasSuffix(expected, " rows"):
		ok = a.serverError == nil && expected == rows
	}
	if ok {
		return nil
	}
	if a.serverError == nil && !strings.HasPrefix(expected, "error") && strings.HasSuffix(expected, " rows") {
		actual = rows
	}
	return fmt.Errorf("the answer should have been %q and is %q", expected, actual)
}

// wrapLines breaks a text into lines of at most width characters.
func wrapLines(text string, width int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
