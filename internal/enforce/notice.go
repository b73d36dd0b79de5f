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
	// catalogChannel is the notification channel on which the database's event triggers report DDL.
	catalogChannel = "pgconsent_catalog"
	// consentChannel is the notification channel on which the trigger of the consent registry reports changes.
	consentChannel = "pgconsent_consent"
	// maxProbeWait limits how long a statement waits for a probe after DDL. The database would refuse a statement that was
	// decided before the probe, and the client would have to try again.
	maxProbeWait = time.Second
	// listenRetryDelay is the time between two attempts to listen for notifications.
	listenRetryDelay = 2 * time.Second
)

// listen requests a probe whenever the database notifies pgconsent of DDL, until ctx ends. While it cannot listen, only
// the periodic probes notice DDL.
func (d *database) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = d.listenOnce(ctx) // After an error, the periodic probes still notice DDL.
		select {
		case <-ctx.Done():
		case <-time.After(listenRetryDelay):
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
	d.requestProbe() // Notifications before LISTEN were missed.
	for {
		heard, err := conn.WaitForNotification(ctx)
		switch {
		case err != nil:
			return err
		case heard.Channel != consentChannel:
			d.requestProbe()
			continue
		}
		asking, cancel := context.WithTimeout(ctx, controlTimeout)
		err = d.readEpoch(asking, conn)
		cancel()
		if err != nil {
			return err
		}
	}
}

// readEpoch reads the number of the last change of consent. The audit records of later statements have this number.
func (d *database) readEpoch(ctx context.Context, conn *pgx.Conn) error {
	var epoch int64
	if err := conn.QueryRow(ctx, "SELECT pgconsent.consent_epoch()").Scan(&epoch); err != nil {
		return fmt.Errorf("consent epoch: %w", err)
	}
	// Either of two concurrent readings may be stored last: a later statement sees at least the changes up to both.
	d.epoch.Store(epoch)
	return nil
}

// requestProbe requests a probe. Statements wait for this probe from now on.
func (d *database) requestProbe() {
	request := make(chan struct{})
	d.pendingProbe.CompareAndSwap(nil, &request)
	select {
	case d.probeRequests <- struct{}{}:
	default:
	}
}

// finishProbe ends the waiting of statements for a probe that was requested before the probe began.
func (d *database) finishProbe(request *chan struct{}) {
	if request != nil && d.pendingProbe.CompareAndSwap(request, nil) {
		close(*request)
	}
}

// waitForProbe waits until a requested probe is done, but at most for maxProbeWait.
func (d *database) waitForProbe(ctx context.Context) {
	request := d.pendingProbe.Load()
	if request == nil {
		return
	}
	timeout := time.NewTimer(maxProbeWait)
	defer timeout.Stop()
	select {
	case <-*request:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

// catalogVersion reads the version of the catalogs. It is the number of transactions that changed parts which concern
// agents, as event triggers count them. known is false if these triggers do not exist.
func catalogVersion(ctx context.Context, conn *pgx.Conn) (version int64, known bool, err error) {
	err = conn.QueryRow(ctx, "SELECT pgconsent.catalog_version(), "+migrations.TracksDDL).Scan(&version, &known)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "3F000" || pg.Code == "42883") {
		return 0, false, migrations.ErrNotInstalled
	}
	return version, known, err
}

// catalogOrClockMoved reports whether the last probe found another version of the catalogs, or the database's clock set
// to another time. It returns false while agents are refused: then a seal need not be renewed.
func (d *database) catalogOrClockMoved(version int64, offset time.Duration) bool {
	v := d.servingState.Load()
	return v != nil && v.refusal == nil && (v.catalogVersion != version || v.hasClockMoved(offset))
}

// hasClockMoved reports whether the clock of the database, or of the proxy, was set to another time between two probes.
// offset is the difference of the two clocks that the other probe found.
func (v *servingState) hasClockMoved(offset time.Duration) bool {
	return (v.clockOffset - offset).Abs() > clockSlack
}

// clockSlack is how much the difference of the two clocks may vary between two probes although neither clock was set.
const clockSlack = 5 * time.Second
