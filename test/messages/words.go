package messages

import "fmt"

// word is a text that is sent.
type word struct {
	text   string
	plain  string   // what PostgreSQL is sent in its place; "": the same
	params []string // their kinds
	rows   bool     // it returns rows
}

// refused fails where a statement fails that the policy refuses.
const refused = `SELECT "refused"`

// reads are queries, and what fails like one.
var reads = []word{
	{text: "SELECT id, label FROM item ORDER BY id", rows: true},
	{text: "SELECT count(*), sum(n) FROM item", rows: true},
	{text: "SELECT id, n FROM item WHERE id = $1", params: []string{"int"}, rows: true},
	{text: "SELECT id, label, n FROM item WHERE id > $1 AND label <> $2 ORDER BY id", params: []string{"int", "text"}, rows: true},
	{text: "SELECT g FROM generate_series(1, 7) g", rows: true},
	{text: "SELECT id, name FROM person ORDER BY id", rows: true},
	{text: "SELECT p.name, d.note FROM person p JOIN deed d ON d.person = p.id ORDER BY d.id", rows: true},
	{text: "SELECT note FROM deed ORDER BY id", rows: true},
	{text: "SELECT 10 / (g - 4) FROM generate_series(1, 7) g", rows: true}, // fails at the fourth row
	{text: "SELECT id, 10 / (n - 4) FROM item ORDER BY id", rows: true},    // fails before the first
	{text: "SELECT id, 10 / (n - 50) FROM item ORDER BY id", rows: true},   // fails at hidden rows only
	{text: "SELECT id, 10 / (n - $1) FROM item ORDER BY id", params: []string{"int"}, rows: true},
	{text: "SELECT $1::int + 1", params: []string{"int"}, rows: true},
	{text: "SELECT $1::text, $2::int", params: []string{"text", "int"}, rows: true},
	{text: "SELECT 1/0", rows: true},
	{text: "SELECT nope FROM item"},
	{text: "SELECT id FROM nowhere", plain: refused},
	{text: "SELEC"},
	{text: "SELECT", rows: true},
	{text: "SELECT id FROM item ORDER BY id FOR UPDATE", rows: true},
	{text: "VALUES (1, 'a'), (2, NULL)", rows: true},
	{text: "SELECT 'x' WHERE false", rows: true},
	{text: "SELECT repeat('x', 9000) FROM generate_series(1, 20)", rows: true},
}

var writes = []word{
	{text: "INSERT INTO item (id, rank) VALUES (50, 50)"},
	{text: "INSERT INTO item (id, rank, label) VALUES ($1, $1, $2) RETURNING id, rank, label", params: []string{"int", "text"}, rows: true},
	{text: "INSERT INTO item (id, rank) SELECT id + 60, rank + 60 FROM item WHERE id < 4 ORDER BY id RETURNING id", rows: true},
	{text: "INSERT INTO item (id, rank) VALUES (1, 70)"},  // a key that is taken
	{text: "INSERT INTO item (id, rank) VALUES (71, 2)"},  // fails at COMMIT
	{text: "UPDATE item SET rank = 3 WHERE id IN (2, 3)"}, // the same
	{text: "UPDATE item SET rank = 10 - rank"},
	{text: "UPDATE item SET n = n + 1 WHERE id = 2 RETURNING id, n", rows: true},
	{text: "UPDATE item SET label = $2 WHERE id = $1", params: []string{"int", "text"}},
	{text: "UPDATE item SET n = 200 WHERE id = 5"},
	{text: "UPDATE item SET label = NULL"},
	{text: "DELETE FROM item WHERE id = $1 RETURNING label", params: []string{"int"}, rows: true},
	{text: "DELETE FROM item WHERE id > 7"},
	{text: "WITH w AS (DELETE FROM item WHERE id = 6 RETURNING id) SELECT id FROM w", rows: true},
}

var transactions = []word{
	{text: "BEGIN"}, {text: "BEGIN"}, {text: "START TRANSACTION READ ONLY"}, {
		text: "BEGIN ISOLATION LEVEL REPEATABLE READ"}, {text: "BEGIN ISOLATION LEVEL SERIALIZABLE"},
	{text: "COMMIT"}, {text: "COMMIT"}, {text: "END"}, {text: "ROLLBACK"}, {text: "ABORT"}, {
		text: "COMMIT AND CHAIN", plain: refused}, {text: "ROLLBACK AND CHAIN", plain: refused},
	{text: "SAVEPOINT s"}, {text: "SAVEPOINT s"}, {text: "SAVEPOINT t"}, {text: "ROLLBACK TO s"}, {
		text: "ROLLBACK TO SAVEPOINT t"}, {text: "RELEASE s"}, {text: "RELEASE t"},
}

var settings = []word{
	{text: "SET TimeZone = 'Asia/Tokyo'"}, {text: "SET LOCAL TimeZone = 'UTC'"}, {text: "RESET TimeZone"}, {
		text: "SHOW TimeZone", rows: true}, {text: "SET DateStyle = 'German'"},
	{text: "SET application_name = 'me'"}, {text: "SET extra_float_digits = 0"}, {
		text: "SHOW nothing_of_the_kind", plain: refused}, {text: "SET default_transaction_isolation = 'repeatable read'"},
	{text: "RESET default_transaction_isolation"}, {text: "DISCARD ALL"}, {
		text: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"}, {text: "SET TRANSACTION READ ONLY"},
}

var cursors = []word{
	{text: "DECLARE k CURSOR FOR SELECT id, label FROM item ORDER BY id"}, {text: "DECLARE k SCROLL CURSOR FOR SELECT note FROM deed ORDER BY id"},
	{text: "DECLARE k CURSOR WITH HOLD FOR SELECT id, name FROM person ORDER BY id"}, {
		text: "DECLARE p CURSOR FOR SELECT g FROM generate_series(1, 6) g"},
	{text: "DECLARE k CURSOR FOR SELECT 10 / (g - 4) FROM generate_series(1, 7) g"}, {
		text: "DECLARE h CURSOR WITH HOLD FOR SELECT 1 / (4 - id) FROM item ORDER BY id"},
	{text: "FETCH k", rows: true}, {text: "FETCH 2 FROM k", rows: true}, {text: "FETCH ALL FROM k", rows: true}, {
		text: "FETCH PRIOR FROM k", rows: true}, {text: "MOVE 1 FROM k"},
	{text: "MOVE ABSOLUTE 2 IN k"}, {text: "FETCH 1 FROM p", rows: true}, {text: "FETCH 2 FROM h", rows: true}, {
		text: "CLOSE k"}, {text: "CLOSE p"}, {text: "CLOSE ALL"},
}

var prepared = []word{
	{text: "PREPARE x AS SELECT id, label FROM item ORDER BY id"}, {text: "PREPARE x AS SELECT 1/0"}, {
		text: "PREPARE y (int) AS SELECT label FROM item WHERE id = $1"},
	{text: "PREPARE a AS UPDATE item SET n = n + 1 WHERE id = 1 RETURNING n"}, {text: "PREPARE y AS SELECT nope"}, {
		text: "EXECUTE x", rows: true}, {text: "EXECUTE y (3)", rows: true},
	{text: "EXECUTE y ('z')", rows: true}, {text: "EXECUTE none", rows: true}, {text: "DEALLOCATE x"}, {text: "DEALLOCATE a"}, {text: "DEALLOCATE ALL"},
}

var copies = []word{
	{text: "COPY (SELECT id, label FROM item ORDER BY id) TO STDOUT"}, {
		text: "COPY (SELECT id, note FROM deed ORDER BY id) TO STDOUT"}, {text: "COPY (SELECT 10 / (g - 4) FROM generate_series(1, 7) g) TO STDOUT"},
	{text: "COPY (SELECT id FROM item ORDER BY id) TO STDOUT (FORMAT binary)"}, {text: "COPY (SELECT nope FROM item) TO STDOUT"},
}

var copiesIn = []word{{text: "COPY item (id, rank, label) FROM STDIN"},
	{text: "COPY item (id, rank) FROM STDIN (FORMAT csv)"}, {text: "COPY item (id, rank, label, n) FROM STDIN"}}

// forbidden is refused by the policy, or is nothing for agents.
var forbidden = []word{
	{text: "SELECT * FROM secret", plain: refused, rows: true}, {
		text: "SELECT words FROM secret WHERE id = $1", plain: refused, params: []string{"int"}, rows: true},
	{text: "DELETE FROM person", plain: refused}, {text: "UPDATE item SET owner = 'you'", plain: refused}, {
		text: "INSERT INTO deed VALUES (1)", plain: refused},
	{text: "COPY secret TO STDOUT", plain: refused}, {text: "PREPARE x AS SELECT * FROM secret", plain: refused}, {
		text: "DECLARE k CURSOR FOR SELECT * FROM secret", plain: refused},
	{text: "SELECT pg_read_file('x')", plain: refused, rows: true}, {text: "COPY deed FROM STDIN", plain: refused}, {
		text: "SELECT 1 FROM item, secret", plain: refused, rows: true},
}

// several are the messages of more than one statement, and of none.
var several = []word{
	{text: ""}, {text: ";"}, {text: "-- nothing"}, {text: ";;SELECT 1;;", rows: true},
	{text: "SELECT 1; SELECT 2; SELECT 3"}, {text: "SELECT id FROM item ORDER BY id; SELECT 1/0; SELECT 3"}, {
		text: "BEGIN; INSERT INTO item (id, rank) VALUES (80, 80); COMMIT"},
	{text: "INSERT INTO item (id, rank) VALUES (81, 81); SELECT nope"}, {
		text: "INSERT INTO item (id, rank) VALUES (82, 82); COMMIT; SELECT 1/0"}, {text: "BEGIN; SELECT 1; SAVEPOINT s; SELECT 1/0"},
	{text: "INSERT INTO item (id, rank) VALUES (83, 2); SELECT count(*) FROM item"}, {
		text: "COMMIT; BEGIN; SELECT 5"}, {text: "ROLLBACK; INSERT INTO item (id, rank) VALUES (84, 84)"},
	{text: "SELECT 1; SAVEPOINT s; SELECT 2"}, {text: "SAVEPOINT s; DELETE FROM item; ROLLBACK TO s"}, {
		text: "BEGIN; DELETE FROM item WHERE id = 1; ROLLBACK; SELECT count(*) FROM item"},
	{text: "DECLARE k CURSOR FOR SELECT id FROM item ORDER BY id; FETCH 2 FROM k; CLOSE k"}, {
		text: "PREPARE x AS SELECT 4; EXECUTE x; DEALLOCATE x"}, {text: "SELECT 1; COPY (SELECT 2) TO STDOUT; SELECT 3"},
	{text: "SET TimeZone = 'Asia/Tokyo'; SELECT 1/0"}, {
		text: "DELETE FROM item WHERE id = 2; SELECT * FROM secret; SELECT 1", plain: refused}, {text: "SELECT 1; DROP TABLE item", plain: refused},
	{text: "INSERT INTO item (id, rank) VALUES (85, 85); COPY item (id, rank) FROM STDIN"}, {
		text: "SELECT 1; SELEC"}, {text: "COMMIT; SELECT * FROM secret", plain: refused},
	{text: "COPY item (id, rank) FROM STDIN; COPY item (id, rank) FROM STDIN"}, {
		text: "BEGIN; COPY item (id, rank) FROM STDIN; ROLLBACK"}, {text: "DISCARD ALL; SELECT 1", plain: refused},
}

// rowsIn are pieces of what COPY FROM takes, and of what it does not.
var rowsIn = []string{"90\t90\tnew\n", "91\t91\tnew\n", "1\t92\told\n", "93\t3\tlater\n", "94,94\n", "95,95\n",
	"x\ty\tz\n", "96\t", "96\tpart\n", "\\.\n", "97\t97\tn\t5\n", "98\t98\tn\t500\n", "", "\n"}

// value is a parameter of a kind, in text or in binary.
func value(kind string, n int, binary bool) []byte {
	switch {
	case kind == "int" && binary:
		return []byte{0, 0, 0, byte(n % 12)}
	case kind == "int":
		return fmt.Append(nil, n%12)
	}
	return fmt.Append(nil, "text ", n%3)
}
