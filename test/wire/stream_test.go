package wire_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func streamTable(t *testing.T, all []contender, rounds int) string {
	t.Helper()
	out := "| between | rows of | bytes per second / direct | CPU / PgBouncer |\n|---|---|---:|---:|\n"
	for _, size := range []int{10, 1000} {
		for _, line := range streams(t, all, size, rounds) {
			out += line
		}
	}
	return out
}

// streams measures COPY of 64 MiB in rows of so many bytes.
func streams(t *testing.T, all []contender, size, rounds int) []string {
	t.Helper()
	type streamRound struct{ rate, cpu float64 }
	results := map[string][]streamRound{}
	var owners []contender // an agent's COPY returns other rows, so it is not compared
	for _, c := range all {
		if !c.agent {
			owners = append(owners, c)
		}
	}
	sql := fmt.Sprintf("COPY (SELECT repeat('x', %d) FROM generate_series(1, %d)) TO STDOUT", size-1, (64<<20)/size)
	for round := range rounds {
		fmt.Printf("wire: rows of %d bytes, round %d of %d\n", size, round+1, rounds)
		for _, c := range owners {
			conn := connect(t, c)
			before, began := cpu(t, c.pid), time.Now()
			if err := stream(t.Context(), conn, sql); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			results[c.name] = append(results[c.name], streamRound{1 / time.Since(began).Seconds(), cpu(t, c.pid) - before})
			_ = conn.Close(t.Context())
		}
	}
	var lines []string
	for _, c := range owners {
		var rate, spent []float64
		for i, result := range results[c.name] {
			rate = append(rate, result.rate/results[direct][i].rate)
			if b := results[bouncer]; c.pid != 0 && len(b) > 0 {
				spent = append(spent, result.cpu/b[i].cpu)
			}
		}
		lines = append(lines, fmt.Sprintf("| %s | %d bytes | %s | %s |\n", c.name, size, quartiles(rate), quartiles(spent)))
	}
	return lines
}

func stream(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.CopyTo(ctx, io.Discard, sql)
	return err
}
