// Package proxy speaks the PostgreSQL protocol between clients and one upstream cluster.
//
// What it guarantees for an agent: no statement text goes upstream that the session's [verdict.Decider] has not allowed,
// nor before the decision is recorded; nothing the server answers to a statement is relayed before that; the agent is
// authenticated here and reaches the server only under the agent role, in a session whose seal is set and renewed; an
// error or a notice of the server is passed on only in the fields and SQLSTATEs that cannot tell about hidden rows. A
// message that is not understood ends the session. A refusal leaves the session in the state in which PostgreSQL leaves
// it after a statement that fails.
//
// What it guarantees for an owner: after the startup message the bytes are the same in both directions and are never
// parsed.
//
// What it does not know is SQL: texts are opaque here. It does not decide, rewrite or record; package enforce does,
// behind the small interfaces of package verdict.
//
// A connection's life, each phase in the file of its name:
//
//	admit    TLS, GSS and startup negotiation; cancel requests       admit.go startup.go tls.go cancel.go
//	owner    dial, replay the startup message, relay bytes           owner.go
//	agent    SCRAM, settings, dial, seal, greet                      login.go scram.go settings.go upstream.go seal.go
//	         client → server: messages into batches                  inbound.go message.go batch.go refuse.go
//	         client → server: rows of COPY FROM STDIN                copyin.go
//	         server → client: headers only                           outbound.go sanitise.go
//	         results that a limit ends                               bound.go steps.go
//	         what was sent and is still to be answered               ledger.go names.go
//	end      drain, revocation, loss of either side                  session.go drain.go
package proxy
