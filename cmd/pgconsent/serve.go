package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/pgconsent/pgconsent/serve"
)

type serveCmd struct{}

func (serveCmd) Help() string {
	return `Clients connect to "listen" of the configuration. SIGTERM and SIGINT drain: sessions end when idle, all after
30 seconds. SIGHUP reads agents, credentials, policies and the certificate again.

  pgconsent serve --config /etc/pgconsent/pgconsent.yaml`
}

func (serveCmd) Run(s *session) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	service, err := serve.New(s.ctx, serve.Options{Config: c, Log: s.log})
	if err != nil {
		return err
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	go func() {
		for {
			select {
			case <-hup:
				_ = service.Reload() // logged
			case <-s.ctx.Done():
				return
			}
		}
	}()
	return service.Run(s.ctx)
}
