package messages

import "fmt"

// statementText is the text of a statement that sequences send.
type statementText struct {
	text         string
	postgresText string   // statement sent to PostgreSQL in its place; "": the same
	paramKinds   []string // types of the parameters
	returnsRows  bool     // the statement returns rows
}

// policyRefusedText is the statement that PostgreSQL is sent in place of one that the policy refuses. It fails in the
// same phase: parse analysis.
const policyRefusedText = `SELECT "refused"`

// readTexts are queries. Some of them fail.
var readTexts = []statementText{
	{text: "SELECT id, label FROM item ORDER BY id", returnsRows: true},
	{text: "SELECT count(*), sum(n) FROM item", returnsRows: true},
	{text: "SELECT id, n FROM item WHERE id = $1", paramKinds: []string{"int"}, returnsRows: true},
	{text: "SELECT id, label, n FROM item WHERE id > $1 AND label <> $2 ORDER BY id", paramKinds: []string{"int", "text"}, returnsRows: true},
	{text: "SELECT g FROM generate_series(1, 7) g", returnsRows: true},
	{text: "SELECT id, name FROM person ORDER BY id", returnsRows: true},
	{text: "SELECT p.name, d.note FROM person p JOIN deed d ON d.person = p.id ORDER BY d.id", returnsRows: true},
	{text: "SELECT note FROM deed ORDER BY id", returnsRows: true},
	{text: "SELECT 10 / (g - 4) FROM generate_series(1, 7) g", returnsRows: true}, // fails at the fourth row
	{text: "SELECT id, 10 / (n - 4) FROM item ORDER BY id", returnsRows: true},    // fails before the first row
	{text: "SELECT id, 10 / (n - 50) FROM item ORDER BY id", returnsRows: true},   // fails at hidden rows only
	{text: "SELECT id, 10 / (n - $1) FROM item ORDER BY id", paramKinds: []string{"int"}, returnsRows: true},
	{text: "SELECT $1::int + 1", paramKinds: []string{"int"}, returnsRows: true},
	{text: "SELECT $1::text, $2::int", paramKinds: []string{"text", "int"}, returnsRows: true},
	{text: "SELECT 1/0", returnsRows: true},
	{text: "SELECT nope FROM item"},
	{text: "SELECT id FROM nowhere", postgresText: policyRefusedText},
	{text: "SELEC"},
	{text: "SELECT", returnsRows: true},
	{text: "SELECT id FROM item ORDER BY id FOR UPDATE", returnsRows: true},
	{text: "VALUES (1, 'a'), (2, NULL)", returnsRows: true},
	{text: "SELECT 'x' WHERE false", returnsRows: true},
	{text: "SELECT repeat('x', 9000) FROM generate_series(1, 20)", returnsRows: true},
}

var writeTexts = []statementText{
	{text: "INSERT INTO item (id, rank) VALUES (50, 50)"},
	{text: "INSERT INTO item (id, rank, label) VALUES ($1, $1, $2) RETURNING id, rank, label", paramKinds: []string{"int", "text"}, returnsRows: true},
	{text: "INSERT INTO item (id, rank) SELECT id + 60, rank + 60 FROM item WHERE id < 4 ORDER BY id RETURNING id", returnsRows: true},
	{text: "INSERT INTO item (id, rank) VALUES (1, 70)"},  // the key exists already
	{text: "INSERT INTO item (id, rank) VALUES (71, 2)"},  // fails at COMMIT, by a deferred constraint
	{text: "UPDATE item SET rank = 3 WHERE id IN (2, 3)"}, // fails at COMMIT as well
	{text: "UPDATE item SET rank = 10 - rank"},
	{text: "UPDATE item SET n = n + 1 WHERE id = 2 RETURNING id, n", returnsRows: true},
	{text: "UPDATE item SET label = $2 WHERE id = $1", paramKinds: []string{"int", "text"}},
	{text: "UPDATE item SET n = 200 WHERE id = 5"},
	{text: "UPDATE item SET label = NULL"},
	{text: "DELETE FROM item WHERE id = $1 RETURNING label", paramKinds: []string{"int"}, returnsRows: true},
	{text: "DELETE FROM item WHERE id > 7"},
	{text: "WITH w AS (DELETE FROM item WHERE id = 6 RETURNING id) SELECT id FROM w", returnsRows: true},
}

var transactionTexts = []statementText{
	{text: "BEGIN"}, {text: "BEGIN"}, {text: "START TRANSACTION READ ONLY"}, {
		text: "BEGIN ISOLATION LEVEL REPEATABLE READ"}, {text: "BEGIN ISOLATION LEVEL SERIALIZABLE"},
	{text: "COMMIT"}, {text: "COMMIT"}, {text: "END"}, {text: "ROLLBACK"}, {text: "ABORT"}, {
		text: "COMMIT AND CHAIN", postgresText: policyRefusedText}, {text: "ROLLBACK AND CHAIN", postgresText: policyRefusedText},
	{text: "SAVEPOINT s"}, {text: "SAVEPOINT s"}, {text: "SAVEPOINT t"}, {text: "ROLLBACK TO s"}, {
		text: "ROLLBACK TO SAVEPOINT t"}, {text: "RELEASE s"}, {text: "RELEASE t"},
}

var settingTexts = []statementText{
	{text: "SET TimeZone = 'Asia/Tokyo'"}, {text: "SET LOCAL TimeZone = 'UTC'"}, {text: "RESET TimeZone"}, {
		text: "SHOW TimeZone", returnsRows: true}, {text: "SET DateStyle = 'German'"},
	{text: "SET application_name = 'me'"}, {text: "SET extra_float_digits = 0"}, {
		text: "SHOW nothing_of_the_kind", postgresText: policyRefusedText}, {text: "SET default_transaction_isolation = 'repeatable read'"},
	{text: "RESET default_transaction_isolation"}, {text: "DISCARD ALL"}, {
		text: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"}, {text: "SET TRANSACTION READ ONLY"},
}

var cursorTexts = []statementText{
	{text: "DECLARE k CURSOR FOR SELECT id, label FROM item ORDER BY id"}, {text: "DECLARE k SCROLL CURSOR FOR SELECT note FROM deed ORDER BY id"},
	{text: "DECLARE k CURSOR WITH HOLD FOR SELECT id, name FROM person ORDER BY id"}, {
		text: "DECLARE p CURSOR FOR SELECT g FROM generate_series(1, 6) g"},
	{text: "DECLARE k CURSOR FOR SELECT 10 / (g - 4) FROM generate_series(1, 7) g"}, {
		text: "DECLARE h CURSOR WITH HOLD FOR SELECT 1 / (4 - id) FROM item ORDER BY id"},
	{text: "FETCH k", returnsRows: true}, {text: "FETCH 2 FROM k", returnsRows: true}, {text: "FETCH ALL FROM k", returnsRows: true}, {
		text: "FETCH PRIOR FROM k", returnsRows: true}, {text: "MOVE 1 FROM k"},
	{text: "MOVE ABSOLUTE 2 IN k"}, {text: "FETCH 1 FROM p", returnsRows: true}, {text: "FETCH 2 FROM h", returnsRows: true}, {
		text: "CLOSE k"}, {text: "CLOSE p"}, {text: "CLOSE ALL"},
}

var prepareTexts = []statementText{
	{text: "PREPARE x AS SELECT id, label FROM item ORDER BY id"}, {text: "PREPARE x AS SELECT 1/0"}, {
		text: "PREPARE y (int) AS SELECT label FROM item WHERE id = $1"},
	{text: "PREPARE a AS UPDATE item SET n = n + 1 WHERE id = 1 RETURNING n"}, {text: "PREPARE y AS SELECT nope"}, {
		text: "EXECUTE x", returnsRows: true}, {text: "EXECUTE y (3)", returnsRows: true},
	{text: "EXECUTE y ('z')", returnsRows: true}, {text: "EXECUTE none", returnsRows: true},
	{text: "DEALLOCATE x"}, {text: "DEALLOCATE a"}, {text: "DEALLOCATE ALL"},
}

var copyToTexts = []statementText{
	{text: "COPY (SELECT id, label FROM item ORDER BY id) TO STDOUT"}, {
		text: "COPY (SELECT id, note FROM deed ORDER BY id) TO STDOUT"}, {text: "COPY (SELECT 10 / (g - 4) FROM generate_series(1, 7) g) TO STDOUT"},
	{text: "COPY (SELECT id FROM item ORDER BY id) TO STDOUT (FORMAT binary)"}, {text: "COPY (SELECT nope FROM item) TO STDOUT"},
}

var copyFromTexts = []statementText{{text: "COPY item (id, rank, label) FROM STDIN"},
	{text: "COPY item (id, rank) FROM STDIN (FORMAT csv)"}, {text: "COPY item (id, rank, label, n) FROM STDIN"}}

// forbiddenTexts are statements that the policy or pgconsent refuses to agents.
var forbiddenTexts = []statementText{
	{text: "SELECT * FROM secret", postgresText: policyRefusedText, returnsRows: true}, {
		text: "SELECT words FROM secret WHERE id = $1", postgresText: policyRefusedText, paramKinds: []string{"int"}, returnsRows: true},
	{text: "DELETE FROM person", postgresText: policyRefusedText}, {text: "UPDATE item SET owner = 'you'", postgresText: policyRefusedText}, {
		text: "INSERT INTO deed VALUES (1)", postgresText: policyRefusedText},
	{text: "COPY secret TO STDOUT", postgresText: policyRefusedText}, {text: "PREPARE x AS SELECT * FROM secret", postgresText: policyRefusedText}, {
		text: "DECLARE k CURSOR FOR SELECT * FROM secret", postgresText: policyRefusedText},
	{text: "SELECT pg_read_file('x')", postgresText: policyRefusedText, returnsRows: true}, {text: "COPY deed FROM STDIN", postgresText: policyRefusedText}, {
		text: "SELECT 1 FROM item, secret", postgresText: policyRefusedText, returnsRows: true},
}

// multiStatementTexts are texts that contain several statements, or none.
var multiStatementTexts = []statementText{
	{text: ""}, {text: ";"}, {text: "-- nothing"}, {text: ";;SELECT 1;;", returnsRows: true},
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
		text: "DELETE FROM item WHERE id = 2; SELECT * FROM secret; SELECT 1", postgresText: policyRefusedText},
	{text: "SELECT 1; DROP TABLE item", postgresText: policyRefusedText},
	{text: "INSERT INTO item (id, rank) VALUES (85, 85); COPY item (id, rank) FROM STDIN"}, {
		text: "SELECT 1; SELEC"}, {text: "COMMIT; SELECT * FROM secret", postgresText: policyRefusedText},
	{text: "COPY item (id, rank) FROM STDIN; COPY item (id, rank) FROM STDIN"}, {
		text: "BEGIN; COPY item (id, rank) FROM STDIN; ROLLBACK"}, {text: "DISCARD ALL; SELECT 1", postgresText: policyRefusedText},
}

// copyDataPieces are pieces of data for COPY FROM, of which some are invalid.
var copyDataPieces = []string{"90\t90\tnew\n", "91\t91\tnew\n", "1\t92\told\n", "93\t3\tlater\n", "94,94\n", "95,95\n",
	"x\ty\tz\n", "96\t", "96\tpart\n", "\\.\n", "97\t97\tn\t5\n", "98\t98\tn\t500\n", "", "\n"}

// paramValue returns a value for a parameter, in text or binary format.
func paramValue(kind string, n int, binary bool) []byte {
	switch {
	case kind == "int" && binary:
		return []byte{0, 0, 0, byte(n % 12)}
	case kind == "int":
		return fmt.Append(nil, n%12)
	}
	return fmt.Append(nil, "text ", n%3)
}
