// Package proxy speaks the PostgreSQL protocol between clients and one upstream cluster.
//
// What it guarantees for an agent: no statement text is sent upstream that the session's [verdict.Decider] has not
// allowed. Neither is one sent, nor an answer to it relayed, before the decision is recorded. The agent is
// authenticated here and reaches the server only under the agent role, in a session whose seal is set and renewed. An
// error or a notice of the server is relayed only in the fields and SQLSTATEs that cannot tell about hidden rows. A
// message that is not understood ends the session. A refusal leaves the session in the state in which PostgreSQL leaves
// it after a statement that fails.
//
// What it guarantees for an owner: after the startup message the bytes are the same in both directions and are never
// parsed.
//
// It knows no SQL: texts are opaque here. Package enforce decides, rewrites and records, behind the small interfaces of
// package verdict.
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
