package main

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/audit/pgchain"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/test/tier"
)

// verifyEvery is the number of kills after which the whole chain is verified; new records are read after each kill.
const verifyEvery = 50

// A serve that is killed at any moment has recorded every answer that it has sent, in a folder or in the database.
func TestKills(t *testing.T) {
	tier.All(t)
	kills := tier.Count(2, 6, 200)
	t.Run("files", func(t *testing.T) { checkKills(t, installWithAudit(t), (kills+1)/2) })
	t.Run("database", func(t *testing.T) { checkKills(t, installAudit(t), kills/2) })
}

// auditSource returns the audit records of an installation, and the options to verify them.
func (i *installation) auditSource(t *testing.T) (audit.Source, audit.VerifyOptions) {
	t.Helper()
	c, err := config.Load(i.config)
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.LoadKey(filepath.Join(i.dir(), "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := audit.ReadAnchor(filepath.Join(i.dir(), "audit.anchor"), key)
	if err != nil {
		t.Fatal(err)
	}
	var source audit.Source = audit.Folder(c.Audit.File)
	if c.Audit.Sink == config.SinkDatabase {
		source = pgchain.NewReader(t.Context(), i.db.Connect(t, "pgconsent_control"), c.Audit.Database, c.Audit.Chain)
	}
	return source, audit.VerifyOptions{Key: key, Heads: []audit.RecordHead{head}}
}

func checkKills(t *testing.T, i *installation, kills int) {
	total, start, random := 0, time.Now(), tier.Rand(1)
	var source audit.Source
	var cursor *audit.Cursor
	sessions, decisionsByAddress := map[string]string{}, map[string]int{}
	countRecord := func(r audit.Record) error {
		e, err := readAuditRecord(r)
		switch {
		case e.Kind == audit.KindSession && e.Event == "open":
			sessions[e.Session] = e.Remote
		case e.Kind == audit.KindDecision && e.Verdict == "allow":
			decisionsByAddress[sessions[e.Session]]++
		}
		return err
	}
	for round := range kills {
		clear(decisionsByAddress)
		p, address := i.startServe(t)
		answersByAddress := map[string]int{} // how many statements were answered, by the client's address
		var mu sync.Mutex
		var clients sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 4 {
			clients.Go(func() {
				conn, err := pgx.Connect(ctx, i.dsn("chat", address))
				if err != nil {
					return // the proxy was killed during the login
				}
				defer conn.Close(context.Background())
				localAddress := conn.PgConn().Conn().LocalAddr().String()
				for n := 0; ; n++ {
					var count int
					if err := conn.QueryRow(ctx, "SELECT count(*) FROM memories").Scan(&count); err != nil {
						return
					}
					mu.Lock()
					answersByAddress[localAddress]++
					mu.Unlock()
				}
			})
		}
		// Also on a slow machine, some statements run before the kill.
		waitFor(t, "agents read", func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, total := range answersByAddress {
				n += total
			}
			return n >= 10
		})
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.awaitEnd(t)
		clients.Wait()
		cancel()

		var err error
		if cursor == nil {
			source, _ = i.auditSource(t)
			cursor, err = audit.ReadNewest(source, 1<<30, func(audit.Record) bool { return true }, countRecord)
		} else {
			err = cursor.ReadRest(countRecord)
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for client, n := range answersByAddress {
			if decisionsByAddress[client] < n {
				t.Errorf("round %d: %s got %d answers, and has %d records", round, client, n, decisionsByAddress[client])
			}
			total += n
		}
		if (round+1)%verifyEvery == 0 || round+1 == kills {
			source, options := i.auditSource(t)
			if _, err := options.Read(source, nil); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	if total < 10*kills {
		t.Errorf("only %d answers in %d rounds: the test proves little", total, kills)
	}
	t.Logf("%d kills in %s, %d answers, each with its record", kills, time.Since(start).Round(time.Second), total)
}
