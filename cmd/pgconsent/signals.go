package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// signalContext returns a context that ends with SIGINT or SIGTERM. A second signal ends the program at once, even if
// it comes directly after the first.
func signalContext() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		// From now on, the second signal must end the program. It may come as soon as the context is done.
		signal.Stop(signals)
		select {
		case secondSignal := <-signals:
			_ = syscall.Kill(os.Getpid(), secondSignal.(syscall.Signal))
		default:
		}
		cancel()
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// endWithOutput returns a session whose context also ends with SIGHUP, or when nobody reads stdout or stderr any more.
// By default, both would end the program without cleaning up.
func (s *session) endWithOutput() (_ *session, stop func()) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case got := <-signals:
				if got == syscall.SIGHUP {
					cancel(context.Canceled)
				}
			}
		}
	}()
	endingSession := *s
	endingSession.ctx = ctx
	endingSession.out, endingSession.err = &cancellingWriter{s.out, cancel}, &cancellingWriter{s.err, cancel}
	return &endingSession, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// cancellingWriter cancels a context when nobody reads its output any more.
type cancellingWriter struct {
	writer io.Writer
	cancel context.CancelCauseFunc
}

func (w *cancellingWriter) Write(b []byte) (int, error) {
	n, err := w.writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		w.cancel(syscall.EPIPE)
	}
	return n, err
}
