// Package messages sends long random sequences of protocol messages and compares what comes back.
//
// Each sequence is sent three times. It goes through the proxy to two databases that differ in hidden rows only, and
// straight to a PostgreSQL that has the visible rows only. The first two must answer byte for byte alike. All three
// must answer with the same messages: types in their order, tags, SQLSTATEs, rows, and the state of the transaction in
// each ReadyForQuery. Where the policy refuses a statement, the third is sent one that fails in its place. So a refusal
// must leave everything as an ordinary error does. When the sessions are over, the visible rows must be the same in all
// three, and the hidden rows must be as they were.
//
// In some sequences the owner withdraws a consent meanwhile: no message sent after that may return the rows that it
// hides.
//
// A difference is reduced to the shortest sequence and saved under testdata/found, which is run again with every test.
package messages
