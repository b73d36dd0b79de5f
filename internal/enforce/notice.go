package enforce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/migrations"
)

const (
	// catalogChannel is what the event triggers of the database notify.
	catalogChannel = "pgconsent_catalog"
	// consentChannel is what the registry's trigger notifies.
	consentChannel = "pgconsent_consent"
	// noticeWait bounds how long a statement waits for a look that DDL has asked for. What is decided before that look is
	// refused by the database: waiting saves the client from having to try again.
	noticeWait = time.Second
	// listenAgain is the time between two attempts to listen.
	listenAgain = 2 * time.Second
)

// listen asks for a look whenever the database tells of DDL, until ctx ends. Where it cannot listen, looks come when they
// come.
func (d *database) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = d.listenOnce(ctx) // polling goes on
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

func (d *database) listenOnce(ctx context.Context) error {
	config := d.control.Copy()
	config.RuntimeParams["application_name"] = "pgconsent listener"
	opening, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(opening, config)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(opening, "LISTEN "+catalogChannel+"; LISTEN "+consentChannel); err != nil {
		return err
	}
	d.notice() // what came before that was not heard
	for {
		heard, err := conn.WaitForNotification(ctx)
		switch {
		case err != nil:
			return err
		case heard.Channel != consentChannel:
			d.notice()
			continue
		}
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		err = d.readEpoch(asking, conn)
		cancel()
		if err != nil {
			return err
		}
	}
}

// readEpoch takes over the number of the last record of consent, for the records of what is sent after it.
func (d *database) readEpoch(ctx context.Context, conn *pgx.Conn) error {
	var epoch int64
	if err := conn.QueryRow(ctx, "SELECT pgconsent.consent_epoch()").Scan(&epoch); err != nil {
		return fmt.Errorf("consent epoch: %w", err)
	}
	d.epoch.Store(epoch) // of two that are read at once either is right: what is sent later sees at least as much
	return nil
}

// notice asks for a look, which statements wait for from now on.
func (d *database) notice() {
	asked := make(chan struct{})
	d.noticed.CompareAndSwap(nil, &asked)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// looked lets the statements go on that have waited for a look which began after they were told to.
func (d *database) looked(asked *chan struct{}) {
	if asked != nil && d.noticed.CompareAndSwap(asked, nil) {
		close(*asked)
	}
}

// settle waits while a look is due.
func (d *database) settle(ctx context.Context) {
	asked := d.noticed.Load()
	if asked == nil {
		return
	}
	timeout := time.NewTimer(noticeWait)
	defer timeout.Stop()
	select {
	case <-*asked:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

// catalogVersion reads how many transactions have changed what of the catalogs concerns agents, as far as event
// triggers have noted them, and whether there are such.
func catalogVersion(ctx context.Context, conn *pgx.Conn) (version int64, told bool, err error) {
	err = conn.QueryRow(ctx, `SELECT pgconsent.catalog_version(), pg_catalog.count(*) OPERATOR(pg_catalog.>=) 2 FROM pg_catalog.pg_event_trigger AS t
		WHERE t.evtfoid OPERATOR(pg_catalog.=) pg_catalog.to_regprocedure('pgconsent.catalog_changed()') AND t.evtenabled IN ('O', 'A')`).Scan(&version, &told)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "3F000" || pg.Code == "42883") {
		return 0, false, migrations.ErrNotInstalled
	}
	return version, told, err
}

// moved tells whether another version of the catalogs is known than this one, or another time. While nothing is known
// it is not for a seal to say so.
func (d *database) moved(version int64, offset time.Duration) bool {
	v := d.view.Load()
	return v != nil && v.refusal == nil && (v.catalog != version || v.clockMoved(offset))
}

// clockMoved tells whether the database's clock or ours was moved between this look and one that found their difference
// to be offset.
func (v *view) clockMoved(offset time.Duration) bool { return (v.offset - offset).Abs() > clockSlack }

// clockSlack is how far apart two looks may find the clocks of the database and of this machine without that one of
// them was moved.
const clockSlack = 5 * time.Second
