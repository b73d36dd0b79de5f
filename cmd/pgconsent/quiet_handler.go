package main

import (
	"context"
	"log/slog"
)

// quietHandler is a log handler that passes on only warnings and errors, since the demo prints its progress itself.
type quietHandler struct{ slog.Handler }

func (q quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

func (q quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{q.Handler.WithAttrs(attrs)}
}
func (q quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{q.Handler.WithGroup(name)}
}
