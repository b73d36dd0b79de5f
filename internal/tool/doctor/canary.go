package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/rls"
)

// canaryShapes are statements with an expression that fails if PostgreSQL evaluates it on the canary table's hidden
// row. Each has the expression at another place where the planner might evaluate it too early. %s is the canary table.
var canaryShapes = []string{
	"SELECT id FROM %s WHERE secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7",
	"SELECT a.id FROM %s AS a JOIN %s AS b ON a.secret::pg_catalog.int4 OPERATOR(pg_catalog.=) (b.id " +
		"OPERATOR(pg_catalog.+) 6)",
	"SELECT g FROM pg_catalog.generate_series(1, 3) AS g LEFT JOIN (SELECT id, secret::pg_catalog.int4 AS n FROM " +
		"%s) AS s ON s.id OPERATOR(pg_catalog.=) g WHERE s.n IS NOT NULL",
	"SELECT g FROM pg_catalog.generate_series(1, 3) AS g WHERE EXISTS (SELECT 1 FROM %s AS c WHERE c.id " +
		"OPERATOR(pg_catalog.=) g AND c.secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7)",
	"SELECT g - 1 FROM pg_catalog.generate_series(1, 2) AS g WHERE NOT EXISTS (SELECT 1 FROM %s AS c WHERE c.id " +
		"OPERATOR(pg_catalog.=) g AND c.secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7)",
	"SELECT 1 WHERE 5 NOT IN (SELECT secret::pg_catalog.int4 FROM %s)",
	"SELECT pg_catalog.max(id) FROM %s GROUP BY secret HAVING secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7",
	"SELECT id FROM %s ORDER BY secret::pg_catalog.int4 LIMIT 1",
	"SELECT pg_catalog.count(*) FILTER (WHERE secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7) FROM %s",
	"SELECT c.id FROM %s AS c, LATERAL (SELECT c.secret::pg_catalog.int4 AS n) AS x WHERE x.n OPERATOR(pg_catalog.=) 7",
	"SELECT (SELECT c.id FROM %s AS c WHERE c.secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7)",
	"SELECT DISTINCT ON (secret::pg_catalog.int4) id FROM %s",
	// Both comparisons are leak-proof. The second operand of the last one divides by zero if a row reaches it, and only
	// the hidden row passes the first comparison. No index has these columns.
	"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM %s WHERE secret OPERATOR(pg_catalog.=) 'a hidden row' AND consent " +
		"OPERATOR(pg_catalog.=) (SELECT (1 OPERATOR(pg_catalog./) (g OPERATOR(pg_catalog.-) g))::pg_catalog.text " +
		"FROM pg_catalog.generate_series(1, 1) AS g))",
	"SELECT id FROM %s WHERE secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7 UNION SELECT id FROM %s WHERE id " +
		"OPERATOR(pg_catalog.=) 1",
}

// signedCanaryShapes are such statements for the signed path: PostgreSQL must compute the expression that fails on the
// hidden row only for rows that passed the rule.
var signedCanaryShapes = []string{
	"SELECT a.id FROM %s AS a JOIN %s AS b ON a.id OPERATOR(pg_catalog.=) b.id WHERE b.secret OPERATOR(pg_catalog.<>) ''",
	"SELECT c.id FROM (SELECT * FROM %s AS c WHERE c.secret OPERATOR(pg_catalog.<>) '' OFFSET 0) AS c WHERE " +
		"c.secret::pg_catalog.int4 OPERATOR(pg_catalog.=) 7",
	"SELECT pg_catalog.max(c.id) FROM (SELECT * FROM %s AS c WHERE c.id OPERATOR(pg_catalog.>) 0 OFFSET 0) AS c " +
		"GROUP BY c.secret::pg_catalog.int4 ORDER BY c.secret::pg_catalog.int4 LIMIT 1",
}

// canaryPlans are settings that runCanary turns off, so that the planner chooses other plans; "" changes none.
var canaryPlans = []string{"", "enable_seqscan", "enable_nestloop", "enable_hashjoin, enable_mergejoin", "enable_hashagg"}

// checkRowSecurityPath reads the canary table under row security: no statement may fail, and each must return the id 1.
func (p *probe) checkRowSecurityPath(ctx context.Context) ([]Finding, error) {
	finding := func(message string) Finding {
		return Finding{"row_security_path", SeverityUnsafe, "row security does not hold on this server as it should: " +
			message,
			"Report it with the version of the server; agents are not served."}
	}
	var found []Finding
	err := p.runCanary(ctx, rls.CanaryTable(), []string{"", predicate.UseHashHint, predicate.UseIndexHint},
		func(sql, answer string, err error) error {
			var pg *pgconn.PgError
			switch {
			case err != nil && !errors.As(err, &pg), err != nil && pg.Code == queryCanceled:
				return err
			case err != nil:
				found = append(found, finding(fmt.Sprintf("%s fails with %s", sql, pg.Code)))
			case answer != "1":
				found = append(found, finding(fmt.Sprintf("%s shows %q", sql, answer)))
			}
			return nil
		})
	return found, err
}

// checkSignedPath reads the canary's signed view. Without a signature the view must raise an error before PostgreSQL
// evaluates anything else; with a signature each statement must return the id 1.
func (p *probe) checkSignedPath(ctx context.Context) ([]Finding, error) {
	if !p.Plan.HasSignedViews() {
		return nil, nil
	}
	finding := func(message string) Finding {
		return Finding{SignedPathProbe, SeverityNoSignedPath,
			"the signed path is off, statements take the row security path: " +
				message, "Report it with the version of the server."}
	}
	var found []Finding
	err := p.runCanary(ctx, rls.CanarySignedView(), []string{""}, func(sql, _ string, err error) error {
		var pg *pgconn.PgError
		switch {
		case err == nil:
			found = append(found, finding("it answers without a signature: "+sql))
		case !errors.As(err, &pg), pg.Code == queryCanceled:
			return err
		case pg.Code != "42501":
			found = append(found, finding(fmt.Sprintf("%s fails with %s before the signature is verified", sql, pg.Code)))
		}
		return nil
	})
	if err != nil {
		return found, err
	}
	if _, err := p.isSealAccepted(ctx, p.keys.NewestKey().Seal(p.emptyClaims(ctx))); err != nil {
		return found, err
	}
	var statements []string
	for _, shape := range signedCanaryShapes {
		statements = append(statements, p.keys.NewestKey().Sign("doctor", strings.ReplaceAll(shape, "%s",
			rls.CanarySignedView())))
	}
	err = p.firstColumns(ctx, statements, func(sql, answer string, err error) error {
		var pg *pgconn.PgError
		if err != nil && (!errors.As(err, &pg) || pg.Code == queryCanceled) {
			return err
		}
		if err != nil || answer != "1" {
			found = append(found, finding(fmt.Sprintf("signed, %s shows %q (%v)",
				signedCanaryShapes[slices.Index(statements, sql)], answer, err)))
		}
		return nil
	})
	if err != nil {
		return found, err
	}
	_, err = p.conn.Exec(ctx, "RESET "+seal.Setting)
	return found, err
}

// eachSetting runs the statement planSettings once for each setting that the plan names; %s is the setting.
func (p *probe) eachSetting(ctx context.Context, plan, planSettings string) error {
	for _, setting := range strings.Split(plan, ", ") {
		if setting == "" {
			continue
		}
		if _, err := p.conn.Exec(ctx, fmt.Sprintf(planSettings, setting)); err != nil {
			return err
		}
	}
	return nil
}

// runCanary runs every shape with each of the hints before it and with every plan, in a sealed session, and calls judge
// with each answer. The statements of a plan are sent at once, since a round trip takes long on a busy server.
func (p *probe) runCanary(ctx context.Context, relation string, hints []string,
	judge func(sql, answer string, err error) error) error {
	var statements []string
	for _, shape := range canaryShapes {
		for _, hint := range hints {
			statements = append(statements, hint+strings.ReplaceAll(shape, "%s", relation))
		}
	}
	if _, err := p.isSealAccepted(ctx, p.keys.NewestKey().Seal(p.emptyClaims(ctx))); err != nil {
		return err
	}
	for _, plan := range canaryPlans {
		if err := p.eachSetting(ctx, plan, "SET %s = off"); err != nil {
			return err
		}
		if err := p.firstColumns(ctx, statements, judge); err != nil {
			return err
		}
		if err := p.eachSetting(ctx, plan, "RESET %s"); err != nil {
			return err
		}
	}
	_, err := p.conn.Exec(ctx, "RESET "+seal.Setting)
	return err
}

// firstColumns sends the statements in one pipeline, each in a separate transaction.
func (p *probe) firstColumns(ctx context.Context, statements []string,
	judge func(sql, got string, err error) error) (err error) {
	pipeline := p.conn.PgConn().StartPipeline(ctx)
	defer func() {
		if closeErr := pipeline.Close(); err == nil {
			err = closeErr
		}
	}()
	for _, sql := range statements {
		pipeline.SendQueryParams(sql, nil, nil, nil, nil)
		pipeline.SendPipelineSync()
	}
	if err := pipeline.Flush(); err != nil {
		return err
	}
	var pg *pgconn.PgError
	for _, sql := range statements {
		var got []string
		answer, resultErr := pipeline.GetResults()
		if reader, ok := answer.(*pgconn.ResultReader); ok && resultErr == nil {
			result := reader.Read()
			resultErr = result.Err
			for _, row := range result.Rows {
				if row[0] != nil {
					got = append(got, string(row[0]))
				}
			}
		}
		if resultErr != nil && !errors.As(resultErr, &pg) {
			return resultErr
		}
		if answer, err := pipeline.GetResults(); err != nil {
			return err
		} else if _, ok := answer.(*pgconn.PipelineSync); !ok {
			return fmt.Errorf("%s: the server answers with %T", sql, answer)
		}
		if err := judge(sql, strings.Join(got, ","), resultErr); err != nil {
			return err
		}
	}
	return nil
}
