package proxy_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/proxy"
)

// oneTextDecider is a Decider that allows one statement and refuses all others.
type oneTextDecider struct{ text string }

func (d oneTextDecider) Decide(_ context.Context, text string, _ verdict.Protocol) *verdict.Verdict {
	v := &verdict.Verdict{Original: text}
	if text != d.text {
		v.Refusal = sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonStatement, "only %s is allowed", d.text)
		return v
	}
	v.Text = text // the text is sent unchanged; a decider may rewrite it
	v.Effects = []verdict.Effect{{ReadsRows: true, ReturnsRows: true}}
	return v
}

// Deciders may depend on facts that change. Here they do not: what was allowed stays allowed, and no snapshot becomes
// too old.

func (oneTextDecider) Recheck(_ context.Context, v *verdict.Verdict) *verdict.Verdict { return v }
func (oneTextDecider) DeclareParameters(_ context.Context, v *verdict.Verdict, _ []uint32) *verdict.Verdict {
	return v
}
func (oneTextDecider) UseRowSecurity(_ context.Context, v *verdict.Verdict, _ []uint32) *verdict.Verdict {
	return v
}
func (oneTextDecider) CheckValues(v *verdict.Verdict, _ [][]byte) *verdict.Verdict     { return v }
func (oneTextDecider) CheckCatalogs(context.Context, *verdict.Verdict) *sqlstate.Error { return nil }
func (oneTextDecider) Snapshot(context.Context) (s verdict.Snapshot, _ *sqlstate.Error) {
	return s, nil
}
func (oneTextDecider) CheckSnapshot(context.Context, verdict.Snapshot, bool) *sqlstate.Error {
	return nil
}
func (oneTextDecider) ClientOrigin(o verdict.Origin) verdict.Origin { return o }
func (oneTextDecider) Close()                                       {}

// Seal sets a setting of the session before each transaction; a real one is signed and expires.
func (oneTextDecider) Seal(context.Context, verdict.Backend) (verdict.Seal, error) {
	now := time.Now()
	return verdict.Seal{Setting: "example.agent", Value: "a1", RenewAfter: now.Add(time.Minute), Expires: now.Add(time.Hour)}, nil
}

// Record would write the decision to the audit. The proxy sends the statement once Release has returned nil.
func (oneTextDecider) Record(v *verdict.Verdict, _ ...*verdict.Verdict) verdict.Ticket {
	return fakeTicket{}
}

type fakeTicket struct{}

func (fakeTicket) Release() *sqlstate.Error         { return nil }
func (fakeTicket) ResultBound() verdict.ResultBound { return verdict.ResultBound{} } // results are not limited
func (fakeTicket) RowsReturned(int64)               {}
func (fakeTicket) RecordOutcome(verdict.Outcome)    {}

// router makes every client an agent with a oneTextDecider. A real router checks credentials, and names an upstream.
type router struct{}

func (router) Route(user, database string) proxy.Route {
	return proxy.Route{Kind: proxy.Agent, Open: func(context.Context, proxy.SessionInfo) (verdict.Decider, error) {
		return oneTextDecider{"SELECT 1"}, nil
	}}
}

// A proxy asks the Decider of a session about the text of each Query and Parse before anything of it is sent.
func Example() {
	server, err := proxy.New(proxy.Config{Router: router{}}) // server.Serve(listener) takes clients
	if err != nil {
		panic(err)
	}
	defer server.Shutdown(context.Background())

	decider, _ := router{}.Route("agent", "app").Open(context.Background(), proxy.SessionInfo{})
	for _, text := range []string{"SELECT 1", "SELECT * FROM people"} {
		v := decider.Decide(context.Background(), text, verdict.Simple)
		fmt.Println(text, "->", v.IsAllowed())
		if !v.IsAllowed() {
			fmt.Println(v.Refusal.Code, v.Refusal.Message)
		}
	}
	// Output:
	// SELECT 1 -> true
	// SELECT * FROM people -> false
	// 42501 only SELECT 1 is allowed
}
