// Package proxy speaks the PostgreSQL protocol between clients and one upstream cluster.
//
// For an agent, the proxy sends the server no statement that the session's [verdict.Decider] has not allowed, and none
// before the decision is recorded. The proxy authenticates the agent. The agent reaches the server only under the agent
// role, in a session whose signed identity (the seal) the proxy sets and renews. Of the server's errors and notices,
// the proxy relays only fields that cannot tell about hidden rows. A message that the proxy does not understand ends
// the session. A refused statement leaves the session as PostgreSQL leaves it after a statement that fails.
//
// For an owner, the proxy relays all bytes after the startup message unchanged in both directions, and parses none of
// them.
//
// Package proxy does not parse SQL. Package enforce decides on statements, rewrites and records them, behind the
// interfaces of package verdict.
//
// The phases of a connection, and their files:
//
//	admit    TLS, GSS and startup negotiation; cancel requests       admit.go startup.go tls.go cancel.go
//	owner    dial, replay the startup message, relay bytes           owner.go
//	operator SCRAM, then the handler of the route                    operator.go
//	agent    SCRAM, settings, dial, seal, greet                      login.go scram.go settings.go upstream.go seal.go
//	         client → server: messages into batches                  requests.go input.go message.go batch.go
//	         each kind of message                                    query.go parse.go bind.go describe.go execute.go …
//	         refusals                                                refusal.go
//	         server → client: headers only                           answers.go relay.go sessionmessages.go
//	         errors and notices                                      fields.go sanitise.go errorrules.go
//	         what was sent and is still to be answered               entry.go ledger.go queue.go waiting.go
//	         names of statements and portals                         names.go lookup.go references.go
//	         rows of COPY FROM STDIN                                 copyin.go
//	         results that a limit ends                               limit.go steps.go
//	         snapshots that are held                                 snapshot.go snapshot_check.go foreign.go
//	         messages that wait while the database is paused         pause.go
//	shown    sessions, for operators                                 sessions.go
//	end      drain, revocation, loss of either side                  session.go drain.go
package proxy
