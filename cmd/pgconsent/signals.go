package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible ends when SIGINT or SIGTERM comes. A second signal ends the program at once, by what the system does
// with it: from the moment at which the context is done, and also where it came before anybody could know of the first.
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
		// Whoever sees the context done may send the second: nothing may take it from the system by then.
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
