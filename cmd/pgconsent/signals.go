package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that ends with SIGINT or SIGTERM. A second signal ends the program at once, by the
// system's default: also if it comes just after the first.
func interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		// The second signal may come as soon as the context is done: it must not be caught by then.
		signal.Stop(signals)
		select {
		case second := <-signals:
			_ = syscall.Kill(os.Getpid(), second.(syscall.Signal))
		default:
		}
		cancel()
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}
