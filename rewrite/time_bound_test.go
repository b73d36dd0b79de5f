package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A date or time without a zone is cast to the type of the compared column only where both forms mean the same and the
// column has an index.
func TestTimeBounds(t *testing.T) {
	tier.All(t)
	r, conn := altered(t, RowSecurityMode,
		`ALTER TABLE memories ADD at timestamptz, ADD local timestamp, ADD day date, ADD loose timestamptz, ADD n int, ADD date_of text;
			CREATE INDEX ON memories (at); CREATE INDEX ON memories (n, local); CREATE INDEX ON memories (day)`)
	for condition, want := range map[string]string{
		"at >= CURRENT_DATE - interval '7 days'": "at >= (CURRENT_DATE " +
			"- interval '7 days')::pg_catalog.timestamptz",
		"m.at>=CURRENT_DATE-INTERVAL'7 days'AND n=1": "m.at>=(CURRENT_DATE-INTERVAL'7 days')::pg_catalog.timestamptz AND n=1",
		"at < (current_date + '1 month'::interval) OR n = 1": "at < (current_date " +
			"+ '1 month'::interval)::pg_catalog.timestamptz OR n = 1",
		"at > CURRENT_DATE - 30":   "at > (CURRENT_DATE - 30)::pg_catalog.timestamptz",
		"at = CURRENT_DATE":        "at = CURRENT_DATE::pg_catalog.timestamptz",
		"at >= DATE '2024-01-01'":  "at >= DATE '2024-01-01'::pg_catalog.timestamptz",
		"at >= '2024-01-01'::date": "at >= '2024-01-01'::date::pg_catalog.timestamptz",
		"at <= timestamp '2024-01-01 10:00:00'": "at <= timestamp " +
			"'2024-01-01 10:00:00'::pg_catalog.timestamptz",
		"at < '2024-01-01'::date + interval '1 month'": "at < ('2024-01-01'::date + interval '1 month')::pg_catalog.timestamptz",
		"at BETWEEN CURRENT_DATE - 7 AND CURRENT_DATE": "at BETWEEN (CURRENT_DATE - 7)::pg_catalog.timestamptz AND CURRENT_DATE::pg_catalog.timestamptz",
		"at BETWEEN date '2024-01-01' AND now()": "at BETWEEN date " +
			"'2024-01-01'::pg_catalog.timestamptz AND pg_catalog.now()",
		"at BETWEEN ((CURRENT_DATE - 7)) AND (date '2024-01-01' + 31)": "at BETWEEN ((CURRENT_DATE - " +
			"7))::pg_catalog.timestamptz AND (date '2024-01-01' + 31)::pg_catalog.timestamptz",
		"local >= CURRENT_DATE - 7 AND local < CURRENT_DATE": "local >= (CURRENT_DATE - " +
			"7)::pg_catalog.timestamp AND local < CURRENT_DATE::pg_catalog.timestamp",
		"at >= CURRENT_DATE /* x */ - /* y */ 7 -- z\n AND n = 1": "at >= (CURRENT_DATE " +
			"/* x */ - /* y */ 7)::pg_catalog.timestamptz -- z\n AND n = 1",
		"local >= CURRENT_DATE - interval '7 days'": "", // both sides have one type
		"local >= now() - interval '7 days'": "local OPERATOR(pg_catalog.>=) (((pg_catalog.now()) " +
			"OPERATOR(pg_catalog.-) '7 days'::pg_catalog.interval)::pg_catalog.timestamp OPERATOR(pg_catalog.-) " +
			"'2 days'::pg_catalog.interval) AND local >= pg_catalog.now() - interval '7 days'",
		"day >= CURRENT_DATE - interval '7 days'":                    "",
		"loose >= CURRENT_DATE":                                      "", // the column has no index
		"at <> CURRENT_DATE":                                         "",
		"at >= now() - interval '7 days'":                            "",
		"at >= CURRENT_TIMESTAMP":                                    "",
		"at >= '2024-01-01'":                                         "",
		"at >= $1::date":                                             "",
		"at >= CURRENT_DATE - n":                                     "",
		"at >= CURRENT_DATE - $1":                                    "",
		"at >= CURRENT_DATE - 1000000":                               "",
		"at >= CURRENT_DATE - interval '1000000 days'":               "",
		"at >= CURRENT_DATE - interval '7' day":                      "",
		"at >= CURRENT_DATE - interval '7 days' - interval '1 hour'": "",
		"at >= date '5000000-01-01'":                                 "",
		"at >= date 'infinity'":                                      "",
		"at >= date 'now'":                                           "",
		"at >= timestamp(0) '2024-01-01'":                            "",
		"at + interval '1 day' >= CURRENT_DATE":                      "",
		"CURRENT_DATE <= at":                                         "",
		"at = ANY (ARRAY[CURRENT_DATE])":                             "",
		"at IN (CURRENT_DATE)":                                       "",
		"at NOT BETWEEN CURRENT_DATE AND CURRENT_DATE":               "",
		"EXISTS (SELECT FROM people WHERE at >= CURRENT_DATE)":       "", // at may be a column of another table
		"at OPERATOR(pg_catalog.>=) CURRENT_DATE":                    "",
		"at >= CAST('2024-01-01' AS date)":                           "", // CAST() is not recognized
		"(SELECT max(x.at) FROM memories x) >= CURRENT_DATE - 1":     "",
		"EXISTS (SELECT FROM (SELECT at AS at2 FROM memories) q WHERE at2 >= CURRENT_DATE)": "",
	} {
		sql := "SELECT 1 FROM memories m WHERE " + condition
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if got := strings.Contains(result.Text, "::pg_catalog.timestamp"); got != (want != "") || !strings.Contains(result.Text, want) {
			t.Errorf("%s becomes %s", sql, result.Text)
		}
	}
	if r, _ := altered(t, RowSecurityMode, "ALTER TABLE memories ADD at timestamptz; CREATE INDEX ON memories (at); CREATE DOMAIN date AS text"); true {
		if result, refusal := r.Rewrite("SELECT 1 FROM memories WHERE at >= date '2024-01-01' - 1",
			false); refusal == nil && strings.Contains(result.Text, "::pg_catalog.timestamp") {
			t.Errorf("a date of the owner's: %s", result.Text)
		}
	}
	for _, sql := range []string{"SELECT at >= CURRENT_DATE, count(*) FROM memories d GROUP BY d.at >= CURRENT_DATE",
		"SELECT DISTINCT ON (d.at >= CURRENT_DATE) 1 FROM memories d ORDER BY at >= CURRENT_DATE",
		"SELECT 1 FROM memories m GROUP BY at HAVING at >= CURRENT_DATE"} {
		// one of the two conditions could be cast, but not the other
		if result, refusal := r.Rewrite(sql, false); refusal != nil || strings.Contains(result.Text, "::pg_catalog.timestamp") {
			t.Errorf("%s: %v, %s", sql, refusal, result.Text)
		}
	}
	for sql, want := range map[string]string{
		"UPDATE drafts SET title = 'a' FROM notes n WHERE made < CURRENT_DATE - 30":              "made < (CURRENT_DATE - 30)::pg_catalog.timestamptz",
		"DELETE FROM drafts d WHERE d.made < date '2024-01-01'":                                  "d.made < date '2024-01-01'::pg_catalog.timestamptz",
		"SELECT 1 FROM notes n LEFT JOIN drafts d ON d.note_id = n.id AND d.made = CURRENT_DATE": "d.made = CURRENT_DATE::pg_catalog.timestamptz",
	} {
		r := draftsRewriter(t, pgtest.Database(t).Connect(t, "postgres"), RowSecurityMode, "CREATE INDEX ON drafts (made)")
		if result, refusal := r.Rewrite(sql, false); refusal != nil || !strings.Contains(result.Text, want) {
			t.Errorf("%s: %v, %s", sql, refusal, result.Text)
		}
	}
	masked := draftsRewriter(t, pgtest.Database(t).Connect(t, "postgres"), RowSecurityMode, "")
	if result, refusal := masked.Rewrite("SELECT id FROM narrow WHERE seen >= CURRENT_DATE - 1",
		false); refusal != nil || strings.Contains(result.Text, "::pg_catalog.timestamp") {
		t.Errorf("a masked column: %v, %s", refusal, result.Text)
	}
	// PostgreSQL returns the same rows for both forms, also where summer time begins or ends.
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"} {
		for _, bound := range []string{"CURRENT_DATE", "CURRENT_DATE - 30", "CURRENT_DATE + interval '17 hours'",
			"CURRENT_DATE - interval '999 years'", "CURRENT_DATE - 100000", "date '1900-01-01'", "date '2011-12-30'",
			"date '2024-03-31'", "timestamp '2024-03-31 02:30'", "timestamp '2024-10-27 02:30'",
			"timestamp '2024-04-07 01:45'", "date '2024-03-10' + interval '2 hours'"} {
			for _, operator := range []string{"=", "<", "<=", ">", ">="} {
				var differingRows int
				err := conn.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM set_config('timezone', '%[1]s', false),
					LATERAL (SELECT v FROM unnest(ARRAY['-infinity', 'infinity', '4713-01-01 BC', '294276-01-01', NULL]::timestamptz[]) v
					UNION ALL SELECT (%[2]s)::timestamptz + g * interval '15 minutes' FROM generate_series(-12, 12) g) q
					WHERE (v %[3]s %[2]s) IS DISTINCT FROM (v %[3]s (%[2]s)::pg_catalog.timestamptz)`, zone, bound, operator)).Scan(&differingRows)
				if err != nil || differingRows != 0 {
					t.Errorf("%s: %s %s: %d differ, %v", zone, operator, bound, differingRows, err)
				}
				if strings.Contains(bound, "interval") || strings.HasPrefix(bound, "timestamp") { // for this column type only dates are cast
					continue
				}
				err = conn.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM unnest(ARRAY['-infinity', 'infinity', '4713-01-01 BC', '294276-01-01',
					'2024-03-31 00:00', '1900-01-01', '2011-12-30 00:00:01', (%[1]s)::timestamp, NULL]::timestamp[]) v
					WHERE (v %[2]s %[1]s) IS DISTINCT FROM (v %[2]s (%[1]s)::pg_catalog.timestamp)`, bound, operator)).Scan(&differingRows)
				if err != nil || differingRows != 0 {
					t.Errorf("without a zone: %s %s: %d differ, %v", operator, bound, differingRows, err)
				}
			}
		}
	}
}

// If a timestamp column without zone is compared with a time that has one, the rewriter adds a wider condition that an
// index supports. The added condition holds wherever the original one does, in every zone and at changes of summer
// time.
func TestTimeWindows(t *testing.T) {
	tier.All(t)
	r, conn := altered(t, RowSecurityMode, `ALTER TABLE memories ADD local timestamp, ADD loose timestamp; CREATE INDEX ON memories (local)`)
	const end = " OPERATOR(pg_catalog.+) '2 days'::pg_catalog.interval) AND "
	bounds := map[string]string{ // each bound, with its form in the added condition
		"now()":             "(pg_catalog.now())::",
		"CURRENT_TIMESTAMP": "(CURRENT_TIMESTAMP)::",
		"transaction_timestamp() + '1 month'::interval": "((pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.+) '1 month'::pg_catalog.interval)::",
		"now() - interval '7 days' - interval '1 hour'": "(((pg_catalog.now()) OPERATOR(pg_catalog.-) " +
			"'7 days'::pg_catalog.interval) OPERATOR(pg_catalog.-) '1 hour'::pg_catalog.interval)::",
		"date_trunc('week', CURRENT_DATE) - interval '1 week'": "((pg_catalog.date_trunc('week', " +
			"(CURRENT_DATE)::pg_catalog.timestamptz)) OPERATOR(pg_catalog.-) '1 week'::pg_catalog.interval)::",
		"date_trunc('month', now())": "(pg_catalog.date_trunc('month', pg_catalog.now()))::",
		"date_trunc('day', now()::date - 30)": "(pg_catalog.date_trunc('day', " +
			"(((pg_catalog.now())::pg_catalog.date) OPERATOR(pg_catalog.-) 30)::pg_catalog.timestamptz))::",
		"timestamptz '2024-03-31 01:30'": "('2024-03-31 01:30'::pg_catalog.timestamptz)::",
		"timestamptz '2011-12-30 12:00'": "('2011-12-30 12:00'::pg_catalog.timestamptz)::",
	}
	for bound, cteName := range bounds {
		for condition, wantedTexts := range map[string][]string{
			"local >= " + bound:                      {"local OPERATOR(pg_catalog.>=) (" + cteName, " AND local >= "},
			"m.local < " + bound + " OR title = 'x'": {"m.local OPERATOR(pg_catalog.<=) (" + cteName, " AND m.local < "},
			"title = 'x' AND (local = " + bound + ")": {"(local OPERATOR(pg_catalog.>=) (" + cteName,
				"local OPERATOR(pg_catalog.<=) (" + cteName, " AND local = "},
			"(local BETWEEN " + bound + " AND now()) AND title = 'x'": {"local OPERATOR(pg_catalog.>=) (" + cteName,
				"local OPERATOR(pg_catalog.<=) (" + "(pg_catalog.now())::", end},
		} {
			result, refusal := r.Rewrite("SELECT 1 FROM memories m WHERE "+condition, false)
			if refusal != nil {
				t.Errorf("%s: %v", condition, refusal)
				continue
			}
			for _, part := range wantedTexts {
				if !strings.Contains(result.Text, part) {
					t.Errorf("%s becomes %s, without %s", condition, result.Text, part)
				}
			}
		}
	}
	for _, condition := range []string{
		"local >= clock_timestamp()", "local >= $1::timestamptz", "loose >= now()", "NOT local >= now()", "local <> now()",
		"local >= now() - interval '1000000 days'", "local >= now() - make_interval(days => 7)", "local >= timestamptz 'infinity'",
		"local >= now()::timestamp", "local >= LOCALTIMESTAMP", "local >= date_trunc('century', now())",
		"local >= date_trunc('day', now(), 'UTC')", "local IN (now())", "local >= timestamptz '294276-12-31'",
	} {
		if result, refusal := r.Rewrite("SELECT 1 FROM memories WHERE "+condition, false); refusal != nil || strings.Contains(result.Text, "2 days") {
			t.Errorf("%s: %v, %s", condition, refusal, result.Text)
		}
	}
	if r, _ := altered(t, RowSecurityMode, `ALTER TABLE memories ADD local timestamp; CREATE INDEX ON memories (local);
		CREATE FUNCTION now(int DEFAULT 1) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'`); true {
		if result, refusal := r.Rewrite("SELECT 1 FROM memories WHERE local >= now()", false); refusal == nil && strings.Contains(result.Text, "2 days") {
			t.Errorf("a function of the owner's: %s", result.Text)
		}
	}
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Manila", "America/Juneau"} {
		for bound := range bounds {
			for operator, window := range map[string]string{"=": "v >= x - interval '2 days' AND v <= x + interval '2 days'",
				"<": "v <= x + interval '2 days'", "<=": "v <= x + interval '2 days'", ">": "v >= x - interval '2 days'", ">=": "v >= x - interval '2 days'"} {
				var lostRows int
				if err := conn.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM set_config('timezone', '%[1]s', false),
					LATERAL (SELECT (%[2]s)::timestamp) b(x),
					LATERAL (SELECT v FROM unnest(ARRAY['-infinity', 'infinity', '4713-01-01 BC', '294276-01-01', NULL]::timestamp[]) v
					UNION ALL SELECT x + g * interval '15 minutes' FROM generate_series(-200, 200) g) q
					WHERE v %[3]s %[2]s AND (%[4]s) IS NOT TRUE`, zone, bound, operator, window)).Scan(&lostRows); err != nil || lostRows != 0 {
					t.Errorf("%s: %s %s: %d rows are lost, %v", zone, operator, bound, lostRows, err)
				}
			}
		}
	}
}
