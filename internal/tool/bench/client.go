package bench

import (
	"context"
	"maps"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// benchClient is a connection that sends the statement again and again.
type benchClient struct {
	conn          *pgconn.PgConn
	statement     Statement
	protocol      Protocol
	nextStatement int // index of the next text or values
	durations     []time.Duration
}

const preparedName = "pgconsent_bench"

// ConnectTo opens a connection whose transactions are read-only by default.
func ConnectTo(ctx context.Context, config *pgconn.Config) (*pgconn.PgConn, error) {
	c := config.Copy()
	c.RuntimeParams = maps.Clone(c.RuntimeParams)
	if c.RuntimeParams == nil {
		c.RuntimeParams = map[string]string{}
	}
	c.RuntimeParams["default_transaction_read_only"] = "on"
	c.RuntimeParams["application_name"] = preparedName
	return pgconn.ConnectConfig(ctx, c)
}

// connect logs a client in, prepares the statement and runs it once.
func connect(ctx context.Context, w Target, s Statement, protocol Protocol, number int) (*benchClient, error) {
	conn, err := ConnectTo(ctx, w.Connect)
	if err != nil {
		return nil, err
	}
	c := &benchClient{conn: conn, statement: s, protocol: protocol, nextStatement: number}
	if protocol == Prepared {
		_, err = conn.Prepare(ctx, preparedName, s.Text, nil)
	}
	if err == nil {
		err = c.runOnce(ctx)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *benchClient) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.conn.Close(ctx)
}

// run sends the statement until the time until, and counts transactions that end after countFrom.
func (c *benchClient) run(ctx context.Context, countFrom, until time.Time) error {
	for now := time.Now(); now.Before(until); {
		if err := c.runOnce(ctx); err != nil {
			return err
		}
		end := time.Now()
		if end.After(countFrom) {
			c.durations = append(c.durations, end.Sub(now))
		}
		now = end
	}
	return nil
}

// runOnce sends the statement and reads its answer to the end.
func (c *benchClient) runOnce(ctx context.Context) error {
	n := c.nextStatement
	c.nextStatement++
	if c.protocol == Simple {
		return c.conn.Exec(ctx, c.statement.Texts[n%len(c.statement.Texts)]).Close()
	}
	var values [][]byte
	if valueSets := c.statement.Values; len(valueSets) > 0 {
		values = valueSets[n%len(valueSets)]
	}
	if c.protocol == Prepared {
		_, err := c.conn.ExecPrepared(ctx, preparedName, values, nil, nil).Close()
		return err
	}
	_, err := c.conn.ExecParams(ctx, c.statement.Text, values, nil, nil, nil).Close()
	return err
}
