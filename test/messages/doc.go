// Package messages sends long random sequences of protocol messages, and compares the answers.
//
// Each sequence is played three times: through the proxy on two twin databases, which differ in hidden rows only, and
// without a proxy on a PostgreSQL database that has only the visible rows. The twins must answer byte for byte alike.
// All three must answer with the same messages: types in their order, tags, SQLSTATEs, rows, and the state of the
// transaction in each ReadyForQuery. In place of a statement that the policy refuses, the third database is sent a
// statement that fails. So a refusal must have the same effect on the session as an ordinary error. After the sessions,
// the visible rows must be the same in all three databases, and the hidden rows must be unchanged.
//
// In some sequences, the owner withdraws a consent. No message sent after that may return rows that the withdrawal
// hides.
//
// A sequence that shows a difference is shortened and saved under testdata/found. Each later test plays it again.
package messages
