package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/serve"
)

type serveCmd struct {
	Drain time.Duration `default:"10s" placeholder:"TIME" help:"How long sessions may go on after SIGTERM or SIGINT. Default: ${default}."`
}

func (serveCmd) Help() string {
	return `Clients connect to "listen" of the configuration. SIGTERM and SIGINT drain: agents' sessions end when idle, all
others after --drain. Owners' sessions last until then, since the proxy cannot tell whether they are idle. ` +
		`A second signal ends the program at once. SIGHUP reads agents, credentials, policies and the certificate again.
GOMAXPROCS in the environment sets on how many processors it runs. Without it, that is half of the machine's, but two at least if an
audit in files is strict.

  pgconsent serve --config /etc/pgconsent/pgconsent.yaml --drain 25s`
}

func (c serveCmd) Run(s *session) error {
	if c.Drain <= 0 {
		return usageError{errors.New("--drain must be more than 0, such as 10s")}
	}
	cfg, err := s.loadConfig()
	if err != nil {
		return err
	}
	serve.LimitProcessors(cfg)
	defer serve.ReduceGC()()
	service, err := serve.New(s.ctx, serve.Options{Config: cfg, Log: s.log, DrainTime: c.Drain,
		Version: readVersion().String()})
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	go func() {
		for {
			select {
			case <-hangups:
				_ = service.Reload() // Reload has already logged its error
			case <-s.ctx.Done():
				return
			}
		}
	}()
	return service.Run(s.ctx)
}
